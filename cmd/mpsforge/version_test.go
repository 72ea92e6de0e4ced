package main

import (
	"os/exec"
	"testing"

	"mpsforge/internal/require"
)

// TestLicencesAreThoseOfTheLinkedModules keeps licences.txt in step with go.mod and LICENSE.
func TestLicencesAreThoseOfTheLinkedModules(t *testing.T) {
	want := require.One(exec.Command("sh", "licences.sh").Output())(t)
	if licences != string(want) {
		t.Error("licences.txt is not what licences.sh prints now; run make licences")
	}
}
