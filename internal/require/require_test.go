package require_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

func (f *fake) Errorf(format string, args ...any) { f.said += fmt.Sprintf(format, args...) }

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

		"equal":             {func(t testing.TB) { require.Equal(t, "a", "a", "words") }, ""},
		"equal nothing":     {func(t testing.TB) { require.Equal[any](t, nil, nil) }, ""},
		"equal slices":      {func(t testing.TB) { require.Equal(t, []string{"a"}, []string{"a"}) }, ""},
		"equal empty":       {func(t testing.TB) { require.Equal(t, []string{}, nil); require.Equal(t, map[int]int{}, nil) }, ""},
		"other texts":       {func(t testing.TB) { require.Equal(t, "a", "b", "name", 5) }, `name 5: got "a", want "b"`},
		"texts with lines":  {func(t testing.TB) { require.Equal(t, "a\nb", "c", "d\n") }, `"d\n": ` + "got:\na\nb\nwant:\n\"c\""},
		"other numbers":     {func(t testing.TB) { require.Equal(t, 1, 2) }, "got 1, want 2"},
		"other slices":      {func(t testing.TB) { require.Equal(t, []string{"a"}, []string{"b c"}) }, `got ["a"], want ["b c"]`},
		"a shorter slice":   {func(t testing.TB) { require.Equal(t, []int{1}, nil, "") }, `"": got [1], want []`},
		"other maps":        {func(t testing.TB) { require.Equal(t, map[int]bool{1: true}, map[int]bool{1: false}) }, "got map[1:true], want map[1:false]"},
		"other types":       {func(t testing.TB) { require.Equal[any](t, 1, uint(1)) }, "got 1, want 1"},
		"one of two is nil": {func(t testing.TB) { require.Equal[any](t, nil, 1) }, "got <nil>, want 1"},
		"other pointers":    {func(t testing.TB) { require.Equal(t, io.EOF, errors.New("EOF")) }, "got EOF, want EOF"},

		"is":               {func(t testing.TB) { require.Is(t, fmt.Errorf("a: %w", fs.ErrExist), fs.ErrExist) }, ""},
		"is another":       {func(t testing.TB) { require.Is(t, io.EOF, fs.ErrExist, "a") }, `a: error EOF, want one that is "file already exists"`},
		"is none":          {func(t testing.TB) { require.Is(t, nil, fs.ErrExist) }, `error <nil>, want one that is "file already exists"`},
		"says":             {func(t testing.TB) { require.Says(t, io.EOF, "EO") }, ""},
		"says another":     {func(t testing.TB) { require.Says(t, io.EOF, "OE", "a") }, `a: error EOF, want one with "OE"`},
		"says none":        {func(t testing.TB) { require.Says(t, nil, "") }, `error <nil>, want one with ""`},
		"contains":         {func(t testing.TB) { require.Contains(t, "abc", "b") }, ""},
		"contains another": {func(t testing.TB) { require.Contains(t, "abc", "ca", "x", "y") }, `x y: no "ca" in:` + "\nabc"},
	} {
		if got := said(c.check); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestFilesHaveTheirFolders(t *testing.T) {
	dir := t.TempDir()
	require.Files(t, dir, map[string]string{"a": "one", "b/c/d": "#!/bin/sh\n"})
	for name, want := range map[string]fs.FileMode{"a": 0o644, "b/c/d": 0o755} {
		require.Equal(t, require.One(os.Stat(filepath.Join(dir, name)))(t).Mode()&0o111, want&0o111, name)
	}
	require.Equal(t, string(require.One(os.ReadFile(filepath.Join(dir, "a")))(t)), "one")
	if text := said(func(t testing.TB) { require.File(t, filepath.Join(dir, "a/e"), "") }); text == "" {
		t.Error("a file below a file was written")
	}
}
