package overlay

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/atomicfile"
	"mpsforge/native"
	"mpsforge/patches"
)

// Module is the Python package's name.
const Module = "mpsforge_overlay"

// Stamp is the wheel's stamp.json: from what the library was built, and the torch that it goes over. The Python side holds the torch that
// imports it against it (native/overlay/python/mpsforge_overlay/_loading.py).
type Stamp struct {
	Torch         string `json:"torch"`        // torch.__version__
	Git           string `json:"git"`          // torch.version.git_version
	Stock         string `json:"stock"`        // file name of the library with torch's copy of the backend
	StockSHA256   string `json:"stock_sha256"` // several, with spaces between them, where wheels of one torch differ in what is no code
	Library       string `json:"library"`
	LibrarySHA256 string `json:"library_sha256"`
	ModulesSHA256 string `json:"modules_sha256"` // of the lines "SHA-256, name" of the package's Python files
	Series        string `json:"series"`         // digest
	Build         string `json:"stamp"`          // builds.Stamp's text, which the library holds, too
}

// Options say what goes into a wheel over a host build.
type Options struct {
	Patched *host.Build // with an overlay
	Stock   *host.Build // what the wheel goes over
	// TorchVersion is the file torch/version.py of that torch.
	TorchVersion string
	Checkout     string // with the package torch.mps
	Part         string // of the series that it has; empty for the whole
	Dir          string // for the wheel
}

var versionLine = regexp.MustCompile(`(?m)^(__version__|git_version)\s*(?::[^=]*)?=\s*'([^']*)'`)

// Write makes the wheel and gives its path. The same build gives the same bytes.
func Write(o Options) (file string, stamp Stamp, err error) {
	text, err := os.ReadFile(o.TorchVersion)
	if err != nil {
		return "", stamp, fmt.Errorf("the torch to go over: %w", err)
	}
	for _, match := range versionLine.FindAllSubmatch(text, -1) {
		if string(match[1]) == "git_version" {
			stamp.Git = string(match[2])
		} else {
			stamp.Torch = string(match[2])
		}
	}
	if stamp.Torch == "" || stamp.Git == "" {
		return "", stamp, fmt.Errorf("%s names no __version__ and git_version", o.TorchVersion)
	}
	if stamp.StockSHA256, err = builds.FileSHA256(o.Stock.Library); err != nil {
		return "", stamp, fmt.Errorf("the library to go over: %w", err)
	}
	stamp.Stock = filepath.Base(o.Stock.Library)
	return contents{stamp, o.Patched.Overlay.Stamp, o.Patched.Overlay.Library, platform(), "", o.Checkout, o.Part}.write(o.Dir)
}

// contents are what goes into a wheel.
type contents struct {
	torch    Stamp // as far as it says what the wheel goes over
	build    builds.Stamp
	library  string
	platform string // as in a wheel's name
	note     string // of its description
	checkout string
	part     string // as Options has it
}

