package validate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mpsforge/internal/require"
	"mpsforge/patches"
	"mpsforge/reports"
)

// A control's check failed if one of its subjects did. One that did not run, or a fault that does not compile, is an error: it is neither.
func TestEndOfAControlsCheck(t *testing.T) {
	check := func(subject string, verdict reports.Verdict) reports.Check {
		return reports.Check{Name: "items", Subject: subject, Verdict: verdict, Detail: "4 threads: wrong values; again: items\nmore"}
	}
	for name, c := range map[string]struct {
		checks  []reports.Check
		want    patches.ControlCheck
		problem string
	}{
		"it fails": {[]reports.Check{check("patched, plain", reports.Failed)},
			patches.ControlCheck{Check: "runtime/items", Failed: true, Detail: "4 threads: wrong values"}, ""},
		"it passes": {[]reports.Check{check("patched, plain", reports.Passed)},
			patches.ControlCheck{Check: "runtime/items", Detail: "4 threads: wrong values"}, ""},
		"one of two fails": {[]reports.Check{check("patched, tsan", reports.Failed), check("patched, plain", reports.Passed)},
			patches.ControlCheck{Check: "runtime/items", Failed: true, Detail: "4 threads: wrong values"}, ""},
		"it is skipped":       {[]reports.Check{check("patched, plain", reports.Skipped)}, patches.ControlCheck{}, "runtime/items did not run"},
		"another check fails": {[]reports.Check{{Name: "linear", Verdict: reports.Failed}}, patches.ControlCheck{}, "runtime/items did not run"},
		"the fault does not compile": {[]reports.Check{{Name: "compile", Verdict: reports.Failed, Detail: "a.mm:1: error"}}, patches.ControlCheck{},
			"the fault does not compile: a.mm:1: error"},
	} {
		t.Run(name, func(t *testing.T) {
			end, err := endOf(&reports.Report{Stages: []reports.Stage{{Name: "python"}, {Name: "runtime", Checks: c.checks}}}, "runtime/items")
			switch {
			case c.problem == "" && (err != nil || end != c.want):
				t.Errorf("%+v, %v", end, err)
			case c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := endOf(&reports.Report{}, "runtime/items"); err == nil {
		t.Error("a check of a stage that the report does not have has ended")
	}
}

// What shows that a check can fail: stock, then a patch left out, then a control, then a mutant; only what was seen counts.
func TestWhatIsTheControlOfACheck(t *testing.T) {
	seen := func(failed bool) patches.Controls {
		return patches.Controls{Controls: []patches.Control{{Name: "c", By: "race", Checks: []string{"runtime/birth"},
			Seen: &patches.ControlSeen{Checks: []patches.ControlCheck{{Check: "runtime/birth", Failed: failed, Detail: "race on bytes"}}}}}}
	}
	ablation := patches.Ablation{Patches: []patches.AblatedPatch{{Patch: "hand-over", Noticed: []patches.Notice{{Scenario: "birth"}}}}}
	mutants := patches.Mutants{Mutants: []patches.Mutant{{Name: "m01"}, {Name: "m02", Judged: &patches.Judgement{Verdict: patches.MutantFound,
		Stage: "runtime", Check: "birth"}}}}
	for name, c := range map[string]struct {
		ablation patches.Ablation
		mutants  patches.Mutants
		controls patches.Controls
		check    string
		want     string
	}{
		"stock":                        {ablation, mutants, seen(true), "runtime/parallel-basic", "stock fails"},
		"a patch":                      {ablation, mutants, seen(true), "runtime/birth", "fails without hand-over"},
		"a control":                    {patches.Ablation{}, mutants, seen(true), "runtime/birth", "fails with the fault c"},
		"a mutant":                     {patches.Ablation{}, mutants, seen(false), "runtime/birth", "fails with the mutant m02"},
		"a control that fails nothing": {patches.Ablation{}, patches.Mutants{}, seen(false), "runtime/birth", ""},
		"another stage's check":        {patches.Ablation{}, mutants, seen(true), "python/hand-over", ""},
	} {
		t.Run(name, func(t *testing.T) {
			all := CheckControls(c.ablation, c.mutants, c.controls)
			at := slices.IndexFunc(all, func(one CheckControl) bool { return one.Check == c.check })
			if at < 0 || all[at].Control != c.want {
				t.Errorf("%+v", all)
			}
		})
	}
}

// Each scenario and each Python test has something that makes it fail, and each control names checks that there are.
func TestEachCheckHasAControl(t *testing.T) {
	files := patches.Embedded()
	ablation := require.One(patches.ReadAblation(files, patches.DefaultBaseline))(t)
	mutants := require.One(patches.ReadMutants(files, patches.DefaultBaseline))(t)
	controls := require.One(patches.ReadControls(files, patches.DefaultBaseline))(t)
	all := CheckControls(ablation, mutants, controls)
	for _, check := range all {
		if check.Control == "" {
			t.Errorf("nothing has shown that %s can fail: choose a fault for it in patches/%s/%s, and plant it with mpsforge baseline controls --judge",
				check.Check, patches.DefaultBaseline, patches.ControlsFile)
		}
	}
	for _, control := range controls.Controls {
		for _, check := range control.Checks {
			if !slices.ContainsFunc(all, func(one CheckControl) bool { return one.Check == check }) {
				t.Errorf("%s names %s, which is no check", control.Name, check)
			}
		}
	}
}

// A control runs only what it names; a check of a stage that has no controls is refused.
func TestOnlyTheChecksOfAControl(t *testing.T) {
	var options Options
	require.NoError(t, onlyChecks(&options, patches.Control{Checks: []string{"runtime/items", "python/a.b", "python/c"}, Flavour: "tsan"}))
	got := fmt.Sprint(options.Stages, options.Host.Scenarios, options.Host.Flavours, options.Python.Only)
	require.Equal(t, got, `[runtime python] [items] [tsan]^(a\.b|c)$`)
	require.Is(t, onlyChecks(&options, patches.Control{Name: "c", Checks: []string{"mac/links"}}), patches.ErrControls)
}
