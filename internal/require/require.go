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

// One gives the value of a call that must not fail: require.One(f())(t). An error ends the test, as with NoError.
func One[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		NoError(t, err)
		return value
	}
}
