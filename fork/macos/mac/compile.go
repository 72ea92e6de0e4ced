package mac

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/events"
	"mpsforge/patches"
)

// commonFlags are those of PyTorch's build for the Mac, as far as they are seen in the code.
var commonFlags = []string{
	"-std=c++17", "-O1", "-fPIC", "-fvisibility-inlines-hidden", "-fno-sized-deallocation", "-fblocks", "-DUSE_MPS", "-DNDEBUG", "-DFMT_HEADER_ONLY=1",
	"-DAT_PER_OPERATOR_HEADERS", "-D_USE_EXTERNAL_MZCRC",
	"-Wnonnull", "-Wunguarded-availability", "-Wobjc-method-access", "-Wincompatible-pointer-types", "-Wobjc-literal-conversion",
	"-fno-caret-diagnostics", "-fno-color-diagnostics",
}

// flags of a language: objective-c++ or c++.
func (k *Kit) flags(language string) []string {
	flags := []string{"-target", "arm64-apple-macos" + k.Minimum, "-isysroot", k.Xcode.SDK, "-x", language}
	if k.Xcode.Major >= 17 {
		// Apple's clang that made the wheel leaves the type of an unnamed template parameter out of a symbol, as clang did up to 17.
		flags = append(flags, "-fclang-abi-compat=17")
	}
	if language != "c++" {
		flags = append(flags, "-fno-objc-arc", "-fobjc-exceptions")
	}
	// A header's name in a message must not be that of somebody's folder.
	return slices.Concat(flags, commonFlags, []string{"-ffile-prefix-map=" + k.cache + "/=", "-Iaten/src", "-I."}, k.headers)
}

// Build is what was compiled of a checkout.
type Build struct {
	Objects  map[string]string // by source
	Warnings []Warning
}

// Warning is one of the compiler's. Two that differ in their line alone are equal.
type Warning struct{ Source, File, Text string }

// fewSources are compiled sooner than a header for them is.
const fewSources = 2

// Tree is a checkout of which sources are compiled.
type Tree struct {
	Subject   string // names it and its folder in the cache
	Dir       string
	Sources   []string // by path in it
	Generated []string // paths of what torchgen made of it
	// Flags are more than the others' for some of Sources, and Added are the paths of sources that are not the checkout's.
	Flags map[string][]string
	Added []string
	// Defines are flags of all Objective-C++ among them.
	Defines []string
}

// Count is how many sources that is.
func (t Tree) Count() int64 { return int64(len(t.Sources) + len(t.Generated) + len(t.Added)) }

// Compile compiles sources of a checkout.
func (k *Kit) Compile(ctx context.Context, tree Tree, facts patches.MacFacts, jobs int, sink events.Sink) (*Build, error) {
	step := "compile " + tree.Subject + " for macOS"
	finish := events.Step(events.OrDiscard(sink), step)
	defer finish(events.Failed, "")
	dir := filepath.Join(Folder(k.cache), tree.Subject)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	objc := slices.Concat(k.flags("objective-c++"), tree.Defines)
	header := ""
	if len(tree.Sources) > fewSources {
		header = filepath.Join(Folder(k.cache), "prefix.h")
		if err := builds.WriteChanged(header, []byte("#include <ATen/native/mps/OperationUtils.h>\n")); err != nil {
			return nil, err
		}
	}
	job := host.Objects{Root: k.Root, Cache: Folder(k.cache), Jobs: jobs, Sink: events.Under(events.OrDiscard(sink), step), Step: step,
		Checkout: tree.Dir, Header: header, Flags: objc,
		Sources: map[string][]string{}, Dir: dir, Plan: k.plan()}
	for _, source := range tree.Sources {
		if slices.Contains(facts.PythonSources, source) {
			job.Sources[source] = k.flags("c++")
		} else if more := tree.Flags[source]; more != nil {
			job.Sources[source] = slices.Concat(objc, more)
		} else {
			job.Sources[source] = nil
		}
	}
	for _, path := range tree.Added {
		job.Sources[path] = objc
	}
	for _, path := range tree.Generated {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		// ccache knows it by its path, which must not be that of its content.
		same := filepath.Join(dir, filepath.Base(path))
		if err := builds.WriteChanged(same, text); err != nil {
			return nil, err
		}
		// It is large, and of no interest to anybody's speed.
		job.Sources[same] = append(k.flags("c++"), "-O0")
	}
	objects, written, err := job.Compile(ctx)
	if err != nil {
		return nil, err
	}
	b := &Build{Objects: objects}
	for source, text := range written {
		// What torchgen made is in a folder for each tree, and one and the same to a comparison.
		b.Warnings = append(b.Warnings, warningsIn(source, strings.ReplaceAll(text, dir+"/", ""))...)
	}
	finish(events.OK, fmt.Sprintf("%d sources", len(objects)))
	return b, nil
}

// Layouts are those of the classes that extensions are built with, and the warnings of their headers.
func (k *Kit) Layouts(ctx context.Context, subject, checkout string, classes patches.HostFacts) ([]host.Layout, []Warning, error) {
	dir := filepath.Join(Folder(k.cache), subject)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, err
	}
	layouts, text, err := host.Layouts(ctx, k.Root, classes, checkout, k.flags("objective-c++"), dir)
	return layouts, warningsIn("headers", text), err
}

var warningLine = regexp.MustCompile(`(?m)^(.+?):\d+:\d+: warning: (.*)$`)

func warningsIn(source, text string) (warnings []Warning) {
	for _, match := range warningLine.FindAllStringSubmatch(text, -1) {
		warnings = append(warnings, Warning{source, match[1], match[2]})
	}
	return warnings
}

// NewWarnings are those of patched that no source of stock has, or has not as often: what a header says is said in each source again.
func NewWarnings(stock, patched []Warning) (added []Warning) {
	type place struct{ file, text string }
	count := func(all []Warning) map[string]map[place]int {
		counts := map[string]map[place]int{}
		for _, w := range all {
			if counts[w.Source] == nil {
				counts[w.Source] = map[place]int{}
			}
			counts[w.Source][place{w.File, w.Text}]++
		}
		return counts
	}
	most := map[place]int{}
	for _, counts := range count(stock) {
		for at, n := range counts {
			most[at] = max(most[at], n)
		}
	}
	for source, counts := range count(patched) {
		for at, n := range counts {
			if n > most[at] {
				added = append(added, Warning{source, at.file, at.text})
			}
		}
	}
	slices.SortFunc(added, func(a, b Warning) int { return strings.Compare(a.Source+a.File+a.Text, b.Source+b.File+b.Text) })
	return added
}

// Sources lists the units of the MPS backend in a checkout: those of the folders in the baseline's facts, and Python's.
func Sources(checkout string, classes patches.HostFacts, facts patches.MacFacts) (sources []string, err error) {
	// What the kernels of a folder that is absent would be is bound to the wheel's backend (BoundToStock).
	if sources, _, err = host.BackendSources(checkout, classes); err != nil {
		return nil, err
	}
	for _, source := range facts.PythonSources {
		if builds.Exists(filepath.Join(checkout, source)) {
			sources = append(sources, source)
		} else if folder := filepath.Dir(source); builds.Exists(filepath.Join(checkout, folder)) {
			return nil, fmt.Errorf("%w: mac.json names %s, which the checkout's folder %s does not have", builds.ErrSources, source, folder)
		}
	}
	return sources, nil
}
