package validate

import (
	"bytes"
	"embed"
	"fmt"
)

//go:embed conformance/slots_adapter.cc
var adapterSources embed.FS

// slotSubject is the code under test: what is compiled together with the harness.
type slotSubject struct {
	sources []source
	flags   []string
}

// referenceSubject is the reference as a subject, for the sanitizer builds.
func referenceSubject() (slotSubject, error) {
	sources, err := nativeSources("slots/slots.h", "slots/reference.cc", "programs/slots_reference_subject.cc")
	return slotSubject{sources: sources}, err
}

// headerSubject is the allocator of a checkout's header. Its library answers identity with the given text.
func headerSubject(header []byte, identity string) (slotSubject, error) {
	sources, err := nativeSources("slots/slots.h")
	if err != nil {
		return slotSubject{}, err
	}
	adapter, err := adapterSources.ReadFile("conformance/slots_adapter.cc")
	if err != nil {
		return slotSubject{}, fmt.Errorf("embedded sources: %w", err)
	}
	sources = append(sources, source{"programs/slots_adapter.cc", adapter}, source{"include/ATen/mps/MPSStreamSlots.h", header})
	return slotSubject{sources, []string{"-DMPSFORGE_STAMP=" + cString(identity)}}, nil
}

// cString writes text as a C++ string literal.
func cString(text string) string {
	var out bytes.Buffer
	out.WriteByte('"')
	for _, b := range []byte(text) {
		if b < ' ' || b > '~' || b == '"' || b == '\\' || b == '?' {
			fmt.Fprintf(&out, "\\%03o", b)
		} else {
			out.WriteByte(b)
		}
	}
	out.WriteByte('"')
	return out.String()
}

func (s slotSubject) library() target {
	return target{library, s.sources, s.flags}
}

// stress is the program that drives the subject from many threads, for a sanitizer.
func (s slotSubject) stress(kind flavour) (target, error) {
	more, err := nativeSources("slots/harness.h", "slots/harness.cc", "programs/slots_stress.cc")
	return target{kind, append(more, s.sources...), s.flags}, err
}

// scheduleSearch is the program that enumerates the interleavings of a header's allocator.
func scheduleSearch(header []byte) (target, error) {
	sources, err := nativeSources("schedule/", "programs/slots_search.cc")
	return target{program, append(sources, source{"include/ATen/mps/MPSStreamSlots.h", header}), nil}, err
}

// slotHeader is the slot allocator's path in a checkout.
const slotHeader = "aten/src/ATen/mps/MPSStreamSlots.h"
