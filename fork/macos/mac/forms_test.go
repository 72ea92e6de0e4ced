package mac

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/patches"
)

// forms are the ways to write Objective-C of which clang makes calls and data that the source does not name: declarations, if any, and the
// body of a function after them.
var forms = map[string]struct{ declarations, body string }{
	"string":               {"", `return @"text";`},
	"string, UTF-16":       {"", `return @"größer als ∞";`},
	"number, integer":      {"", `return @1;`},
	"number, long long":    {"", `return @1LL;`},
	"number, unsigned":     {"", `return @1u;`},
	"number, float":        {"", `return @1.5f;`},
	"number, double":       {"", `return @1.5;`},
	"number, truth":        {"", `return @YES;`},
	"number, character":    {"", `return @'c';`},
	"boxed expression":     {"", `return @(n + 1);`},
	"boxed enumerator":     {"typedef NS_ENUM(NSInteger, Planted) { planted };\n", `return @(planted);`},
	"boxed C string":       {"", `const char* text = "text"; return @(text);`},
	"array, empty":         {"", `return @[];`},
	"array":                {"", `return @[ o, o ];`},
	"array of constants":   {"", `return @[ @1, @"two", @3.5, @[ @YES ], @[] ];`},
	"dictionary, empty":    {"", `return @{};`},
	"dictionary":           {"", `return @{o : o};`},
	"dictionary, constant": {"", `return @{@"one" : @1, @"two" : @{}};`},
	"array's element":      {"", `return static_cast<NSArray*>(o)[n];`},
	"dictionary's element": {"", `return static_cast<NSDictionary*>(o)[@"key"];`},
	"element set":          {"", `static_cast<NSMutableArray*>(o)[n] = o; static_cast<NSMutableDictionary*>(o)[@"key"] = o; return o;`},
	"alloc":                {"", `return [NSObject alloc];`},
	"alloc and init":       {"", `return [[NSObject alloc] init];`},
	"allocWithZone":        {"", `return [NSObject allocWithZone:nil];`},
	"new":                  {"", `return [NSObject new];`},
	"retain, release":      {"", `[o retain]; [o release]; return [o autorelease];`},
	"self, class, kind":    {"", `return [o isKindOfClass:[[NSObject self] class]] ? o : nil;`},
	"selector answered":    {"", `return [o respondsToSelector:@selector(description)] ? o : nil;`},
	"classes named": {"",
		`return @[ [NSDate class], [NSEnumerator class], [NSException class], [NSMutableData class], [NSMutableSet class], [NSNull class], [NSSet class] ];`},
	"fast enumeration":  {"", `for (id one in static_cast<NSArray*>(o)) { if (one == o) return one; } return nil;`},
	"pool":              {"", `@autoreleasepool { return [o description]; }`},
	"synchronized":      {"", `@synchronized(o) { return [o description]; }`},
	"throw":             {"", `@throw o;`},
	"throw in C++":      {"", `throw o;`},
	"try, any object":   {"", `@try { [o description]; } @catch (id e) { return e; } return nil;`},
	"try, an exception": {"", `@try { [o description]; } @catch (NSException* e) { return e; } return nil;`},
	"try, anything":     {"", `@try { [o description]; } @catch (...) { return o; } return nil;`},
	"try, again":        {"", `@try { [o description]; } @catch (id e) { @throw; } return nil;`},
	"try, finally":      {"", `@try { [o description]; } @finally { [o hash]; } return nil;`},
	"catch of C++":      {"", `try { [o description]; } catch (NSException* e) { return e; } catch (...) { return o; } return nil;`},
	"block":             {"", `return [[^{ return 1; } copy] autorelease];`},
	"block that captures": {"",
		`__block id kept = o; __block int count = n; std::string text; void (^b)() = ^{ kept = o; count += text.size(); }; b(); return b;`},
	"block in a block": {"", `void (^a)() = ^{ [o hash]; }; void (^b)() = ^{ a(); }; b(); return o;`},
	"selector":         {"", `return [o performSelector:@selector(description)];`},
	"protocol":         {"@protocol Planted\n- (void)planted;\n@end\n", `return [o conformsToProtocol:@protocol(Planted)] ? o : nil;`},
	"encoding":         {"", `return @(@encode(id));`},
	"availability":     {"", `if (@available(macOS 15.0, *)) return o; return nil;`},
	"class": {"@interface Planted : NSObject {\n  id variable;\n  std::string text;\n}\n@end\n@implementation Planted\n- (void)dealloc {\n  " +
		"[variable release];\n  [super dealloc];\n}\n+ (id)new {\n  return [super new];\n}\n@end\n",
		`return [[Planted alloc] init];`},
	"properties": {"struct Large { long all[8]; };\n@interface Planted : NSObject\n@property(retain) id held;\n@property(copy) id " +
		"copied;\n@property(nonatomic, retain) id plain;\n@property(nonatomic, copy) id plainCopied;\n@property struct Large large;\n@property " +
		"std::string text;\n@end\n@implementation Planted\n@end\n",
		`return static_cast<Planted*>(o).held;`},
	"category": {"@interface NSObject (Planted)\n- (void)planted;\n@end\n@implementation NSObject (Planted)\n- (void)planted {\n}\n@end\n",
		`[o planted]; return o;`},
}

