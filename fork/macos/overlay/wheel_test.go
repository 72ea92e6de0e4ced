package overlay

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/fork/macos/wheels"
	"mpsforge/internal/require"
	"mpsforge/native"
)

// options are those of a wheel over builds that are not there but for the files that a wheel takes of them.
func options(t *testing.T) Options {
	t.Helper()
	top := t.TempDir()
	require.Files(t, top, map[string]string{
		"stock/libhostmps.so":             "torch's copy",
		"patched/libmpsforge_overlay.so":  "the overlay",
		"checkout/torch/mps/__init__.py":  "patched",
		"checkout/torch/library.py":       "patched",
		"checkout/torch/mps/__init__.pyc": "of Python",
		"torch/version.py":                "from typing import Optional\n__version__ = '2.6.0+debian'\ngit_version = 'Unknown'\ncuda: Optional[str] = None\n",
		"annotated/version.py":            "__version__ = '2.9.1'\ngit_version: str = 'abc'\n",
		"withoutcommit/version.py":        "__version__ = '2.9.1'\n",
	})
	stamp := builds.Stamp{Format: builds.StampFormat, Kind: "overlay", Series: strings.Repeat("5", 64)}
	return Options{
		Patched:      &host.Build{Stamp: stamp, Overlay: &host.Overlay{Library: filepath.Join(top, "patched/libmpsforge_overlay.so"), Stamp: stamp}},
		Stock:        &host.Build{Library: filepath.Join(top, "stock/libhostmps.so")},
		TorchVersion: filepath.Join(top, "torch/version.py"), Checkout: filepath.Join(top, "checkout"), Dir: filepath.Join(top, "dist"),
	}
}

func write(t *testing.T, o Options) (file string, stamp Stamp, files map[string]string) {
	t.Helper()
	file, stamp, err := Write(o)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, wheels.Unpack(file, dir, []string{""}))
	all := require.One(builds.FilesBelow(dir))(t)
	files = map[string]string{}
	for _, path := range all {
		text := require.One(os.ReadFile(path))(t)
		files[strings.TrimPrefix(path, dir+"/")] = string(text)
	}
	return file, stamp, files
}

func TestWheelSaysWhatItIsFor(t *testing.T) {
	file, stamp, files := write(t, options(t))
	version := wheelVersion(stamp, "")
	if base := filepath.Base(file); base != "mpsforge_overlay-"+version+"-py3-none-"+platform()+".whl" ||
		!strings.HasPrefix(version, "2.6.0+mpsforge.555555555555.w") {
		t.Errorf("the wheel is called %s, its version %s", base, version)
	}
	information := "mpsforge_overlay-" + version + ".dist-info/"
	for name, wanted := range map[string]string{
		"METADATA":                  "\nRequires-Dist: torch (==2.6.0+debian)\n",
		"WHEEL":                     "\nTag: py3-none-" + platform() + "\n",
		"entry_points.txt":          "[torch.backends]\nmps_overlay = mpsforge_overlay:load\n",
		"licenses/mpsforge/LICENSE": "mpsforge authors",
		"licenses/pytorch/LICENSE":  "From PyTorch",
	} {
		require.Contains(t, files[information+name], wanted, name)
	}
	var kept Stamp
	if err := json.Unmarshal([]byte(files["mpsforge_overlay/stamp.json"]), &kept); err != nil || kept != stamp {
		t.Errorf("stamp.json has %+v, %v; the stamp is %+v", kept, err, stamp)
	}
	if kept.Torch != "2.6.0+debian" || kept.Git != "Unknown" || kept.StockSHA256 != builds.Digest("torch's copy") ||
		kept.LibrarySHA256 != builds.Digest("the overlay") {
		t.Errorf("the stamp is %+v", kept)
	}
}

func TestWheelHasThePackageAndTheCheckoutsModules(t *testing.T) {
	_, _, files := write(t, options(t))
	for _, name := range []string{"__init__.py", "__main__.py", "libmpsforge_overlay.so", "torch/mps/__init__.py", "torch/library.py"} {
		if files["mpsforge_overlay/"+name] == "" {
			t.Errorf("no %s", name)
		}
	}
	for name := range files {
		if strings.HasSuffix(name, ".pyc") {
			t.Errorf("%s is Python's own", name)
		}
	}
}

