package apple

import (
	"bytes"
	"strings"
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

// FuzzHeaders: what clang writes of headers is read or refused.
func FuzzHeaders(f *testing.F) {
	f.Add(someDump(f))
	for _, line := range strings.Split(someDump(f), "\n")[1:] {
		f.Add("TranslationUnitDecl\n" + line)
	}
	for _, text := range []string{"", "\n", "| x", "a\nb", "TranslationUnitDecl\n|-TypedefDecl </i/a:1:1> col:1 X 'X (^)(X)'\n" +
		"|-FunctionDecl <col:1> col:1 f 'X (*(*[2])())[3]'\n`-EnumDecl 0x1 <<scratch space>:1:1, </i/a> 'struct"} {
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, dump string) { _, _ = ParseHeaders(dump, "/i") })
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
