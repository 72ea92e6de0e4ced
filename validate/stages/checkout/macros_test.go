package checkout

import (
	"slices"
	"strings"
	"testing"
)

// What is left of a text once its macros are written out, word by word, and in which line.
func TestExpandMacros(t *testing.T) {
	headers := macros{"FROM_HEADER": {{takes: true, parameters: []string{"NAME"}, text: "void NAME##_made();"}}}
	for name, c := range map[string]struct{ text, want string }{
		"a name is pasted together":              {"#define MAKE(NAME) void NAME##_kernel(NAME##_stub)\nMAKE(exp)", "\n void exp_kernel(exp_stub) "},
		"an argument that becomes a string":      {"#define MAKE(NAME) call(# NAME, NAME)\nMAKE(exp)", "\n call(# , exp) "},
		"a macro that uses another":              {"#define ONE(x) one(x)\n#define TWO(x, y) ONE(x) ONE(y)\nTWO(a, b(c, d))", "\n\n one(a) one(b(c, d)) "},
		"a macro that names itself":              {"#define stream() this->stream()\nstream()", "\n this->stream() "},
		"no parameters":                          {"#define ASK getCurrentMPSStream()\nASK;", "\n getCurrentMPSStream() ;"},
		"any number of arguments":                {"#define IN(first, ...) first { __VA_ARGS__ }\nIN(a, b(), c())", "\n a { b(), c() } "},
		"lines stay where they are":              {"#define MAKE(a, b) \\\n  a \\\n  b\nMAKE(x,\n  y) z", "\n\n\n x y \n z"},
		"only from its definition to its end":    {"ONE()\n#define ONE() 1\nONE()\n#undef ONE\nONE()", "ONE()\n\n 1 \n\nONE()"},
		"both branches of a condition count":     {"#if NEW\n#define ASK() now()\n#else\n#define ASK() before()\n#endif\nASK()", "\n\n\n\n\n now() before() "},
		"a file's own comes before a header's":   {"#define FROM_HEADER(NAME) own\nFROM_HEADER(a)", "\n own "},
		"a header's":                             {"FROM_HEADER(exp)", " void exp_made(); "},
		"a macro's name without brackets":        {"#define ONE() 1\nONE = 2", "\nONE = 2"},
		"brackets that never end are left alone": {"#define ONE(a) 1\nONE(", "\nONE("},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := expandMacros(c.text, headers)
			words := func(s string) []string { return strings.Fields(strings.ReplaceAll(s, "\n", " | ")) }
			if !slices.Equal(words(got), words(c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// No text, however broken, takes long or ends the process.
func FuzzExpandMacros(f *testing.F) {
	f.Add("#define A(x) B(x)\n#define B(x) A(x##x)\nA(A(b))")
	f.Add("#define A(")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			return
		}
		expanded, _ := expandMacros(blankLiterals(text), macros{})
		functionsOf("f.mm", expanded, map[string]int{})
	})
}
