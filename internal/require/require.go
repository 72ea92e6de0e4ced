// Package require ends a test that cannot go on, in one line.
package require

import "testing"

// NoError ends the test at the caller's line if err is not nil. As t.Fatal, it is for the goroutine that runs the test alone.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
