package overlay

import (
	"cmp"
	"debug/elf"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/macos/wheels"
)

const trapsModule = "mpsforge_traps"

//go:embed traps/mpsforge_traps.py
var trapsSource []byte

// Trial is a Python over a stock host build, with an overlay on top and every function of torch's copy overwritten by a trap, which ends
// the process that reaches it.
type Trial struct {
	Python  string   // a script that starts it
	Library string   // the overlay's
	Traps   int      // functions that are overwritten
	LeftOut []string // functions that are not: mpsforge's own, which tests of a host build ask
}

// Install unpacks a wheel beside the traps, into a folder below dir that is named after what is in it.
func Install(wheel string, stamp Stamp, stock *host.Build, dir string) (Trial, error) {
	functions, leftOut, err := textFunctions(stock.Library)
	if err != nil {
		return Trial{}, err
	}
	table, err := json.Marshal(map[string]any{"library": stock.Library, "functions": functions})
	if err != nil {
		return Trial{}, err
	}
	key, err := builds.FilesDigest([]string{string(table), string(trapsSource), stock.Python}, wheel)
	if err != nil {
		return Trial{}, err
	}
	if dir, err = filepath.Abs(filepath.Join(dir, key[:16])); err != nil {
		return Trial{}, err
	}
	site, traps := filepath.Join(dir, "site"), filepath.Join(dir, "traps")
	trial := Trial{Python: filepath.Join(dir, "python3"), Library: filepath.Join(site, Module, stamp.Library), Traps: len(functions), LeftOut: leftOut}
	if builds.Exists(dir) {
		return trial, nil
	}
	information := "traps/" + trapsModule + "-1.dist-info/"
	files := map[string]string{
		"traps/" + trapsModule + ".py":   string(trapsSource),
		"traps/functions.json":           string(table),
		information + "METADATA":         "Metadata-Version: 2.1\nName: " + trapsModule + "\nVersion: 1\n",
		information + "entry_points.txt": "[torch.backends]\nmps_traps = " + trapsModule + ":load\n",
		"python3": fmt.Sprintf("#!/bin/sh\nexport PYTHONPATH='%s:%s'\"${PYTHONPATH:+:$PYTHONPATH}\"\nexec '%s' \"$@\"\n", site,
			traps, stock.Python),
	}
	return trial, builds.MakeFolder(dir, func(made string) error {
		if err := wheels.Unpack(wheel, filepath.Join(made, "site"), []string{""}); err != nil {
			return err
		}
		for name, text := range files {
			path := filepath.Join(made, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
				return err
			}
		}
		return nil
	})
}

// textFunctions are where a library's functions are, in its file's order, and how large each is.
func textFunctions(library string) (functions [][2]uint64, leftOut []string, err error) {
	object, err := elf.Open(library)
	if err != nil {
		return nil, nil, fmt.Errorf("functions of torch's copy: %w", err)
	}
	defer object.Close()
	symbols, err := object.Symbols()
	if err != nil {
		return nil, nil, fmt.Errorf("functions of torch's copy, %s: %w", library, err)
	}
	sizes := map[uint64]uint64{}
	for _, symbol := range symbols {
		named := int(symbol.Section) < len(object.Sections) && object.Sections[symbol.Section].Name == ".text"
		switch {
		case elf.ST_TYPE(symbol.Info) != elf.STT_FUNC || !named || symbol.Size == 0:
		case strings.HasPrefix(symbol.Name, "mpsforge_"):
			leftOut = append(leftOut, symbol.Name)
		default:
			sizes[symbol.Value] = max(sizes[symbol.Value], symbol.Size)
		}
	}
	for at, size := range sizes {
		functions = append(functions, [2]uint64{at, size})
	}
	slices.SortFunc(functions, func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) })
	slices.Sort(leftOut)
	return functions, leftOut, nil
}
