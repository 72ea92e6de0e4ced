package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork"
	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/judge/hosts"
	"mpsforge/validate/judge/kept"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/stage"
)

// What a stand-in for the scenario program does in a scenario, as lines of a shell script. By itself it lives, with right values.
const (
	wrongValue = `sed 's/"wrong":0/"wrong":1/' "$0.json"; exit`
	crashes    = "echo \"x.mm:1: failed assertion \\`A command encoder is already encoding to this command buffer'\" >&2; kill -ABRT $$"
	killed     = "kill -KILL $$"
	throws     = "echo 'terminate called: out of range' >&2; kill -ABRT $$"
	unknown    = "echo 'scenarios: no scenario' >&2; exit 2"
	notLoaded  = "echo 'symbol lookup error' >&2; exit 127"
)

// ablationSeries has a patch with a scenario, one with two, one whose proof is in another stage, and one that names nothing.
func ablationSeries() *patches.Series {
	patch := func(name string, scenarios ...string) *patches.Patch {
		p := &patches.Patch{Name: name}
		for _, s := range scenarios {
			p.Header.Trailers = append(p.Header.Trailers, patches.Trailer{Key: "Scenario", Value: s})
		}
		return p
	}
	return &patches.Series{Patches: []*patches.Patch{patch("locks", "one"), patch("queues", "two", "three"), patch("slots", "slot conformance"), patch("idle")}}
}

// standIn is the stage over stand-ins: shell scripts for host builds, and no checkout.
type standIn struct {
	t     *testing.T
	dir   string
	r     *stageRun
	fails map[string]string   // by "SUBJECT: SCENARIO", such as "without locks: one", what the program does
	with  map[string][]string // which patches are left out with one
	built []string            // the subjects that were built
	// refuses gives the error of a build.
	refuses func(subject string) error
}

func newStandIn(t *testing.T, ablate ...string) *standIn {
	s := &standIn{t: t, dir: t.TempDir(), fails: map[string]string{}, with: map[string][]string{}, refuses: func(string) error { return nil }}
	series := ablationSeries()
	identity := &reports.Identity{}
	for _, p := range series.Patches {
		identity.Patches = append(identity.Patches, p.Name)
	}
	cache, wrong := t.TempDir(), []string{"^wrong values"}
	env := &stage.Env{Sink: events.OrDiscard(nil), Identity: identity, Kept: &kept.Run{Cache: cache, Stage: "runtime"},
		Options: stage.Options{Series: series, Quick: true, Seed: 7, Cache: cache, Artifacts: t.TempDir(),
			Host: stage.HostOptions{Ablate: ablate, Flavours: []builds.Flavour{builds.Plain}}}}
	s.r = &stageRun{env: env, hosts: &hosts.Builder{Env: env, Root: &host.Root{}, Torch: &host.Torch{}}, build: s.build, sources: s,
		stage: &reports.Stage{Name: "runtime"}, step: "verify runtime",
		patched: map[builds.Flavour]*host.Build{}, shared: &shared{failed: map[string]bool{}},
		table: []scenario{
			{Name: "one", Patches: []string{"locks"}, Stock: process.StockLives, Without: wrong, Iterations: 1},
			{Name: "two", Patches: []string{"queues"}, Stock: process.StockLives, Without: wrong, Iterations: 1},
			{Name: "three", Patches: []string{"queues"}, Stock: process.StockLives, Without: wrong, Iterations: 1}}}
	return s
}

// again is a later run of the same command.
func (s *standIn) again() *standIn {
	later := newStandIn(s.t, s.r.env.Host.Ablate...)
	later.r.env.Kept.Cache, later.r.env.Host.Flavours = s.r.env.Kept.Cache, s.r.env.Host.Flavours
	later.dir, later.fails = s.dir, s.fails
	return later
}

func (s *standIn) snapshot(out []string) *fork.Snapshot {
	snapshot := &fork.Snapshot{Tree: "tree", LeftOut: out}
	for _, p := range s.r.env.Series.Patches {
		if !slices.Contains(out, p.Name) {
			snapshot.Patches = append(snapshot.Patches, p.Name)
		}
	}
	return snapshot
}

func (s *standIn) Stock(context.Context, string) (*fork.Snapshot, error) {
	return &fork.Snapshot{Tree: "base"}, nil
}

func (s *standIn) Patched(context.Context, *patches.Series, string) (*fork.Snapshot, error) {
	return s.snapshot(nil), nil
}

func (s *standIn) Without(_ context.Context, _ *patches.Series, name, _ string) (*fork.Snapshot, error) {
	return s.snapshot(append([]string{name}, s.with[name]...)), nil
}

