package ci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"github.com/bmatcuk/doublestar/v4"

	"mpsforge/fork"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/patches"
)

// Lint is what upstream's style checks, or those that can stand in for them, found in the stack.
type Lint struct {
	// Tool is lintrunner, or "mpsforge" where that is not installed or the commit has no configuration for it.
	Tool     string         `json:"tool"`
	How      string         `json:"how"` // what was checked, for people
	Findings []StyleFinding `json:"findings"`
	NotRun   []string       `json:"not_run"` // checks that should have run and could not, with the reason
}

// StyleFinding is one thing that a check found.
type StyleFinding struct {
	Patch   string `json:"patch"`
	Path    string `json:"path"`
	Line    int    `json:"line"` // 0 for the file as a whole
	Check   string `json:"check"`
	Message string `json:"message"`
}

// String is the finding on one line.
func (f StyleFinding) String() string {
	return fmt.Sprintf("%s: %s:%d: %s: %s", f.Patch, f.Path, f.Line, f.Check, f.Message)
}

// of says whether a patch may be called clean by upstream's own tool, and what was done.
func (l *Lint) of(patch string) (clean bool, how string) {
	n := 0
	for _, finding := range l.Findings {
		if finding.Patch == patch {
			n++
		}
	}
	how = l.How
	if n > 0 {
		how += fmt.Sprintf("; findings: %d", n)
	} else {
		how += "; nothing found"
	}
	if len(l.NotRun) > 0 {
		how += fmt.Sprintf("; could not run: %d", len(l.NotRun))
	}
	return n == 0 && len(l.NotRun) == 0 && l.Tool == lintrunner, how
}

// runLint checks each request as upstream would see it.
func runLint(ctx context.Context, checkout *fork.Checkout, onto string, requests []*Request, sink events.Sink) (*Lint, error) {
	configuration, err := checkout.File(ctx, onto, ".lintrunner.toml")
	if err != nil {
		return nil, err
	}
	var upstreams *Lint
	if _, err := exec.LookPath(lintrunner); err == nil && configuration != nil {
		upstreams, err = runLintrunner(ctx, checkout, configuration, requests, sink)
		broken := func(reason string) bool { return strings.HasPrefix(reason, "CLANGFORMAT:") }
		if err != nil || !slices.ContainsFunc(upstreams.NotRun, broken) {
			return upstreams, err
		}
	}
	finish := events.Step(sink, "plain style checks")
	defer finish(events.Failed, "")
	lint, err := lintPlainly(ctx, checkout, onto, requests, configuration)
	if err != nil {
		return nil, err
	}
	finish(events.OK, fmt.Sprintf("findings: %d", len(lint.Findings)))
	switch {
	case upstreams != nil: // where lintrunner was never initialised, it finds less than can be found without it
		upstreams.How += "; besides: " + lint.How
		upstreams.Findings, upstreams.NotRun = append(upstreams.Findings, lint.Findings...), append(upstreams.NotRun, lint.NotRun...)
		return upstreams, nil
	case configuration == nil:
		lint.How = "the commit has no .lintrunner.toml; checked instead: " + lint.How
	default:
		lint.How = "lintrunner is not installed; checked instead: " + lint.How
	}
	return lint, nil
}

// plain checks without lintrunner: line length, trailing space, the newline at the end, clang-format.
type plain struct {
	lint             *Lint
	python, native   int          // most columns of a line; 0 where the commit has no configuration
	styles           *clangFormat // nil if it cannot run
	include, exclude []string     // patterns of paths that upstream formats
}

var (
	pythonColumns = regexp.MustCompile(`(?m)^max-line-length\s*=\s*([0-9]{1,4})`)
	nativeColumns = regexp.MustCompile(`(?m)^ColumnLimit:\s*([0-9]{1,4})`)
	nativeSuffix  = []string{".h", ".hpp", ".cpp", ".cc", ".mm", ".m", ".metal", ".cu", ".cuh"}
)

func lintPlainly(ctx context.Context, checkout *fork.Checkout, onto string, requests []*Request, configuration []byte) (*Lint, error) {
	p := plain{lint: &Lint{Tool: "mpsforge", Findings: []StyleFinding{}, NotRun: []string{}}}
	flake8, err := checkout.File(ctx, onto, ".flake8")
	if err != nil {
		return nil, err
	}
	style, err := checkout.File(ctx, onto, ".clang-format")
	if err != nil {
		return nil, err
	}
	p.python, p.native = largest(pythonColumns, flake8), largest(nativeColumns, style)
	if err := p.configure(configuration); err != nil {
		return nil, err
	}
	p.lint.How = "trailing space, newline at the end"
	if p.python+p.native > 0 {
		p.lint.How += ", line length"
	}
	if style == nil {
		p.lint.NotRun = append(p.lint.NotRun, "clang-format: the commit has no .clang-format")
	} else if p.styles, err = newClangFormat(ctx, style); errors.Is(err, exec.ErrNotFound) {
		p.lint.NotRun = append(p.lint.NotRun, "clang-format: it is not installed (Debian: apt-get install clang-format; else pip install clang-format)")
	} else if err != nil {
		return nil, err
	} else {
		defer p.styles.remove()
		p.lint.How += ", layout of changed lines by " + p.styles.version + " (upstream pins a version of its own)"
	}
	for _, request := range requests {
		for _, file := range request.layer.Patch.Files {
			if file.IsDelete || file.IsBinary {
				continue
			}
			content, err := checkout.File(ctx, request.Commit, file.Path())
			if err != nil {
				return nil, err
			}
			if err := p.check(ctx, request, file, content); err != nil {
				return nil, err
			}
		}
	}
	return p.lint, nil
}

