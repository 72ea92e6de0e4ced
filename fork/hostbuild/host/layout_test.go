package host

import (
	"strings"
	"testing"

	"mpsforge/internal/require"
)

func TestParseLayouts(t *testing.T) {
	found := parseLayouts(`
*** Dumping AST Record Layout
         0 | class at::mps::MPSStream
         0 |   class c10::Stream _stream
         0 |     struct c10::Device device_
    16:0-3 |   unsigned int bits
           | [sizeof=80, dsize=73, align=8,
           |  nvsize=73, nvalign=8]

*** Dumping AST Record Layout
         0 | class at::mps::MPSStreamImpl (empty)
           | [sizeof=1, dsize=1, align=1,
`)
	if len(found) != 2 || found[0].Class != "at::mps::MPSStream" || found[0].Size != 80 || len(found[0].Members) != 2 ||
		found[0].Members[1] != (Member{"16:0-3", "unsigned int bits"}) {
		t.Errorf("%+v", found)
	}
	if found[1].Class != "at::mps::MPSStreamImpl" || found[1].Size != 1 {
		t.Errorf("%+v", found[1])
	}
}

// A class that no header declares would be compared with nothing; a part of a tree may lack the header.
func TestLayoutsOfClassesThatDoNotExist(t *testing.T) {
	known := []Layout{{Class: "at::mps::MPSStream"}}
	if all, err := layoutsOf(known, []string{"at::mps::MPSStream"}, true); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	_, err := layoutsOf(known, []string{"at::mps::MPSStraem"}, true)
	require.Says(t, err, `MPSStraem, which none of layout_headers declares (did you mean "at::mps::MPSStream"?)`)
	if all, err := layoutsOf(known, []string{"at::mps::MPSEvent"}, false); err != nil || len(all) != 0 {
		t.Errorf("a part of a tree: %v, %v", all, err)
	}
}

func TestCompareLayouts(t *testing.T) {
	class := func(size int, members ...Member) Layout {
		return Layout{Class: "C", Size: size, Members: members}
	}
	a, b := Member{Offset: "0", Name: "int a"}, Member{Offset: "4", Name: "int b"}
	renamed := Member{Offset: "4", Name: "int c"}
	for name, c := range map[string]struct {
		before, after Layout
		fits          bool
		detail        string
	}{
		"unchanged":                  {class(8, a, b), class(8, a, b), true, "8 bytes, 2 members, as before"},
		"a member with another name": {class(8, a, b), class(8, a, renamed), true, "int b at 4 is now int c at 4"},
		"a member more":              {class(4, a), class(8, a, b), false, "4 bytes before, 8 after"},
		"a member moved":             {class(8, a), class(8, b), false, "int a at 0 is now int b at 4"},
		"a function behind":          {class(0, a), class(0, a, b), true, "added behind them: int b"},
		"a function before":          {class(0, a), class(0, b, a), false, "before: int a; after: int b, int a"},
		"a function gone":            {class(0, a, b), class(0, a), false, "before: int a, int b"},
	} {
		t.Run(name, func(t *testing.T) {
			if changed, fits := CompareLayouts(c.before, c.after); fits != c.fits || !strings.Contains(changed, c.detail) {
				t.Errorf("%v: %s", fits, changed)
			}
		})
	}
}
