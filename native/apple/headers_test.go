package apple

import (
	"os"
	"reflect"
	"testing"

	"mpsforge/internal/require"
)

// someDump is what clang 19 writes of /i/ours.h, but for some lines about types and expressions:
//
//	#include <sys.h>
//	@class Later;
//	@protocol NSObject
//	- (instancetype)self;
//	@end
//	__attribute__((objc_root_class))
//	@interface Root <NSObject>
//	@end
//	enum Kind : size { KindOne = 1 << SYS_BIT, KindTwo, KindAll = ~0ul };
//	typedef size Options;
//	enum : size { OptionA = KindOne | 1 };
//	typedef enum { PlainNo = -1, PlainYes } Plain;
//	typedef struct Pair { size one; const char *two[2]; enum Kind kind; } Pair, *PairPointer;
//	typedef struct { Pair pair; } Alone;
//	typedef union { int a; float b; } Either;
//	typedef void (^Handler)(id<NSObject> object, Later *later, size count);
//	@interface Later<ObjectType> : Root
//	@property(getter=isReady) bool ready;
//	@property(class, readonly) Plain plain;
//	- (ObjectType)at:(size)index error:(Root *__autoreleasing *)error;
//	+ (void)with:(Handler)handler, ...;
//	@end
//	@interface Later (More)
//	- (int (*)(void))callback:(void (*)(int (*)[3]))other pair:(PairPointer)pair;
//	@end
//	extern "C" {
//	int (*of_c(unsigned char small, ...))(Either *);
//	}
//	namespace n { void not_of_c(int); }
//	void operator+(Pair, Pair);
//	#define RELEASE(name) extern "C" void name##_release(struct name *)
//	RELEASE(Pair);
//	@class Elsewhere, Root;
//	@protocol Ahead, NSObject;
//
// where /sys/sys.h is
//
//	#define SYS_BIT 4
//	typedef unsigned long size;
//	enum { systemConstant = 1 };
//	void system_function(int);
func someDump(t testing.TB) string {
	t.Helper()
	return string(require.One(os.ReadFile("testdata/headers.dump"))(t))
}

func TestHeadersAreRead(t *testing.T) {
	headers := require.One(ParseHeaders(someDump(t), "/i"))(t)
	pair := &Struct{Fields: []string{"one:u64", "two:[2]^char", "kind:enum:Kind/u64"}}
	want := &Headers{Table{
		Types: map[string]*Type{
			"NSObjectProtocol": {Kind: "protocol", Name: "NSObjectProtocol", Methods: map[string]*Method{"-self": {Result: "@self"}}},
			"Root":             {Kind: "class", Name: "Root", Protocols: []string{"NSObjectProtocol"}, Methods: map[string]*Method{}},
			"Later": {Kind: "class", Name: "Later", Super: "Root", Methods: map[string]*Method{
				"-isReady":        {Result: "bool"},
				"-setReady:":      {Result: "v", Args: []string{"bool"}},
				"+plain":          {Result: "enum:Plain/i32"},
				"-at:error:":      {Result: "@", Args: []string{"u64", "^@Root"}},
				"+with:":          {Result: "v", Args: []string{"@?(v,@<NSObject>,@Later,u64)", "..."}},
				"-callback:pair:": {Result: "^fn", Args: []string{"^fn", "^{Pair}"}},
			}},
		},
		Enums:     map[string]*Enum{"Kind": {"u64"}, "Options": {"u64"}, "Plain": {"i32"}},
		Constants: map[string]int64{"KindOne": 16, "KindTwo": 17, "KindAll": -1, "OptionA": 17, "PlainNo": -1, "PlainYes": 0},
		Structs:   map[string]*Struct{"Pair": pair, "Alone": {Fields: []string{"pair:{Pair}"}}},
		Functions: map[string]*Function{"of_c": {Result: "^fn", Args: []string{"u8", "..."}}, "Pair_release": {Result: "v", Args: []string{"^{Pair}"}}},
	}}
	if !reflect.DeepEqual(headers, want) {
		for name, found := range headers.Types {
			t.Logf("%s: %+v", name, *found)
			for selector, method := range found.Methods {
				t.Logf("  %s: %+v", selector, *method)
			}
		}
		t.Errorf("%+v", headers)
	}
}

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	const constant = "`-EnumDecl 0x1 </i/a.h:1:1> col:1 E\n  `-EnumConstantDecl 0x1 <col:1> col:1 C 'E'\n    `-value: Int "
	const function = "`-FunctionDecl 0x1 </i/a.h:1:1> col:1 f "
	for dump, want := range map[string]string{
		"":                           "no TranslationUnitDecl is the root",
		"TranslationUnitDecl\n| | x": "is below no other",
		"TranslationUnitDecl\n" + function + "'int (unknown *)'":                            `FunctionDecl f: f: type "int (unknown *)": no type "unknown"`,
		"TranslationUnitDecl\n" + function + "'int (id<A)'":                                 "no end of <",
		"TranslationUnitDecl\n" + function + "'int x'":                                      `unexpected "x"`,
		"TranslationUnitDecl\n|-TypedefDecl 0x1 <col:1> col:1 A 'A *'\n" + function + "'A'": `no type "A"`,
		"TranslationUnitDecl\n" + constant + "x":                                            "constant C: ",
	} {
		_, err := ParseHeaders(dump, "/i")
		require.Says(t, err, want, dump)
	}
}
