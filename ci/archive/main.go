// Command archive packs released binaries, each into FILE.tar.gz with what belongs to it: the man page, completion, licences, the list of
// changes, and a list of the modules in it (CycloneDX, read from the binary itself). The same binary gives the same bytes.
//
//	go run ./ci/archive FILE...   from the top of the repository
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"
)

// others are the files beside the binary, by their names in the archive.
var others = [][2]string{
	{"mpsforge.1", "cmd/mpsforge/mpsforge.1"},
	{"completion/mpsforge.bash", "cmd/mpsforge/completion/completion.bash"},
	{"completion/_mpsforge", "cmd/mpsforge/completion/completion.zsh"},
	{"completion/mpsforge.fish", "cmd/mpsforge/completion/completion.fish"},
	{"LICENSE", "LICENSE"},
	{"LICENCES.txt", "cmd/mpsforge/licences.txt"},
	{"LICENSE.patches", "patches/LICENSE"},
	{"CHANGELOG.md", "docs/CHANGELOG.md"},
}

func main() {
	for _, binary := range os.Args[1:] {
		if err := pack(binary); err != nil {
			fmt.Fprintf(os.Stderr, "archive: %s: %v\n", binary, err)
			os.Exit(1)
		}
	}
}

func pack(binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	at, err := commitTime(info)
	if err != nil {
		return err
	}
	list, err := modules(info)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	folder := filepath.Base(binary) + "/"
	add := func(name string, mode int64, content []byte) error {
		if err := archive.WriteHeader(&tar.Header{Name: folder + name, Mode: mode, Size: int64(len(content)), ModTime: at}); err != nil {
			return err
		}
		_, err := archive.Write(content)
		return err
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	if err := add("mpsforge", 0o755, program); err != nil {
		return err
	}
	if err := add("modules.cdx.json", 0o644, list); err != nil {
		return err
	}
	for _, other := range others {
		content, err := os.ReadFile(other[1])
		if err != nil {
			return err
		}
		if err := add(other[0], 0o644, content); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	if err := compressed.Close(); err != nil {
		return err
	}
	return os.WriteFile(binary+".tar.gz", packed.Bytes(), 0o644)
}

// commitTime is that of the commit which the binary was built from.
func commitTime(info *debug.BuildInfo) (time.Time, error) {
	for _, setting := range info.Settings {
		if setting.Key == "vcs.time" {
			return time.Parse(time.RFC3339, setting.Value)
		}
	}
	return time.Time{}, fmt.Errorf("it does not name its commit")
}

// modules lists what is linked into the binary, as CycloneDX 1.5.
func modules(info *debug.BuildInfo) ([]byte, error) {
	type component struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
		PURL    string `json:"purl,omitempty"`
	}
	list := []component{{Type: "library", Name: "std", Version: info.GoVersion, PURL: "pkg:golang/std@" + info.GoVersion}}
	for _, module := range info.Deps {
		list = append(list, component{Type: "library", Name: module.Path, Version: module.Version, PURL: "pkg:golang/" + module.Path + "@" + module.Version})
	}
	return json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata":   map[string]any{"component": component{Type: "application", Name: "mpsforge"}},
		"components": list,
	}, "", "  ")
}
