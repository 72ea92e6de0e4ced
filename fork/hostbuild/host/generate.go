package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
)

// sources are the files with the registration.
func (g *generated) sources() (paths []string, err error) {
	for _, pattern := range registrationFiles {
		found, err := filepath.Glob(filepath.Join(g.registration, pattern))
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("torchgen wrote none of %s into %s", strings.Join(registrationFiles, ", "), g.registration)
	}
	return paths, nil
}

// generated is what torchgen made for the MPS dispatch key.
type generated struct {
	include      string // folder to search for headers
	registration string // folder with what registrationFiles match
}

// registrationFiles match what torchgen writes for each of the keys whose kernels are MPS's; versions have one to three of them.
var registrationFiles = []string{"RegisterMPS*.cpp", "RegisterSparseMPS*.cpp", "RegisterSparseCsrMPS*.cpp"}

// isRegistration reports whether a file's name is one of those.
func isRegistration(name string) bool {
	return slices.ContainsFunc(registrationFiles, func(pattern string) bool {
		matched, err := filepath.Match(pattern, name)
		return matched && err == nil
	})
}

// Registration gives the sources that torchgen makes of a checkout's operators for the keys of MPS, as they are: of a library that has all
// kernels nothing is left out.
func Registration(ctx context.Context, root *Root, checkout, cache string, sink events.Sink) (paths []string, err error) {
	torch := &Torch{pythonPath: checkout}
	if !root.bare {
		if torch, err = OpenTorch(ctx, root, "", nil, cache, sink); err != nil { // for what torchgen imports
			return nil, err
		}
	}
	made, err := generate(ctx, root, torch, checkout, cache, events.OrDiscard(sink))
	if err != nil {
		return nil, err
	}
	return made.sources()
}

// generate runs PyTorch's own torchgen for the keys of MPS: a libtorch built without MPS lacks those headers and the
// registration. The operators, the templates and torchgen itself come from the checkout where it holds them, as a patch may
// change them, else from the copies of the libtorch. The result is kept in the cache under the digest of all that goes in, and its
// headers under their own: a series that changes the registration alone has the headers of the stock checkout, at the same path, so
// that what sees nothing else of the checkout is compiled once for both.
func generate(ctx context.Context, root *Root, torch *Torch, checkout, cache string, sink events.Sink) (*generated, error) {
	source := filepath.Join(checkout, "aten/src/ATen")
	if !builds.Exists(filepath.Join(source, "native/native_functions.yaml")) {
		source = filepath.Join(torch.pythonPath, "torchgen/packaged/ATen")
	}
	generator := filepath.Join(checkout, "torchgen")
	if !builds.Exists(filepath.Join(generator, "gen.py")) {
		generator = filepath.Join(torch.pythonPath, "torchgen")
	}
	digest := sha256.New()
	for _, folder := range []string{filepath.Join(source, "native/native_functions.yaml"), filepath.Join(source, "native/tags.yaml"),
		filepath.Join(source, "templates"), generator} {
		files, err := builds.FilesBelow(folder)
		if err == nil {
			files = slices.DeleteFunc(files, func(path string) bool { return strings.HasSuffix(path, ".pyc") })
			err = builds.HashFiles(digest, filepath.Dir(folder), files)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: torchgen's input: %w", builds.ErrEnvironment, err)
		}
	}
	dir := filepath.Join(cache, "generated", hex.EncodeToString(digest.Sum(nil))[:24])
	result, headers := &generated{registration: filepath.Join(dir, "ATen")}, filepath.Join(dir, "headers") // the latter is a link
	var err error
	if result.include, err = filepath.EvalSymlinks(headers); err == nil {
		return result, nil
	}
	if err := os.RemoveAll(dir); err != nil { // its headers were cleaned away
		return nil, err
	}
	finish := events.Step(sink, "generate")
	defer finish(events.Failed, "")
	err = builds.MakeFolder(dir, func(made string) error {
		scratch := filepath.Dir(made)
		// Python looks for modules first where it runs.
		if err := os.Symlink(generator, filepath.Join(scratch, "torchgen")); err != nil {
			return err
		}
		// Besides what goes into the folder that it is given, torchgen writes torch/csrc/inductor/... where it runs.
		command := run.Command{Name: root.Tool("python3"), Dir: scratch,
			Args: []string{"-m", "torchgen.gen", "--source-path", source, "--install-dir", filepath.Join(made, "ATen"),
				"--mps", "--per-operator-headers", "--backend-whitelist", "MPS", "SparseMPS", "SparseCsrMPS", "--generate", "headers", "sources"},
			Env: run.Environment([]string{"PYTHONPATH=" + torch.pythonPath}, nil)}
		if _, err := command.Run(ctx); err != nil {
			return fmt.Errorf("torchgen: %w", err)
		}
		// Only the registration is compiled; the other sources are libtorch's own. What torchgen writes in shards it writes
		// once more as a whole.
		sources, err := filepath.Glob(filepath.Join(made, "ATen", "*.cpp"))
		if err != nil {
			return err
		}
		for _, path := range sources {
			if base := filepath.Base(path); !isRegistration(base) || strings.HasSuffix(base, "Everything.cpp") {
				if err := os.Remove(path); err != nil {
					return err
				}
			}
		}
		name, err := keepHeaders(made, filepath.Dir(dir))
		if err != nil {
			return err
		}
		return os.Symlink(filepath.Join("..", name), filepath.Join(made, "headers"))
	})
	if err == nil {
		result.include, err = filepath.EvalSymlinks(headers)
	}
	if err != nil {
		return nil, err
	}
	finish(events.OK, "")
	return result, nil
}

// keepHeaders moves the headers below made into a folder in kept whose name is their digest, and gives that name.
func keepHeaders(made, kept string) (name string, err error) {
	files, err := builds.FilesBelow(made)
	if err != nil {
		return "", err
	}
	files = slices.DeleteFunc(files, func(path string) bool { return filepath.Ext(path) != ".h" })
	digest := sha256.New()
	if err := builds.HashFiles(digest, made, files); err != nil {
		return "", err
	}
	name = "headers-" + hex.EncodeToString(digest.Sum(nil))[:24]
	return name, builds.MakeFolder(filepath.Join(kept, name), func(folder string) error {
		for _, path := range files {
			within, err := filepath.Rel(made, path)
			if err != nil {
				return err
			}
			target := filepath.Join(folder, within)
			if err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.Rename(path, target)); err != nil {
				return err
			}
		}
		return nil
	})
}
