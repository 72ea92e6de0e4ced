package events

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// FuzzStream: a stream that somebody sends cannot make a renderer panic, and nothing of it reaches the terminal but text.
func FuzzStream(f *testing.F) {
	var written bytes.Buffer
	at := time.Unix(1e9, 0)
	NewJSON(&written).Show([]Record{{at, Stream{Version: Version}}, {at, StepStarted{Step: "a"}},
		{at, StepProgress{Step: "a", Done: 1, Total: 2, Note: "\x1b[2J"}},
		{at, PartFinished{Part: Part{Step: "a", Name: "p"}, Outcome: Crashed, Detail: "\u202e"}}, {at, Message{Level: Warning, Text: "one\ntwo\r"}},
		{at, StepFinished{Step: "a", Outcome: OK}}, {at, End{}}})
	f.Add(written.Bytes())
	for line := range bytes.Lines(written.Bytes()) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		var shown bytes.Buffer
		renderer, state := NewPlain(&shown, false), NewState()
		reader := NewReader(bytes.NewReader(stream))
		for {
			record, err := reader.Next()
			if err != nil {
				if err != io.EOF && !utf8.ValidString(err.Error()) {
					t.Errorf("%q", err)
				}
				break
			}
			renderer.Show([]Record{record})
			state.Apply(record)
		}
		_ = state.Status(at)
		_ = state.Active()
		if text := shown.String(); !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
			t.Errorf("%q of %q", text, stream)
		}
	})
}
