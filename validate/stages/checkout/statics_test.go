package checkout

import (
	"path"
	"slices"
	"testing"

	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/internal/require"
)

// Objects with a destructor are found wherever static storage is declared; references, pointers, numbers and functions are none.
func TestObjectsThatEndWithTheProcess(t *testing.T) {
	for source, want := range map[string][]string{
		`static MetalShaderLibrary lib(R"METAL(kernel {} )METAL");`:                        {"lib"},
		`static DynamicMetalShaderLibrary scatterLib(SCATTER_OPS_TEMPLATE, 3);`:            {"scatterLib"},
		`namespace at::native { namespace { MetalShaderLibrary lib{R"(kernel)"}; } }`:      {"lib"},
		`namespace at::native { std::mutex mutex; }`:                                       {"mutex"},
		`const std::unordered_map<int, std::string> names = {{1, "a"}};`:                   {"names"},
		`inline std::string name = "a";`:                                                   {"name"},
		"#define LIB static Other lib(\\\n  1);\nstatic MetalShaderLibrary lib(TEXT);":     {"lib"},
		`void f() { static std::mutex mutex; static std::vector<int*> all = {}; }`:         {"mutex", "all"},
		`struct S { static std::string name; static inline std::mutex mutex; };`:           {"name", "mutex"},
		`static const auto& lib = MetalShaderLibrary(TEXT);`:                               {"lib"},
		`static auto& lib = *new MetalShaderLibrary(TEXT, 3);`:                             nil,
		`static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();`:                 nil,
		`void f() { static auto* const m = new std::mutex; static auto o = new Other; }`:   nil,
		`static Tensor f(const Tensor& a); Tensor g(int64_t n = 2); static void h(int);`:   nil,
		`static std::vector<int64_t> f(const IntArrayRef& s) { return {}; }`:               nil,
		`void f() { static const bool is = g(); static const id<MTLLibrary> l = [&] {}; }`: nil,
		`static constexpr int64_t kSize = 3; thread_local std::string name;`:               nil,
		`struct S { std::mutex mutex; }; enum class E { A }; using T = std::string;`:       nil,
		`void f() { std::mutex mutex; at::Tensor t; }`:                                     nil,
	} {
		var names []string
		for _, o := range lastingObjects("View.mm", source) {
			names = append(names, o.name)
		}
		require.Equal(t, names, want, source)
	}
}

// On the real trees nothing ends with the process but what the table exempts; a library that does is found.
func TestObjectsOfRealTrees(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP real trees: -short")
	}
	const operations = "aten/src/ATen/native/mps/operations/"
	for name := range plants {
		t.Run(name, func(t *testing.T) {
			cache := hosttest.Cache(t)
			tree, series := hosttest.TreeOf(t, cache, name)
			dir := patchedCopy(t, tree, series, cache)
			seen := map[string]bool{}
			read := func() (names []string) {
				_, err := eachSource(dir, kernelFolders, func(file, text string) {
					for _, o := range lastingObjects(file, text) {
						if o.unused() == "" {
							names = append(names, o.name)
						}
						seen[path.Base(file)+" "+o.name] = true
					}
				})
				require.NoError(t, err)
				return names
			}
			require.Equal(t, read(), nil, "found without any plant")
			for _, row := range endsUnused {
				if !seen[row.file+" "+row.name] {
					t.Errorf("%s %s is exempt, and not found: delete the row", row.file, row.name)
				}
			}
			for i, p := range []plant{
				{operations + "BitwiseOps.mm", "static auto& lib = *new MetalShaderLibrary(R", "static MetalShaderLibrary lib(R", "lib"},
				{operations + "View.mm", "static auto& scatterLib = *new MetalShaderLibrary(", "static MetalShaderLibrary scatterLib(", "scatterLib"},
				{operations + "View.mm", "static auto& gatherLib = *new MetalShaderLibrary(", "static DynamicMetalShaderLibrary gatherLib(", "gatherLib"},
			} {
				p.put(t, dir)
				if found := read(); !slices.Contains(found, p.found) || len(found) != i+1 {
					t.Errorf("found %q, want %s", found, p.found)
				}
			}
		})
	}
}