func TestRecordNamesEveryFile(t *testing.T) {
	_, _, files := write(t, options(t))
	record := ""
	for name := range files {
		if strings.HasSuffix(name, "/RECORD") {
			record = name
		}
	}
	rows := require.One(csv.NewReader(strings.NewReader(files[record])).ReadAll())(t)
	for _, row := range rows {
		text, found := files[row[0]]
		sum := sha256.Sum256([]byte(text))
		wanted := []string{row[0], "sha256=" + base64.RawURLEncoding.EncodeToString(sum[:]), fmt.Sprint(len(text))}
		if row[0] == record {
			wanted = []string{record, "", ""}
		}
		if !found || !slices.Equal(row, wanted) {
			t.Errorf("RECORD has %q, expected %q", row, wanted)
		}
		delete(files, row[0])
	}
	for name := range files {
		t.Errorf("RECORD does not name %s", name)
	}
}

func TestWheelIsTheSameTwice(t *testing.T) {
	o := options(t)
	var made [2][]byte
	for i := range made {
		file, _, err := Write(o)
		require.NoError(t, err)
		made[i] = require.One(os.ReadFile(file))(t)
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("two wheels of one build differ")
	}
}

// pip keeps what it has installed of a version.
func TestOtherContentIsAnotherVersion(t *testing.T) {
	of := func(change func(*Stamp)) string {
		stamp := Stamp{Torch: "2.9.1", Series: strings.Repeat("5", 64), StockSHA256: "torch's", LibrarySHA256: "library", ModulesSHA256: "modules"}
		change(&stamp)
		return wheelVersion(stamp, "fixes")
	}
	same := of(func(*Stamp) {})
	if !strings.HasPrefix(same, "2.9.1+mpsforge.fixes.555555555555.w") {
		t.Error(same)
	}
	for name, change := range map[string]func(*Stamp){
		"the library gone over": func(s *Stamp) { s.StockSHA256 = "another" },
		"the overlay's library": func(s *Stamp) { s.LibrarySHA256 = "another" },
		"modules":               func(s *Stamp) { s.ModulesSHA256 = "another" },
	} {
		if of(change) == same {
			t.Errorf("%s is another, the version the same", name)
		}
	}
}

// A pattern names one wheel for a purpose, however often it was made; one of a part, or for another torch, is another one's.
func TestWheelReplacesTheOneBefore(t *testing.T) {
	o := options(t)
	first, _, err := Write(o)
	require.NoError(t, err)
	o.Part = "fixes"
	ofPart, _, err := Write(o)
	require.NoError(t, err)
	o.Part = ""
	require.NoError(t, os.WriteFile(o.Patched.Overlay.Library, []byte("corrected"), 0o644))
	second, _, err := Write(o)
	require.NoError(t, err)
	for file, wanted := range map[string]bool{first: false, ofPart: true, second: true} {
		require.Equal(t, builds.Exists(file), wanted, filepath.Base(file), "is there")
	}
}

func TestTorchOfUnknownCommitIsRefused(t *testing.T) {
	o := options(t)
	o.TorchVersion = filepath.Join(filepath.Dir(o.Checkout), "withoutcommit/version.py")
	_, _, err := Write(o)
	require.Says(t, err, "git_version", "a torch that does not say its commit")
}

func TestVersionMayHaveItsType(t *testing.T) {
	o := options(t)
	o.TorchVersion = filepath.Join(filepath.Dir(o.Checkout), "annotated/version.py")
	if _, stamp, err := Write(o); err != nil || stamp.Git != "abc" || stamp.Torch != "2.9.1" {
		t.Errorf("%+v, %v", stamp, err)
	}
}

// The package's licence is the repository's.
func TestLicenceIsOurs(t *testing.T) {
	ours := require.One(os.ReadFile("../../../LICENSE"))(t)
	packed, err := native.Overlay.ReadFile("overlay/LICENSE")
	if err != nil || !bytes.Equal(ours, packed) {
		t.Errorf("native/overlay/LICENSE is not LICENSE: %v", err)
	}
}

func TestStatusSaysWhy(t *testing.T) {
	s, err := ReadStatus([]byte(`{"active": false, "reason": "", "foreign": ["hooks: /torch"], "left": ["a: b -> c"]}`))
	if err != nil || s.Active || s.Why() != "hooks: /torch, a: b -> c" {
		t.Errorf("%+v, %v: %s", s, err, s.Why())
	}
}
