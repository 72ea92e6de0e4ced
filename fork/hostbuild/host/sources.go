package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/internal/suggest"
	"mpsforge/patches"
)

// Excluded is a source file of the backend, or a folder of such files, that a host build does not compile.
type Excluded struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Reasons for leaving a source file out, beside those in the baseline's facts.
const (
	// NotNeeded is of a build that was asked for what some scenarios need only.
	NotNeeded = "not among the sources that the scenarios need"
	// NotThere is of a tree that is only a part of PyTorch's.
	NotThere = "not in the checkout"
)

// BackendSources lists the units of the MPS backend in a checkout, by path there: those of the folders in the baseline's facts. absent are
// the optional folders that it does not have: it is a part of PyTorch's tree.
func BackendSources(checkout string, facts patches.HostFacts) (sources, absent []string, err error) {
	for _, folder := range slices.Concat(facts.Sources, facts.OptionalSources) {
		entries, err := os.ReadDir(filepath.Join(checkout, folder))
		if errors.Is(err, fs.ErrNotExist) && slices.Contains(facts.OptionalSources, folder) {
			absent = append(absent, folder)
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w: a folder of the MPS backend's sources: %w; is %s a checkout of the baseline whose host.json names it?",
				builds.ErrSources, err, checkout)
		}
		for _, entry := range entries {
			if extension := filepath.Ext(entry.Name()); extension == ".mm" || extension == ".cpp" {
				sources = append(sources, folder+"/"+entry.Name())
			}
		}
	}
	return sources, absent, nil
}

// backendSources lists the files to compile, and those left out with their reasons, by path in the checkout. Of a folder that
// holds core sources, Core and First leave the others out.
func backendSources(checkout string, facts patches.HostFacts, extent Extent) (compiled []string, excluded []Excluded, err error) {
	needed := facts.Core
	if extent == First {
		needed = facts.First
	}
	coreFolders := map[string]bool{}
	for _, path := range facts.Core {
		coreFolders[filepath.Dir(path)] = true
	}
	sources, absent, err := BackendSources(checkout, facts)
	if err != nil {
		return nil, nil, err
	}
	for _, folder := range absent {
		excluded = append(excluded, Excluded{folder, NotThere})
	}
	for _, path := range sources {
		switch {
		case facts.Excluded[path] != "":
		case extent != Whole && coreFolders[filepath.Dir(path)] && !slices.Contains(needed, path):
			excluded = append(excluded, Excluded{path, NotNeeded})
		default:
			compiled = append(compiled, path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(facts.Excluded)) {
		excluded = append(excluded, Excluded{path, facts.Excluded[path]})
	}
	whole := true
	for _, path := range facts.Core {
		if !slices.Contains(compiled, path) && !slices.Contains(excluded, Excluded{path, NotNeeded}) {
			excluded = append(excluded, Excluded{path, NotThere})
			whole = false
		}
	}
	for path := range facts.Excluded {
		if whole && !builds.Exists(filepath.Join(checkout, path)) {
			return nil, nil, fmt.Errorf("%w: host.json excludes %s, which the checkout does not have%s", builds.ErrSources, path, suggest.Meant(path, compiled))
		}
	}
	if len(compiled) == 0 {
		return nil, nil, fmt.Errorf("%s holds no sources of the MPS backend in %s", checkout, strings.Join(facts.Sources, ", "))
	}
	return compiled, excluded, nil
}
