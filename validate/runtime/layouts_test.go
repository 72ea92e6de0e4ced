package runtime

import (
	"strings"
	"testing"

	"mpsforge/fork/host"
	"mpsforge/reports"
)

func TestCompareLayouts(t *testing.T) {
	class := func(size int, members ...host.Member) host.Layout {
		return host.Layout{Class: "C", Size: size, Members: members}
	}
	a, b := host.Member{Offset: "0", Name: "int a"}, host.Member{Offset: "4", Name: "int b"}
	renamed := host.Member{Offset: "4", Name: "int c"}
	for name, c := range map[string]struct {
		before, after host.Layout
		verdict       reports.Verdict
		detail        string
	}{
		"unchanged":                  {class(8, a, b), class(8, a, b), reports.Passed, "8 bytes, 2 members, as before"},
		"a member with another name": {class(8, a, b), class(8, a, renamed), reports.Passed, "int b at 4 is now int c at 4"},
		"a member more":              {class(4, a), class(8, a, b), reports.Failed, "4 bytes before, 8 after"},
		"a member moved":             {class(8, a), class(8, b), reports.Failed, "int a at 0 is now int b at 4"},
		"a function behind":          {class(0, a), class(0, a, b), reports.Passed, "added behind them: int b"},
		"a function before":          {class(0, a), class(0, b, a), reports.Failed, "before: int a; after: int b, int a"},
		"a function gone":            {class(0, a, b), class(0, a), reports.Failed, "before: int a, int b"},
	} {
		t.Run(name, func(t *testing.T) {
			verdict := reports.Passed
			if detail := compareLayouts(c.before, c.after, &verdict); verdict != c.verdict || !strings.Contains(detail, c.detail) {
				t.Errorf("%s: %s", verdict, detail)
			}
		})
	}
}
