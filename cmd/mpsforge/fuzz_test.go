package main

import "testing"

// FuzzSettings: a settings file is read, or refused as a fault of the user's.
func FuzzSettings(f *testing.F) {
	f.Add("checkout = \"pytorch\"\nbaseline = \"v2.9.1\"\nstages = [\"series\", \"checkout\"]\n")
	f.Add("stages = \"all\"\n[checkout]\na.b.c = {d = [[1]]}\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := parseSettings(text); err != nil && exitCode(err) != exitUsage {
			t.Errorf("%v of %q", err, text)
		}
	})
}
