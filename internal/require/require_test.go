package require_test

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"testing"

	"mpsforge/internal/require"
)

// A fake is a test that notes how it fails.
type fake struct {
	testing.TB
	said string
}

func (f *fake) Helper() {}

func (f *fake) Fatal(args ...any) {
	f.said += "ended: " + fmt.Sprint(args...)
	runtime.Goexit()
}

// said is what a test with these checks says when it fails.
func said(checks func(testing.TB)) string {
	var f fake
	done := make(chan struct{})
	go func() {
		defer close(done)
		checks(&f)
	}()
	<-done
	return f.said
}

func TestChecksFailWhenTheyShould(t *testing.T) {
	for name, c := range map[string]struct {
		check func(testing.TB)
		want  string
	}{
		"no error":       {func(t testing.TB) { require.NoError(t, nil) }, ""},
		"an error":       {func(t testing.TB) { require.NoError(t, fs.ErrExist); panic("goes on") }, "ended: file already exists"},
		"one":            {func(t testing.TB) { require.NoError(t, errors.New(require.One("a value", nil)(t))) }, "ended: a value"},
		"one that fails": {func(t testing.TB) { require.One(1, fs.ErrExist)(t); panic("goes on") }, "ended: file already exists"},
	} {
		if got := said(c.check); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
