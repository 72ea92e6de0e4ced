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

	"mpsforge/internal/suggest"
	"mpsforge/reports"
)

func reportCommand(std streams) *cli.Command {
	command := newCommand(std, spec{
		name: "report", usage: "print a verification report in any form, or its charts; compare two", argument: "[FILE]",
		about: `FILE is the JSON that mpsforge verify wrote, from which all forms are made. Without --format it is text on a terminal,
in colour unless NO_COLOR is set, and Markdown elsewhere.

  mpsforge report out.json
  mpsforge report --format html --output out.html out.json    one page that needs no network; verify writes it, too
  mpsforge report --open out.json                             the same in the browser
  mpsforge report --format junit out.json                     for CI systems
  mpsforge report --format svg --output charts out.json       a file for each chart
  mpsforge report --schema                                    the JSON form, described as a JSON Schema
  mpsforge report diff before.json after.json                 what has got worse?
  mpsforge report github out.json                             into the summary of a step of GitHub Actions`,
		flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Usage: "`FORM` " + strings.Join(reports.Formats(), ", ") + " or svg"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE` instead of standard output; with svg a folder"},
			&cli.BoolFlag{Name: "open", Usage: "show the HTML page, which is written beside FILE or to --output"},
			&cli.BoolFlag{Name: "schema", Usage: "print the JSON Schema of reports and nothing else"}},
		action: func(_ context.Context, c call) (result, error) { return c.report() },
	})
	command.Subcommands = []*cli.Command{reportDiff(std), reportGitHub(std)}
	return command
}

func (c call) report() (result, error) {
	path, format, output := c.Args().First(), c.String("format"), c.String("output")
	if c.Bool("schema") {
		if path != "" || format != "" || output != "" || c.Bool("open") {
			return result{}, usagef("--schema stands alone: it is the same for all reports")
		}
		return result{value: reports.JSONSchema(), message: "the JSON Schema of reports", text: func(w io.Writer) { fmt.Fprint(w, string(reports.JSONSchema())) }}, nil
	}
	switch {
	case path == "":
		return result{}, usagef("report needs FILE")
	case c.Bool("open") && format != "" && format != "html":
		return result{}, usagef("--open shows the HTML page, not %s", format)
	case format != "" && format != "svg" && !slices.Contains(reports.Formats(), format):
		return result{}, usagef("there is no --format %s%s", format, suggest.Names(format, append(reports.Formats(), "svg")))
	case format == "svg" && output == "":
		return result{}, usagef("--format svg writes a file for each chart: name a folder with --output")
	}
	report, err := reports.ReadFile(path)
	if err != nil {
		return result{}, err
	}
	found := result{value: report, message: report.Conclusion()}
	if format == "svg" {
		charts, err := report.WriteCharts(output)
		found.message = fmt.Sprintf("charts: %d, in %s", len(charts), output)
		found.text = func(w io.Writer) { fmt.Fprintln(w, strings.Join(charts, "\n")) }
		return found, err
	}
	colour := false
	switch {
	case c.Bool("open"):
		format, output = "html", cmp.Or(output, reports.PathOf(path, "html"))
	case output == "" && c.std.outIsTerminal:
		format = cmp.Or(format, "text")
		colour = format == "text" && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	default:
		format = cmp.Or(format, "markdown")
	}
	var text strings.Builder
	if colour {
		err = report.WriteText(&text, true)
	} else {
		err = report.Write(&text, format)
	}
	if err != nil {
		return result{}, err
	}
	if output == "" {
		found.text = func(w io.Writer) { _, _ = io.WriteString(w, text.String()) } // standard output is gone: there is nobody left to tell
		return found, nil
	}
	if err := reports.TryFile(output); err != nil {
		return result{}, err
	}
	if err := os.WriteFile(output, []byte(text.String()), 0o644); err != nil {
		return result{}, fmt.Errorf("write report: %w", err)
	}
	found.message = output
	found.text = func(w io.Writer) { fmt.Fprintln(w, output) }
	if c.Bool("open") {
		return found, open(output)
	}
	return found, nil
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
		return silentError{exitEnvironment, fmt.Sprintf("there is no %s here to show the page with; it is %s", program, whole)}
	} else if err != nil {
		return fmt.Errorf("%s %s: %w", program, whole, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- browser.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return silentError{exitEnvironment, fmt.Sprintf("%s can not show the page: %v; it is %s", program, err, whole)}
		}
	case <-time.After(browserPatience):
	}
	return nil
}
