package mac

import (
	"testing"

	"mpsforge/internal/require"
)

// What is bound and not listed is a problem, and so is a row of the list that names nothing bound.
func TestNamesBoundAreThoseListed(t *testing.T) {
	bound, listed := []string{"a()", "b()"}, []string{"a()", "c()"}
	require.Equal(t, unlisted(bound, listed), []string{"b()", "c() is listed under bound in mac.json, but is not bound"})
	require.Equal(t, unlisted(bound, bound), nil)
}