func (s *standIn) Before(_ context.Context, series *patches.Series, name, _ string) (*fork.Snapshot, error) {
	var out []string
	for _, p := range series.Patches {
		if len(out) > 0 || p.Name == name {
			out = append(out, p.Name)
		}
	}
	return s.snapshot(out), nil
}

// build writes the script, and what it prints.
func (s *standIn) build(_ context.Context, source *fork.Snapshot, flavour builds.Flavour) (*host.Build, error) {
	subject := s.r.hosts.Subject(source.Patches)
	s.built = append(s.built, subject)
	if err := s.refuses(subject); err != nil {
		return nil, err
	}
	name := filepath.Join(s.dir, strings.NewReplacer(" ", "-", ",", "").Replace(subject)+"-"+string(flavour))
	built := &host.Build{Driver: name, Library: name, Stamp: builds.Stamp{Tree: source.Tree, Patches: source.Patches, Flavour: flavour}}
	stamp, err := built.Stamp.Text()
	if err != nil {
		return nil, err
	}
	printed, err := json.Marshal(map[string]any{"checked": 3, "wrong": 0, "library": built.Library, "stamp": stamp})
	if err != nil {
		return nil, err
	}
	for _, class := range []string{"MPSStream", "MPSEvent", "MPSAllocator"} {
		built.Layouts = append(built.Layouts, host.Layout{Class: class})
	}
	list := `{"name": "op-fill", "operation": true}, {"name": "op-sum", "operation": true}`
	for _, one := range s.r.table {
		list += fmt.Sprintf(`, {"name": %q}`, one.Name)
	}
	script := fmt.Sprintf("#!/bin/sh\necho '%s, %s:' $1 $3 >>%s\ncase $1 in\n--list) echo '[%s]'; exit;;\n", subject, flavour, s.calls(), list)
	for _, one := range s.r.table {
		if does := s.fails[subject+": "+one.Name]; does != "" {
			script += one.Name + ") " + does + ";;\n"
		}
	}
	script += "esac\ncat \"$0.json\"\n"
	return built, errors.Join(os.WriteFile(name+".json", printed, 0o644), os.WriteFile(name, []byte(script), 0o755))
}

func (s *standIn) calls() string { return filepath.Join(s.dir, "calls") }

