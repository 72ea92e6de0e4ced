package builds

import (
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// A stamp comes back from the library that holds it, and one of another format is not believed.
func TestStampComesBack(t *testing.T) {
	stamp := Stamp{Format: StampFormat, Kind: "host", Flavour: Thread, Baseline: "v2.6.0", Tree: "t\"ree", Patches: []string{"a", "b"}}
	text := require.One(stamp.Text())(t)
	back, err := ParseStamp(text)
	if err != nil || back.Tree != stamp.Tree || back.Flavour != Thread || len(back.Patches) != 2 {
		t.Errorf("%+v, %v", back, err)
	}
	for _, wrong := range []string{"", "{}", StampMark + "{", StampMark + `{"format":99}`} {
		if _, err := ParseStamp(wrong); err == nil {
			t.Errorf("%q was believed", wrong)
		}
	}
	source, err := stamp.Source()
	if err != nil || !strings.Contains(string(source), `mpsforge_stamp[] = "mpsforge-stamp:{`) {
		t.Errorf("%s, %v", source, err)
	}
}
