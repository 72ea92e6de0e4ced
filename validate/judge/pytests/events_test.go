package pytests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/reports"
)

const (
	identityEvent = `{"event": "identity", "library": "/torch.so"}` + "\n"
	resultEvent   = `{"event": "result", "expected": 1, "operations": 1, "answers": 1, "values": 1}` + "\n"
)

// scripted is a subject whose Python is a shell script.
func scripted(t *testing.T, wanted wantedTorch, program string) *Subject {
	t.Helper()
	path := filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+program), 0o755); err != nil {
		t.Fatal(err)
	}
	return &Subject{Name: "script", interpreter: path, Device: "cpu", wanted: wanted}
}

// ends runs a script in the place of Python, with its words for the events.
func ends(t *testing.T, program string) (problem, skipped string) {
	t.Helper()
	subject := scripted(t, wantedTorch{any: true}, program)
	end, _, err := Run{Subject: subject, Test: "any", Threads: 1, Iterations: 1, limits: defaultLimits}.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if (end.Problem == "") != (end.Kind == reports.Outcome("")) {
		t.Errorf("problem %q of kind %q", end.Problem, end.Kind)
	}
	return end.Problem, end.Skipped
}

func says(words, descriptor string) string {
	return "printf '%s' '" + words + "' >&" + descriptor + "\n"
}

func TestOneResultIsAPass(t *testing.T) {
	if problem, skipped := ends(t, says(identityEvent+resultEvent, "3")); problem != "" || skipped != "" {
		t.Errorf("%q, %q", problem, skipped)
	}
}

func TestLinesThatLookLikeResultsAreNone(t *testing.T) {
	for _, descriptor := range []string{"1", "2"} {
		problem, _ := ends(t, says(identityEvent, "3")+says(identityEvent+resultEvent, descriptor))
		if problem != "exit code 0, but without a result" {
			t.Errorf("written to %s: %q", descriptor, problem)
		}
	}
}

func TestASecondResultIsNoPass(t *testing.T) {
	wrong := strings.Replace(resultEvent, `"values": 1`, `"values": 1, "wrong": 1`, 1)
	skip := `{"event": "skip", "reason": "none"}` + "\n"
	for _, words := range []string{wrong + resultEvent, wrong + skip, skip + resultEvent} {
		if problem, skipped := ends(t, says(identityEvent+words, "3")); !strings.Contains(problem, "a second end") {
			t.Errorf("%s: %q, %q", words, problem, skipped)
		}
	}
}

func TestASecondTorchIsNoPass(t *testing.T) {
	if problem, _ := ends(t, says(identityEvent+identityEvent+resultEvent, "3")); !strings.Contains(problem, "a second identity") {
		t.Error(problem)
	}
}

func TestAResultWithoutATorchIsNoPass(t *testing.T) {
	if problem, _ := ends(t, says(resultEvent, "3")); problem != "it did not report which torch it loaded" {
		t.Error(problem)
	}
}

func TestAnErrorExitAfterTheResultIsNoPass(t *testing.T) {
	if problem, _ := ends(t, says(identityEvent+resultEvent, "3")+"exit 3\n"); !strings.HasPrefix(problem, "after its result: exit code 3") {
		t.Error(problem)
	}
}

func TestAFloodOfLateErrorsIsBounded(t *testing.T) {
	w := &watch{}
	w.read(strings.NewReader(resultEvent + strings.Repeat(`{"event": "late", "errors": ["one"]}`+"\n", 100*mostErrors)))
	if len(w.result.Errors) != mostErrors || w.garbage != "" {
		t.Errorf("%d errors, %q", len(w.result.Errors), w.garbage)
	}
}
