package runtime

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/run"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/judge/stagetest"
)

// soakMore is how many times the iterations of a scenario are in its long form, and soakSlack is what that may take more of memory.
const (
	soakMore  = 6
	soakSlack = 48 << 20
)

// TestSoak is make soak's: the scenarios on the patched sources, in turn, each with its iterations and with several times as many, from
// other seeds each round, until the time of MPSFORGE_SOAK is over. Values are right, and a scenario's peak of memory does not grow with its iterations.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("MPSFORGE_SOAK"))
	if err != nil {
		t.Skip("SKIP: runs for as long as MPSFORGE_SOAK says, by make soak")
	}
	built, root := stagetest.HostBuild(t.Context(), t, builds.Plain, false, false)
	soak(t, built, root, length)
}

func soak(t *testing.T, built *host.Build, root *host.Root, length time.Duration) {
	more := map[string][]int64{} // bytes that the long form took beyond the short one
	end := time.Now().Add(length)
	for seed := uint64(1); time.Now().Before(end); seed++ {
		for _, s := range scenarios() {
			missing := slices.ContainsFunc(s.Patches, func(name string) bool { return !slices.Contains(built.Stamp.Patches, name) })
			if missing || s.Cold || time.Now().After(end) {
				continue
			}
			h := hostRun{built: built, tools: root, scenario: s.Name, threads: 4, iterations: s.Iterations, seed: seed, warm: true, more: s.Environment}
			short := soakOne(t, h)
			h.iterations *= soakMore
			more[s.Name] = append(more[s.Name], soakOne(t, h)-short)
		}
	}
	for _, s := range scenarios() {
		if all := more[s.Name]; len(all) > 0 {
			slices.Sort(all)
			median := all[len(all)/2]
			t.Logf("%s: rounds: %d, memory of %d times the iterations: %+d MiB", s.Name, len(all), soakMore, median>>20)
			if median > soakSlack {
				t.Errorf("%s grows with its iterations: %+d MiB", s.Name, median>>20)
			}
		}
	}
}

// soakOne runs a scenario, demands right values, and gives its peak of memory in bytes.
func soakOne(t *testing.T, h hostRun) int64 {
	t.Helper()
	limited, cancel := context.WithTimeout(t.Context(), process.Patient)
	defer cancel()
	asked := h.command()
	command := exec.CommandContext(limited, asked.Name, asked.Args...)
	command.Env = run.Environment(h.environment(), nil)
	output, err := command.Output()
	var r scenarioResult
	if err != nil {
		t.Errorf("%s: %v", asked, err)
	} else if err := json.Unmarshal(output, &r); err != nil {
		t.Errorf("%s: %v", asked, err)
	} else if r.Wrong > 0 || len(r.Errors) > 0 || r.FindingCount > 0 || r.Checked == 0 {
		t.Errorf("%s: values: %d, wrong: %d, errors: %q, findings: %v", asked, r.Checked, r.Wrong, r.Errors, r.Findings)
	}
	return command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10 // Linux, where host builds are, counts KiB
}
