package overlay_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork"
	"mpsforge/fork/macos/overlay"
	"mpsforge/internal/require"
	"mpsforge/patches"
)

// selftest runs it. The exit code, the last lines and the file must agree.
func (p python) selftest(t *testing.T) *overlay.Selftest {
	t.Helper()
	file := filepath.Join(t.TempDir(), "selftest.json")
	// As field reports have it, a graph or matrix multiplication that two threads encode at once ends the process.
	output, err := p.run(t, []string{"MPSFORGE_METAL_MODELS=7"}, "-W", "ignore", "-m", overlay.Module, "--selftest", "--seconds", "1", "--output", file)
	text, unreadable := os.ReadFile(file)
	found := &overlay.Selftest{}
	if unreadable == nil {
		found, unreadable = overlay.ReadSelftest(bytes.NewReader(text))
	}
	if unreadable != nil {
		t.Fatalf("%v: %v\n%s", err, unreadable, output)
	}
	said := "no fault found in "
	if len(found.Faults) > 0 {
		said = "please send " + file
	}
	if (err != nil) != (len(found.Faults) > 0) || !strings.Contains(output, said) {
		t.Errorf("%v, faults %q, and it printed:\n%s", err, found.Faults, output)
	}
	t.Log(output)
	return found
}

func (p installed) selftestPasses(t *testing.T) {
	found := p.selftest(t)
	series := require.One(patches.Load(patches.Embedded(), "v2.6.0"))(t)
	if differ := overlay.CompareSelftest(found, series); len(found.Faults) > 0 || len(found.Checks) != 8 || len(differ) > 0 {
		t.Errorf("%+v, %+v", found, differ)
	}
	if text := found.Summary(series); !strings.HasPrefix(text, "torch 2.6.0") || !strings.Contains(text, "an overlay of the whole series, on Linux") {
		t.Error(text)
	}
	for _, check := range found.Checks {
		if check.Compared == 0 {
			t.Errorf("%s compared nothing", check.Check)
		}
	}
}

// What is wrong with the wheel itself is found before anything is run.
func (p installed) selftestFindsWheels(t *testing.T) {
	library := filepath.Join(p.site, overlay.Module, "libmpsforge_overlay.so")
	whole := require.One(os.ReadFile(library))(t)
	for name, c := range map[string]struct {
		plant func(t *testing.T)
		fault string
	}{
		"a stale stamp": {func(t *testing.T) {
			p.withStamp(t, func(stamp map[string]string) {
				stamp["stamp"] = strings.Replace(stamp["stamp"], "cpu-copies", "cpu-copied", 1)
			})
		}, "has another stamp than its stamp.json"},
		"another library": {func(t *testing.T) {
			require.NoError(t, os.WriteFile(library, whole[:len(whole)-1], 0o755))
			t.Cleanup(func() { _ = os.WriteFile(library, whole, 0o755) })
		}, "is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			c.plant(t)
			if found := p.selftest(t); len(found.Faults) != 1 || !strings.Contains(found.Faults[0], c.fault) {
				t.Errorf("%q", found.Faults)
			}
		})
	}
}

// plant is a fault in the sources of the overlay. One of checks finds it.
type plant struct {
	file, old, new string
	checks         []string
}

var plants = map[string]plant{
	"no order in hand-over": {"aten/src/ATen/mps/MPSOpGuard.mm", "isOrdered), needed.end());\n  if (needed.empty()) {",
		"isOrdered), needed.end());\n  if (true) {", []string{"hand-over", "models in threads", "memory", "backward"}},
	"no lease": {"aten/src/ATen/mps/MPSStreamPool.mm", "  if (mpsThread.shares_stream) {\n    const bool may_change",
		"  mpsThread.shares_stream = true;\n  return getDefaultMPSStream();\n  if (mpsThread.shares_stream) {\n    const bool may_change",
		[]string{"streams"}},
	"a copy that keeps its source": {"aten/src/ATen/native/mps/operations/Copy.mm", "  // Typecast to dst_ if needed and expand, which is a no-op\n",
		"  static auto& kept = *new std::vector<at::Tensor>;\n  kept.push_back(src_);\n", []string{"copies"}},
	"an allocator that reuses at once": {"aten/src/ATen/mps/MPSAllocator.mm", "  const bool own = buffer_block->stream == params.stream;\n  if (!own &&",
		"  const bool own = buffer_block->stream == params.stream;\n  return true;\n  if (!own &&",
		[]string{"hand-over", "models in threads", "memory", "backward"}},
	"a leak": {"aten/src/ATen/mps/MPSAllocator.mm", "void MPSHeapAllocatorImpl::free_buffer(BufferBlock* buffer_block) {\n",
		"void MPSHeapAllocatorImpl::free_buffer(BufferBlock* buffer_block) {\n  static int count = 0;\n  if (++count % 16 == 0) {\n    return;\n  }\n",
		[]string{"memory"}},
	"a slow path": {"aten/src/ATen/mps/MPSOpGuard.mm", "  outermost_ = !outer_;\n",
		"  outermost_ = !outer_;\n  for (volatile int i = 0; i < 400000; i = i + 1) {\n  }\n", []string{"one thread against torch's own backend"}},
	"a graph shared by two threads": {"aten/src/ATen/native/mps/OperationUtils.mm", "(entry->user != user && entry->uses > 0)", "false",
		[]string{"models in threads", "hand-over", "backward", "copies", "memory"}},
	"a file without the patch cpu-copies": {file: "aten/src/ATen/native/mps/operations/Copy.mm", checks: []string{"copies"}},
}

// Each is a backend that is compiled with the fault. Half a minute of programs must see it.
func TestSelftestFindsPlantedFaults(t *testing.T) {
	if os.Getenv("MPSFORGE_SELFTEST_PLANTED") == "" {
		t.Skip("SKIP planted faults of the selftest: compiles the backend eight times, for minutes each; asked for by MPSFORGE_SELFTEST_PLANTED=1")
	}
	m := newMaker(t)
	source := require.One(m.checkout.Patched(t.Context(), m.series, m.options.Cache))(t)
	stock := require.One(m.checkout.Stock(t.Context(), m.options.Cache))(t)
	for name, c := range plants {
		t.Run(name, func(t *testing.T) {
			found := m.install(t, planted(t, source, stock, c)).selftest(t)
			by := slices.IndexFunc(found.Faults, func(fault string) bool {
				return slices.ContainsFunc(c.checks, func(check string) bool { return strings.HasPrefix(fault, check+": ") })
			})
			if by < 0 {
				t.Errorf("none of %q finds it: %q", c.checks, found.Faults)
			}
		})
	}
}

// planted is a copy of the source with the fault, or with stock's file.
func planted(t *testing.T, source, stock *fork.Snapshot, c plant) *fork.Snapshot {
	t.Helper()
	planted := *source
	planted.Dir = t.TempDir()
	require.NoError(t, os.CopyFS(planted.Dir, os.DirFS(source.Dir)))
	from := source
	if c.old == "" {
		from = stock
	}
	text := require.One(os.ReadFile(filepath.Join(from.Dir, c.file)))(t)
	if n := strings.Count(string(text), c.old); c.old != "" && n != 1 {
		t.Fatalf("%s has the line %d times", c.file, n)
	}
	changed := strings.Replace(string(text), c.old, c.new, 1)
	require.NoError(t, os.WriteFile(filepath.Join(planted.Dir, c.file), []byte(changed), 0o644))
	return &planted
}
