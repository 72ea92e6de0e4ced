package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/patches"
)

// One cause has one exit code, whatever command finds it, in plain form, in JSON, and with JSON progress.
func TestOneCauseOneCode(t *testing.T) {
	series, err := filepath.Abs("../../patches")
	require.NoError(t, err)
	onCheckout := []string{"apply", "unapply", "status", "export --out new/v2.9.1", "port --to v2.6.0 --check", "pr --issue 1", "pr status",
		"build --dry-run", "build --host",
		"shell", "verify --stages checkout", "recover", "baseline record --patches patches"}
	with := func(commands []string, more string) []string {
		var all []string
		for _, command := range commands {
			all = append(all, strings.TrimSpace(command+" "+more))
		}
		return all
	}
	withPatches := append([]string{"lint", "metal explain", "baseline show", "fetch"}, onCheckout[:len(onCheckout)-1]...)
	forms := []string{"", " --json", " --progress json"}
	if testing.Short() {
		forms = forms[1:2] // the others give the same codes
	}
	for _, cause := range []struct {
		name     string
		code     int
		commands []string
	}{
		{"no checkout at the usual place", exitEnvironment, onCheckout},
		{"a named checkout is missing", exitUsage, with(onCheckout, "--checkout nowhere")},
		{"a named checkout is not a repository", exitUsage, with(onCheckout, "--checkout empty")},
		{"a named checkout is a file", exitUsage, with(onCheckout, "--checkout file")},
		{"a file is missing", exitUsage, []string{"report nowhere", "report diff nowhere file", "report diff file nowhere", "report github nowhere",
			"metal run nowhere", "metal classify file nowhere", "metal selectors nowhere",
			"replay nowhere", "pr --issue 1 --report nowhere", "build --show-stamp nowhere", "build --host --torch nowhere", "verify --root nowhere",
			"fetch --from nowhere", "run --from nowhere",
			"port --to v2.6.0 --check --from nowhere", "baseline compare --wheel nowhere", "baseline compare --wheel file --with nowhere"}},
		{"a folder of patches is missing", exitUsage, with(withPatches, "--patches nowhere")},
		{"a folder of patches is a file", exitUsage, with(withPatches[:4:4], "--patches file")},
		{"no such baseline", exitUsage, with(withPatches, "--baseline v9")},
		{"the series was not verified as it is", exitVerify, []string{"baseline runs --check --patches patches"}},
		{"no such flag", exitUsage, with(append(withPatches, "doctor", "run", "replay file", "version", "baseline", "metal"), "--nonsense")},
		{"no such command", exitUsage, []string{"nonsense", "help nonsense", "help verify nonsense", "metal nonsense", "baseline nonsense",
			"report nonsense", "pr nonsense", "--json nonsense"}},
	} {
		t.Run(cause.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			t.Setenv("MPSFORGE_CACHE", filepath.Join(dir, "cache"))
			t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(dir))
			require.NoError(t, os.Mkdir("empty", 0o755))
			require.NoError(t, os.CopyFS("patches", os.DirFS(series)))
			require.NoError(t, os.RemoveAll(filepath.Join("patches", patches.DefaultBaseline, patches.RunsFile)))
			require.NoError(t, os.WriteFile("file", []byte("text\n"), 0o644))
			for _, command := range cause.commands {
				for _, form := range forms {
					var out, errs bytes.Buffer
					code := execute(context.Background(), strings.Fields("mpsforge "+command+form), streams{out: &out, err: &errs})
					if code != cause.code {
						t.Errorf("mpsforge %s%s: exit code %d, want %d: %s", command, form, code, cause.code, &errs)
					}
					switch form {
					case " --json":
						var last jsonResult
						if err := json.Unmarshal(out.Bytes(), &last); err != nil || last.ExitCode != code || last.Message == "" {
							t.Errorf("mpsforge %s%s prints %s: %v", command, form, &out, err)
						}
					case " --progress json":
						for line := range strings.Lines(errs.String()) {
							if !json.Valid([]byte(line)) {
								t.Errorf("mpsforge %s%s: not JSON: %s", command, form, line)
							}
						}
					}
				}
			}
		})
	}
}

// A checkout that the environment names counts as named.
func TestCheckoutNamedByEnvironment(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("MPSFORGE_CHECKOUT", "nowhere")
	for _, command := range []string{"status", "verify --stages series,checkout"} {
		var errs bytes.Buffer
		if code := execute(context.Background(), strings.Fields("mpsforge "+command), streams{out: &bytes.Buffer{}, err: &errs}); code != exitUsage {
			t.Errorf("mpsforge %s: exit code %d: %s", command, code, &errs)
		}
	}
}
