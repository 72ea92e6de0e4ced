package host

import "testing"

func TestParseLayouts(t *testing.T) {
	found := parseLayouts(`
*** Dumping AST Record Layout
         0 | class at::mps::MPSStream
         0 |   class c10::Stream _stream
         0 |     struct c10::Device device_
    16:0-3 |   unsigned int bits
           | [sizeof=80, dsize=73, align=8,
           |  nvsize=73, nvalign=8]

*** Dumping AST Record Layout
         0 | class at::mps::MPSStreamImpl (empty)
           | [sizeof=1, dsize=1, align=1,
`)
	if len(found) != 2 || found[0].Class != "at::mps::MPSStream" || found[0].Size != 80 || len(found[0].Members) != 2 || found[0].Members[1] != (Member{"16:0-3", "unsigned int bits"}) {
		t.Errorf("%+v", found)
	}
	if found[1].Class != "at::mps::MPSStreamImpl" || found[1].Size != 1 {
		t.Errorf("%+v", found[1])
	}
}
