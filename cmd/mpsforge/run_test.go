package main

import (
	"testing"

	"mpsforge/internal/require"
)

func TestOnlyOnAMacThereIsAQuickerWay(t *testing.T) {
	require.Contains(t, quickerWay("darwin"), "mpsforge overlay build --platform macos", "on a Mac")
	require.Equal(t, quickerWay("linux"), "", "on Linux")
}
