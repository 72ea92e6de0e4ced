package patches

import (
	"errors"
	"fmt"
	"io/fs"
)

// macFile is the name of MacFacts in a baseline's folder.
const macFile = "mac.json"

// ErrNoMacFacts is returned, wrapped, for a baseline whose folder has none.
var ErrNoMacFacts = errors.New("the baseline has no " + macFile)

// MacFacts is what depends on a PyTorch version where its MPS sources are compiled for macOS (mac.json).
type MacFacts struct {
	Schema int   `json:"schema"` // always 1
	Wheel  Wheel `json:"-"`      // that of HostFacts
	// Git is torch.version.git_version of PyTorch's wheels of that version, and LibtorchCPU the SHA-256 of the library with the backend in
	// them. Where there are several, the Pythons' wheels differ in the library's UUID and in its signature, and not in what
	// "baseline record --wheel" reads.
	Git         string   `json:"git"`
	LibtorchCPU []string `json:"libtorch_cpu"`
	// PythonSources are compiled as C++ with Python's headers; all others are Objective-C++.
	PythonSources []string `json:"python_sources"`
	// Bound are names of the MPS backend that the patched sources, compiled without the others, take from the wheel's libtorch_cpu. All
	// sources together take none. Without the list the short form does not judge them.
	Bound []string `json:"bound"`
	// Lost gives, by name, the reason why a symbol that the wheel exports is not defined any more, beside lost_symbols of host.json.
	Lost map[string]string `json:"lost,omitempty"`
}

// MacFacts reads those of the series' baseline.
func (s *Series) MacFacts() (MacFacts, error) {
	var facts MacFacts
	if s.dir == nil {
		return facts, fmt.Errorf("%w: %s was not read from a folder", ErrNoMacFacts, s.Baseline.Name)
	}
	err := readJSON(s.dir, macFile, &facts, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return facts, fmt.Errorf("%w: %s", ErrNoMacFacts, s.Baseline.Name)
	}
	if err != nil {
		return facts, err
	}
	classes, err := s.HostFacts()
	if err != nil {
		return facts, err
	}
	facts.Wheel = classes.Wheel
	if facts.Schema != 1 || facts.Wheel.URL == "" || len(facts.Wheel.SHA256) != 64 {
		err = fmt.Errorf("%s of %s: schema %d, wheel %q; this mpsforge reads schema 1, with a wheel and its SHA-256 in %s", macFile, s.Baseline.Name,
			facts.Schema, facts.Wheel.URL, hostFile)
	}
	return facts, err
}
