package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate"
)

func verifyCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "verify", usage: "run the verification pipeline and write a report",
		about: `Stages run in this order: ` + strings.Join(validate.StageNames(), ", ") + `. A failed stage stops the
later ones. The report is written as JSON, and as Markdown beside it.

  mpsforge verify                                    all stages that can run here
  mpsforge verify --stages series,conformance --quick
  mpsforge verify --require conformance              exit code 5 unless that stage ran
  mpsforge verify --report out.json --seed 7         the same random choices again
  mpsforge verify --stages runtime --quick           PyTorch's real MPS sources, stock against patched (Linux)
  mpsforge verify --stages runtime --ablate          and with each patch left out: what notices?`,
		flags:  checkoutFlags(verifyFlags()...),
		action: func(ctx context.Context, c call) (result, error) { return c.verify(ctx) },
	})
}

func verifyFlags() []cli.Flag {
	return hostFlags(
		&cli.StringFlag{Name: "stages", Usage: "run only these, `LIST` with commas"},
		&cli.StringFlag{Name: "require", Usage: "stages that must run, `LIST` with commas; else exit code 5"},
		&cli.BoolFlag{Name: "quick", Usage: "the short form of each stage"},
		&cli.BoolFlag{Name: "keep-going", Usage: "run later stages although one failed"},
		&cli.Uint64Flag{Name: "seed", Usage: "`NUMBER` that all random choices come from (default: the clock)"},
		&cli.StringFlag{Name: "report", Usage: "where to write the report, `FILE.json` (default: reports/ in the cache folder)"},
		&cli.BoolFlag{Name: "ablate", Usage: "runtime: leave out each patch in turn and show which scenarios fail"},
		&cli.StringFlag{Name: "flavours", Usage: "runtime: build these, `LIST` of " + flavourNames() + " (default: plain,tsan)"})
}

func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// verify runs the pipeline, writes the report and gives it.
func (c call) verify(ctx context.Context) (result, error) {
	debug.SetGCPercent(100) // long and hungry, unlike the other commands: back to Go's default
	stages, required := list(c.String("stages")), list(c.String("require"))
	if err := validate.CheckNames(append(append([]string{}, stages...), required...)); err != nil {
		return result{}, err
	}
	cache, err := cacheDir()
	if err != nil {
		return result{}, err
	}
	options := validate.Options{Stages: stages, Require: required, Quick: c.Bool("quick"), KeepGoing: c.Bool("keep-going"), Seed: c.Uint64("seed"), Cache: cache,
		Tool: reports.Tool{Name: "mpsforge", Version: version(), Commit: commit()}}
	options.Host = validate.HostOptions{Root: c.String("root"), Torch: c.String("torch"), Jobs: c.Int("jobs"), Ablate: c.Bool("ablate")}
	if options.Host.Flavours, err = flavours(list(c.String("flavours"))); err != nil {
		return result{}, err
	}
	checkout, series, err := c.openCheckout(ctx)
	switch {
	case err == nil:
		defer checkout.Close()
		options.Checkout, options.Series = checkout, series
	case isMissing(err):
		options.NoCheckout = fmt.Sprintf("there is no checkout at %s; mpsforge fetch gets one", c.String("checkout"))
		if options.Series, err = c.series(""); err != nil {
			return result{}, err
		}
	default:
		return result{}, err
	}
	files, err := c.seriesFiles()
	if err != nil {
		return result{}, err
	}
	if options.Lint, err = patches.Lint(files, options.Series.Baseline.Name); err != nil {
		return result{}, err
	}
	path := c.String("report")
	if path == "" {
		path = filepath.Join(cache, "reports", time.Now().UTC().Format("20060102T150405.000Z")+"-"+options.Series.Baseline.Name+".json")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // found out before the work, not after
		return result{}, fmt.Errorf("make the report's folder: %w", err)
	}
	options.Artifacts = strings.TrimSuffix(path, ".json") + ".artifacts"
	report, err := validate.Run(ctx, options, c.sink)
	if err != nil {
		return result{}, err
	}
	markdown, err := writeReport(report, path)
	if err != nil {
		return result{}, err
	}
	message := fmt.Sprintf("verification %s; report: %s", report.Verdict, path)
	found := result{value: report, message: message, text: func(w io.Writer) {
		for _, stage := range report.Stages {
			line := fmt.Sprintf("%-12s %-8s %6.1f s", stage.Name, stage.Verdict, stage.Seconds)
			if stage.Reason != "" {
				line += "  " + stage.Reason
			}
			fmt.Fprintln(w, line)
		}
		fmt.Fprintf(w, "%s\nread it with: mpsforge report %s\n", message, path)
	}}
	switch report.Verdict {
	case reports.Failed:
		return found, silentError{exitVerify, "verification failed; see " + markdown}
	case reports.Skipped:
		return found, silentError{exitEnvironment, "required stages did not run: " + strings.Join(report.Missing, ", ") + "; mpsforge doctor tells what is missing"}
	case reports.NotRun:
		return found, silentError{exitEnvironment, "no stage ran; mpsforge doctor tells what is missing"}
	}
	return found, nil
}

// writeReport writes the JSON form to path and the Markdown form beside it.
func writeReport(report *reports.Report, path string) (markdown string, err error) {
	markdown = strings.TrimSuffix(path, ".json") + ".md"
	for name, write := range map[string]func(io.Writer) error{path: report.WriteJSON, markdown: report.WriteMarkdown} {
		var text strings.Builder
		if err := write(&text); err != nil {
			return "", err
		}
		if err := os.WriteFile(name, []byte(text.String()), 0o644); err != nil {
			return "", fmt.Errorf("write report: %w", err)
		}
	}
	return markdown, nil
}
