package builds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// StampFormat rises with every change of Stamp.
const StampFormat = 1

// StampMark begins the stamp inside a built library, so that it is found in the file, too.
const StampMark = "mpsforge-stamp:"

// Stamp says from what an artefact was built. It is part of the artefact, the constant mpsforge_stamp of the library,
// so that what is loaded can be asked, rather than a path be believed.
type Stamp struct {
	Format   int      `json:"format"`
	Kind     string   `json:"kind"` // host or pytorch
	Flavour  Flavour  `json:"flavour"`
	Baseline string   `json:"baseline"`
	Commit   string   `json:"commit"` // of the checkout; empty when it is not a git work tree, and for PyTorch itself
	Tree     string   `json:"tree"`   // of that commit
	Series   string   `json:"series"` // digest of the applied part of the series; empty for stock
	Patches  []string `json:"patches"`
	// Sources is the SHA-256 over paths and contents of all files of the backend's folders, compiled or included.
	Sources string `json:"sources"`
	Torch   string `json:"torch"`
	// Shaders is the digest of the Metal kernels of PyTorch's wheel that run in it; empty: there are none.
	Shaders string `json:"shaders,omitempty"`
	Native  string `json:"native"` // SHA-256 over the software Metal, the Objective-C layer and what stands in for PyTorch
	// Of a build of PyTorch itself: the digest of what differs from the commit in the work tree (empty for nothing), the
	// mpsforge that built it, compilers and SDK, and the settings that decide what is built.
	Changes   string   `json:"changes,omitempty"`
	Tool      string   `json:"tool,omitempty"`
	Toolchain []string `json:"toolchain,omitempty"`
	Flags     []string `json:"flags,omitempty"`
}

// Text is the stamp as it is in a library.
func (s Stamp) Text() (string, error) {
	data, err := json.Marshal(s)
	return StampMark + string(data), err
}

// Source is the C++ file that makes the stamp part of a library.
func (s Stamp) Source() ([]byte, error) {
	text, err := s.Text()
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "extern \"C\" __attribute__((visibility(\"default\"), used)) const char mpsforge_stamp[] = %s;\n", strconv.QuoteToASCII(text)), nil
}

// ParseStamp reads a stamp as a loaded library gives it.
func ParseStamp(text string) (Stamp, error) {
	var s Stamp
	data, ok := bytes.CutPrefix([]byte(text), []byte(StampMark))
	if !ok {
		return s, fmt.Errorf("no stamp of mpsforge: %.40q", text)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("stamp: %w", err)
	}
	if s.Format != StampFormat {
		return s, fmt.Errorf("stamp of format %d; this mpsforge reads %d: build again", s.Format, StampFormat)
	}
	return s, nil
}
