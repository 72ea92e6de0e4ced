// Package upstream is the stage that runs PyTorch's own tests on device mps, unchanged, on stock sources and on patched ones: those of
// MPS, and those of autograd's threads and of streams that were written for other devices. What ends otherwise on the patched ones
// fails. What fails on both is the host build's debt: it is listed by cause in the baseline's upstream.json, and the list may only
// shrink. No test of ours belongs in it.
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
	"mpsforge/validate/judge/nativefunctions"
	"mpsforge/validate/judge/pytests"
	"mpsforge/validate/stage"
)

//go:embed python/*.py
var sources embed.FS

// ErrPattern is returned, wrapped, for a pattern that is not a regular expression or that no test matches.
var ErrPattern = errors.New("no such test of PyTorch's")

// Stage is the stage upstream of the pipeline.
func Stage() stage.Stage {
	return stage.Stage{
		Name: "upstream", Question: "do PyTorch's own tests end on the patched sources as on stock, and as PyTorch expects?",
		Needs:  []stage.Need{stage.NeedsCheckout, stage.NeedsTorch},
		Splits: true,
		Run:    runStage,
	}
}

// suiteFile is a file of PyTorch's tests.
type suiteFile struct {
	name  string         // test_mps
	path  string         // where the base commit's file is
	about *regexp.Regexp // the tests that are of the stage's topic, as Class.method; nil is all
	long  *regexp.Regexp // those of them that run in the long form alone; nil is none
	quick int            // how many tests the short form draws
	// standins are modules beside suite.py that point tests of another device at mps. A test that used no mps is not a pass then.
	standins []string
}

// suites are the files, where the base commit's folder with the tests has them.
var suites = []suiteFile{
	{name: "test_mps", quick: 250},
	// Whatever is computed backward on mps runs on autograd's thread for the device.
	{name: "test_autograd", quick: 30, standins: []string{"cuda_names", "default_device"}, long: regexp.MustCompile(`checkpoint|deep`)},
	{name: "test_cuda", quick: 5, standins: []string{"cuda_names"},
		about: regexp.MustCompile(`^TestCuda\..*(stream|event|multiple_threads)`), long: regexp.MustCompile(`_oom$`)},
	// What TorchScript forks runs on threads of its own.
	{name: "jit/test_async", quick: 5, standins: []string{"default_device"}},
	// Gradients of gradients, and of many inputs at once. Its classes are made for each device, the CPU among them.
	{name: "functorch/test_eager_transforms", quick: 10, standins: []string{"default_device"}, about: regexp.MustCompile(`MPS\.|^TestMakeFunctional\.`),
		long: regexp.MustCompile(`_compile_`)},
}

// others are files and folders that the suites import.
var others = []string{"test/autograd", "test/functorch"}

const pythonFile = "torch/backends/mps/__init__.py"

func runStage(ctx context.Context, env *stage.Env, report *reports.Stage) error {
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
	paths := append([]string{nativefunctions.File, pythonFile}, others...)
	for _, file := range suites {
		paths = append(paths, file.inCheckout())
	}
	folder, err := env.Checkout.Files(ctx, paths, env.Cache)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(folder, suites[0].inCheckout())); err != nil {
		return stage.Skipf("the checkout's base commit has no %s", suites[0].inCheckout())
	}
	base, _ := env.Checkout.Base()
	exact, whole, err := env.Checkout.ExactFiles(ctx, env.Series, base)
	if err != nil {
		return err
	}
	for _, file := range suites {
		_, err := os.Stat(filepath.Join(folder, file.inCheckout()))
		if err == nil && !whole && !slices.Contains(exact, file.inCheckout()) { // what it finds would say nothing of the release
			return stage.Skipf("the checkout's base commit is not the release's, and its %s is not among the files known to be those of %s",
				file.inCheckout(), env.Series.Baseline.Name)
		}
	}
	operators, err := nativefunctions.Read(folder)
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
	r := &runner{env: env, report: report, scripts: scripts, patched: patched, stock: stock, limits: defaultLimits, facts: facts, listed: list(facts),
		operators: operatorsOnMac(operators, string(python)), pattern: pattern}
	for _, file := range suites {
		file.path = filepath.Join(folder, file.inCheckout())
		if _, err := os.Stat(file.path); err != nil {
			r.fact(file.name, "the checkout's base commit has no "+file.inCheckout())
			continue
		}
		if err := r.runFile(ctx, file); err != nil {
			return err
		}
	}
	if len(r.jobs) == 0 {
		return r.noTest()
	}
	if err := env.Shard.Split(report, r.jobs); err != nil {
		return err
	}
	return r.conclude()
}

// inCheckout is the file's path there.
func (f suiteFile) inCheckout() string { return "test/" + f.name + ".py" }

// noTest is the error of a pattern that none of the tests that run matches.
func (r *runner) noTest() error {
	for id, reason := range r.listed.leftOut {
		if r.pattern.MatchString(id) {
			return fmt.Errorf("%w matches %q: %s leaves %s out (%s)", ErrPattern, r.env.Upstream.Tests, r.file(), id, reason)
		}
	}
	return fmt.Errorf("%w matches %q; names are FILE:Class.method, such as test_mps:TestMPS.test_exp", ErrPattern, r.env.Upstream.Tests)
}

// choose picks the tests of a file that this run is for: of those of the topic that are not left out the ones that the pattern
// names, in the short form a sample by the seed.
func (r *runner) choose(file suiteFile, names []string) []string {
	drawn := r.env.Quick && r.env.Upstream.Tests == ""
	chosen := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		id := file.name + ":" + name
		return file.about != nil && !file.about.MatchString(name) || r.listed.leftOut[id] != "" || !r.pattern.MatchString(id) ||
			drawn && file.long != nil && file.long.MatchString(name)
	})
	if drawn && len(chosen) > file.quick {
		random := rand.New(rand.NewPCG(r.env.Seed, 0))
		random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		chosen = chosen[:file.quick]
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
	if r.env.Python.Interpreter != "" {
		command += " --python " + r.env.Python.Interpreter
	}
	return command
}
