package pytests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mpsforge/fork/builds"
	"mpsforge/internal/run"
	"mpsforge/reports"
	"mpsforge/validate/stage"
)

// ErrOtherTorch is returned, wrapped, when a Python loads another torch than the one to be tested. Whole weeks of the
// field reports' passes were passes of a stock torch, through a broken editable install.
var ErrOtherTorch = errors.New("this is not the torch to be tested")

// ErrNoTorch is returned, wrapped, for a Python that has no torch at all.
var ErrNoTorch = errors.New("this Python has no torch")

// CheckTorch finds out, in a moment, whether a Python has a torch. Which one it is, and whether it can be loaded, shows when it
// is used. settings are put into its environment.
func CheckTorch(ctx context.Context, interpreter string, settings ...string) error {
	// The current folder does not count: it may be a checkout, whose torch is not the built one.
	const program = "import sys; sys.path = [p for p in sys.path if p]\nimport importlib.util\nif importlib.util.find_spec('torch') is None: print('no torch')"
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	found, err := run.Command{Name: interpreter, Args: []string{"-c", program}, Env: run.Environment(settings, nil)}.Run(limited)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil || !strings.HasSuffix(strings.TrimSpace(string(found.Stdout)), "no torch"): // what cannot answer is judged where it is used
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNoTorch, interpreter)
}

// Identity is what a process reports about the torch that it loaded (validate/judge/pytests/python/identity.py).
type Identity struct {
	Torch      string `json:"torch"`
	Git        string `json:"git"`
	Python     string `json:"python"`
	Executable string `json:"executable"`
	Prefix     string `json:"prefix"`
	Package    string `json:"package"`
	Library    string `json:"library"` // that bears the stamp, as the loader names it; else the one with the operators
	Stamp      string `json:"stamp"`   // read from the loaded library
	Size       int64  `json:"size"`
	Modified   int64  `json:"modified"`
	Digest     string `json:"digest"` // SHA-256 of the library's file
	Editable   string `json:"editable"`
}

// wantedTorch says which torch a process must have loaded.
type wantedTorch struct {
	any     bool   // only the harness is tried
	version string // 2.9.1
	stamp   string // the whole stamp, where the build is known
	library string // the path, where it is known
	series  string // else the digest that the stamp must name
	stock   bool   // else there must be no stamp of patches
	file    *Identity
}

// mismatch says how what was loaded differs from what is wanted, and what is the likely reason.
func (w wantedTorch) mismatch(found Identity) error {
	expected, actual := w.difference(found)
	if expected == "" {
		return nil
	}
	return fmt.Errorf("%w: %s loaded %s (torch %s, package %s): expected %s, found %s; likely reason: %s", ErrOtherTorch, found.Executable,
		found.Library, found.Torch, found.Package,
		expected, actual, w.reason(found))
}

func (w wantedTorch) difference(found Identity) (expected, actual string) {
	if w.file != nil && (found.Library != w.file.Library || found.Size != w.file.Size || found.Modified != w.file.Modified || found.Stamp != w.file.Stamp) {
		return fmt.Sprintf("the file %s as it was at the start of this stage", w.file.Library), "another one, or a changed one"
	}
	if w.any {
		return "", ""
	}
	if version, _, _ := strings.Cut(found.Torch, "+"); !strings.HasPrefix(version, w.version) {
		return "torch " + w.version, "torch " + found.Torch
	}
	if w.stamp != "" {
		if found.Stamp != w.stamp {
			return "stamp " + w.stamp, orNone(found.Stamp)
		}
		if sameFile(found.Library, w.library) {
			return "", ""
		}
		return "library " + w.library, found.Library
	}
	if w.stock && found.Stamp == "" {
		return "", ""
	}
	if found.Stamp == "" {
		return "a stamp of mpsforge build with series " + w.series, "no stamp"
	}
	stamp, err := builds.ParseStamp(found.Stamp)
	switch {
	case err != nil:
		return "a stamp of mpsforge build", err.Error()
	case w.stock && len(stamp.Patches) > 0:
		return "an unpatched torch", "one with the patches " + strings.Join(stamp.Patches, ", ")
	case !w.stock && stamp.Series != w.series:
		return "series " + w.series, "series " + orNone(stamp.Series)
	}
	return "", ""
}

func (w wantedTorch) reason(found Identity) string {
	for _, folder := range filepath.SplitList(os.Getenv("PYTHONPATH")) { // which the process inherits
		if folder != "" && strings.HasPrefix(found.Package, filepath.Clean(folder)+string(filepath.Separator)) {
			return fmt.Sprintf("PYTHONPATH names %s, whose torch comes first; unset it", folder)
		}
	}
	switch {
	case found.Editable != "":
		return fmt.Sprintf("torch is an editable install (%s); install the built wheel instead: pip install --force-reinstall WHEEL", found.Editable)
	case w.stock:
		return "the Python given with --stock belongs to the patched environment"
	case found.Stamp != "":
		return "the library was built from another state of checkout or series; build again: mpsforge build"
	}
	return fmt.Sprintf("%s has a torch of its own; name the Python of the environment that the built wheel was installed into with --python", found.Prefix)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func sameFile(a, b string) bool {
	first, errA := filepath.EvalSymlinks(a)
	second, errB := filepath.EvalSymlinks(b)
	return errA == nil && errB == nil && first == second
}

// prove asks a fresh process which torch it loads, compares that with what is wanted, and has every later process
// compared with it.
func (s *Subject) prove(ctx context.Context, report *reports.Stage) error {
	command := run.Command{Name: s.interpreter, Args: []string{filepath.Join(s.scripts, "child.py"), "--identity", "--events", "3"}}
	_, watched, err := s.start(ctx, command, nil, s.limits)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		if missing := CheckTorch(ctx, s.interpreter, s.environment...); missing != nil {
			return stage.Skipf("%v; name one with --python", missing)
		}
		return fmt.Errorf("ask %s for its torch: %w", s.interpreter, err)
	}
	found := watched.torch
	if watched.garbage != "" || found.Library == "" {
		return fmt.Errorf("ask %s for its torch: it printed no answer; %s", s.interpreter, orNone(watched.garbage))
	}
	if err := s.wanted.mismatch(found); err != nil {
		return err
	}
	s.wanted.file = &found
	fact := func(name, value string) {
		report.Facts = append(report.Facts, reports.Fact{Name: s.Name + ": " + name, Value: value})
	}
	fact("torch", fmt.Sprintf("%s, git %s, Python %s", found.Torch, found.Git, found.Python))
	fact("loaded library", found.Library)
	fact("SHA-256 of its file", found.Digest)
	if found.Stamp == "" {
		fact("stamp", "none")
		return nil
	}
	stamp, err := builds.ParseStamp(found.Stamp)
	if err != nil {
		return err
	}
	fact("stamp", fmt.Sprintf("tree %s, series %s, patches: %d", stamp.Tree, orNone(stamp.Series), len(stamp.Patches)))
	return nil
}
