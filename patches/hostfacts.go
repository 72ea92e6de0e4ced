package patches

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"mpsforge/internal/suggest"
)

// hostFile is the name of HostFacts in a baseline's folder.
const hostFile = "host.json"

// ErrNoHostFacts is returned, wrapped, for a baseline whose folder has none.
var ErrNoHostFacts = errors.New("the baseline has no " + hostFile)

// HostFacts is what depends on a PyTorch version where its MPS sources are compiled on Linux and searched (host.json): all that a
// new version needs is in its folder. Paths are by slashes, seen from the top of the checkout.
type HostFacts struct {
	Schema int `json:"schema"` // always 1
	// Sources are the folders whose .mm and .cpp files are compiled, without those below them.
	Sources []string `json:"sources"`
	// OptionalSources are folders that belong to them, and that a checkout which is a part of PyTorch's tree may lack.
	OptionalSources []string `json:"optional_sources,omitempty"`
	// Core are those that the scenarios of the stage runtime need, by path: builds with a sanitizer can do without the others, and a
	// checkout that lacks one of them is a part of PyTorch's tree.
	Core []string `json:"core"`
	// First are those of Core that the first scenario needs, the one that make demo shows first.
	First []string `json:"first"`
	// Excluded gives, by path, the reason why a file is not compiled.
	Excluded map[string]string `json:"excluded"`
	// Unregistered gives, by operator, the reason why a host build does not register its kernel for MPS although torchgen does.
	Unregistered map[string]string `json:"unregistered"`
	// LayoutHeaders declare the classes that extensions outside PyTorch's tree are built with, as include writes them;
	// LayoutClasses are those classes (series rule 15).
	LayoutHeaders []string `json:"layout_headers"`
	LayoutClasses []string `json:"layout_classes"`
	// LostSymbols gives, by name, the reason why the library does not export a symbol any more that stock exports.
	LostSymbols map[string]string `json:"lost_symbols"`
	// QueueUses are the folders that are searched for encoders and command buffers fetched off their queue.
	QueueUses []string `json:"queue_uses"`
	// Wheel is PyTorch's for macOS on arm64, of the same version: its Metal kernels run in host builds, and the stage mac links with its
	// libraries. Empty: there is none.
	Wheel Wheel `json:"wheel,omitzero"`
	// Libtorch are wheels for Linux of the same version, by Go's name of the processor: the first that can be had is what host builds are
	// made with. Empty: Debian's package is of the version.
	Libtorch map[string][]Wheel `json:"libtorch,omitempty"`
}

// Wheel is a Python wheel.
type Wheel struct {
	URL    string `json:"url"`
	SHA256 string `json:"sha256,omitempty"`
	// Index is a page of links (PEP 503) that has the wheel's checksum. It is asked where SHA256 is not known.
	Index string `json:"index,omitempty"`
	// Unpacked is how many bytes the parts that are used take on disk; 0: not known.
	Unpacked int64 `json:"unpacked,omitempty"`
}

// HostFacts reads those of the series' baseline.
func (s *Series) HostFacts() (HostFacts, error) {
	var facts HostFacts
	if s.dir == nil {
		return facts, fmt.Errorf("%w: %s was not read from a folder", ErrNoHostFacts, s.Baseline.Name)
	}
	err := readJSON(s.dir, hostFile, &facts, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return facts, fmt.Errorf("%w: %s", ErrNoHostFacts, s.Baseline.Name)
	}
	if err == nil && (facts.Schema != 1 || len(facts.Sources) == 0) {
		err = fmt.Errorf("%s of %s: schema %d with %d source folders; this mpsforge reads schema 1, with at least one", hostFile, s.Baseline.Name,
			facts.Schema, len(facts.Sources))
	}
	for _, path := range facts.First {
		if err == nil && !slices.Contains(facts.Core, path) {
			err = fmt.Errorf("%s of %s: first names %s, which is not in core%s", hostFile, s.Baseline.Name, path, suggest.Meant(path, facts.Core))
		}
	}
	return facts, err
}
