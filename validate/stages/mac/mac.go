// Package mac is the stage that asks whether the patched sources compile for arm64 macOS and link with the libraries of PyTorch's own
// wheel, with the same exports and layouts. It runs on Linux, and nothing that it makes is run. How the sources are compiled is in
// package fork/macos/mac, what is compared is here.
package mac

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"mpsforge/fork"
	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/macos/mac"
	"mpsforge/internal/events"
	"mpsforge/internal/words"
	"mpsforge/native/apple"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/stage"
)

// Stage is the stage mac of the pipeline.
func Stage() stage.Stage {
	return stage.Stage{
		Name: "mac", Question: "do the patched sources compile for arm64 macOS and link with the real wheel, with its exports and layouts?",
		Needs: []stage.Need{stage.NeedsCache, stage.NeedsCheckout, stage.NeedsRoot},
		Run:   runStage,
	}
}

// runStage compiles stock and patched sources, links them, and compares.
func runStage(ctx context.Context, env *stage.Env, report *reports.Stage) error {
	r, err := open(ctx, env, report.Name)
	if errors.Is(err, patches.ErrNoMacFacts) || errors.Is(err, builds.ErrEnvironment) || errors.Is(err, fork.ErrEnvironment) {
		return stage.Skipf("%v", err)
	}
	if err != nil {
		return err
	}
	r.report = report
	defer r.kit.Close()
	return r.run(ctx)
}

// stageRun is one run of the stage.
type stageRun struct {
	env     *stage.Env
	kit     *mac.Kit
	facts   patches.MacFacts
	classes patches.HostFacts
	api     *apple.Table
	report  *reports.Stage
	done    int64
}

// open gets what the stage needs. The caller closes the kit.
func open(ctx context.Context, env *stage.Env, name string) (*stageRun, error) {
	r := &stageRun{env: env}
	var err error
	if r.facts, err = env.Series.MacFacts(); err != nil {
		return nil, err
	}
	if r.classes, err = env.Series.HostFacts(); err != nil {
		return nil, err
	}
	if r.api, err = apple.Load(); err != nil {
		return nil, err
	}
	asked := slices.Contains(env.Stages, name) || slices.Contains(env.Require, name)
	if !asked && (!mac.Have(env.Cache, r.facts) || env.Host.Root == "" && !host.HaveRoot(env.Cache)) {
		return nil, stage.Skipf("needs two wheels of PyPI's, 150 MB, and packages of Debian %s, downloaded only when this stage is requested: "+
			"mpsforge verify --stages %s", host.DebianSuite, name)
	}
	root, err := host.OpenRoot(ctx, env.Host.Root, env.Cache, env.Sink)
	if err != nil {
		return nil, err
	}
	r.kit, err = mac.Open(ctx, root, env.Cache, r.facts, env.Sink)
	return r, err
}

func (r *stageRun) run(ctx context.Context) error {
	stock, err := r.env.Checkout.Stock(ctx, r.env.Cache)
	if err != nil {
		return err
	}
	patched, err := r.env.Checkout.Patched(ctx, r.env.Series, r.env.Cache)
	if err != nil {
		return err
	}
	before, err := r.tree(ctx, "stock", stock.Dir)
	if err != nil {
		return err
	}
	after, err := r.tree(ctx, "patched", patched.Dir)
	if err != nil {
		return err
	}
	r.report.Facts = append(r.report.Facts,
		reports.Fact{Name: "what ran", Value: "compiled and linked on " + runtime.GOOS + "; not run: this needs a Mac"},
		reports.Fact{Name: "stock tree", Value: stock.Tree}, reports.Fact{Name: "patched tree", Value: patched.Tree},
		reports.Fact{Name: "wheel", Value: filepath.Base(r.facts.Wheel.URL)}, reports.Fact{Name: "deployment target", Value: "macOS " + r.kit.Minimum +
			", as the wheel's"})
	r.report.Count("sources compiled, stock", before.Count())
	r.report.Count("sources compiled, patched", after.Count())

	builtStock, err := r.kit.Compile(ctx, before, r.facts, r.env.Host.Jobs, r.env.Sink)
	if err != nil {
		return err
	}
	builtPatched, err := r.kit.Compile(ctx, after, r.facts, r.env.Host.Jobs, r.env.Sink)
	if err != nil {
		if ctx.Err() != nil || !errors.Is(err, builds.ErrSources) {
			return err
		}
		r.add(reports.Check{Name: "compiles", Subject: "patched", Verdict: reports.Failed, Detail: words.FirstLine(err.Error()), Output: err.Error()})
		return nil
	}
	r.add(reports.Check{Name: "compiles", Subject: "patched", Verdict: reports.Passed, Detail: fmt.Sprintf("%d sources for arm64-apple-macos%s",
		after.Count(), r.kit.Minimum)})

	layoutsStock, warningsStock, err := r.kit.Layouts(ctx, "stock", stock.Dir, r.classes)
	if err != nil {
		return err
	}
	layoutsPatched, warningsPatched, err := r.kit.Layouts(ctx, "patched", patched.Dir, r.classes)
	if err != nil {
		return err
	}
	builtStock.Warnings = append(builtStock.Warnings, warningsStock...)
	builtPatched.Warnings = append(builtPatched.Warnings, warningsPatched...)
	r.layouts(layoutsStock, layoutsPatched)
	return r.compare(ctx, builtStock, builtPatched)
}

