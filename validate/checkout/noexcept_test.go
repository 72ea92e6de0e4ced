package checkout

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// loud names the functions of a folder that raise where nothing may, but for those that never run.
func loud(t *testing.T, dir string) (names []string) {
	t.Helper()
	found, _, err := loudFunctions(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if _, known := f.known(); !known {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return names
}

// What no exception may leave is found if it can raise by itself or by what it calls, and not if a try block is around that.
func TestSilentFunctionsThatRaise(t *testing.T) {
	const helpers = `
static void check(int n) { TORCH_CHECK(n > 0); }
static void middle(int n) { check(n); }
static void harmless(int n) { use(n); }
void Pool::get(int n) { throw n; }
`
	for name, c := range map[string]struct {
		text  string
		found []string
	}{
		"noexcept that checks":               {`void f() noexcept { TORCH_CHECK(false); }`, []string{"f"}},
		"noexcept, by way of two others":     {`void f() noexcept { middle(1); }`, []string{"f"}},
		"a destructor":                       {`S::~S() { middle(1); }`, []string{"~S"}},
		"a destructor in a class":            {`struct S { ~S() { check(1); } };`, []string{"~S"}},
		"rethrow":                            {`void f() noexcept { std::rethrow_exception(e); }`, []string{"f"}},
		"after a try block":                  {`void f() noexcept { try { harmless(1); } catch (...) { } check(1); }`, []string{"f"}},
		"in a handler":                       {`void f() noexcept { try { check(1); } catch (...) { throw; } }`, []string{"f"}},
		"in a block for a queue":             {`void f() noexcept { runOnStreamQueue(s, ^() { check(1); }); }`, []string{"f"}},
		"may raise":                          {`void f() { middle(1); }`, nil},
		"within a try block":                 {`void f() noexcept { try { if (x) { middle(1); } } catch (...) { keep(); } }`, nil},
		"calls what is harmless":             {`void f() noexcept { harmless(1); }`, nil},
		"a method of a type of the library":  {`void f() noexcept { pointer.get(); }`, nil},
		"in a comment":                       {`void f() noexcept { /* TORCH_CHECK(false); */ }`, nil},
		"calls noexcept that is found alone": {`void g() noexcept { check(1); } void f() noexcept { g(); }`, []string{"g"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, runtimeFolder), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, runtimeFolder, "A.mm"), []byte(helpers+c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			if found := loud(t, dir); !slices.Equal(found, c.found) {
				t.Errorf("found %v, want %v", found, c.found)
			}
		})
	}
}