// write makes the wheel in a folder.
func (c contents) write(dir string) (file string, stamp Stamp, err error) {
	stamp = c.torch
	if stamp.Build, err = c.build.Text(); err != nil {
		return "", stamp, err
	}
	library, err := os.ReadFile(c.library)
	if err != nil {
		return "", stamp, fmt.Errorf("the overlay's library: %w", err)
	}
	stamp.Library, stamp.LibrarySHA256, stamp.Series = filepath.Base(c.library), builds.Digest(string(library)), c.build.Series
	files := map[string][]byte{}
	python, err := fs.Sub(native.Overlay, "overlay/python/"+Module)
	if err != nil {
		return "", stamp, err
	}
	if err := addTree(files, Module, python); err != nil {
		return "", stamp, err
	}
	if err := addTree(files, Module+"/"+builds.PythonPackage, os.DirFS(filepath.Join(c.checkout, builds.PythonPackage))); err != nil {
		return "", stamp, err
	}
	if files[Module+"/"+builds.PythonLibrary], err = os.ReadFile(filepath.Join(c.checkout, builds.PythonLibrary)); err != nil {
		return "", stamp, err
	}
	stamp.ModulesSHA256 = modulesDigest(files)
	files[Module+"/"+stamp.Library] = library
	if files[Module+"/stamp.json"], err = json.MarshalIndent(stamp, "", " "); err != nil {
		return "", stamp, err
	}
	version := wheelVersion(stamp, c.part)
	information := fmt.Sprintf("%s-%s.dist-info", Module, version)
	if files[information+"/licenses/mpsforge/LICENSE"], err = native.Overlay.ReadFile("overlay/LICENSE"); err != nil {
		return "", stamp, err
	}
	if files[information+"/licenses/pytorch/LICENSE"], err = fs.ReadFile(patches.Embedded(), "LICENSE"); err != nil {
		return "", stamp, err
	}
	tag := "py3-none-" + c.platform
	files[information+"/METADATA"] = fmt.Appendf(nil, `Metadata-Version: 2.1
Name: mpsforge-overlay
Version: %s
Summary: The patched MPS backend over an installed torch %s
License: BSD-3-Clause
Requires-Python: >=3.9
Requires-Dist: torch (==%s)

%sSeries %s of mpsforge: %s. "python -m %s" says which copy of the backend answers; %s=0 in the environment leaves torch's own.
`, version, stamp.Torch, stamp.Torch, c.note, stamp.Series, strings.Join(c.build.Patches, ", "), Module, "MPSFORGE_OVERLAY")
	files[information+"/WHEEL"] = fmt.Appendf(nil, "Wheel-Version: 1.0\nGenerator: mpsforge\nRoot-Is-Purelib: false\nTag: %s\n", tag)
	files[information+"/entry_points.txt"] = fmt.Appendf(nil, "[torch.backends]\nmps_overlay = %s:load\n", Module)
	files[information+"/RECORD"] = record(files, information+"/RECORD")

	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", stamp, err
	}
	file = filepath.Join(dir, fmt.Sprintf("%s-%s-%s.whl", Module, version, tag))
	packed, err := pack(files)
	if err != nil {
		return "", stamp, err
	}
	if err := atomicfile.WriteBytes(file, 0o644, packed); err != nil {
		return "", stamp, err
	}
	return file, stamp, dropReplaced(file)
}

// content is what the names of two wheels for one purpose differ in.
var content = regexp.MustCompile(`(?:[0-9a-f]{12}|part)\.w[0-9a-f]{8}-`)

// dropReplaced removes earlier wheels of the same part, for the same torch and platform, from the wheel's folder: of several that a pattern
// names pip takes none.
func dropReplaced(file string) error {
	base := filepath.Base(file)
	entries, err := os.ReadDir(filepath.Dir(file))
	for _, entry := range entries {
		if name := entry.Name(); name != base && content.MatchString(name) && content.ReplaceAllString(name, "") == content.ReplaceAllString(base, "") {
			err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(file), name)))
		}
	}
	return err
}

// wheelVersion is the torch's version; the local part, so that it sorts with torch's, is the series, or a part of it and its name, and the
// content: pip takes a wheel of the version that it has installed for the same one, and keeps the old files. The letter is there as a local
// version of digits alone is a number.
func wheelVersion(s Stamp, part string) string {
	public, _, _ := strings.Cut(s.Torch, "+")
	series := "part"
	if s.Series != "" {
		series = s.Series[:12]
	}
	if part != "" {
		series = part + "." + series
	}
	return public + "+mpsforge." + series + ".w" + builds.Digest(s.StockSHA256 + s.LibrarySHA256 + s.ModulesSHA256)[:8]
}

func platform() string {
	return runtime.GOOS + "_" + map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
}

// modulesDigest is Stamp.ModulesSHA256 of a package that is its Python files alone.
func modulesDigest(modules map[string][]byte) string {
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		fmt.Fprintf(&lines, "%s %s\n", builds.Digest(string(modules[name])), strings.TrimPrefix(name, Module+"/"))
	}
	return builds.Digest(lines.String())
}

// addTree adds the modules of a package, but not what Python leaves there.
func addTree(files map[string][]byte, to string, from fs.FS) error {
	return fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".py" {
			return err
		}
		files[path.Join(to, name)], err = fs.ReadFile(from, name)
		return err
	})
}

// record is the file RECORD, which names itself without a digest.
func record(files map[string][]byte, own string) []byte {
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		sum := sha256.Sum256(files[name])
		fmt.Fprintf(&text, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(files[name]))
	}
	fmt.Fprintf(&text, "%s,,\n", own)
	return text.Bytes()
}

// pack writes files in order, all with the first time that the format has. The folder .dist-info comes last, as the format asks for.
func pack(files map[string][]byte) ([]byte, error) {
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	names := slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		if late := strings.Contains(a, ".dist-info/"); late != strings.Contains(b, ".dist-info/") {
			return map[bool]int{true: 1, false: -1}[late]
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		header.SetMode(0o644)
		if extension := path.Ext(name); extension == ".so" || extension == ".dylib" {
			header.SetMode(0o755)
		}
		to, err := archive.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}
