// Package overlay is the stage that runs other stages' tests over an overlay: the stock host build takes the place of the torch that pip installed, the
// wheel is on top, and each function of the old copy is overwritten by a trap. Those stages are given to it; none is imported.
package overlay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/fork"
	"mpsforge/fork/builds"
	"mpsforge/fork/macos/overlay"
	"mpsforge/internal/run"
	"mpsforge/internal/words"
	"mpsforge/reports"
	"mpsforge/validate/judge/hosts"
	"mpsforge/validate/stage"
)

// mostLeftOut is how many functions of the old copy may be without a trap.
const mostLeftOut = 20

// Stage is the stage overlay of the pipeline; each of those given runs over the overlay, in its short form.
func Stage(over ...stage.Stage) stage.Stage {
	return stage.Stage{
		Name: "overlay", Question: "does the overlay behave like the patched build, with nothing of stock's backend in use?",
		Needs: []stage.Need{stage.NeedsCheckout, stage.NeedsTorch},
		Run: func(ctx context.Context, env *stage.Env, report *reports.Stage) error {
			found, err := install(ctx, env, report)
			if err != nil {
				return err
			}
			if err := found.answers(ctx, report); err != nil {
				return err
			}
			for _, s := range over {
				if err := found.run(ctx, env, s, report); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// installed is an overlay where it can be tried.
type installed struct {
	overlay.Trial
	stamp       overlay.Stamp
	environment []string // of its processes
}

// install makes the two builds and the wheel, and puts the one over the other.
func install(ctx context.Context, env *stage.Env, report *reports.Stage) (installed, error) {
	if env.Python.Interpreter != "" || env.Python.Device == "cpu" {
		return installed{}, stage.Skipf("it makes its own Python, over a host build with device mps: leave out --python and --device")
	}
	builder, err := hosts.New(ctx, env, report)
	if errors.Is(err, builds.ErrEnvironment) || errors.Is(err, fork.ErrEnvironment) {
		return installed{}, stage.Skipf("%v", err)
	}
	if err != nil {
		return installed{}, err
	}
	source, err := env.Checkout.Stock(ctx, env.Cache)
	if err != nil {
		return installed{}, err
	}
	stock, err := builder.Build(ctx, source, builds.Plain)
	if err != nil {
		return installed{}, err
	}
	if stock.Python == "" {
		return installed{}, stage.Skipf("the host build has no Python: %s", stock.NoPython)
	}
	if source, err = env.Checkout.Patched(ctx, env.Series, env.Cache); err != nil {
		return installed{}, err
	}
	builder.Overlay = true
	patched, err := builder.Build(ctx, source, builds.Plain)
	if err != nil {
		return installed{}, err
	}
	dir := filepath.Join(patched.Dir, "overlay")
	wheel, stamp, err := overlay.Write(overlay.Options{Patched: patched, Stock: stock, TorchVersion: builder.Torch.VersionFile(), Checkout: source.Dir,
		Dir: dir})
	if err != nil {
		return installed{}, err
	}
	trial, err := overlay.Install(wheel, stamp, stock, dir)
	report.Facts = append(report.Facts, reports.Fact{Name: "wheel", Value: wheel}, reports.Fact{Name: "over", Value: stock.Library},
		reports.Fact{Name: "Python with both", Value: trial.Python}, reports.Fact{Name: "stamp", Value: stamp.Build})
	return installed{trial, stamp, hosts.Environment(builder.Root, env.Seed%1_000_000_007, true)}, err
}

// answers checks which copy a process has, by what is in use there, and how much of the old one has a trap.
func (i installed) answers(ctx context.Context, report *reports.Stage) error {
	ran, err := run.Command{Name: i.Python, Args: []string{"-W", "ignore", "-m", overlay.Module}, Dir: "."}.Run(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	check := reports.Check{Name: "the overlay answers", Subject: "overlay", Verdict: reports.Failed}
	status, broken := overlay.ReadStatus(ran.Stdout)
	switch {
	case broken != nil:
		check.Detail, check.Output = fmt.Sprintf("no answer: %v", cmp.Or(err, broken)), words.LastLines(string(ran.Stderr), 30)
	case !status.Active:
		check.Detail = "torch's own copy answers: " + status.Why()
	case status.Library != i.Library || status.Stamp == nil || *status.Stamp != i.stamp:
		check.Detail = fmt.Sprintf("another overlay answers: %s", status.Library)
	default:
		kernels := 0
		for _, by := range status.Kernels {
			kernels += by[status.Library]
		}
		check.Verdict = reports.Passed
		check.Detail = fmt.Sprintf(
			"hooks, allocator, guard, fallback and %d kernels are the overlay's, with %d patches; symbols that lead to it: %d, "+
				"pointers of loaded images: %d", kernels, len(status.Patches), status.Symbols, total(status.Rebound))
	}
	report.Add(check)
	traps := reports.Check{Name: "traps", Subject: "overlay", Verdict: reports.Passed,
		Detail: fmt.Sprintf("functions of the old copy with a trap: %d; left out, as mpsforge's own: %s", i.Traps, strings.Join(i.LeftOut, ", "))}
	if len(i.LeftOut) > mostLeftOut || i.Traps == 0 {
		traps.Verdict = reports.Failed
	}
	report.Add(traps)
	return nil
}

func total(counts map[string]int) (sum int) {
	for _, count := range counts {
		sum += count
	}
	return sum
}

// sample is what of a stage's short form the short form of this one has.
var sample = stage.Options{
	Python:    stage.PythonOptions{Only: "^(basic|training|explicit-streams|hand-over|spawn)$", Repeat: 1},
	Operators: stage.OperatorOptions{Names: []string{"addmm", "cumsum", "native_layer_norm", "nn.functional.conv2d"}, Forms: []string{"backward", "handed-on"}},
	Upstream: stage.UpstreamOptions{
		Tests: `^test_mps:(TestMPS\.test_(add|batch_norm|copy_cast_no_leak|event_).*|TestMetalLibrary\..*|TestFallbackWarning\..*)`},
}

// run runs a stage over the overlay, and takes over what it found.
func (i installed) run(ctx context.Context, env *stage.Env, s stage.Stage, report *reports.Stage) error {
	own := *env
	if env.Quick {
		own.Python, own.Operators, own.Upstream = sample.Python, sample.Operators, sample.Upstream
	}
	own.Quick, own.Python.Interpreter, own.Python.Stock, own.Python.Environment = true, i.Python, "", i.environment
	if env.Artifacts != "" {
		own.Artifacts = filepath.Join(env.Artifacts, "overlay")
	}
	found := reports.Stage{Name: report.Name} // whose step is announced
	err := s.Run(ctx, &own, &found)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, check := range found.Checks {
		check.Name, check.Subject = s.Name+": "+check.Name, "overlay"
		report.Add(check)
	}
	for _, fact := range found.Facts {
		report.Facts = append(report.Facts, reports.Fact{Name: s.Name + ": " + fact.Name, Value: fact.Value})
	}
	for _, table := range found.Tables {
		table.Title = s.Name + ": " + table.Title
		report.Tables = append(report.Tables, table)
	}
	for name, n := range found.Counts {
		report.Count(s.Name+": "+name, n)
	}
	reason, skipped := stage.SkipReason(err)
	switch {
	case skipped:
		report.Add(reports.Check{Name: s.Name, Subject: "overlay", Verdict: reports.Skipped, Detail: reason})
	case err != nil:
		report.Add(reports.Check{Name: s.Name, Subject: "overlay", Verdict: reports.Failed, Detail: err.Error()})
	case !slices.ContainsFunc(found.Checks, func(c reports.Check) bool { return c.Verdict != reports.Skipped }):
		report.Add(reports.Check{Name: s.Name, Subject: "overlay", Verdict: reports.Skipped, Detail: "none of its checks could run here"})
	}
	return nil
}
