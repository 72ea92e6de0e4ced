package fork

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"mpsforge/fork/git"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/patches"
)

// importBranch is the branch that imported files are committed on.
const importBranch = "main"

// importAuthor and importTime are fixed, so that the same files give the same commit id everywhere. The time is
// 2000-01-01 00:00:00 UTC and means nothing.
const (
	importAuthor = "mpsforge <mpsforge@example.invalid>"
	importTime   = "946684800 +0000"
)

// imported says what was read.
type imported struct{ file, sha256 string } // both empty for a folder

// importFiles commits the files of a folder or tarball, byte for byte: no ignore rule, no line-end conversion.
func importFiles(ctx context.Context, repository *git.Repository, baseline, from string, sink events.Sink) (imported, error) {
	finish := events.Step(sink, "import")
	defer finish(events.Failed, "")
	info, err := os.Stat(from)
	if err != nil {
		return imported{}, fmt.Errorf("import %s: %w", from, err)
	}
	var result imported
	err = repository.FastImport(ctx, func(stream io.Writer) error {
		buffered := bufio.NewWriterSize(stream, 1<<16)
		importer := &importer{stream: buffered, sink: sink, modes: map[string]importedFile{}}
		var err error
		if info.IsDir() {
			err = importer.folder(ctx, from)
		} else {
			result.file = filepath.Base(from)
			result.sha256, err = importer.tarball(ctx, from, info.Size())
		}
		if err != nil {
			return fmt.Errorf("import %s: %w", from, err)
		}
		if err := importer.commit(baseline); err != nil {
			return fmt.Errorf("import %s: %w", from, err)
		}
		return buffered.Flush()
	})
	if err != nil {
		return imported{}, err
	}
	finish(events.OK, filepath.Base(from))
	return result, nil
}

type importedFile struct {
	mode string
	mark int
}

// importer writes a fast-import stream.
type importer struct {
	stream *bufio.Writer
	sink   events.Sink
	marks  int
	order  []string
	modes  map[string]importedFile
}

// file adds one file; the last of several with one name counts, as when a tarball is unpacked.
func (i *importer) file(name, mode string, size int64, content io.Reader) error {
	if err := patches.CheckPath(name); err != nil {
		return err
	}
	i.marks++
	fmt.Fprintf(i.stream, "blob\nmark :%d\ndata %d\n", i.marks, size)
	if written, err := io.CopyN(i.stream, content, size); err != nil {
		return fmt.Errorf("%s: %d of %d bytes: %w", name, written, size, err)
	}
	fmt.Fprintln(i.stream)
	if _, found := i.modes[name]; !found {
		i.order = append(i.order, name)
	}
	i.modes[name] = importedFile{mode, i.marks}
	return nil
}

// commit ends the stream with the one commit.
func (i *importer) commit(baseline string) error {
	if len(i.order) == 0 {
		return errors.New("it has no files")
	}
	message := "PyTorch " + baseline + ", imported by mpsforge\n"
	fmt.Fprintf(i.stream, "commit refs/heads/%s\nauthor %s %s\ncommitter %s %s\ndata %d\n%s\n", importBranch, importAuthor, importTime,
		importAuthor, importTime, len(message), message)
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	for _, name := range i.order {
		file := i.modes[name]
		fmt.Fprintf(i.stream, "M %s :%d \"%s\"\n", file.mode, file.mark, escape.Replace(name))
	}
	_, err := fmt.Fprintln(i.stream, "\ndone")
	return err
}

func (i *importer) folder(ctx context.Context, top string) error {
	return filepath.WalkDir(top, func(full string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case entry.Name() == ".git" && full != top: // of a submodule: a link to a repository that is elsewhere
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		}
		relative, err := filepath.Rel(top, full)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(relative)
		if entry.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(full)
			if err != nil {
				return err
			}
			return i.file(name, git.ModeSymlink, int64(len(target)), strings.NewReader(target))
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is not a file, a folder or a link", name)
		}
		file, err := os.Open(full)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		i.sink.Emit(events.StepProgress{Step: "import", Done: int64(i.marks), Unit: "files"})
		return i.file(name, fileMode(info.Mode()), info.Size(), file)
	})
}

func fileMode(mode fs.FileMode) string {
	if mode&0o111 != 0 {
		return git.ModeExecutable
	}
	return git.ModeFile
}