// compare links both and looks at what came of it.
func (r *stageRun) compare(ctx context.Context, builtStock, builtPatched *mac.Build) error {
	r.warnings(builtStock.Warnings, builtPatched.Warnings)
	one, err := load(builtStock)
	if err != nil {
		return err
	}
	if _, err := r.kit.Link(ctx, "stock", builtStock.Objects); err != nil {
		return fmt.Errorf("stock: %w", err)
	}
	other, err := load(builtPatched)
	if err != nil {
		return err
	}
	if err := r.link(ctx, builtPatched.Objects); err != nil {
		return err
	}
	if err := r.exports(ctx, one, other); err != nil {
		return err
	}
	if err := r.tables(ctx, one, other); err != nil {
		return err
	}
	r.newAPI(other)
	return nil
}

// tree is what to compile of a tree: all of the MPS backend, with what torchgen makes; of the quick form what the series touches, and the
// others are the wheel's.
func (r *stageRun) tree(ctx context.Context, subject, dir string) (tree mac.Tree, err error) {
	tree = mac.Tree{Subject: subject, Dir: dir}
	if tree.Sources, err = mac.Sources(dir, r.classes, r.facts); err != nil {
		return tree, err
	}
	if !r.env.Quick {
		tree.Generated, err = host.Registration(ctx, r.kit.Root, dir, r.env.Cache, r.env.Sink)
		return tree, err
	}
	tree.Sources = slices.DeleteFunc(tree.Sources, func(source string) bool {
		return !slices.ContainsFunc(r.env.Series.Patches, func(patch *patches.Patch) bool {
			return slices.ContainsFunc(patch.Files, func(file *patches.File) bool { return file.Path() == source })
		})
	})
	return tree, nil
}

// load reads what was compiled.
func load(b *mac.Build) (built, error) {
	result := built{objects: map[string]*mac.Image{}}
	for source, object := range b.Objects {
		image, err := mac.OpenImage(object)
		if err != nil {
			return built{}, err
		}
		result.objects[source] = image
	}
	return result, nil
}

// checks is how many there are: each call of add and judge below, and one more for the control of the tables.
const checks = 9

func (r *stageRun) add(check reports.Check) {
	r.done++
	r.env.Sink.Emit(events.StepProgress{Step: stage.StepName(r.report.Name), Done: r.done, Total: checks, Unit: "checks", Note: check.Name + ", " +
		check.Subject})
	r.report.Add(check)
}

// judge adds a check that fails where there are problems, of which it names the first.
func (r *stageRun) judge(name, subject string, problems []string, problem, well string) {
	check := reports.Check{Name: name, Subject: subject, Verdict: reports.Passed, Detail: well}
	if len(problems) > 0 {
		check.Verdict, check.Detail, check.Output = reports.Failed, fmt.Sprintf("%d %s: %s", len(problems), problem, problems[0]), strings.Join(problems, "\n")
	}
	r.add(check)
}

func (r *stageRun) warnings(stock, patched []mac.Warning) {
	var added []string
	for _, w := range mac.NewWarnings(stock, patched) {
		added = append(added, w.File+": "+w.Text)
	}
	r.judge("no new warning", "patched", added, "warnings that stock does not have", fmt.Sprintf("%d warnings, all of them stock's too", len(patched)))
}

