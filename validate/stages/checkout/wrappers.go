package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/events"
	"mpsforge/reports"
	"mpsforge/validate/judge/nativefunctions"
	"mpsforge/validate/stage"
)

// unsaidWrite is a write that no schema names, or that a kernel does not always do although its schema says so.
type unsaidWrite struct{ function, argument, condition, reason string }

// unsaidWrites are known by reading the kernels, and by the stage operators, which sees what each job changes.
var unsaidWrites = []unsaidWrite{
	{"_copy_from", "dst", "true", "it is what copy_ calls: the destination is its last argument"},
	{"_copy_from_and_resize", "dst", "true", "as _copy_from"},
	{"native_batch_norm", "running_mean", "training", "the kernel moves the running values in training, and reads them else"},
	{"native_batch_norm", "running_var", "training", "as running_mean"},
	{"native_batch_norm.out", "running_mean", "training", "as native_batch_norm"},
	{"native_batch_norm.out", "running_var", "training", "as native_batch_norm"},
	{"_native_batch_norm_legit", "running_mean", "training", "(a!) in the schema, but in evaluation many threads may read them at once"},
	{"_native_batch_norm_legit", "running_var", "training", "as running_mean"},
	{"_native_batch_norm_legit.out", "running_mean", "training", "as _native_batch_norm_legit"},
	{"_native_batch_norm_legit.out", "running_var", "training", "as _native_batch_norm_legit"},
}

// wrapperFault is what is wrong with the guard of one generated wrapper.
type wrapperFault struct{ key, function, says string }

var (
	registration   = regexp.MustCompile(`(?s)TORCH_LIBRARY_IMPL\(aten, (\w+), m\) \{(.*?)\n\s*\}`)
	registered     = regexp.MustCompile(`m\.impl\("([\w.]+)",\s*TORCH_FN\((\w+)\)\)`)
	wrapperHead    = regexp.MustCompile(`(?m)^.*[ >&*](wrapper_\w+)\([^;{}]*\) \{\n`)
	guardStatement = regexp.MustCompile(`const at::mps::MPSOpGuard \w+\(\{(.*)\}\);`)
	guardArgument  = regexp.MustCompile(`\{(\w+)(?:, ([^{}]+))?\}`)

	// beforeGuard may stand before it in a wrapper: what set_ replaces is freed behind the guard.
	beforeGuard = regexp.MustCompile(`^(?:\s|//.*|const c10::Storage \w+ = self\.storage\(\);)*$`)
)

// wrapperFaults compares the guards of the wrappers in generated sources with the schemas. It also gives the number of wrappers.
func wrapperFaults(operators []nativefunctions.Operator, sources []string) (faults []wrapperFault, read int) {
	bodies, wrappers := map[string]string{}, map[string]map[string]string{} // by the wrapper; by key and function, the wrapper
	for _, key := range guardedKeys {
		wrappers[key] = map[string]string{}
	}
	for _, source := range sources {
		for _, at := range wrapperHead.FindAllStringSubmatchIndex(source, -1) {
			body, _, _ := strings.Cut(source[at[1]:], "\n}\n")
			if name := source[at[2]:at[3]]; bodies[name] == "" {
				bodies[name] = body
			}
		}
		for _, block := range registration.FindAllStringSubmatch(source, -1) {
			for _, one := range registered.FindAllStringSubmatch(block[2], -1) {
				if wrappers[block[1]] != nil {
					wrappers[block[1]][one[1]] = one[2]
				}
			}
		}
	}
	for _, o := range operators {
		for _, key := range keysOf(o, operators) {
			wrapper := wrappers[key][o.Name]
			delete(wrappers[key], o.Name)
			read++
			body, found := bodies[wrapper]
			if !found {
				faults = append(faults, wrapperFault{key, o.Name, "torchgen writes no wrapper for it"})
				continue
			}
			for _, says := range guardFaults(o, body) {
				faults = append(faults, wrapperFault{key, o.Name, says})
			}
		}
	}
	for key, rest := range wrappers {
		for function := range rest {
			faults = append(faults, wrapperFault{key, function, "torchgen writes a wrapper, and " + nativefunctions.File + " names no kernel for it"})
		}
	}
	slices.SortFunc(faults, func(a, b wrapperFault) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.function, b.function), cmp.Compare(a.says, b.says))
	})
	return faults, read
}

// keysOf gives the keys with guards for which an operator has a wrapper, by a kernel of its own or by the structured one that it delegates to.
func keysOf(o nativefunctions.Operator, operators []nativefunctions.Operator) (keys []string) {
	kernels := []map[string][]string{o.Kernels}
	if i := slices.IndexFunc(operators, func(other nativefunctions.Operator) bool { return other.Name == o.Delegate }); i >= 0 {
		kernels = append(kernels, operators[i].Kernels)
	}
	for _, key := range guardedKeys {
		if slices.ContainsFunc(kernels, func(of map[string][]string) bool {
			for _, named := range of {
				if slices.Contains(named, key) {
					return true
				}
			}
			return false
		}) {
			keys = append(keys, key)
		}
	}
	return keys
}