// tarball adds the files of a tarball below its one top folder and gives the SHA-256 of the tarball.
func (i *importer) tarball(ctx context.Context, path string, size int64) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	counted := &countingReader{reader: io.TeeReader(file, hash), progress: func(done int64) {
		i.sink.Emit(events.StepProgress{Step: "import", Done: done, Total: size, Unit: "bytes"})
	}}
	content, wait, err := decompress(ctx, counted)
	if err != nil {
		return "", err
	}
	if err := errors.Join(i.tarEntries(ctx, tar.NewReader(content)), wait()); err != nil {
		return "", err
	}
	if _, err := io.Copy(io.Discard, counted); err != nil { // padding after the end of the archive
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func (i *importer) tarEntries(ctx context.Context, archive *tar.Reader) error {
	top := ""
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the tarball: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if header.Typeflag == tar.TypeXGlobalHeader { // git archive writes the commit id into one
			continue
		}
		first, name, nested := strings.Cut(strings.TrimPrefix(header.Name, "./"), "/")
		if top == "" {
			top = first
		}
		if first != top || !nested && header.Typeflag != tar.TypeDir {
			return fmt.Errorf("%q lies beside the top folder %q; a source tarball has one top folder", header.Name, top)
		}
		switch header.Typeflag {
		case tar.TypeDir:
		case tar.TypeReg:
			err = i.file(name, fileMode(header.FileInfo().Mode()), header.Size, archive)
		case tar.TypeSymlink:
			err = i.file(name, git.ModeSymlink, int64(len(header.Linkname)), strings.NewReader(header.Linkname))
		default:
			err = fmt.Errorf("%s is of type %q; a source tarball holds files, folders and symbolic links", header.Name, header.Typeflag)
		}
		if err != nil {
			return err
		}
	}
}

// countingReader reports how much was read, every 256 KiB or so.
type countingReader struct {
	reader         io.Reader
	done, reported int64
	progress       func(int64)
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	if c.done += int64(n); c.done-c.reported >= 1<<18 {
		c.reported = c.done
		c.progress(c.done)
	}
	return n, err
}

// decompress recognises gzip, xz and bzip2 by their first bytes. The returned function waits for a helper program, if
// there is one, and gives its error.
func decompress(ctx context.Context, compressed io.Reader) (io.Reader, func() error, error) {
	nothing := func() error { return nil }
	buffered := bufio.NewReader(compressed)
	magic, err := buffered.Peek(6)
	if err != nil {
		return nil, nothing, fmt.Errorf("it is too short for a tarball: %w; name a folder or tarball of PyTorch's sources", err)
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		reader, err := gzip.NewReader(buffered)
		return reader, nothing, err
	case bytes.HasPrefix(magic, []byte("BZh")):
		return bzip2.NewReader(buffered), nothing, nil
	case bytes.HasPrefix(magic, []byte("\xfd7zXZ\x00")):
		reader, writer := io.Pipe()
		result := make(chan error, 1)
		go func() {
			_, err := run.Command{Name: "xz", Args: []string{"--decompress", "--stdout"}, Stdin: buffered, Stdout: writer}.Run(ctx)
			if errors.Is(err, exec.ErrNotFound) {
				err = noXZ()
			}
			writer.CloseWithError(err)
			result <- err
		}()
		return reader, func() error {
			// What follows the archive's end is padding; xz would wait for ever for somebody to read it.
			_, _ = io.Copy(io.Discard, reader)
			return <-result
		}, nil
	}
	return buffered, nothing, nil
}

func noXZ() error {
	return fmt.Errorf("%w: xz is needed to unpack it: install it (Debian: apt-get install xz-utils; macOS: brew install xz)", ErrEnvironment)
}

// ErrUnavailable is returned, wrapped, when no mirror serves what is needed.
var ErrUnavailable = errors.New("it cannot be downloaded")

// ErrEnvironment is returned, wrapped, when a program that this machine lacks is needed.
var ErrEnvironment = errors.New("a needed program is missing")

// gitPercent finds the figures in a line of git's progress; they are shown, nothing depends on them.
var gitPercent = regexp.MustCompile(`^(?:remote: )?([A-Z][a-z ]+):\s+\d+% \((\d+)/(\d+)\)`)

// gitProgress turns git's progress into events.
func gitProgress(sink events.Sink, step string) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		for _, line := range bytes.FieldsFunc(p, func(r rune) bool { return r == '\r' || r == '\n' }) {
			if match := gitPercent.FindSubmatch(line); match != nil {
				done, _ := strconv.ParseInt(string(match[2]), 10, 64)
				total, _ := strconv.ParseInt(string(match[3]), 10, 64)
				sink.Emit(events.StepProgress{Step: step, Done: done, Total: total, Note: string(match[1])})
			}
		}
		return len(p), nil
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
