package pytests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mpsforge/internal/require"
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
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+program), 0o755))
	return &Subject{Name: "script", interpreter: path, Device: "cpu", wanted: wanted}
}

// ends runs a script in the place of Python, with its words for the events.
func ends(t *testing.T, program string) (problem, skipped string) {
	t.Helper()
	subject := scripted(t, wantedTorch{any: true}, program)
	end, _, err := Run{Subject: subject, Test: "any", Threads: 1, Iterations: 1, limits: defaultLimits}.run(t.Context())
	require.NoError(t, err)
	if (end.Problem == "") != (end.Kind == reports.Outcome("")) {
		t.Errorf("problem %q of kind %q", end.Problem, end.Kind)
	}
	return end.Problem, end.Skipped
}

func says(words, descriptor string) string {
	return "printf '%s' '" + words + "' >&" + descriptor + "\n"
}

func TestEventsThatAreAPass(t *testing.T) {
	wrong := strings.Replace(resultEvent, `"values": 1`, `"values": 1, "wrong": 1`, 1)
	late := `{"event": "late", "errors": [], "findings": [{"kind": 1, "message": "a race"}]}` + "\n"
	none := "^exit code 0, but without a result$"
	skip := `{"event": "skip", "reason": "none"}` + "\n"
	for name, c := range map[string]struct{ program, problem string }{
		"one result is": {says(identityEvent+resultEvent, "3"), "^$"},
		"lines on stdout that look like it are none": {says(identityEvent, "3") + says(identityEvent+resultEvent, "1"), none},
		"lines on stderr that look like it are none": {says(identityEvent, "3") + says(identityEvent+resultEvent, "2"), none},
		"a second result is none":                    {says(identityEvent+wrong+resultEvent, "3"), "a second end"},
		"a skip after a result is none":              {says(identityEvent+wrong+skip, "3"), "a second end"},
		"a result after a skip is none":              {says(identityEvent+skip+resultEvent, "3"), "a second end"},
		"a result with a finding after it is none":   {says(identityEvent+resultEvent+late, "3"), "^findings of the software Metal: 1, the first: a race"},
		"a second torch is none":                     {says(identityEvent+identityEvent+resultEvent, "3"), "a second identity"},
		"a result without a torch is none":           {says(resultEvent, "3"), "^it did not report which torch it loaded$"},
		"an error exit after the result is none":     {says(identityEvent+resultEvent, "3") + "exit 3\n", "^after its result: exit code 3"},
	} {
		t.Run(name, func(t *testing.T) {
			if problem, skipped := ends(t, c.program); !regexp.MustCompile(c.problem).MatchString(problem) || skipped != "" {
				t.Errorf("%q, %q", problem, skipped)
			}
		})
	}
}

func TestAFloodOfLateErrorsIsBounded(t *testing.T) {
	w := &watch{}
	w.read(strings.NewReader(resultEvent + strings.Repeat(`{"event": "late", "errors": ["one"]}`+"\n", 100*mostErrors)))
	if len(w.result.Errors) != mostErrors || w.garbage != "" {
		t.Errorf("%d errors, %q", len(w.result.Errors), w.garbage)
	}
}
