// Package upstream is the stage that runs PyTorch's own test suite on device mps, unchanged, on stock sources and on patched ones. What
// ends otherwise on the patched ones fails. What fails on both is the host build's debt: it is listed by cause in the baseline's
// upstream.json, and the list may only shrink. No test of ours belongs in it.
package upstream

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mpsforge/reports"
	"mpsforge/validate/pytests"
	"mpsforge/validate/stage"
)

//go:embed python/*.py
var sources embed.FS

// quickTests is how many tests the short form draws.
const quickTests = 400

// ErrPattern is returned, wrapped, for a pattern that is no regular expression or that no test matches.
var ErrPattern = errors.New("no such test of PyTorch's")

// Stage is the stage upstream of the pipeline.
func Stage() stage.Stage {
	return stage.Stage{
		Name: "upstream", Question: "do PyTorch's own tests end on the patched sources as on stock, and as PyTorch expects?",
		Needs: []stage.Need{stage.NeedsCheckout, stage.NeedsTorch},
		Run:   runStage,
	}
}

// suiteFile is a file of PyTorch's tests.
type suiteFile struct {
	name    string   // test_mps
	path    string   // where the base commit's file is
	tests   []string // these; nil stands for all
	options []string // of suite.py
}

// PyTorch's operators, and which of them have a kernel for MPS.
const (
	operatorsFile = "aten/src/ATen/native/native_functions.yaml"
	pythonFile    = "torch/backends/mps/__init__.py"
)

func runStage(ctx context.Context, env *stage.Env, report *reports.Stage) error {
	if env.Checkout == nil {
		return stage.Skipf("%s", env.NoCheckout)
	}
	if env.Python.Device == "cpu" {
		return stage.Skipf("device cpu: these tests are of device mps")
	}
	pattern, err := regexp.Compile(env.Upstream.Tests)
	if err != nil {
		return fmt.Errorf("%w: %q: %w", ErrPattern, env.Upstream.Tests, err)
	}
	facts, err := env.Series.UpstreamFacts()
	if err != nil {
		return err
	}
	folder, err := env.Checkout.Files(ctx, []string{"test/test_mps.py", operatorsFile, pythonFile}, env.Cache)
	if err != nil {
		return err
	}
	file := suiteFile{name: "test_mps", path: filepath.Join(folder, "test/test_mps.py")}
	if _, err := os.Stat(file.path); err != nil {
		return stage.Skipf("the checkout's base commit has no test/test_mps.py")
	}
	yaml, err := os.ReadFile(filepath.Join(folder, operatorsFile))
	if err != nil {
		return err
	}
	python, err := os.ReadFile(filepath.Join(folder, pythonFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a checkout may be part of one
		return err
	}
	patched, stock, err := pytests.Proven(ctx, env, report)
	if err != nil {
		return err
	}
	scripts, err := pytests.Unpack(env.Cache, sources, pytests.Sources)
	if err != nil {
		return err
	}
	r := &runner{env: env, report: report, scripts: scripts, patched: patched, stock: stock, limits: defaultLimits, facts: facts, listed: list(facts), operators: operatorsOnMac(string(yaml), string(python)), pattern: pattern}
	if err := r.runFile(ctx, file); err != nil {
		return err
	}
	if r.ran == 0 {
		return fmt.Errorf("%w matches %q; names are FILE:Class.method, such as test_mps:TestMPS.test_exp", ErrPattern, env.Upstream.Tests)
	}
	return r.conclude()
}

// choose picks the tests of a file that this run is for: those that the pattern names, in the short form a sample by the seed.
func (r *runner) choose(file suiteFile, names []string) []string {
	chosen := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return file.tests != nil && !slices.Contains(file.tests, name) || !r.pattern.MatchString(file.name+":"+name)
	})
	if r.env.Quick && r.env.Upstream.Tests == "" && len(chosen) > quickTests {
		random := rand.New(rand.NewPCG(r.env.Seed, 0))
		random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		chosen = chosen[:quickTests]
	}
	return chosen
}

// again is the command that runs tests once more.
func (r *runner) again(names ...string) string {
	for i, name := range names {
		names[i] = regexp.QuoteMeta(name)
	}
	pattern := "^" + names[0] + "$"
	if len(names) > 1 {
		pattern = "^(" + strings.Join(names, "|") + ")$"
	}
	command := fmt.Sprintf("mpsforge verify --stages upstream --tests '%s' --seed %d", pattern, r.env.Seed)
	if r.env.Checkout != nil {
		command += " --checkout " + r.env.Checkout.Dir()
	}
	return command
}
