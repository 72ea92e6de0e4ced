package operators

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/validate/judge/hosts"
	"mpsforge/validate/judge/stagetest"
)

// Each planted fault is found as what it is, by the job that shows it; a right operator beside them is right.
func TestPlantedOperatorsAreFound(t *testing.T) {
	built, root := stagetest.HostBuild(t.Context(), t, builds.Plain, false, false)
	if built.NoPython != "" {
		t.Fatal(built.NoPython)
	}
	scripts := require.One(unpack(stagetest.Cache()))(t)
	planted := require.One(filepath.Abs("testdata/planted.py"))(t)
	// One process for all, as the stage has it: what a job does must not reach the next one.
	var input strings.Builder
	cases := []struct {
		operator, form string
		status         status
		words          string // in what is reported of it
	}{
		{"planted_right", "basic", right, ""},
		{"planted_right", "made-elsewhere", right, ""},
		{"planted_right", "handed-on", right, ""},
		{"planted_right", "streams", right, ""},
		{"planted_right", "strided", right, ""},
		{"planted_shared_state", "basic", wrongValues, "planted_shared_state, sample"},
		{"planted_right", "group:planted_shared_state", wrongValues, "planted_shared_state, sample"},
		{"planted_unordered", "basic", right, ""},
		{"planted_unordered", "made-elsewhere", raced, "race on bytes"},
		{"planted_raises", "basic", raised, "RuntimeError: planted"},
		{"planted_dies", "basic", crashed, "together, with sample -1: died by signal 6"},
		{"planted_hangs", "basic", hung, "together"},
		{"planted_dies_alone", "basic", notAlone, "crashed: died by signal 6"},
		{"planted_absent", "basic", notAlone, "not implemented for MPS: aten::cholesky_inverse"},
		{"planted_unlike_cpu", "basic", right, "not close"},
		{"planted_not_deterministic", "basic", notAlone, "two runs alone differ"},
		{"planted_reads_unwritten", "basic", notAlone, "two runs alone differ"},
		{"planted_uniform", "basic", right, "range"},
		{"planted_changes_argument", "shared", right, ""},
		{"planted_writes_argument", "shared", violated, "planted::writes_argument changes its argument x, and neither"},
		{"planted_right", "out", doesNotApply, "no out="},
		{"planted_right", "basic", right, ""},
	}
	p := plan{seed: 7, device: "mps"}
	for i, c := range cases {
		j := p.job(c.operator, "float32", c.form, defaultThreads)
		j.ID = i
		if c.operator == "planted_hangs" {
			j.Seconds = 8
		}
		line := require.One(json.Marshal(j))(t)
		input.Write(append(line, '\n'))
	}
	environment := append(hosts.Environment(root, 7, true), "MPSFORGE_OPERATORS_EXTRA="+planted)
	found, err := run.Command{Name: built.Python, Args: []string{filepath.Join(scripts, "storm.py"), "--events", "1"}, Env: run.Environment(environment,
		nil), Stdin: strings.NewReader(input.String())}.Run(t.Context())
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(found.Stdout)), "\n")
	if len(lines) != len(cases)+2 { // identity and entries
		t.Fatalf("%d lines for %d jobs", len(lines), len(cases))
	}
	for i, c := range cases {
		o := outcome{Job: p.job(c.operator, "float32", c.form, defaultThreads)}
		require.NoError(t, json.Unmarshal([]byte(lines[i+2]), &o.Result))
		o.settle(true)
		// An unordered read may also come before the write for certain: its thread waits for its own stream before anybody commits the
		// maker's. Such a run has no race; it has wrong values, and is reported as that.
		if c.status == raced && o.Result.Status == wrongValues {
			c.status, c.words = wrongValues, c.operator+", sample"
		}
		told := strings.Join([]string{o.Result.Text, o.Result.Reason, o.Result.CPU, o.Result.Random}, "; ")
		if len(o.Result.Findings) > 0 {
			told += o.Result.Findings[0].Message
		}
		if o.Result.Status != c.status || !strings.Contains(told, c.words) {
			t.Errorf("%s, %s: %s, want %s with %q: %s\n%s", c.operator, c.form, o.Result.Status, c.status, c.words, told, o.Result.Stderr)
		}
	}
}