// guardFaults says what is wrong with the guard in a wrapper's body.
func guardFaults(o nativefunctions.Operator, body string) (says []string) {
	at := guardStatement.FindStringSubmatchIndex(body)
	written := slices.ContainsFunc(o.Tensors, func(t nativefunctions.Tensor) bool { return t.Written })
	if viewReturned.MatchString(o.Returns) && !written {
		if at != nil {
			says = append(says, "it is a view that writes nothing, and has a guard")
		}
		return says
	}
	if at == nil {
		return []string{"it has no guard"}
	}
	if !beforeGuard.MatchString(body[:at[0]]) {
		says = append(says, "its guard is not the first that it does")
	}
	given := map[string]string{}
	for _, argument := range guardArgument.FindAllStringSubmatch(body[at[2]:at[3]], -1) {
		if _, twice := given[argument[1]]; twice {
			says = append(says, "argument "+argument[1]+" is in its guard twice")
		}
		given[argument[1]] = cmp.Or(argument[2], "read")
	}
	for _, t := range o.Tensors {
		condition, inGuard := given[t.Name]
		delete(given, t.Name)
		if want := writeOf(o.Name, t); !inGuard {
			says = append(says, "argument "+t.Name+" is missing in its guard")
		} else if condition != want {
			says = append(says, fmt.Sprintf("argument %s is %s in its guard, and should be %s", t.Name, spoken(condition), spoken(want)))
		}
	}
	for name := range given {
		says = append(says, "argument "+name+" is in its guard, and is no tensor of the schema")
	}
	return says
}

// writeOf gives the condition under which a function writes an argument, or "read".
func writeOf(function string, t nativefunctions.Tensor) string {
	for _, w := range unsaidWrites {
		if w.function == function && w.argument == t.Name {
			return w.condition
		}
	}
	if t.Written {
		return "true"
	}
	return "read"
}

// spoken says in words what a condition means.
func spoken(condition string) string {
	return cmp.Or(map[string]string{"read": "only read", "true": "written"}[condition], "written if "+condition)
}

// mostFaults bounds how many of the wrappers' faults are listed: a mistake in the generator is in hundreds of them.
const mostFaults = 20

// checkWrappers adds the verdict on the guards that the checkout's torchgen writes into the wrappers of operators.
func checkWrappers(ctx context.Context, env *stage.Env, report *reports.Stage) error {
	const name = "a wrapper's guard against its schema"
	skip := func(why string) {
		report.Add(reports.Check{Name: name, Subject: "checkout", Verdict: reports.Skipped, Detail: why})
	}
	dir := env.Checkout.Dir()
	written, err := writesGuards(dir)
	if err != nil {
		return err
	}
	if !written || !builds.Exists(filepath.Join(dir, "torchgen/gen.py")) {
		skip(noGuardsWritten)
		return nil
	}
	if env.Host.Root == "" && !host.HaveRoot(env.Cache) {
		skip("needs a Python that runs torchgen: that of a host build's root, which mpsforge verify --stages runtime gets")
		return nil
	}
	root, err := host.OpenRoot(ctx, env.Host.Root, env.Cache, env.Sink)
	if errors.Is(err, builds.ErrEnvironment) {
		skip(err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	faults, read, err := generatedFaults(ctx, root, dir, env.Cache, env.Sink)
	if err != nil {
		return err
	}
	report.Count("generated wrappers of operators", int64(read))
	for i, f := range faults {
		check := reports.Check{Name: name, Subject: f.key + ", " + f.function, Verdict: reports.Failed,
			Detail: "the wrapper of " + f.function + " for " + f.key + ": " + f.says}
		if i == mostFaults {
			check.Subject, check.Detail = "checkout", fmt.Sprintf("and %d more", len(faults)-i)
		}
		report.Add(check)
		if i == mostFaults {
			break
		}
	}
	if len(faults) == 0 {
		report.Add(clean(name, "", read, "generated wrapper",
			"each wrapper that torchgen writes has a guard that names every tensor of the schema, and as written those that its kernel writes"))
	}
	return nil
}

// generatedFaults runs the torchgen of the checkout in dir as host builds do, which keep what it writes in the cache, and judges that.
func generatedFaults(ctx context.Context, root *host.Root, dir, cache string, sink events.Sink) (faults []wrapperFault, read int, err error) {
	paths, err := host.Registration(ctx, root, dir, cache, sink)
	if err != nil {
		return nil, 0, err
	}
	var sources []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, 0, err
		}
		sources = append(sources, string(text))
	}
	operators, err := nativefunctions.Read(dir)
	if err != nil {
		return nil, 0, err
	}
	faults, read = wrapperFaults(operators, sources)
	return faults, read, nil
}