func largest(form *regexp.Regexp, text []byte) int {
	most := 0
	for _, m := range form.FindAllSubmatch(text, -1) {
		if n, err := strconv.Atoi(string(m[1])); err == nil {
			most = max(most, n)
		}
	}
	return most
}

// check looks at the lines that a patch adds to a file.
func (p *plain) check(ctx context.Context, request *Request, file *patches.File, content []byte) error {
	find := func(line int, check, message string, args ...any) {
		p.lint.Findings = append(p.lint.Findings, StyleFinding{request.Name, file.Path(), line, check, fmt.Sprintf(message, args...)})
	}
	native := slices.Contains(nativeSuffix, path.Ext(file.Path()))
	limit := 0
	if native {
		limit = p.native
	} else if ext := path.Ext(file.Path()); ext == ".py" || ext == ".pyi" {
		limit = p.python
	}
	var ranges []string
	for _, line := range addedLines(file) {
		ranges = append(ranges, fmt.Sprintf("--lines=%d:%d", line.number, line.number))
		if strings.TrimRight(line.text, " \t") != line.text {
			find(line.number, "trailing space", "cut it")
		}
		// A line that is one word, such as an address, cannot be broken.
		if n := len([]rune(line.text)); limit > 0 && n > limit && !strings.Contains(line.text, "://") {
			find(line.number, "line length", "%d columns, at most %d", n, limit)
		}
	}
	if len(content) > 0 && content[len(content)-1] != '\n' {
		find(0, "newline", "the file does not end with one")
	}
	if !native || p.styles == nil || len(ranges) == 0 || !p.isFormatted(file.Path()) {
		return nil
	}
	wanted, err := p.styles.format(ctx, file.Path(), content, ranges)
	if err != nil {
		return err
	}
	if line, want := firstDifference(content, wanted); line > 0 {
		find(line, "clang-format", "the formatter writes %q here, and may change more lines below", want)
	}
	return nil
}

// addedLine is a line as it is after the patch.
type addedLine struct {
	number int
	text   string
}

func addedLines(file *patches.File) []addedLine {
	var added []addedLine
	for _, fragment := range file.TextFragments {
		number := int(fragment.NewPosition)
		for _, line := range fragment.Lines {
			if line.Op == gitdiff.OpAdd {
				added = append(added, addedLine{number, strings.TrimSuffix(line.Line, "\n")})
			}
			if line.New() {
				number++
			}
		}
	}
	return added
}

func firstDifference(is, wanted []byte) (line int, text string) {
	have, want := bytes.SplitAfter(is, []byte("\n")), bytes.SplitAfter(wanted, []byte("\n"))
	for i := range want {
		if i >= len(have) || !bytes.Equal(have[i], want[i]) {
			return i + 1, strings.TrimSuffix(string(want[i]), "\n")
		}
	}
	if len(have) > len(want) {
		return len(want) + 1, ""
	}
	return 0, ""
}

// configure takes from lintrunner's configuration which paths upstream's clang-format is for.
func (p *plain) configure(configuration []byte) error {
	all, err := linters(configuration)
	for _, l := range all {
		if l.Code == "CLANGFORMAT" {
			p.include, p.exclude = l.Include, l.Exclude
		}
	}
	return err
}

func (p *plain) isFormatted(name string) bool {
	matches := func(pattern string) bool { return doublestar.MatchUnvalidated(pattern, name) }
	return (p.include == nil || slices.ContainsFunc(p.include, matches)) && !slices.ContainsFunc(p.exclude, matches)
}

// linter is one of those that lintrunner's configuration names.
type linter struct {
	Code    string   `toml:"code"`
	Include []string `toml:"include_patterns"`
	Exclude []string `toml:"exclude_patterns"`
}

// linters reads lintrunner's configuration; a commit without one has none.
func linters(configuration []byte) ([]linter, error) {
	var all struct {
		Linters []linter `toml:"linter"`
	}
	if err := toml.Unmarshal(configuration, &all); err != nil {
		return nil, fmt.Errorf("the commit's .lintrunner.toml: %w", err)
	}
	return all.Linters, nil
}

// clangFormat is the clang-format that is installed, with the commit's style in a folder of its own.
type clangFormat struct{ dir, version string }

func newClangFormat(ctx context.Context, style []byte) (*clangFormat, error) {
	version, err := run.Command{Name: "clang-format", Args: []string{"--version"}}.Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask clang-format for its version: %w", err)
	}
	number := regexp.MustCompile(`[0-9]+(\.[0-9]+)+`).FindString(string(version.Stdout))
	dir, err := os.MkdirTemp("", "mpsforge-format-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for clang-format: %w", err)
	}
	c := &clangFormat{dir: dir, version: "clang-format " + number}
	if err := os.WriteFile(filepath.Join(dir, ".clang-format"), style, 0o644); err != nil {
		c.remove()
		return nil, fmt.Errorf("make a folder for clang-format: %w", err)
	}
	return c, nil
}

func (c *clangFormat) remove() { os.RemoveAll(c.dir) }

// format gives a file as clang-format writes it if it may change only the given lines. A key of the style that this
// version does not know is passed over: PyTorch's style has some.
func (c *clangFormat) format(ctx context.Context, name string, content []byte, lines []string) ([]byte, error) {
	args := append([]string{"--style=file", "--Wno-error=unknown", "--assume-filename=" + filepath.Join(c.dir, path.Base(name))}, lines...)
	result, err := run.Command{Name: "clang-format", Args: args, Dir: c.dir, Stdin: bytes.NewReader(content)}.Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("format %s: %w", name, err)
	}
	return result.Stdout, nil
}
