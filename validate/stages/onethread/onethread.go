// Package onethread is the stage that runs programs with one thread on stock sources and on patched ones, and compares what each
// gives and does: values bit for bit, what is committed in which order, memory, and what is compiled. What the programs are is in
// validate/stages/onethread/python. No test with threads belongs in it.
package onethread

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"mpsforge/internal/run"
	"mpsforge/reports"
	"mpsforge/validate/judge/pytests"
	"mpsforge/validate/stage"
)

//go:embed python/*.py
var sources embed.FS

// ErrPattern is returned, wrapped, for a pattern that is not a regular expression or that no program matches.
var ErrPattern = errors.New("no such program")

// Stage is the stage one-thread of the pipeline.
func Stage() stage.Stage {
	return stage.Stage{
		Name: "one-thread", Question: "does a program with one thread get and do the same on the patched sources as on stock?",
		Needs: []stage.Need{stage.NeedsCheckout, stage.NeedsTorch},
		Run:   runStage,
	}
}

// runner is one run of the stage.
type runner struct {
	env            *stage.Env
	report         *reports.Stage
	stock, patched *server
	allowed        []*allowance
}

const testsFile = "test/test_mps.py"

func runStage(ctx context.Context, env *stage.Env, report *reports.Stage) (err error) {
	if env.Python.Device == "cpu" || env.Python.Interpreter != "" || env.Host.NoStock {
		return stage.Skipf("needs host builds of stock and patched sources: only the software Metal records calls")
	}
	pattern, err := regexp.Compile(env.OneThread.Programs)
	if err != nil {
		return fmt.Errorf("%w: %q: %w", ErrPattern, env.OneThread.Programs, err)
	}
	patched, stock, err := pytests.Proven(ctx, env, report)
	if err != nil {
		return err
	}
	scripts, err := pytests.Unpack(env.Cache, sources, pytests.Sources)
	if err != nil {
		return err
	}
	tests, err := testsOf(ctx, env, report)
	if err != nil {
		return err
	}
	r := &runner{env: env, report: report, allowed: allowances()}
	defer func() { err = errors.Join(err, r.close()) }()
	if r.stock, err = start(ctx, stock, scripts, env.Seed, tests); err != nil {
		return err
	}
	if r.patched, err = start(ctx, patched, scripts, env.Seed, tests); err != nil {
		return err
	}
	names, err := draw(r.stock.names, r.patched.names, env.Seed, env.Quick, pattern, env.OneThread.Programs != "")
	if err != nil {
		return err
	}
	if err := r.controls(); err != nil {
		return err
	}
	if len(names) == 0 { // the pattern names controls alone
		return nil
	}
	return r.compareAll(names)
}

// testsOf is the path of PyTorch's own tests of MPS; where the base commit has none, a skipped check says so.
func testsOf(ctx context.Context, env *stage.Env, report *reports.Stage) (string, error) {
	folder, err := env.Checkout.Files(ctx, []string{testsFile}, env.Cache)
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, testsFile)
	if _, err := os.Stat(path); err != nil {
		report.Add(reports.Check{Name: "PyTorch's own tests", Subject: "programs", Verdict: reports.Skipped,
			Detail: "the checkout's base commit has no " + testsFile + "; other programs are drawn instead"})
		return "", nil
	}
	return path, nil
}

// again is the command that compares one program alone.
func (r *runner) again(name string) string {
	return run.Command{Name: "mpsforge", Args: []string{"verify", "--stages", "one-thread", "--programs", "^" + regexp.QuoteMeta(name) + "$", "--seed",
		fmt.Sprint(r.env.Seed),
		"--baseline", r.env.Identity.Baseline, "--checkout", r.env.Identity.Checkout}}.String()
}

func (r *runner) close() error {
	var all []error
	for _, s := range []*server{r.stock, r.patched} {
		if s != nil {
			all = append(all, s.Close())
		}
	}
	return errors.Join(all...)
}
