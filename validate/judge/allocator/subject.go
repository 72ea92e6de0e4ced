package allocator

import (
	"bytes"
	"embed"
	"fmt"

	"mpsforge/internal/cxx"
	"mpsforge/native"
)

//go:embed adapter/slots_adapter.cc
var adapterSources embed.FS

// Subject is the code under test: what is compiled together with the harness.
type Subject struct {
	sources []cxx.Source
}

// Reference is the reference as a subject, for the sanitizer builds.
func Reference() (Subject, error) {
	sources, err := native.Files("slots/slots.h", "slots/reference.cc", "programs/slots_reference_subject.cc")
	return Subject{sources}, err
}

// FromHeader is the allocator of a checkout's header. Its library answers identity with the given text.
func FromHeader(header []byte, identity string) (Subject, error) {
	sources, err := native.Files("slots/slots.h")
	if err != nil {
		return Subject{}, err
	}
	adapter, err := adapterSources.ReadFile("adapter/slots_adapter.cc")
	if err != nil {
		return Subject{}, fmt.Errorf("embedded sources: %w", err)
	}
	// A header holds the identity: a flag would have what knows nothing of it compiled again, too.
	stamp := cxx.Source{Path: "include/mpsforge_stamp.h", Data: []byte("#define MPSFORGE_STAMP " + cString(identity) + "\n")}
	sources = append(sources, cxx.Source{Path: "programs/slots_adapter.cc", Data: adapter}, cxx.Source{Path: "include/ATen/mps/MPSStreamSlots.h",
		Data: header}, stamp)
	return Subject{sources}, nil
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

func (s Subject) Library() cxx.Target {
	return cxx.Target{Flavour: cxx.Library, Sources: s.sources}
}

// stress is the program that drives the subject from many threads, for a sanitizer.
func (s Subject) stress(kind cxx.Flavour) (cxx.Target, error) {
	more, err := native.Files("schedule/random.h", "slots/harness.h", "slots/harness.cc", "programs/slots_stress.cc")
	return cxx.Target{Flavour: kind, Sources: append(more, s.sources...)}, err
}

// scheduleSearch is the program that enumerates the interleavings of a header's allocator.
func scheduleSearch(header []byte) (cxx.Target, error) {
	sources, err := native.Files("schedule/", "programs/slots_search.cc")
	return cxx.Target{Flavour: cxx.Program, Sources: append(sources, cxx.Source{Path: "include/ATen/mps/MPSStreamSlots.h", Data: header})}, err
}

// Header is the slot allocator's path in a checkout.
const Header = "aten/src/ATen/mps/MPSStreamSlots.h"
