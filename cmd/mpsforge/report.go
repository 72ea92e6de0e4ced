package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"mpsforge/internal/atomicfile"
	"mpsforge/internal/run"
	"mpsforge/internal/suggest"
	"mpsforge/reports"
)

// fullReport is the command that shows all of a report.
func fullReport(path string) string {
	return run.Command{Name: "mpsforge", Args: []string{"report", "--full", path}}.String()
}

func reportCommand(std streams) *cli.Command {
	command := newCommand(std, spec{
		name: "report", usage: "show a report as text, HTML and more; compare two", argument: "[FILE]",
		about: `FILE is the JSON that mpsforge verify wrote, from which all forms are made; without FILE it is the latest report in the cache.
Without --format the answer is printed as text on a terminal, in colour unless NO_COLOR is set, and the whole report as
Markdown elsewhere.

  mpsforge report                                             the answer of the latest run
  mpsforge report --full out.json                             all of it: tables, the thread grid, charts
  mpsforge report --list                                      the reports in the cache, latest first
  mpsforge report --format html --output out.html out.json    one page that needs no network; verify writes it, too
  mpsforge report --open out.json                             the same in the browser
  mpsforge report --format junit out.json                     for CI systems
  mpsforge report --format svg --output charts out.json       a file for each chart
  mpsforge report --schema                                    the JSON form, described as a JSON Schema
  mpsforge report diff before.json after.json                 what has got worse?
  mpsforge report merge -o all.json shard-*.json              one report of all shards of a run
  mpsforge report github out.json                             into the summary of a step of GitHub Actions`,
		flags: []cli.Flag{
			&cli.BoolFlag{Name: "full", Usage: "all of the report as text, not only its answer"},
			&cli.BoolFlag{Name: "list", Usage: "list the reports in the cache, latest first"},
			&cli.StringFlag{Name: "format", Usage: "`FORM` " + strings.Join(reports.Formats(), ", ") + " or svg"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE` instead of standard output; with svg a folder"},
			&cli.BoolFlag{Name: "open", Usage: "show the HTML page, which is written beside FILE or to --output"},
			&cli.BoolFlag{Name: "schema", Usage: "print the JSON Schema of reports and nothing else"}},
		action: func(_ context.Context, c call) (result, error) { return c.report() },
	})
	command.Subcommands = []*cli.Command{reportDiff(std), reportGitHub(std), reportMerge(std)}
	return command
}

func (c call) report() (result, error) {
	path, format, output := c.Args().First(), c.String("format"), c.String("output")
	if c.Bool("schema") {
		if path != "" || format != "" || output != "" || c.Bool("open") {
			return result{}, usagef("--schema takes no FILE and no other flag: it is the same for all reports")
		}
		return schemaOf("report")
	}
	if c.Bool("list") {
		if path != "" || format != "" || output != "" || c.Bool("open") || c.Bool("full") {
			return result{}, usagef("--list takes no FILE and no other flag")
		}
		return listReports()
	}
	if err := c.checkReportFlags(); err != nil {
		return result{}, err
	}
	if path == "" {
		var err error
		if path, err = latestReport(); err != nil {
			return result{}, err
		}
		if path == "" {
			return result{}, usagef("there is no report in the cache; mpsforge verify writes one, or name a FILE")
		}
	}
	return c.showReport(path)
}

// checkReportFlags refuses flags that do not go together.
func (c call) checkReportFlags() error {
	format := c.String("format")
	switch {
	case c.Bool("full") && (format != "" && format != "text" || c.Bool("open")):
		return usagef("--full is for text; the other forms are always whole")
	case c.Bool("open") && format != "" && format != "html":
		return usagef("--open shows the HTML page, not %s", format)
	case format != "" && format != "svg" && !slices.Contains(reports.Formats(), format):
		return usagef("there is no --format %s%s", format, suggest.Names(format, append(reports.Formats(), "svg")))
	case format == "svg" && c.String("output") == "":
		return usagef("--format svg writes a file for each chart: name a folder with --output")
	}
	return nil
}

// formatOf is the form that the ending of a file's name means, or empty.
func formatOf(name string) string {
	return map[string]string{".json": "json", ".md": "markdown", ".html": "html", ".htm": "html", ".xml": "junit", ".txt": "text"}[filepath.Ext(name)]
}

// sameFile reports whether both are names of one file that is there.
func sameFile(one, other string) bool {
	a, errA := os.Stat(one)
	b, errB := os.Stat(other)
	return errA == nil && errB == nil && a.Mode().IsRegular() && os.SameFile(a, b)
}

// showReport shows or writes it in the form that was asked for.
func (c call) showReport(path string) (result, error) {
	format, output := c.String("format"), c.String("output")
	report, err := reports.ReadFile(path)
	if err != nil {
		return result{}, fmt.Errorf("%w; mpsforge report --list lists the reports in the cache", err)
	}
	found := result{value: report, message: report.Conclusion()}
	if format == "svg" {
		charts, err := report.WriteCharts(output)
		found.message = fmt.Sprintf("charts: %d, in %s", len(charts), output)
		found.text = func(w io.Writer) { fmt.Fprintln(w, strings.Join(charts, "\n")) }
		return found, err
	}
	brief := false
	switch {
	case c.Bool("open"):
		format, output = "html", cmp.Or(output, reports.PathOf(path, "html"))
	case c.Bool("full"):
		format = "text"
	case format == "" && output == "" && c.std.outIsTerminal:
		brief = true
	default:
		format = cmp.Or(format, formatOf(output), "markdown")
	}
	var text strings.Builder
	switch {
	case brief:
		err = report.WriteSummary(&text, c.std.colours(), c.std.width())
		fmt.Fprintf(&text, "\nall of it: %s\n", fullReport(path))
	case format == "text" && output == "":
		err = report.WriteText(&text, c.std.colours(), c.std.width())
	default:
		err = report.Write(&text, format)
	}
	if err != nil {
		return result{}, err
	}
	if output == "" {
		found.text = func(w io.Writer) { _, _ = io.WriteString(w, text.String()) } // standard output is gone: there is nobody left to report to
		return found, nil
	}
	if sameFile(output, path) {
		return result{}, usagef("--output %s: that is the report itself; name another FILE", output)
	}
	if err := reports.TryFile(output); err != nil {
		return result{}, err
	}
	if err := atomicfile.WriteBytes(output, 0o644, []byte(text.String())); err != nil {
		return result{}, fmt.Errorf("write report: %w", err)
	}
	found.message = output
	found.text = func(w io.Writer) { fmt.Fprintln(w, output) }
	if c.Bool("open") {
		return found, open(output)
	}
	return found, nil
}

// reportsDir is where verify writes reports that were given no name.
func reportsDir() (string, error) {
	dir, err := cacheDir()
	return filepath.Join(dir, "reports"), err
}

// cachedReports lists the reports in the cache, latest first: their names begin with the time.
func cachedReports() ([]string, error) {
	dir, err := reportsDir()
	if err != nil {
		return nil, err
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	slices.Sort(found)
	slices.Reverse(found)
	return found, nil
}

// notedReport is the file in the cache's folder of reports with the path of the last one that was written elsewhere.
const notedReport = "elsewhere"

// noteReport has mpsforge report know of a report that was written elsewhere. It is not worth a failure.
func noteReport(path string) {
	path, err := filepath.Abs(path)
	if err != nil {
		return
	}
	if dir, err := reportsDir(); err == nil && os.MkdirAll(dir, 0o755) == nil {
		_ = atomicfile.WriteBytes(filepath.Join(dir, notedReport), 0o644, []byte(path+"\n"))
	}
}

// latestReport is the last one in the cache, or one that was written elsewhere since; it is empty where there is none.
func latestReport() (string, error) {
	found, err := cachedReports()
	if err != nil {
		return "", err
	}
	latest, newest := "", time.Time{}
	if len(found) > 0 {
		latest = found[0]
		if info, err := os.Stat(latest); err == nil {
			newest = info.ModTime()
		}
	}
	dir, err := reportsDir()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(dir, notedReport))
	if err != nil {
		return latest, nil // none was
	}
	noted := strings.TrimSpace(string(text))
	if info, err := os.Stat(noted); err == nil && info.ModTime().After(newest) {
		latest = noted
	}
	return latest, nil
}

// listedReport is a line of report --list.
type listedReport struct {
	Path    string          `json:"path"`
	Verdict reports.Verdict `json:"verdict,omitempty"`
	Summary string          `json:"summary"` // why it cannot be read, if it has no verdict
}

func listReports() (result, error) {
	paths, err := cachedReports()
	if err != nil {
		return result{}, err
	}
	found := []listedReport{}
	for _, path := range paths {
		if report, err := reports.ReadFile(path); err != nil {
			found = append(found, listedReport{Path: path, Summary: err.Error()})
		} else {
			found = append(found, listedReport{path, report.Verdict, report.Conclusion()})
		}
	}
	message := fmt.Sprintf("reports in the cache: %d", len(found))
	return result{value: found, message: message, text: func(w io.Writer) {
		for _, one := range found {
			fmt.Fprintf(w, "%s  %s\n", one.Path, one.Summary)
		}
		if len(found) == 0 {
			fmt.Fprintln(w, "there is no report in the cache; mpsforge verify writes one")
		}
	}}, nil
}

// browserPatience is how long a failure to show the page is waited for; the browser itself may stay for hours.
const browserPatience = 3 * time.Second

// open shows a file with the system's own program for it. Where there is none, the path is all.
func open(path string) error {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	browser := exec.Command(program, whole)
	if err := browser.Start(); errors.Is(err, exec.ErrNotFound) {
		return silentError{exitEnvironment, fmt.Sprintf("there is no %s here to show the page with; the page is %s", program, whole)}
	} else if err != nil {
		return fmt.Errorf("%s %s: %w", program, whole, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- browser.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return silentError{exitEnvironment, fmt.Sprintf("%s cannot show the page: %v; the page is %s", program, err, whole)}
		}
	case <-time.After(browserPatience):
	}
	return nil
}
