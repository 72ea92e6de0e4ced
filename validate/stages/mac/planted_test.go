package mac

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/fork/macos/mac"
	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/native/apple"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/stage"
)

// opened is the stage with its tools, over the wheels in the user's cache. The list of bound names is the planted sources' own.
func opened(t *testing.T) *stageRun {
	t.Helper()
	root, cache := hosttest.Root(t)
	series, err := patches.Load(patches.Embedded(), host.DebianBaseline)
	require.NoError(t, err)
	r := &stageRun{env: &stage.Env{Options: stage.Options{Quick: true}, Sink: events.Discard}}
	r.facts = require.One(series.MacFacts())(t)
	r.classes = require.One(series.HostFacts())(t)
	r.api = require.One(apple.Load())(t)
	r.kit, err = mac.Open(t.Context(), root, cache, r.facts, events.Discard)
	if errors.Is(err, builds.ErrEnvironment) {
		t.Skipf("SKIP mac: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(r.kit.Close)
	r.facts.Bound, r.facts.PythonSources = []string{"at::mps::is_available()"}, nil
	return r
}

// compiled compiles a source that is all of its tree.
func compiled(t *testing.T, r *stageRun, text string) (*mac.Build, error) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "planted.mm"), []byte(text), 0o644))
	return r.kit.Compile(t.Context(), mac.Tree{Subject: filepath.Join("tests", filepath.Base(t.Name())), Dir: dir, Sources: []string{"planted.mm"}},
		r.facts, 1, events.Discard)
}

// Each check finds what is planted for it, and no other check finds anything.
func TestEachGateFindsWhatIsPlanted(t *testing.T) {
	r := opened(t)
	text := require.One(os.ReadFile("testdata/stock.mm"))(t)
	source := string(text)
	stock := require.One(compiled(t, r, source))(t)
	for _, c := range []struct{ name, old, new, gates, found string }{
		{"nothing", "", "", "", ""},
		{"a comment", "bool use", "// A comment moves lines.\nbool use", "", ""},
		{"a method of macOS 15", "options.fastMathEnabled = YES;", "options.mathMode = MTLMathModeFast;", "no new warning", "is only available on macOS 15.0"},
		{"a method of macOS 15 behind its question", "options.fastMathEnabled = YES;",
			"if (@available(macOS 15.0, *)) options.mathMode = MTLMathModeFast;", "", ""},
		{"a null argument", "  return is_available", "  take(nullptr);\n  return is_available", "no new warning",
			"null passed to a callee that requires a non-null argument"},
		{"a method that its object lacks", "  return is_available", "  [options plantedMethod];\n  return is_available", "no new warning, Apple's API",
			"plantedMethod"},
		{"a missing definition", "bool use", "void planted();\nvoid usePlanted() { planted(); }\nbool use", "nothing undefined", "at::mps::planted()"},
		{"a name of the unpatched backend", "  return is_available", "  getDefaultMPSStream();\n  return is_available", "bound to the wheel's backend",
			"at::mps::getDefaultMPSStream()"},
		{"a kernel of the unpatched backend", "namespace at::mps {",
			"namespace at {\nstruct Tensor;\nnamespace native {\nvoid relu_mps(const Tensor&);\nvoid usePlanted(const Tensor& t) { relu_mps(t); " +
				"}\n}  // namespace native\n}  // namespace at\nnamespace at::mps {", "bound to the wheel's backend",
			"at::native::relu_mps(at::Tensor const&)"},
		{"a changed signature", "getCurrentMPSStream()", "getCurrentMPSStream(int)", "exports kept", "at::mps::getCurrentMPSStream()"},
		{"a virtual function before the others", "  virtual ~", "  virtual void planted() {}\n  virtual ~", "virtual functions", "slot 0 is"},
		{"a virtual function behind the others", "  virtual ~MPSCachedGraph();", "  virtual ~MPSCachedGraph();\n  virtual void planted() {}", "", ""},
		{"a class of its own", "namespace at::native::mps {",
			"@interface Planted : NSObject {\n  int plantedVariable;\n}\n- (int)plantedMethod;\n@end\n@implementation Planted\n- " +
				"(int)plantedMethod {\n  return plantedVariable;\n}\n@end\nnamespace at::native::mps {", "", ""},
		{"a selector that Apple lacks", "bool use",
			"}\n@interface NSObject (Planted)\n- (void)plantedMethod;\n@end\n" +
				"namespace at::mps {\nvoid usePlanted(id o) { [o plantedMethod]; }\nbool use", "Apple's API", "plantedMethod"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(source, c.old) {
				t.Fatalf("stock.mm has no %q any more", c.old)
			}
			patched := require.One(compiled(t, r, strings.Replace(source, c.old, c.new, 1)))(t)
			r.report = &reports.Stage{Name: "mac"}
			require.NoError(t, r.compare(t.Context(), stock, patched))
			// What does not link has no names bound.
			if len(r.report.Checks) < 6 {
				t.Errorf("only %d checks ran", len(r.report.Checks))
			}
			var failed []string
			for _, check := range r.report.Checks {
				if check.Verdict != reports.Failed {
					continue
				}
				failed = append(failed, check.Name)
				if !strings.Contains(check.Detail+check.Output, c.found) {
					t.Errorf("%s says %q, want %q", check.Name, check.Detail, c.found)
				}
			}
			require.Equal(t, strings.Join(failed, ", "), c.gates, "failed")
		})
	}
}

