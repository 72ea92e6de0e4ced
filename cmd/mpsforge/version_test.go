package main

import (
	"os/exec"
	"testing"

	"mpsforge/internal/require"
)

// TestLicencesAreThoseOfTheLinkedModules keeps licences.txt in step with go.mod and LICENSE.
func TestLicencesAreThoseOfTheLinkedModules(t *testing.T) {
	want, err := exec.Command("sh", "licences.sh").Output()
	require.NoError(t, err)
	if licences != string(want) {
		t.Error("licences.txt is not what licences.sh prints now; run make licences")
	}
}
