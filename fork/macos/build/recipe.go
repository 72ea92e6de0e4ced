package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"mpsforge/fork/builds"
)

// Recipe is what a checkout itself says of how it is built.
type Recipe struct {
	Checkout string `json:"checkout"`
	Version  string `json:"version"` // of PyTorch, as in version.txt
	// The least versions that its own files ask for; empty where they ask for none.
	CMake  string `json:"cmake"`
	Python string `json:"python"`
	SDK    string `json:"sdk"`
	// Requirements are what pip has to install before, and RequirementsFile the file that lists them, from the checkout's
	// top: requirements-build.txt (2.9) or pyproject.toml (2.6).
	Requirements     []string `json:"requirements"`
	RequirementsFile string   `json:"requirements_file"`
	// Missing are the submodules that are not there; Bare says that the sources come without any, as Debian's do.
	Missing []string `json:"missing"`
	Bare    bool     `json:"bare,omitempty"`
}

// These lines are in CMakeLists.txt and setup.py of 2.6.0 and of 2.9; one that a later version words otherwise sets no
// bound, and cmake or setup.py itself then refuses.
var (
	cmakeMinimum  = regexp.MustCompile(`(?m)^cmake_minimum_required\(VERSION ([0-9.]+)`)
	pythonMinimum = regexp.MustCompile(`(?m)^python_min_version = \((\d+), (\d+), (\d+)\)`)
	sdkMinimum    = regexp.MustCompile(`_macosx_sdk_version VERSION_GREATER_EQUAL ([0-9.]+)`)
	leastPython   = regexp.MustCompile(`>=([0-9.]+)`)
)

// ReadRecipe reads the recipe of a checkout.
func ReadRecipe(checkout string) (Recipe, error) {
	r := Recipe{Checkout: checkout}
	texts := map[string]string{}
	for _, name := range []string{"version.txt", "setup.py", "CMakeLists.txt", "pyproject.toml", "requirements-build.txt", ".gitmodules"} {
		text, err := builds.ReadText(filepath.Join(checkout, name))
		if err != nil {
			return r, fmt.Errorf("read the checkout's build files: %w", err)
		}
		texts[name] = text
	}
	for _, name := range []string{"version.txt", "setup.py", "CMakeLists.txt"} {
		if texts[name] == "" {
			return r, fmt.Errorf("%w: %s has no %s, so it is not a complete PyTorch checkout; mpsforge fetch gets one", builds.ErrEnvironment, checkout, name)
		}
	}
	r.Version = versionNumber.FindString(texts["version.txt"])
	first := func(pattern *regexp.Regexp, text string) string {
		if match := pattern.FindStringSubmatch(text); match != nil {
			return strings.Join(match[1:], ".")
		}
		return ""
	}
	r.CMake, r.SDK = first(cmakeMinimum, texts["CMakeLists.txt"]), first(sdkMinimum, texts["CMakeLists.txt"])
	var project struct {
		Project struct {
			Python string `toml:"requires-python"`
		} `toml:"project"`
		Build struct {
			Requires []string `toml:"requires"`
		} `toml:"build-system"`
	}
	if err := toml.Unmarshal([]byte(texts["pyproject.toml"]), &project); err != nil {
		return r, fmt.Errorf("read the checkout's pyproject.toml: %w", err)
	}
	if r.Python = first(pythonMinimum, texts["setup.py"]); r.Python == "" {
		r.Python = first(leastPython, project.Project.Python)
	}
	if text := texts["requirements-build.txt"]; text != "" {
		r.RequirementsFile = "requirements-build.txt"
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(line, "#")
			if line = strings.TrimSpace(line); line != "" {
				r.Requirements = append(r.Requirements, line)
			}
		}
	} else if len(project.Build.Requires) > 0 {
		r.RequirementsFile, r.Requirements = "pyproject.toml", project.Build.Requires
	}
	modules := texts[".gitmodules"]
	if r.Bare = modules == ""; r.Bare {
		// What setup.py looks for then.
		for _, name := range []string{"gloo", "cpuinfo", "onnx", "fbgemm", "cutlass"} {
			modules += "path = third_party/" + name + "\n"
		}
	}
	var err error
	r.Missing, err = missingSubmodules(checkout, modules)
	return r, err
}

// missingSubmodules are those of .gitmodules whose folder is empty or not there. What setup.py looks for is any of a few
// files; a folder with something in it is left for it to judge.
func missingSubmodules(checkout, modules string) ([]string, error) {
	var missing []string
	for line := range strings.Lines(modules) {
		name, path, found := strings.Cut(strings.TrimSpace(line), "=")
		if !found || strings.TrimSpace(name) != "path" {
			continue
		}
		path = strings.TrimSpace(path)
		entries, err := os.ReadDir(filepath.Join(checkout, path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if len(entries) == 0 {
			missing = append(missing, path)
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// requires reports whether the requirements bring a package.
func (r Recipe) requires(name string) bool {
	return slices.ContainsFunc(r.Requirements, func(line string) bool {
		end := strings.IndexFunc(line, func(c rune) bool { return strings.ContainsRune("<>=!~;[ ", c) })
		return line == name || end > 0 && line[:end] == name
	})
}
