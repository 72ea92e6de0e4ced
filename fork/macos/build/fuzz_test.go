package build

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mpsforge/internal/require"
)

// FuzzNinja: no output of a build and no log of ninja's makes progress, estimate or diagnosis panic, or a figure of them absurd.
func FuzzNinja(f *testing.F) {
	recorded := require.One(os.ReadFile("testdata/ninja/pytorch-2.6.0-c10.log"))(f)
	f.Add(recorded[:min(len(recorded), 4096)], []byte("# ninja log v5\n0\t10\t0\ta.o\tff\n"))
	f.Add([]byte("[1/2/1] CXX a.o\n[99999999999999999999/1/1] x\nFAILED: a.o \ncc -c a.c\na.c:1:2: error: no\n"),
		[]byte("5\t1\t0\ta\tx\n-9223372036854775808\t9223372036854775807\t0\tb\tx\n"))
	f.Add([]byte("CMake Error at a.txt:1 (find):\n  no\n\r\x1b[31mKilled: 9\nNo space left on device"), []byte("\t\t\t\t\n"))
	f.Fuzz(func(t *testing.T, output, log []byte) {
		path := filepath.Join(t.TempDir(), ".ninja_log")
		require.NoError(t, os.WriteFile(path, log, 0o600))
		known, err := durations(path)
		if err != nil {
			known = nil
		}
		for name, took := range known {
			if took < 0 {
				t.Fatalf("%q took %v, of %q", name, took, log)
			}
		}
		sink := &eventLog{}
		w := newWatcher(io.Discard, sink, StepCompile, newEstimator(known, []string{"CXX a.o"}))
		_, _ = w.Write(output)
		if left, ok := w.estimator.left(2*time.Second, 1, 3); ok && left < 0 {
			t.Errorf("%v left", left)
		}
		for _, p := range sink.progress {
			if p.Done < 0 || p.Total < 0 || p.Left < 0 {
				t.Errorf("%+v of %q", p, output)
			}
		}
		if failure := diagnose(StepCompile, "/tree", w.output(), errors.New("exit status 1"), "log"); failure.Err == nil || failure.Error() == "" {
			t.Errorf("no diagnosis of %q", output)
		}
	})
}
