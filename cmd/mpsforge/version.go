package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"mpsforge/patches"
)

// licences holds mpsforge's own licence and those of the modules linked in; `make licences` writes it.
//
//go:embed licences.txt
var licences string

// release is set by the linker (-X main.release=v1.2.3) in released binaries.
var release = "development"

func version() string { return release }

// commit is the revision that the binary was built from, if the build recorded it.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	revision, modified := "", ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			revision = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			modified = "+changes"
		}
	}
	return revision + modified
}

// withoutCgo says what this binary lacks, if it was built so.
func withoutCgo() string {
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "0"}) {
		return "built without cgo: the stages reference and conformance and mpsforge metal run are not in it"
	}
	return ""
}

func versionCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "version", usage: "versions and licences",
		about: `  mpsforge version
  mpsforge version --licences             the full texts`,
		flags: []cli.Flag{&cli.BoolFlag{Name: "licences", Aliases: []string{"licenses"}, Usage: "print the licence texts"}},
		action: func(_ context.Context, c call) (result, error) {
			upstream, err := fs.ReadFile(patches.Embedded(), "LICENSE")
			if err != nil {
				return result{}, fmt.Errorf("read the licence of the patches: %w", err)
			}
			type identity struct {
				Version  string `json:"version"`
				Commit   string `json:"commit,omitempty"`
				Go       string `json:"go"`
				Lacks    string `json:"lacks,omitempty"`
				Licences string `json:"licences,omitempty"`
			}
			found := identity{Version: version(), Commit: commit(), Go: runtime.Version(), Lacks: withoutCgo()}
			if c.Bool("licences") {
				found.Licences = licences + "\n==== patches: PyTorch\n\n" + string(upstream)
			}
			return result{value: found, text: func(w io.Writer) {
				if found.Licences != "" {
					fmt.Fprint(w, found.Licences)
					return
				}
				fmt.Fprintf(w, "%s\n%s %s/%s\n", strings.TrimSpace("mpsforge "+found.Version+" "+found.Commit), found.Go, runtime.GOOS, runtime.GOARCH)
				if found.Lacks != "" {
					fmt.Fprintln(w, found.Lacks)
				}
			}}, nil
		},
	})
}
