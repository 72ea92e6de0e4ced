package apple

import (
	"bytes"
	"testing"
)

// FuzzTable: a table is read, or refused with the line's number.
func FuzzTable(f *testing.F) {
	f.Add("T\tclass\tA\tB\tP,Q\t-10.13\nM\t-a:\tv\t@ i\t12.0\tu\nE\tX\tQ\nC\tXOne\t1\nC\tXAll\t18446744073709551615\nS\tMTLSize\twidth:Q\nF\tg\tv\t@ i\n")
	f.Add("M\t-a\tv\nX")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := parseTable(text)
		if err == nil {
			_, _ = table.Versions()
		}
	})
}

// FuzzHeaders: what clang prints of headers is read or refused.
func FuzzHeaders(f *testing.F) {
	f.Add("@interface A : NSObject <P>\n- (id)a:(NSUInteger)b;\n@property (readonly, copy) NSString *name;\n@end\ntypedef struct {\n    NSUInteger " +
		"width;\n} MTLSize;\nenum X : NSUInteger {\n    XOne = 1 << 2,\n    XTwo\n};\nextern \"C\" {\nid make(id a, int (*f)(void));\n}\n")
	f.Add("@protocol P\n+ (void (^)(int))a:(const char *_Nullable [4])b c:(struct S)d __attribute__((availability(macos,introduced=10.13)));\n@end\n")
	for _, text := range []string{"@interface A\n+id\n", "typedef {", "typedef struct {", "enum {", "enum {\n}"} {
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, printed string) { _, _ = ParseHeaders(printed, nil) })
}

// FuzzSelectors: no file makes the reading of selectors panic.
func FuzzSelectors(f *testing.F) {
	f.Add(library(f, "__objc_methname", someSelectors))
	f.Fuzz(func(t *testing.T, data []byte) {
		names, err := Selectors(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, name := range names {
			if name == "" {
				t.Error("a selector without a name")
			}
		}
	})
}
