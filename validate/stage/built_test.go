package stage

import (
	"errors"
	"testing"

	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/require"
)

// A build is made once in a run; one that failed is tried again by the next stage.
func TestBuiltOnce(t *testing.T) {
	var built Built
	made := 0
	make := func(err error) func() (*host.Build, error) {
		return func() (*host.Build, error) {
			made++
			return &host.Build{Dir: "dir"}, err
		}
	}
	failed := errors.New("the disk is full")
	_, err := built.Once("patched", make(failed))
	require.Is(t, err, failed)
	for range 2 {
		if b, err := built.Once("patched", make(nil)); err != nil || b.Dir != "dir" {
			t.Errorf("%+v, %v", b, err)
		}
	}
	if _, err := built.Once("stock", make(nil)); err != nil || made != 3 {
		t.Errorf("%v, made %d times", err, made)
	}
	var none *Built
	if _, err := none.Once("stock", make(nil)); err != nil || made != 4 {
		t.Errorf("%v, made %d times", err, made)
	}
}
