package builds_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/internal/events"
)

// said keeps the messages.
type said struct{ text []string }

func (s *said) Emit(event events.Event) {
	if message, ok := event.(events.Message); ok {
		s.text = append(s.text, message.Text)
	}
}

// What a download takes is said before it, for a folder that is not there yet, too; where it has no room it does not begin.
func TestDownloadsAreAnnounced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	var sink said
	if err := builds.Downloading(&sink, dir, "packages", 1_000_000, 2_500); err != nil || len(sink.text) != 1 || !strings.HasPrefix(sink.text[0],
		"download packages: 1.0 MB, 2.5 kB unpacked; ") {
		t.Errorf("%v, %q", err, sink.text)
	}
	sink = said{}
	err := builds.Downloading(&sink, dir, "packages", 1, 1<<60)
	if !errors.Is(err, builds.ErrEnvironment) || !strings.Contains(err.Error(), "packages needs 1152921504.6 GB of disk") || len(sink.text) != 0 {
		t.Errorf("%v, %q", err, sink.text)
	}
	t.Setenv(builds.AnySpace, "1")
	if err := builds.Downloading(&sink, dir, "packages", 1, 1<<60); err != nil || len(sink.text) != 1 {
		t.Errorf("%v, %q", err, sink.text)
	}
}