// homes are the libraries that have what clang makes, by how the names begin: the runtime's functions, data of blocks, constants. All
// others are classes, of which Apple's are in three libraries, and C++.
var homes = []struct{ prefix, library string }{
	{"_objc_", libobjcName}, {"__objc_", libobjcName}, {"___objc_", libobjcName}, {"_OBJC_EHTYPE_id", libobjcName},
	{classPrefix + "NSObject", libobjcName}, {"_OBJC_METACLASS_$_NSObject", libobjcName},
	{"__Block_", libSystemName}, {"__NSConcrete", libSystemName}, {"__Unwind", libSystemName},
	{"___NS", coreFoundationName}, {"___CF", coreFoundationName}, {classPrefix + "NSArray", coreFoundationName}, {classPrefix + "NSDictionary",
		coreFoundationName},
	{classPrefix + "NSNumber", "/System/Library/Frameworks/Foundation.framework/Versions/C/Foundation"},
	{classPrefix + "NSString", "/System/Library/Frameworks/Foundation.framework/Versions/C/Foundation"},
	{"___is", "libclang_rt.osx"},
}

// Clang turns literals and some messages into calls and data that no source names. The stubs must have all of them, each of the library that
// has it on a Mac: a source of the next version that is the first one to use such a form must link.
func TestWhatClangMakesOfObjectiveC(t *testing.T) {
	for _, baseline := range []string{"v2.6.0", "v2.9.1"} {
		t.Run(baseline, func(t *testing.T) {
			kit := kitOf(t, baseline)
			known := require.One(kit.allSymbols())(t)
			dir, subject := t.TempDir(), filepath.Join("tests/forms", baseline)
			tree := Tree{Subject: subject, Dir: dir} // as Added, for which no header is compiled first
			names := map[string]string{}
			for i, name := range slices.Sorted(maps.Keys(forms)) {
				form, source := forms[name], filepath.Join(dir, fmt.Sprintf("form%d.mm", i))
				text := "#include <Foundation/Foundation.h>\n#include <string>\n" + form.declarations + "id form(id o, long n) { " + form.body + " }\n"
				require.NoError(t, os.WriteFile(source, []byte(text), 0o644))
				names[source], tree.Added = name, append(tree.Added, source)
			}
			built := require.One(kit.Compile(t.Context(), tree, patches.MacFacts{}, 2, events.Discard))(t)
			made := map[string]bool{}
			for source, object := range built.Objects {
				image := require.One(OpenImage(object))(t)
				for symbol := range image.Undefined {
					made[symbol] = true
					var has []string
					for library, symbols := range known {
						if symbols[symbol] {
							has = append(has, library)
						}
					}
					slices.Sort(has)
					want := has
					if i := slices.IndexFunc(homes, func(home struct{ prefix, library string }) bool {
						return strings.HasPrefix(symbol, home.prefix)
					}); i >= 0 {
						want = []string{homes[i].library}
					}
					if len(has) != 1 || !slices.Equal(has, want) {
						t.Errorf("%s: %s is in the stubs of %q, want %q", names[source], symbol, has, want)
					}
				}
			}
			for _, symbol := range slices.Concat(alsoThere[libobjcName], alsoThere[coreFoundationName]) {
				if !made[symbol] {
					t.Errorf("no form makes clang use %s: a form is missing here, or a name is too many in alsoThere", symbol)
				}
			}
		})
	}
}
