package mac

import (
	"slices"
	"testing"
)

// What is bound and not listed is a problem, and so is a row of the list that names nothing bound.
func TestNamesBoundAreThoseListed(t *testing.T) {
	bound, listed := []string{"a()", "b()"}, []string{"a()", "c()"}
	if got, want := unlisted(bound, listed), []string{"b()", "c() is listed under bound in mac.json, but is not bound"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := unlisted(bound, bound); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
