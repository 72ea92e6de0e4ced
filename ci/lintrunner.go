package ci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/fork"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
)

const lintrunner = "lintrunner"

// needBuild are upstream's linters that look at the results of a build, which the stack's commits do not have.
var needBuild = []string{"CLANGTIDY", "MYPY", "MYPYSTRICT", "PYREFLY"}

// lintMessage is one line that lintrunner --output json prints.
type lintMessage struct {
	Path        *string `json:"path"` // null when the linter itself failed
	Line        *int    `json:"line"`
	Code        string  `json:"code"`
	Name        string  `json:"name"`
	Description *string `json:"description"`
	Original    *string `json:"original"` // of a formatter: the file as it is, and as it should be
	Replacement *string `json:"replacement"`
}

// runLintrunner runs upstream's linters, as the commit configures them, on the files of each request in a work tree of
// their own. It installs nothing: a linter that is not initialised is one that could not run.
func runLintrunner(ctx context.Context, checkout *fork.Checkout, configuration []byte, requests []*Request, sink events.Sink) (lint *Lint, err error) {
	finish := events.Step(sink, lintrunner)
	defer finish(events.Failed, "")
	all, err := linters(configuration)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mpsforge-lint-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for lintrunner: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	scratch, err := checkout.NewScratch(ctx, filepath.Join(dir, "tree"))
	if err != nil {
		return nil, err
	}
	lint = &Lint{Tool: lintrunner, Findings: []StyleFinding{}, NotRun: []string{}}
	var skip []string
	for _, l := range all {
		if slices.Contains(needBuild, l.Code) {
			skip = append(skip, l.Code)
		}
	}
	lint.How = "lintrunner, with the commit's own configuration"
	arguments := []string{"--output", "json", "--data-path", filepath.Join(dir, "data")}
	if len(skip) > 0 {
		lint.How += ", without " + strings.Join(skip, ", ") + " (they need a build)"
		arguments = append(arguments, "--skip", strings.Join(skip, ","))
	}
	for i, request := range requests {
		sink.Emit(events.StepProgress{Step: lintrunner, Done: int64(i), Total: int64(len(requests)), Unit: "patches", Note: request.Name})
		if err := scratch.CheckOut(ctx, request.Commit); err != nil {
			return nil, err
		}
		args := slices.Clone(arguments)
		for _, file := range request.layer.Patch.Files {
			if !file.IsDelete {
				args = append(args, "./"+file.Path()) // a path may begin with a dash
			}
		}
		if len(args) == len(arguments) {
			continue // without paths it would look for some by itself
		}
		result, err := run.Command{Name: lintrunner, Args: args, Dir: scratch.Dir}.Run(ctx)
		if err != nil && (run.ExitCode(err) != 1 || len(bytes.TrimSpace(result.Stdout)) == 0) { // 1 with messages: it found something
			return nil, fmt.Errorf("lint %s: %w", request.Name, err)
		}
		if err := lint.read(request, scratch.Dir, result.Stdout); err != nil {
			return nil, err
		}
	}
	finish(events.OK, fmt.Sprintf("findings: %d", len(lint.Findings)))
	return lint, nil
}

// read takes the messages about one request.
func (l *Lint) read(request *Request, root string, output []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(output))
	for {
		var message lintMessage
		if err := decoder.Decode(&message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("lint %s: lintrunner printed what cannot be read: %w", request.Name, err)
		}
		text := message.Name
		if message.Description != nil {
			text += ": " + *message.Description
		}
		text = cut(printable(text), 3*maxDetail)
		if message.Path == nil {
			known := func(reason string) bool { return strings.HasPrefix(reason, message.Code+": ") }
			if !slices.ContainsFunc(l.NotRun, known) {
				l.NotRun = append(l.NotRun, message.Code+": "+text)
			}
			continue
		}
		finding := StyleFinding{Patch: request.Name, Path: *message.Path, Check: message.Code, Message: text}
		if below, err := filepath.Rel(root, *message.Path); err == nil && filepath.IsLocal(below) {
			finding.Path = filepath.ToSlash(below)
		}
		if message.Line != nil {
			finding.Line = *message.Line
		} else if message.Original != nil && message.Replacement != nil {
			var want string
			finding.Line, want = firstDifference([]byte(*message.Original), []byte(*message.Replacement))
			finding.Message = fmt.Sprintf("the formatter writes %q here, and may change more lines below", want)
		}
		l.Findings = append(l.Findings, finding)
	}
}
