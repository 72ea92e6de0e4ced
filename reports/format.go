package reports

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/internal/atomicfile"
	"mpsforge/internal/fault"
	"mpsforge/internal/suggest"
	"mpsforge/internal/words"
)

// ErrFormat is returned, wrapped, for a format that does not exist.
var ErrFormat = errors.New("no such report format")

// ErrUnwritable is returned, wrapped, where a report cannot be written.
var ErrUnwritable = errors.New("it cannot be written")

// format is a form of a report in one file.
type format struct {
	name, ending string
	write        func(*Report, io.Writer) error
}

// formats lists them; the first is the source of the others. The ending of JUnit's form keeps it apart from other XML.
func formats() []format {
	return []format{
		{"json", ".json", (*Report).WriteJSON},
		{"markdown", ".md", (*Report).WriteMarkdown},
		{"html", ".html", (*Report).WriteHTML},
		{"junit", ".junit.xml", (*Report).WriteJUnit},
		{"text", ".txt", func(r *Report, w io.Writer) error { return r.WriteText(w, words.Palette{}, PipeWidth) }},
	}
}

// Formats names the forms that Write knows.
func Formats() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return names
}

// Write renders the report in a named form, without colour.
func (r *Report) Write(w io.Writer, name string) error {
	all := formats()
	at := slices.IndexFunc(all, func(f format) bool { return f.name == name })
	if at < 0 {
		return fmt.Errorf("%w: %q%s", ErrFormat, name, suggest.Names(name, Formats()))
	}
	return all[at].write(r, w)
}

// PathOf is the path of the form of a report whose JSON form is at path.
func PathOf(path, name string) string {
	for _, f := range formats() {
		if f.name == name {
			return strings.TrimSuffix(path, ".json") + f.ending
		}
	}
	return path
}

// pathsOf lists the files that WriteFiles writes, by the name of the form.
func pathsOf(path string) map[string]string {
	paths := map[string]string{}
	for _, f := range formats() {
		paths[f.name] = PathOf(path, f.name)
	}
	paths["json"] = path
	delete(paths, "text") // a terminal's: mpsforge report makes it from the JSON form
	return paths
}

// TryFiles finds out before long work whether WriteFiles can write there. It makes the folder, and leaves existing files as
// they are.
func TryFiles(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	for _, name := range pathsOf(path) {
		if err := TryFile(name); err != nil {
			return err
		}
	}
	return nil
}

// TryFile finds out whether a file can be written, without a change to it. One that does not exist is made and removed.
func TryFile(name string) error {
	_, before := os.Lstat(name)
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	if err := file.Close(); err != nil || before == nil {
		return err
	}
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) { // another process tries the same file
		return err
	}
	return nil
}

// WriteFiles writes the forms that others read beside the JSON form at path: JSON, Markdown, HTML and JUnit's.
func (r *Report) WriteFiles(path string) error {
	paths := pathsOf(path)
	for _, f := range formats() {
		name, written := paths[f.name]
		if !written {
			continue
		}
		if err := atomicfile.Write(name, 0o644, func(w io.Writer) error { return f.write(r, w) }); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
		fault.Point()
	}
	return nil
}

// WriteCharts writes each chart as an SVG file into the folder, which it makes, and gives their paths.
func (r *Report) WriteCharts(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("write charts: %w", err)
	}
	var paths []string
	for _, plot := range r.plots() {
		if len(plot.Lines)+len(plot.Bars) == 0 {
			continue
		}
		path := filepath.Join(dir, plot.fileName())
		if err := os.WriteFile(path, []byte(plot.svg(true)), 0o644); err != nil {
			return nil, fmt.Errorf("write charts: %w", err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}
