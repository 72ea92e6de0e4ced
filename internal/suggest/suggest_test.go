package suggest

import "testing"

func TestNearest(t *testing.T) {
	commands := []string{"apply", "unapply", "verify", "report", "export", "port", "stream-pool", "v2.6.0", "v2.9.1"}
	for wrong, want := range map[string]string{
		"aply": "apply", "verfiy": "verify", "VERIFY": "verify", "rport": "report", "potr": "port", "2.9.1": "v2.9.1", "pool": "stream-pool",
		"ver": "verify", "v2.9.0": "v2.9.1",
		"nonsense": "", "": "", "x": "", "port2000000": "",
	} {
		if got := Nearest(wrong, commands); got != want {
			t.Errorf("near %q is %q, want %q", wrong, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	if got, want := Names("tan", []string{"plain", "tsan"}), ` (did you mean "tsan"?); there are: plain, tsan`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := Names("x", []string{"plain", "tsan"}), `; there are: plain, tsan`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Names("aply", append(make([]string, few), "apply")); got != ` (did you mean "apply"?)` {
		t.Errorf("a long list: %q", got)
	}
}
