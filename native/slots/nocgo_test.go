//go:build !cgo

package slots

import (
	"errors"
	"testing"
)

func TestWithoutCgoThereIsNoSubject(t *testing.T) {
	if _, err := Reference(); !errors.Is(err, ErrNoCgo) {
		t.Errorf("Reference: %v, want ErrNoCgo", err)
	}
	if _, err := Load("subject.so"); !errors.Is(err, ErrNoCgo) {
		t.Errorf("Load: %v, want ErrNoCgo", err)
	}
}
