package native

import (
	"io/fs"
	"testing"
)

func TestSourcesHoldEveryProgram(t *testing.T) {
	for _, name := range []string{"slots/slots.h", "slots/reference.cc", "slots/harness.cc", "programs/slots_stress.cc", "programs/slots_search.cc"} {
		if _, err := fs.Stat(Sources, name); err != nil {
			t.Error(err)
		}
	}
}
