package validate

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/fork/build"
	"mpsforge/internal/run"
)

// A host build's Python runs programs on device mps over the checkout's own bindings and package, not over those that the
// prebuilt torch has, stock and patched.
func TestHostPython(t *testing.T) {
	for name, stock := range map[string]bool{"stock": true, "patched": false} {
		t.Run(name, func(t *testing.T) {
			built, _ := hostBuild(t.Context(), t, build.Plain, stock, false)
			if built.NoPython != "" {
				t.Fatal(built.NoPython)
			}
			program, err := filepath.Abs("testdata/python/device.py")
			if err != nil {
				t.Fatal(err)
			}
			found, err := run.Command{Name: built.Python, Args: []string{program}}.Run(t.Context())
			if err != nil {
				t.Fatalf("%v\n%s", err, found.Stdout)
			}
			var said struct{ Stamp string }
			if err := json.Unmarshal(found.Stdout, &said); err != nil {
				t.Fatalf("%v in %s", err, found.Stdout)
			}
			if want, err := built.Stamp.Text(); err != nil || said.Stamp != want {
				t.Errorf("the loaded library is from %s, want %s, %v", said.Stamp, want, err)
			}
			if !strings.Contains(string(found.Stderr), "\nOK") {
				t.Errorf("not all tests ran: %s", found.Stderr)
			}
		})
	}
}