func (r *stageRun) layouts(stock, patched []host.Layout) {
	changed, fits := layouts(stock, patched)
	if !fits && len(changed) == 0 {
		changed = []string{"none was found"}
	}
	r.judge("layout", "classes that extensions are built with", changed, "classes do not fit", fmt.Sprintf("%d classes, as stock", len(stock)))
}

// link links the patched objects: what is undefined, and what comes from the wheel's own backend.
func (r *stageRun) link(ctx context.Context, objects map[string]string) error {
	image, err := r.kit.Link(ctx, "patched", objects)
	var missing *mac.UndefinedError
	switch {
	case errors.As(err, &missing):
		names, err := r.demangled(ctx, missing.Symbols)
		if err != nil {
			return err
		}
		r.judge("nothing undefined", "patched", names, "names that neither the sources, nor the wheel, nor macOS define", "")
		return nil
	case err != nil:
		return err
	}
	r.judge("nothing undefined", "patched", nil, "", fmt.Sprintf("%d names bound to other libraries", len(image.Undefined)))
	names, err := r.demangled(ctx, mac.BoundToStock(image))
	if err != nil {
		return err
	}
	r.report.Count("names bound to the wheel's own backend", int64(len(names)))
	const bound = "bound to the wheel's backend"
	if r.env.Quick && len(r.facts.Bound) == 0 {
		r.add(reports.Check{Name: bound, Subject: "patched", Verdict: reports.NotRun, Output: strings.Join(names, "\n"),
			Detail: fmt.Sprintf("%d names, and the baseline's mac.json has no list to compare them with; in the long form any such name fails", len(names))})
		return nil
	}
	problems := names
	if r.env.Quick {
		problems = unlisted(names, r.facts.Bound)
	}
	r.judge(bound, "patched", problems,
		"names of MPS are bound to the wheel's unpatched libtorch_cpu; allowed are only, in the quick form, those under bound in mac.json",
		fmt.Sprintf("%d names, all in bound of mac.json", len(names)))
	return nil
}

func (r *stageRun) exports(ctx context.Context, stock, patched built) error {
	gone, kept := lost(stock, patched, r.kit.Libraries)
	names, err := r.demangled(ctx, gone)
	if err != nil {
		return err
	}
	problems := unexplained(names, r.facts, r.classes)
	if kept == 0 {
		problems = append(problems, "nothing that stock's sources define is in the wheel, so the comparison shows nothing")
	}
	r.judge("exports kept", "patched", problems, "symbols that the wheel exports are not defined any more, or listed as lost and are not",
		fmt.Sprintf("%d of the wheel's are defined; %d are lost with a reason", kept, len(names)))
	return nil
}

// tables compares with the wheel's data; stock is the control: what differs there is read wrongly.
func (r *stageRun) tables(ctx context.Context, stock, patched built) error {
	for _, side := range []struct {
		name string
		of   built
	}{{"stock", stock}, {"patched", patched}} {
		found, err := tables(side.of, r.kit.Libraries[0])
		if err != nil {
			return err
		}
		var problems []string
		slots, named := 0, 0
		for _, t := range found {
			slots, named = slots+t.Slots, named+t.Named
			if t.Problem != "" {
				class, err := r.demangled(ctx, []string{t.Class})
				if err != nil {
					return err
				}
				problems = append(problems, class[0]+": "+t.Problem)
			}
		}
		if named == 0 {
			problems = append(problems, "no function was found in any table")
		}
		r.judge("virtual functions", side.name, problems, "tables do not begin like the wheel's",
			fmt.Sprintf("%d classes; of the wheel's %d functions %d are in their place, the others another library's", len(found), slots, named))
	}
	return nil
}

func (r *stageRun) newAPI(patched built) {
	unknown, added := mac.NewAPI(slices.Collect(maps.Values(patched.objects)), r.kit.Libraries[0], r.api)
	r.judge("Apple's API", "patched", unknown, "selectors or classes are neither the wheel's nor in native/apple/api.tsv",
		fmt.Sprintf("%d selectors and classes that the wheel does not use, all in the table", added))
}

// demangled gives names as C++ writes them, in their order.
func (r *stageRun) demangled(ctx context.Context, names []string) ([]string, error) {
	all, err := r.kit.Demangle(ctx, names)
	if err != nil {
		return nil, err
	}
	result := make([]string, len(names))
	for i, name := range names {
		result[i] = all[name]
	}
	return result, nil
}
