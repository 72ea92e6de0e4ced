package operators

import (
	"strings"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/patches"
	"mpsforge/reports"
)

// Threads that were to have streams of their own, and shared one, ran nothing at the same time: that is not a pass.
func TestOneStreamIsAFault(t *testing.T) {
	o := ended("add", "float32", "basic", right)
	o.Result.Streams = 1
	o.settle(true)
	if o.Result.Status != oneStream || !o.faulty() {
		t.Errorf("%+v", o.Result)
	}
	o = ended("add", "float32", "basic", right)
	o.Result.Streams = 1
	o.settle(false)
	if o.Result.Status != right {
		t.Errorf("without leases: %+v", o.Result)
	}
}

// A crash counts as one of threads only if the same samples ran alone before.
func TestCrashAloneIsNoFaultOfThreads(t *testing.T) {
	for phase, want := range map[string]status{"start": notAlone, "alone": notAlone, "together": crashed} {
		o := ended("add", "float32", "basic", crashed)
		o.Result.Phase, o.Result.Exit, o.Result.Stderr = phase, -6,
			"-[_MTLCommandBuffer addCompletedHandler:]:1011: failed assertion `Completed handler provided after commit call'\n"
		o.settle(true)
		if o.Result.Status != want || !strings.Contains(o.Result.Text+o.Result.Reason, "completed-handler-after-commit") {
			t.Errorf("%s: %+v", phase, o.Result)
		}
	}
}

// The command of a finding names all that the job varies.
func TestFindingNamesItsCommand(t *testing.T) {
	want := "mpsforge verify --stages operators --operators add --form shared --dtype float32 --threads 4 --seed 7 --baseline v2.6.0"
	require.Equal(t, (&pool{replay: []string{"--baseline", "v2.6.0"}}).again(ended("add", "float32", "shared", raced).Job), want)
}

func TestDifferencesFromTheCPUAreGrouped(t *testing.T) {
	const dtypes = "The values for attribute 'dtype' do not match: torch.complex64 != torch.float32."
	for text, want := range map[string]string{
		"": "",
		"addbmm, sample 1: result 0: Tensor-likes are not close! Mismatched elements: 1 / 50": "Tensor-likes are not close",
		"var, sample 0: result 0: " + dtypes:                                                  dtypes,
	} {
		require.Equal(t, howUnlike(text), want)
	}
}

// Without the patch an operator must end as is named: another fault may come of what went with the patch.
func TestAblationAcceptsTheNamedEndAlone(t *testing.T) {
	without := protection{"hand-over", []string{"streams+handed-on"}, wrongValues}
	crash := ended("add", "float32", "streams+handed-on", crashed)
	check := without.judge([]outcome{crash}, patches.KnownOperators{}, []string{"cpu-copies"})
	if check.Verdict != reports.Failed || !strings.HasPrefix(check.Detail, `no operator ends with "wrong values" without it`) ||
		!strings.Contains(check.Detail, "crashed: 1; left out with it: cpu-copies") {
		t.Errorf("a crash: %s: %s", check.Verdict, check.Detail)
	}
	wrong := ended("mul", "float32", "streams+handed-on", wrongValues)
	if check = without.judge([]outcome{crash, wrong}, patches.KnownOperators{}, nil); check.Verdict != reports.Passed ||
		!strings.HasPrefix(check.Detail, "noticed by 1 of 2 (wrong values), such as mul; ") {
		t.Errorf("a wrong value: %s: %s", check.Verdict, check.Detail)
	}
}
