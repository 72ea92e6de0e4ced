//go:build !cgo

package slots

import (
	"testing"

	"mpsforge/internal/require"
)

func TestWithoutCgoThereIsNoSubject(t *testing.T) {
	_, err := Reference()
	require.Is(t, err, ErrNoCgo, "Reference")
	_, err = Load("subject.so")
	require.Is(t, err, ErrNoCgo, "Load")
}
