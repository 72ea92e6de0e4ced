package pytests

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/require"
)

// serve starts a script in the place of Python.
func serve(t *testing.T, wanted wantedTorch, program string) (*Server, error) {
	t.Helper()
	return scripted(t, wanted, program).Serve(t.Context(), nil, nil, time.Minute)
}

// served is serve of a script that says which torch it has.
func served(t *testing.T, program string) *Server {
	t.Helper()
	return require.One(serve(t, wantedTorch{any: true}, says(identityEvent, "3")+program))(t)
}

func TestServerAnswersWhatItIsAsked(t *testing.T) {
	s := served(t, `while read name; do echo "{\"event\": \"result\", \"name\": \"$name\"}" >&3; done`)
	for _, name := range []string{"one", "two"} {
		var found struct{ Name string }
		if err := errors.Join(s.Ask(name), s.Next("result", &found)); err != nil || found.Name != name {
			t.Errorf("%q: %q, %v", name, found.Name, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A process that dies is an error that says how, with its last words, and it can still be closed.
func TestServerThatDies(t *testing.T) {
	s := served(t, "read name; echo 'MemoryError: none left' >&2; kill -KILL $$")
	err := errors.Join(s.Ask("one"), s.Next("result", &struct{}{}))
	if err == nil || !strings.Contains(err.Error(), "script: the process ended: ") || !strings.Contains(err.Error(), "MemoryError: none left") {
		t.Errorf("%v", err)
	}
	require.Says(t, s.Close(), "killed")
}

func TestServerThatEndsEarly(t *testing.T) {
	s := served(t, "exit 0")
	require.Says(t, s.Next("result", &struct{}{}), "script: the process ended: unexpected EOF")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestServerThatWritesNothing(t *testing.T) {
	s := served(t, "exec sleep 600")
	s.patience = 50 * time.Millisecond
	require.Says(t, s.Next("result", &struct{}{}), "wrote nothing for 50ms, and was stopped")
	if err := s.Close(); err == nil {
		t.Error("that it was stopped is no error")
	}
}

func TestServerOfAnotherKindOfEvent(t *testing.T) {
	for name, line := range map[string]string{"another event": `{"event": "skip"}`, "no event": "Traceback"} {
		s := served(t, "echo '"+line+"' >&3; read end; exit 0")
		require.Says(t, s.Next("result", &struct{}{}), "expected the event result: ", name)
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestServerWithAnotherTorch(t *testing.T) {
	_, err := serve(t, wantedTorch{library: "/other.so"}, says(identityEvent, "3")+"read end; exit 0")
	require.Is(t, err, ErrOtherTorch)
}