// processes are those that ran, in their order: subject, flavour, scenario, threads.
func (s *standIn) processes() []string {
	text, err := os.ReadFile(s.calls())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// run does what the stage does from the scenarios on.
func (s *standIn) run(ctx context.Context) error {
	err := s.r.keep()
	if err != nil {
		return err
	}
	built, err := s.build(ctx, s.snapshot(nil), s.r.flavours()[0])
	if err != nil {
		return err
	}
	s.r.patched[built.Stamp.Flavour] = built
	if err := s.r.divide(nil, nil); err != nil {
		return err
	}
	if err := s.r.scenarios(ctx, nil, built); err != nil {
		return err
	}
	if err := s.r.ablate(ctx); err != nil {
		return err
	}
	return s.r.env.Kept.Finish()
}

// ablations are the checks of patches that were left out.
func (s *standIn) ablations() (checks []reports.Check) {
	for _, c := range s.r.stage.Checks {
		if c.Subject == "ablation" {
			checks = append(checks, c)
		}
	}
	return checks
}

// A patch is shown to be needed by a scenario that is right with the whole series and fails for want of that patch. Where nothing shows
// it, the stage fails; where this stage cannot, it says so and passes nothing.
func TestAblationIsJudged(t *testing.T) {
	const unnamedEnd, thrown = "fail in a way that their rows do not name, which is no evidence: ", " (died by signal aborted: terminate called: out of range)"
	for name, c := range map[string]struct {
		patch   string
		prepare func(s *standIn)
		want    reports.Verdict
		detail  string
	}{
		"its scenario fails": {"locks", func(s *standIn) { s.fails["without locks: one"] = crashes },
			reports.Passed, "fail without it: one (5 second-encoder)"},
		"its scenario fails in a way that its row does not name": {"locks", func(s *standIn) { s.fails["without locks: one"] = throws },
			reports.Failed, unnamedEnd + "one" + thrown},
		"one of its two scenarios fails in a way that its row does not name": {"queues", func(s *standIn) {
			s.fails["without queues: two"], s.fails["without queues: three"] = throws, wrongValue
		}, reports.Failed, "fail without it: three (wrong values); " + unnamedEnd + "two" + thrown},
		"another scenario fails in a way that its row does not name": {"locks", func(s *standIn) {
			s.fails["without locks: one"], s.fails["without locks: two"] = wrongValue, throws
		}, reports.Passed, "fail without it: one (wrong values); " + unnamedEnd + "two" + thrown},
		"its scenario passes": {"locks", func(s *standIn) {},
			reports.Failed, "its trailer says that these fail without it, but they pass: one"},
		"one of its two scenarios passes": {"queues", func(s *standIn) { s.fails["without queues: three"] = wrongValue },
			reports.Failed, "its trailer says that these fail without it, but they pass: two; fail without it: three (wrong values)"},
		"its scenario fails with it, too": {"locks", func(s *standIn) { s.fails["without locks: one"], s.fails["patched: one"] = wrongValue, wrongValue },
			reports.Failed, "fail with the whole series, too, which says nothing about it: one"},
		"it names nothing, and nothing notices": {"idle", func(s *standIn) { s.r.env.Quick = false },
			reports.Failed, "nothing notices that it is left out: give it a scenario, or take it out of the series"},
		"it names nothing, and a scenario notices": {"idle", func(s *standIn) { s.r.env.Quick, s.fails["without idle: two"] = false, wrongValue },
			reports.Passed, "fail without it: two (wrong values)"},
		"the scenario of a patch that is left out with it notices": {"idle", func(s *standIn) {
			s.r.env.Quick, s.with["idle"], s.fails["without queues, idle: two"] = false, []string{"queues"}, wrongValue
		}, reports.Failed, "nothing notices that it is left out: give it a scenario, or take it out of the series; fail, but for want of what was " +
			"left out with it: two (left out with it: queues)"},
		"its own scenario notices, with another patch left out": {"locks", func(s *standIn) {
			s.with["locks"], s.fails["without locks, queues: one"] = []string{"queues"}, wrongValue
		}, reports.Passed, "fail without it: one (wrong values) (left out with it: queues)"},
		"its proof is in another stage": {"slots", func(s *standIn) {},
			reports.Skipped, "no scenario of this stage fails without it; its proof is: slot conformance"},
		"its scenario cannot run here": {"locks", func(s *standIn) {
			s.r.table[0].NoThread, s.r.env.Host.Flavours = "unseen", []builds.Flavour{builds.Thread}
		}, reports.Skipped, "the scenarios that its trailer names could not show it here: one"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStandIn(t, c.patch)
			c.prepare(s)
			require.NoError(t, s.run(t.Context()))
			checks := s.ablations()
			if len(checks) != 1 || checks[0].Name != "without "+c.patch || checks[0].Verdict != c.want || checks[0].Detail != c.detail {
				t.Fatalf("%+v", checks)
			}
			if noticed := strings.Contains(c.detail, "fail without it: "); noticed != (len(checks[0].Cells) > 0) {
				t.Errorf("cells %+v", checks[0].Cells)
			}
			if failed := s.r.stage.Verdict == reports.Failed; failed != (c.want == reports.Failed) {
				t.Errorf("the stage: %s", s.r.stage.Verdict)
			}
		})
	}
}

// Which scenarios notice, in which flavour and by what, is in the check's cells, for programs.
func TestAblationNamesSignatures(t *testing.T) {
	s := newStandIn(t, "queues")
	s.r.env.Host.Flavours = []builds.Flavour{builds.Plain, builds.Thread}
	s.fails["without queues: two"], s.fails["without queues: three"] = crashes, "case $0 in *-tsan) "+wrongValue+";; esac"
	require.NoError(t, s.run(t.Context()))
	cells := s.ablations()[0].Cells
	if len(cells) != 2 || cells[0].Path != "three, tsan" || cells[0].Outcome != reports.OutcomeWrongValues || cells[1].Path != "two, plain" ||
		cells[1].Signature != "5 second-encoder" {
		t.Errorf("%+v", cells)
	}
	if ran := s.processes(); slices.Contains(ran, "without queues, tsan: two 1") || !slices.Contains(ran, "without queues, tsan: three 1") {
		t.Errorf("in the next flavour all but what has noticed runs: %q", ran)
	}
}

// A process that was killed from outside, could not be loaded, or does not know its scenario is no evidence: the stage ends with it.
func TestProcessesThatSayNothingEndTheAblation(t *testing.T) {
	for name, does := range map[string]string{"killed": killed, "no such scenario": unknown, "not loaded": notLoaded} {
		t.Run(name, func(t *testing.T) {
			s := newStandIn(t, "locks")
			s.fails["without locks: one"] = does
			if err := s.run(t.Context()); err == nil || !strings.Contains(err.Error(), "says nothing about the sources") {
				t.Errorf("%v, %+v", err, s.ablations())
			}
		})
	}
}

