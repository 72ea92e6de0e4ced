package suggest

import (
	"testing"

	"mpsforge/internal/require"
)

func TestNearest(t *testing.T) {
	commands := []string{"apply", "unapply", "verify", "report", "export", "port", "stream-pool", "v2.6.0", "v2.9.1"}
	for wrong, want := range map[string]string{
		"aply": "apply", "verfiy": "verify", "VERIFY": "verify", "rport": "report", "potr": "port", "2.9.1": "v2.9.1", "pool": "stream-pool",
		"ver": "verify", "v2.9.0": "v2.9.1",
		"nonsense": "", "": "", "x": "", "port2000000": "",
	} {
		require.Equal(t, Nearest(wrong, commands), want, "near", wrong)
	}
}

func TestNames(t *testing.T) {
	require.Equal(t, Names("tan", []string{"plain", "tsan"}), ` (did you mean "tsan"?); there are: plain, tsan`)
	require.Equal(t, Names("x", []string{"plain", "tsan"}), `; there are: plain, tsan`)
	require.Equal(t, Names("aply", append(make([]string, few), "apply")), ` (did you mean "apply"?)`, "a long list")
}
