// Package require says in one line what a test needs: NoError and One end a test that cannot go on, the others report what is wrong and go on.
// File and Files write what a test reads.
// Words for a message come last; they stand before what was got. What one package's tests alone compare is not here.
package require

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

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

// Equal compares as == does, and what == cannot compare element by element. A nil slice or map equals an empty one.
func Equal[T any](t testing.TB, got, want T, words ...any) {
	t.Helper()
	if equal(reflect.ValueOf(got), reflect.ValueOf(want)) {
		return
	}
	a, b := shown(got), shown(want)
	if strings.Contains(a+b, "\n") {
		t.Errorf("%sgot:\n%s\nwant:\n%s", front(words), a, b)
	} else {
		t.Errorf("%sgot %s, want %s", front(words), a, b)
	}
}

// Is wants an error that errors.Is finds to be target.
func Is(t testing.TB, err, target error, words ...any) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%serror %v, want one that is %q", front(words), err, target)
	}
}

// Says wants an error with these words.
func Says(t testing.TB, err error, text string, words ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%serror %v, want one with %q", front(words), err, text)
	}
}

// Contains wants part in text.
func Contains(t testing.TB, text, part string, words ...any) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%sno %q in:\n%s", front(words), part, text)
	}
}

// File writes a file with its folders. One that begins as a script does can be run.
func File(t testing.TB, path, text string) {
	t.Helper()
	mode := os.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	NoError(t, os.WriteFile(path, []byte(text), mode))
}

// Files writes files below a folder, by their names from there.
func Files(t testing.TB, dir string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		File(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
}

func equal(got, want reflect.Value) bool {
	if !got.IsValid() || !want.IsValid() {
		return got.IsValid() == want.IsValid()
	}
	if got.Comparable() && want.Comparable() {
		return got.Interface() == want.Interface()
	}
	if kind := got.Kind(); (kind == reflect.Slice || kind == reflect.Map) && got.Type() == want.Type() && got.Len() == 0 && want.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(got.Interface(), want.Interface())
}

// shown is a value in a message: texts are quoted, unless they have lines.
func shown(value any) string {
	switch v := reflect.ValueOf(value); {
	case v.Kind() == reflect.String && strings.Contains(v.String(), "\n"):
		return v.String()
	case v.Kind() == reflect.String, v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String:
		return fmt.Sprintf("%q", value)
	}
	return fmt.Sprintf("%+v", value)
}

// front is the words before a message. What a terminal would not show as it is, is quoted.
func front(words []any) string {
	if len(words) == 0 {
		return ""
	}
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = fmt.Sprint(word)
		if quoted := fmt.Sprintf("%q", texts[i]); texts[i] == "" || len(quoted) != len(texts[i])+2 {
			texts[i] = quoted
		}
	}
	return strings.Join(texts, " ") + ": "
}
