package process

import (
	"strings"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/reports"
)

// How a process ended is reported in the words of the signatures.
func TestEndings(t *testing.T) {
	abort := func(script string) error {
		_, err := run.Command{Name: "sh", Args: []string{"-c", script}}.Run(t.Context())
		return err
	}
	for name, c := range map[string]struct {
		output, script, problem, signature string
		kind                               reports.Outcome
	}{
		"Metal's assertion": {"-[IOGPUMetalCommandBuffer validate]:215: failed assertion `commit an already committed command buffer'\n", "kill -ABRT $$",
			"died by signal aborted", "3", reports.OutcomeCrashed},
		"a crash without words": {"", "kill -SEGV $$", "died by signal segmentation fault", "", reports.OutcomeCrashed},
		"AddressSanitizer": {"==1==ERROR: AddressSanitizer: heap-use-after-free on address 0x1\n", "exit 67", "heap-use-after-free", "",
			reports.OutcomeCrashed},
		"a crash under ThreadSanitizer": {"==1==ERROR: ThreadSanitizer: SEGV on unknown address 0x1\n", "exit 66", "SEGV on unknown address", "",
			reports.OutcomeCrashed},
		"an exception that nothing catches": {"terminate called after throwing an instance of 'E'\n  what():  no identifier\nframe #0: f (/mpsforge/a.so)\n",
			"kill -ABRT $$", "died by signal aborted: what():  no identifier", "", reports.OutcomeCrashed},
		"a crash of Python, after words": {"end_encoding of command buffer 8\nFatal Python error: Aborted\n\nStack:\n  File \"a.py\", line 3\n",
			"kill -ABRT $$",
			"died by signal aborted: end_encoding of command buffer 8", "", reports.OutcomeCrashed},
		"a crash of Python without words": {"Fatal Python error: Segmentation fault\n\n  File \"a.py\", line 3\n", "kill -SEGV $$",
			"died by signal segmentation fault: File \"a.py\", line 3", "", reports.OutcomeCrashed},
		"an unknown end": {"something\nlast words\n", "exit 9", "exit code 9: last words", "", reports.OutcomeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			end := Result{Output: c.output}
			end.Crashed(abort(c.script))
			if !strings.Contains(end.Problem, c.problem) || !strings.HasPrefix(end.Signature, c.signature) ||
				(c.signature == "") != (end.Signature == "") || end.Kind != c.kind {
				t.Errorf("%q, signature %q, %s", end.Problem, end.Signature, end.Kind)
			}
		})
	}
}

// The line that shows a result again sets what the software Metal and PyTorch were set to, and nothing that is the machine's.
func TestAgainNamesTheSettings(t *testing.T) {
	environment := []string{"HOME=/root", "MPSFORGE_METAL_GRAPH_SPLIT=seed", "PYTORCH_ENABLE_MPS_FALLBACK=0", "TSAN_OPTIONS=x", "MPSFORGE_METAL_GRAPH_SPLIT=0"}
	got := Again(environment, run.Command{Name: "scenarios", Args: []string{"failed-work"}})
	require.Equal(t, got, "MPSFORGE_METAL_GRAPH_SPLIT=0 PYTORCH_ENABLE_MPS_FALLBACK=0 scenarios failed-work")
}
