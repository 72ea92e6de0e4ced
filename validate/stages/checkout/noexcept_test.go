package checkout

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// noStock is a baseline without any file.
func noStock(string) (string, error) { return "", nil }

// escaping names the functions of the series that raise where nothing may, with what they reach, but for what is known to be harmless.
func escaping(t *testing.T, dir string, stock func(file string) (string, error)) (found []string) {
	t.Helper()
	all, _, err := escapes(dir, stock)
	require.NoError(t, err)
	for _, e := range all {
		if e.harmless() == "" && !e.stock {
			kind, _, _ := strings.Cut(e.fault.what, ":")
			if e.fault.fork {
				kind = "locks in a fork"
			}
			found = append(found, strings.TrimSpace(e.name+" "+kind))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// plantedEscapes are texts, and what is found in each.
var plantedEscapes = map[string]struct {
	text  string
	found []string
}{
	"noexcept that checks":               {`void f() noexcept { TORCH_CHECK(false); }`, []string{"f raises"}},
	"noexcept, by way of two others":     {`void f() noexcept { middle(1); }`, []string{"f raises"}},
	"a destructor":                       {`S::~S() { middle(1); }`, []string{"~S raises"}},
	"a destructor in a class":            {`struct S { ~S() { check(1); } };`, []string{"~S raises"}},
	"a destructor in a function":         {`void f() { struct S { ~S() { check(1); } }; }`, []string{"~S in f raises"}},
	"a constructor on the way":           {`void f() noexcept { const Checked checked; }`, []string{"f raises"}},
	"a function that c10 calls":          {`Stream Impl::exchangeStream(Stream s) const { check(1); return s; }`, []string{"exchangeStream raises"}},
	"at() of a container":                {`void f() noexcept { use(all.at(1)); }`, []string{"f raises"}},
	"rethrow":                            {`void f() noexcept { std::rethrow_exception(e); }`, []string{"f raises"}},
	"may raise":                          {`void f() { middle(1); }`, nil},
	"noexcept(false)":                    {`void f() noexcept(false) { middle(1); }`, nil},
	"calls what is harmless":             {`void f() noexcept { harmless(1); }`, nil},
	"a method of a type of the library":  {`void f() noexcept { pointer.get(); }`, nil},
	"a method of a class":                {`void f() noexcept { pool.get(1); }`, []string{"f raises"}},
	"a method that two classes have":     {`struct A { void go() { check(1); } }; struct B { void go() { } }; B b; void f() noexcept { b.go(); }`, nil},
	"a method of what a function gives":  {`Pool& all(); void f() noexcept { all().get(1); }`, []string{"f raises"}},
	"a method of a deduced variable":     {`Pool& all(); void f() noexcept { auto& one = all(); one.get(1); }`, []string{"f raises"}},
	"a variable of a method's name":      {`void Impl::block(int n) { check(n); } void f(dispatch_block_t block) noexcept { block(); }`, nil},
	"a method of its own class":          {`void Impl::block(int n) { check(n); } void Impl::f() noexcept { block(1); }`, []string{"f raises"}},
	"another file's static function":     {`void f() noexcept { elsewhere(); }`, nil},
	"in a comment":                       {`void f() noexcept { /* TORCH_CHECK(false); */ }`, nil},
	"calls noexcept that is found alone": {`void g() noexcept { check(1); } void f() noexcept { g(); }`, []string{"g raises"}},

	"within a try block":       {`void f() noexcept { try { if (x) { middle(1); grow(1); } } catch (...) { keep(); } }`, nil},
	"after a try block":        {`void f() noexcept { try { harmless(1); } catch (...) { } check(1); }`, []string{"f raises"}},
	"in a handler":             {`void f() noexcept { try { check(1); } catch (...) { throw; } }`, []string{"f raises"}},
	"an allocating handler":    {`void f() noexcept { try { check(1); } catch (...) { LOG(WARNING) << 1; } }`, []string{"f allocates"}},
	"a catch of one type only": {`void f() noexcept { try { check(1); } catch (const std::exception&) { } }`, []string{"f raises"}},
	"a catch of all behind it": {`void f() noexcept { try { check(1); } catch (const std::exception&) { } catch (...) { } }`, nil},
	"a try in a try":           {`void f() noexcept { try { try { check(1); } catch (const E&) { } } catch (...) { } }`, nil},

	"allocation":                         {`void f() noexcept { p = new int(1); }`, []string{"f allocates"}},
	"allocation two calls below":         {`void f() noexcept { grows(1); }`, []string{"f allocates"}},
	"allocation in a destructor":         {`S::~S() { list_.push_back(1); }`, []string{"~S allocates"}},
	"a static object":                    {`T& one() { static auto& all = *new T; return all; } void f() noexcept { one(); }`, []string{"f allocates"}},
	"a string":                           {`void f() noexcept { const std::string text = name(); }`, []string{"f allocates"}},
	"a member string":                    {`struct M { std::string text; }; void f() noexcept { m.text = "long"; }`, []string{"f allocates"}},
	"operator[] of a map":                {`std::map<int, int> counts; void f() noexcept { ++counts[1]; }`, []string{"f allocates"}},
	"operator[] of an array":             {`std::array<int, 2> counts; void f() noexcept { ++counts[1]; }`, nil},
	"a copy of a container":              {`void f() noexcept { const c10::SmallVector<int, 4> all = uses_; }`, []string{"f allocates"}},
	"a copy of a container by its alias": {`using Uses = c10::SmallVector<int, 4>; void f() noexcept { const Uses all = uses_; }`, []string{"f allocates"}},
	"an empty container":                 {`void f() noexcept { c10::SmallVector<int, 4> all; }`, nil},
	"std::function of a capture":         {`void each(const std::function<void()>& g) { } void f() noexcept { each([x] { }); }`, []string{"f allocates"}},
	"a warning":                          {`void f() noexcept { TORCH_WARN("x"); }`, []string{"f allocates"}},
	"new without an exception":           {`void f() noexcept { p = new (std::nothrow) int(1); q = new (place) int(1); }`, nil},
	"new of Objective-C":                 {`void f() noexcept { p = [MTLThing new]; }`, nil},

	"a recursive lock":          {`void f() noexcept { std::lock_guard<std::recursive_mutex> lock(m); }`, []string{"f locks"}},
	"a lock in a destructor":    {`S::~S() { std::shared_lock<std::shared_mutex> lock(m); }`, []string{"~S locks"}},
	"a lock of several":         {`void f() noexcept { std::scoped_lock lock(a, b); }`, []string{"f locks"}},
	"a lock of a deduced mutex": {`void f() noexcept { std::lock_guard lock(m); }`, []string{"f locks"}},
	"a lock again":              {`void f(std::unique_lock<std::mutex>& held) noexcept { held.lock(); }`, []string{"f locks"}},
	"a wait":                    {`std::condition_variable free; void f() noexcept { free.wait(held); }`, []string{"f locks"}},
	"a thread":                  {`void f() noexcept { std::thread worker(g); }`, []string{"f starts a thread"}},
	"a plain lock":              {`void f() noexcept { std::lock_guard<std::mutex> lock(m); }`, []string{"f locks in a fork"}},
	"a plain lock in no fork":   {`void f() noexcept { if (isInForkedChild()) { return; } std::lock_guard<std::mutex> lock(m); }`, nil},
	"more than a plain lock": {`void g() { std::lock_guard<std::mutex> lock(m); p = new int(1); } void f() noexcept { g(); }`,
		[]string{"f allocates"}},
	"a plain lock below": {
		`void g() { std::lock_guard<std::mutex> lock(m); } void f() noexcept { g(); if (isInForkedChild()) { return; } }`, []string{"f locks in a fork"}},
	"a plain lock below that": {`void g() { std::lock_guard<std::mutex> lock(m); } void f() noexcept { if (!isInForkedChild()) { g(); } }`, nil},
	"a plain lock before that": {`void f() noexcept { std::lock_guard<std::mutex> lock(m); if (isInForkedChild()) { return; } }`,
		[]string{"f locks in a fork"}},
	"a plain lock that exit destroys": {
		`void f() noexcept { static std::mutex m; if (isInForkedChild()) { return; } std::lock_guard<std::mutex> lock(m); }`, []string{"f locks"}},
	"another's lock that exit destroys": {
		"\nstd::mutex m;\nvoid f() noexcept { if (isInForkedChild()) { return; } std::lock_guard<std::mutex> lock(m); }", []string{"f locks"}},

	"a lambda that is called":              {`void f() noexcept { const auto g = [&] { check(1); }; g(); }`, []string{"f raises"}},
	"a lambda that is handed on":           {`void f() noexcept { std::any_of(a, b, [&](int n) { return check(n); }); }`, []string{"f raises"}},
	"a lambda that is kept":                {`void f() noexcept { handler_ = [&] { check(1); }; }`, nil},
	"a lambda of its own":                  {`void f() { use([]() noexcept { check(1); }); }`, []string{"the lambda in f raises"}},
	"a deleter":                            {`void f() { std::shared_ptr<T> p(t, [](T* t) { list.insert(t); }); }`, []string{"the deleter in f allocates"}},
	"a deleter in noexcept":                {`void f() noexcept { std::shared_ptr<T>(t, [](T* t) { check(1); }); }`, []string{"the deleter in f raises"}},
	"a deleter by its name":                {`void f() { default_deleter_ = [](T* t) { check(1); }; }`, []string{"the deleter in f raises"}},
	"in a block for a queue":               {`void f() noexcept { runOnStreamQueue(s, ^() { check(1); }); }`, []string{"f raises"}},
	"in a block of dispatch_sync":          {`void f() noexcept { dispatch_sync(q, ^() { check(1); }); }`, []string{"f raises"}},
	"that in a try block":                  {`void f() noexcept { try { dispatch_sync(q, ^() { check(1); }); } catch (...) { } }`, []string{"f raises"}},
	"a try block in that":                  {`void f() noexcept { try { dispatch_sync(q, ^() { try { check(1); } catch (...) { } }); } catch (...) { } }`, nil},
	"a block that is only kept":            {`void f() noexcept { dispatch_block_t later = ^() { check(1); }; }`, nil},
	"a block that is called":               {`void f() noexcept { dispatch_block_t now = ^() { check(1); }; now(); }`, []string{"f raises"}},
	"a block for later":                    {`void f() noexcept { dispatch_async(q, ^() { check(1); }); }`, nil},
	"a handler of a command buffer":        {`void f() noexcept { [buffer addCompletedHandler:^(id<MTLCommandBuffer>) { check(1); }]; }`, nil},
	"behind a handler of a command buffer": {`void f() noexcept { [buffer addCompletedHandler:^(id<MTLCommandBuffer>) { }]; check(1); }`, []string{"f raises"}},
}

// plantedHelpers are called by the planted texts.
const plantedHelpers = `
struct Pool { void get(int n); };
extern Pool pool;
struct Checked { Checked() { check(1); } };
static void check(int n) { TORCH_CHECK(n > 0); }
static void middle(int n) { check(n); }
static void grow(int n) { all_.insert(n); }
static void grows(int n) { grow(n); }
static void harmless(int n) { use(n); }
void Pool::get(int n) { throw n; }
`

// plantText writes a file of the runtime into a new folder.
func plantText(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.Files(t, filepath.Join(dir, runtimeFolder), map[string]string{"A.mm": text, "B.mm": `namespace { void elsewhere() { throw 1; } }`})
	return dir
}

// What no exception may leave is found if it can raise, allocate or lock by itself or by what it calls, and not if that is caught or run by others.
func TestEscapesArePlanted(t *testing.T) {
	for name, c := range plantedEscapes {
		t.Run(name, func(t *testing.T) {
			if found := escaping(t, plantText(t, plantedHelpers+c.text), noStock); !slices.Equal(found, c.found) {
				t.Errorf("found %v, want %v", found, c.found)
			}
		})
	}
}

// What the baseline's file has in the same words is its own, unless something on the way is not.
func TestEscapesOfTheBaseline(t *testing.T) {
	const f = `void f() noexcept { middle(1); }`
	for name, c := range map[string]struct {
		before string
		found  []string
	}{
		"the same":             {plantedHelpers + f, nil},
		"another caller":       {plantedHelpers + `void f() { middle(1); }`, []string{"f raises"}},
		"another on the way":   {strings.Replace(plantedHelpers, "check(n); }", "check(1); }", 1) + f, []string{"f raises"}},
		"no file of that name": {"", []string{"f raises"}},
	} {
		t.Run(name, func(t *testing.T) {
			stock := func(file string) (string, error) { return c.before, nil }
			if found := escaping(t, plantText(t, plantedHelpers+f), stock); !slices.Equal(found, c.found) {
				t.Errorf("found %v, want %v", found, c.found)
			}
		})
	}
}
