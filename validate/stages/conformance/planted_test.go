//go:build cgo

package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/cxx"
	"mpsforge/internal/require"
	"mpsforge/native/slots"
	"mpsforge/reports"
	"mpsforge/validate/judge/allocator"
	"mpsforge/validate/judge/stagetest"
	"mpsforge/validate/stage"
)

// plantedBug names the checks that must find a bug every time. Others may, too.
type plantedBug struct {
	program  string // of the compiled programs; empty if none can
	scenario string // of the scripted scenarios; empty if none can for sure
}

const search = "schedule search"

// plantedBugs has an entry for each patch in testdata/planted.
var plantedBugs = map[string]plantedBug{
	"barging":              {program: search},
	"cap-minus-one":        {program: search, scenario: "the pool grows to its cap and back: 31 slots, the default"},
	"cap-plus-one":         {program: search},
	"double-release":       {program: search, scenario: "a second return is refused"},
	"error-waits":          {program: search, scenario: "error: after 100 ms there is none"},
	"generation-unchecked": {program: search, scenario: "a stale return is refused while the slot is leased again"},
	"last-come":            {program: search, scenario: "wait: first come, first served"},
	"late-notify":          {program: search},
	"late-waiter":          {program: search},
	"left-behind":          {program: search},
	"lost-lease":           {program: search},
	"no-notify":            {program: search, scenario: "wait: first come, first served"},
	"non-atomic-claim":     {program: search},
	"not-lowest":           {program: search, scenario: "the lowest free slot is taken"},
	"overflow":             {scenario: "wait: the longest limit does not end early"},
	"peak-falls":           {program: search},
	"refused-uncounted":    {program: search, scenario: "the statistics are exact"},
	"same-lease":           {program: search, scenario: "wait: the lease handed to a waiter is a lease like any other"},
	"share-count":          {program: search, scenario: "share: a full pool answers at once, the first time marked"},
	"torn-statistics":      {program: search},
	"trailing-text":        {scenario: "bad settings give one warning and the default"},
	"unlocked-release":     {program: "ThreadSanitizer"},
	"unlocked-statistics":  {program: "ThreadSanitizer"},
	"waits-served":         {program: search, scenario: "wait: time is up at the limit, and the waiter is gone"},
}

// A verifier that finds nothing proves nothing: each planted bug must fail the stage, by the checks that are there for
// it.
func TestPlantedBugsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP in the short form: each faulty allocator is searched and waited for; go test -run '^TestPlantedBugsAreFound$' " +
			"./validate/stages/conformance")
	}
	files, err := filepath.Glob("testdata/planted/*.patch")
	if err != nil || len(files) != len(plantedBugs) {
		t.Fatalf("%d patches (%v), %d expectations", len(files), err, len(plantedBugs))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".patch")
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time is spent on waiting for what never comes
			bug, known := plantedBugs[name]
			if !known {
				t.Fatal("no expectation for this patch")
			}
			options := stagetest.Options(t)
			options.Header = plant(t, options.Header, file)
			options.Stamp = "planted " + name
			options.Patience = time.Second // nothing right takes that long, and what is lost never comes
			var checks []reports.Check
			if bug.program == search { // the sanitizers are not needed
				checks = searchAndLoad(t, options, bug.scenario)
			} else {
				report := reports.Stage{Name: "conformance"}
				require.NoError(t, checkConformance(t.Context(), options, &report))
				require.Equal(t, report.Verdict, reports.Failed, "verdict")
				checks = report.Checks
			}
			found := failedChecks(t, checks)
			for _, want := range []string{bug.program, bug.scenario} {
				if want != "" && !slices.Contains(found, want) {
					t.Errorf("not found by %q", want)
				}
			}
		})
	}
}

// searchAndLoad runs the schedule search, and a scenario, which the stage leaves out after a failure of a compiled program.
func searchAndLoad(t *testing.T, options stage.CheckOptions, scenario string) []reports.Check {
	t.Helper()
	header := require.One(os.ReadFile(options.Header))(t)
	source := require.One(allocator.FromHeader(header, options.Stamp))(t)
	builder := cxx.Builder{Cache: options.Cache, Compiler: cxx.Find(t.Context(), options.Cache)}
	checker := stage.NewChecker(options, &reports.Stage{Name: "conformance"}, "planted")
	checks := allocator.CheckSchedules(t.Context(), checker, builder, header)
	if scenario == "" {
		return checks
	}
	path := require.One(builder.Build(t.Context(), source.Library()))(t)
	subject := require.One(slots.Load(path))(t)
	return append(checks, allocator.CheckScenarios(t.Context(), checker, subject, scenario)...)
}

func failedChecks(t *testing.T, checks []reports.Check) []string {
	t.Helper()
	var names []string
	for _, check := range checks {
		if check.Verdict == reports.Failed {
			names = append(names, check.Name)
			t.Logf("found by %q: %.160s", check.Name, check.Detail)
		}
	}
	return names
}

// plant copies the header and applies a patch to the copy.
func plant(t *testing.T, header, patch string) string {
	t.Helper()
	data := require.One(os.ReadFile(header))(t)
	patch = require.One(filepath.Abs(patch))(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "MPSStreamSlots.h")
	require.NoError(t, os.WriteFile(path, data, 0o644))
	command := exec.CommandContext(t.Context(), "git", "apply", patch)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s", err, out)
	}
	return path
}