// Where the rest of the series needs what the patch declares, all that follow are left out as well. If that does not compile either, the
// patch fails and the next one is judged.
func TestAblationWhoseSourcesDoNotCompile(t *testing.T) {
	s := newStandIn(t, "locks", "queues")
	s.refuses = func(subject string) error {
		if strings.HasPrefix(subject, "without locks") || subject == "stock" || subject == "without queues" {
			return fmt.Errorf("%w: a.mm:1: no member named 'mutex'", builds.ErrSources)
		}
		return nil
	}
	s.fails["without queues, slots, idle: two"], s.fails["without queues, slots, idle: three"] = wrongValue, wrongValue
	require.NoError(t, s.run(t.Context()))
	require.Equal(t, s.built, []string{"patched", "without locks", "stock", "without queues", "without queues, slots, idle"}, "built")
	checks := s.ablations()
	if len(checks) != 2 || checks[0].Verdict != reports.Failed || !strings.Contains(checks[0].Detail,
		"cannot be judged: the series without locks, queues, slots, idle: the sources do not compile: a.mm:1") {
		t.Errorf("%+v", checks)
	}
	if want := "fail without it: two (wrong values), three (wrong values) (left out with it: slots, idle)"; checks[1].Verdict != reports.Passed ||
		checks[1].Detail != want {
		t.Errorf("%+v", checks[1])
	}
}

// What the machine lacks says nothing about a patch: the stage ends with the error.
func TestAblationWithoutWhatBuildsNeed(t *testing.T) {
	s := newStandIn(t, "locks")
	s.refuses = func(subject string) error {
		if subject != "patched" {
			return fmt.Errorf("%w: no room on the disk", builds.ErrEnvironment)
		}
		return nil
	}
	if err := s.run(t.Context()); !errors.Is(err, builds.ErrEnvironment) || len(s.ablations()) > 0 {
		t.Errorf("%v, %+v", err, s.ablations())
	}
}

// An unknown patch is an error before anything is built.
func TestUnknownPatchEndsTheStageAtOnce(t *testing.T) {
	s := newStandIn(t, "lokcs")
	err := s.r.run(t.Context())
	if !errors.Is(err, patches.ErrNoPatch) || !strings.Contains(err.Error(), "locks") || len(s.built) > 0 {
		t.Errorf("%v, built %q", err, s.built)
	}
}

// stopAt ends a context when a process of a scenario starts.
func stopAt(subject, name string, stop func()) events.SinkFunc {
	return func(event events.Event) {
		if e, ok := event.(events.PartStarted); ok && e.Name == name && strings.HasPrefix(e.Subject, subject+", ") {
			stop()
		}
	}
}

// A run that is stopped goes on later with the same seed: what had ended is not done again, and the report is the same. A run that came
// to its end is done again as a whole.
func TestStoppedAblationGoesOn(t *testing.T) {
	first := newStandIn(t, patches.AllPatches)
	first.r.env.Host.Flavours = []builds.Flavour{builds.Plain, builds.Thread}
	for _, name := range []string{"without locks: one", "without queues: two", "without queues: three"} {
		first.fails[name] = crashes
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	first.r.env.Sink = stopAt("without queues", "three", stop)
	if err := first.run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	before := first.processes()
	if slices.ContainsFunc(before, func(p string) bool { return strings.HasSuffix(p, "without queues, plain: three 4") }) {
		t.Fatalf("stopped elsewhere: %q", before)
	}
	// Of all, 9 rows are of the whole series and 24 of four patches left out, three scenarios each in two flavours.
	if left := first.r.env.Kept.String(); !strings.HasSuffix(left, " of 33 scenarios planned so far") {
		t.Error(left)
	}

	second := first.again()
	require.NoError(t, second.run(t.Context()))
	times := map[string]int{}
	for _, p := range second.processes() {
		if times[p]++; times[p] > 1 && !strings.HasPrefix(p, "without queues, plain: ") { // in which the first run was stopped
			t.Errorf("done again: %s", p)
		}
	}
	at := slices.IndexFunc(second.r.stage.Facts, func(f reports.Fact) bool { return f.Name == "processes of an earlier run that was stopped" })
	if at < 0 {
		t.Errorf("%+v", second.r.stage.Facts)
	}

	whole, all := first.again(), len(second.processes())
	require.NoError(t, whole.run(t.Context()))
	require.Equal(t, len(whole.processes())-all, len(times), "processes of a new run after one that came to its end")
	for i, check := range whole.ablations() {
		if got := second.ablations()[i]; got.Name != check.Name || got.Verdict != check.Verdict || got.Detail != check.Detail {
			t.Errorf("stopped and gone on: %+v\nin one go: %+v", got, check)
		}
	}
}

// Another seed draws other delays, so nothing of the stopped run is taken.
func TestStoppedAblationWithAnotherSeedBeginsAnew(t *testing.T) {
	first := newStandIn(t, "locks")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	first.r.env.Sink = stopAt("without locks", "one", stop)
	if err := first.run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	second := first.again()
	second.r.env.Seed++
	require.NoError(t, second.run(t.Context()))
	require.Equal(t, second.r.stage.Facts, nil)
}