// linkedStock compiles and links testdata/stock.mm, and gives the check of what comes from the wheel's backend.
func linkedStock(t *testing.T, r *stageRun) reports.Check {
	t.Helper()
	text := require.One(os.ReadFile("testdata/stock.mm"))(t)
	built := require.One(compiled(t, r, string(text)))(t)
	require.NoError(t, r.link(t.Context(), built.Objects))
	return r.report.Checks[len(r.report.Checks)-1]
}

// The list of names that may come from the wheel's backend is the quick form's.
func TestTheFullFormTakesNothingFromTheWheelsBackend(t *testing.T) {
	r := opened(t)
	r.env.Quick, r.report = false, &reports.Stage{Name: "mac"}
	if last := linkedStock(t, r); last.Verdict != reports.Failed || last.Output != r.facts.Bound[0] {
		t.Errorf("%s: %v, %q", last.Name, last.Verdict, last.Output)
	}
}

// Without a list, the short form says that it does not judge these names.
func TestTheShortFormJudgesNoNamesWithoutAList(t *testing.T) {
	r := opened(t)
	r.facts.Bound, r.report = nil, &reports.Stage{Name: "mac"}
	if last := linkedStock(t, r); last.Verdict != reports.NotRun || last.Output != "at::mps::is_available()" {
		t.Errorf("%s: %v, %q", last.Name, last.Verdict, last.Output)
	}
}

// What torchgen made is compiled and linked with the others: a wrapper whose kernel is not there is found.
func TestAWrapperWithoutAKernelIsFound(t *testing.T) {
	r := opened(t)
	path := filepath.Join(t.TempDir(), "RegisterPlanted.cpp")
	require.NoError(t, os.WriteFile(path, []byte("namespace at::native { void planted(); }\nvoid wrapper_MPS_planted() { at::native::planted(); }\n"),
		0o644))
	built, err := r.kit.Compile(t.Context(), mac.Tree{Subject: "tests/wrapper", Dir: t.TempDir(), Generated: []string{path}}, r.facts, 1, events.Discard)
	require.NoError(t, err)
	missing := (*mac.UndefinedError)(nil)
	if _, err = r.kit.Link(t.Context(), "tests/wrapper", built.Objects); !errors.As(err, &missing) || !slices.Equal(missing.Symbols,
		[]string{"__ZN2at6native7plantedEv"}) {
		t.Errorf("%v", err)
	}
}

// The long form leaves nothing of the backend to the wheel, and the quick one what the series does not touch.
func TestTheFullFormIsTheWholeBackend(t *testing.T) {
	r := opened(t)
	r.env.Series = require.One(patches.Load(patches.Embedded(), host.DebianBaseline))(t)
	r.env.Cache = filepath.Dir(filepath.Dir(r.kit.Root.Dir()))
	dir, _ := hosttest.Tree(t, r.env.Cache)
	r.env.Quick = false
	full := require.One(r.tree(t.Context(), "tests/full", dir))(t)
	r.env.Quick = true
	quick := require.One(r.tree(t.Context(), "tests/quick", dir))(t)
	const untouched, touched = "aten/src/ATen/native/mps/operations/RnnOps.mm", "aten/src/ATen/mps/MPSStream.mm"
	for _, c := range []struct {
		tree      mac.Tree
		source    string
		is        bool
		generated int
	}{{full, untouched, true, 1}, {full, touched, true, 1}, {quick, untouched, false, 0}, {quick, touched, true, 0}} {
		if slices.Contains(c.tree.Sources, c.source) != c.is || len(c.tree.Generated) != c.generated {
			t.Errorf("%s: %s is among its sources: %v; torchgen made %d", c.tree.Subject, c.source, !c.is, len(c.tree.Generated))
		}
	}
}

// Sources that do not compile are a verdict on the series, and not on the machine.
func TestWhatDoesNotCompileIsTheSources(t *testing.T) {
	r := opened(t)
	_, err := compiled(t, r, "int planted() { return nothing; }\n")
	require.Is(t, err, builds.ErrSources)
}

// A class that extensions are built with is laid out as the compiler for macOS does it.
func TestAMemberMoreIsFound(t *testing.T) {
	r := opened(t)
	tree, _ := hosttest.Tree(t, filepath.Dir(filepath.Dir(r.kit.Root.Dir())))
	layoutsOf := func(change func(text string) string) []host.Layout {
		dir := t.TempDir()
		for _, header := range []string{"MPSStream.h", "MPSAllocatorInterface.h"} {
			path := filepath.Join("aten/src/ATen/mps", header)
			text := require.One(os.ReadFile(filepath.Join(tree, path)))(t)
			require.File(t, filepath.Join(dir, path), change(string(text)))
		}
		found, _, err := r.kit.Layouts(t.Context(), "tests/layout", dir, r.classes)
		require.NoError(t, err)
		return found
	}
	stock := layoutsOf(func(text string) string { return text })
	if _, fits := layouts(stock, stock); !fits {
		t.Fatal("stock does not fit itself")
	}
	const member = "  Stream _stream;\n"
	planted := layoutsOf(func(text string) string { return strings.Replace(text, member, member+"  int planted_ = 0;\n", 1) })
	changed, fits := layouts(stock, planted)
	if fits || len(changed) != 1 || !strings.HasPrefix(changed[0], "at::mps::MPSStream: ") {
		t.Errorf("%v, %q", fits, changed)
	}
}
