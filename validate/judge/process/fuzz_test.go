package process

import (
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"mpsforge/internal/require"
	"mpsforge/reports"
)

// FuzzOutput: whatever a process writes to standard error, its end gets one printable line, and it is not taken for a pass.
func FuzzOutput(f *testing.F) {
	races := require.One(os.ReadFile("testdata/tsan-profiler.txt"))(f)
	f.Add(string(races))
	f.Add("-[IOGPUMetalCommandBuffer validate]:215: failed assertion `commit an already committed command buffer'\ncommit by thread 4, after " +
		"commit by thread 1\n")
	f.Add("==1==ERROR: AddressSanitizer: heap-use-after-free on address 0x1\x1b[2J\n")
	f.Add("WARNING: ThreadSanitizer: data race (pid=1)\n  Write of size 4 at 0x7b by thread T5:\n    #0 f a.cc:1\n\n")
	f.Add("WARNING: ThreadSanitizer: \n0")
	f.Add("WARNING: ThreadSanitizer: race (pid=1)\n  Write of size 4 at 0x7b by \x1b[2J:\n    #0 f\x00 a.cc:1\n")
	f.Fuzz(func(t *testing.T, output string) {
		end := Result{Output: output, Kind: reports.OutcomeCrashed}
		end.Crashed(errors.New("exit status 1"))
		if end.Problem == "" || end.Kind == "" || end.Kind == reports.OutcomePassed {
			t.Fatalf("%+v", end)
		}
		texts := []string{end.Problem, end.Signature}
		for _, found := range Findings([]Result{end}) {
			texts = append(texts, found.Kind, found.Message, found.First, found.Second)
		}
		for _, text := range texts {
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\x1b\x00\n") {
				t.Errorf("%q of %q", text, output)
			}
		}
	})
}
