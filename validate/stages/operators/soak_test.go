package operators

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mpsforge/fork/builds"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/validate/judge/hosts"
	"mpsforge/validate/judge/stagetest"
)

// TestSoak is make soak's: operators by threads in one process for the time of MPSFORGE_SOAK (soak.py).
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("MPSFORGE_SOAK"))
	if err != nil {
		t.Skip("SKIP: runs for as long as MPSFORGE_SOAK says, by make soak")
	}
	built, root := stagetest.HostBuild(t.Context(), t, builds.Plain, false, false)
	if built.NoPython != "" {
		t.Fatal(built.NoPython)
	}
	scripts := require.One(unpack(stagetest.Cache()))(t)
	environment := append(hosts.Environment(root, 7, true), "PYTORCH_ENABLE_MPS_FALLBACK=1", "PYTORCH_MPS_SANITIZE=error")
	found, err := run.Command{Name: built.Python, Args: []string{filepath.Join(scripts, "soak.py"), "--seconds", fmt.Sprint(length.Seconds())},
		Env: run.Environment(environment, nil)}.Run(t.Context())
	t.Log(strings.TrimSpace(string(found.Stdout)))
	if err != nil {
		t.Error(err)
	}
}

// What the soak calls growth.
func TestSoakKnowsGrowth(t *testing.T) { stagetest.Children(t, "test_soak_growth") }
