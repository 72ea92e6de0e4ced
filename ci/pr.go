// Package ci prepares what people review: the pull requests that carry the series upstream (Prepare, GetStatus),
// and, in a step of GitHub Actions, a report as the step's summary and annotations (WriteSummary, Annotations). It pushes
// nothing and opens nothing. Its tests hold the workflow files and the making of releases to their rules.
//
// What upstream asks for (its AI policy and its templates say it): a linked issue, a short text, tests, benchmarks where
// speed changes, a word on compatibility, at most 2,000 changed lines, and, for work with AI assistance, its disclosure
// and a human who understands and owns it.
package ci

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mpsforge/fork"
	"mpsforge/internal/events"
	"mpsforge/patches"
	"mpsforge/reports"
)

// Refusals of Prepare.
var (
	ErrOptions  = errors.New("the pull requests are incomplete")
	ErrReport   = errors.New("the report is of another series")
	ErrPart     = errors.New("the report is of a part of a run")
	ErrTooLarge = errors.New("upstream's checks refuse pull requests of that size")
	ErrLint     = errors.New("lint found something")
	ErrNotRun   = errors.New("the series was not verified as it is")
	ErrText     = errors.New("your own words cannot be found in an earlier text")
)

// Options say what to prepare.
type Options struct {
	Onto     string // commit or branch of upstream's; empty is the baseline's commit
	Issue    string // that upstream tracks the change by, for patches that name none
	Author   string // of the commits, "Name <address>"; empty leaves the patches' own
	Reviewer string // who read all of it and owns it, in the same form
	Ready    bool   // for review; else the texts are marked as drafts
	Report   *reports.Report
	Series   *patches.LintResult // what lint says about the series
	Runs     *patches.RunsResult // what is recorded of its verification
	Out      string              // folder of the texts
	First    bool                // it is the first pull request, which needs no other, and not the series
	Mailbox  string              // folder of mail files; empty makes branches instead
	Replace  bool                // move branches that are at other commits
	DryRun   bool
}

// Prepared is what Prepare found and made.
type Prepared struct {
	Checkout  string              `json:"checkout"`
	Baseline  string              `json:"baseline"`
	Onto      string              `json:"onto"` // commit
	Ready     bool                `json:"ready"`
	DryRun    bool                `json:"dry_run"`
	Patches   []fork.PortedPatch  `json:"patches"` // what became of each of the series
	Requests  []*Request          `json:"requests"`
	Conflicts []fork.PortConflict `json:"conflicts,omitempty"`
	Lint      *Lint               `json:"lint,omitempty"`
	Branches  []fork.Branch       `json:"branches"` // that were made or moved; with DryRun, that would be
	Stale     []string            `json:"stale"`    // other branches below mpsforge/, of an earlier stack or the user's
	Files     []string            `json:"files"`    // that changed; with DryRun, that would change
	Commands  []string            `json:"commands"` // for the user to run
}

// Request is one pull request.
type Request struct {
	Number int      `json:"number"` // in the stack, from 1
	Name   string   `json:"name"`   // of the patch
	Title  string   `json:"title"`
	Issue  string   `json:"issue"` // such as "Part of #1"
	Branch string   `json:"branch,omitempty"`
	Commit string   `json:"commit"`
	Lines  int      `json:"lines"` // as upstream's size check counts them
	Labels []string `json:"labels"`
	Text   string   `json:"text"` // file
	Mail   string   `json:"mail,omitempty"`

	layer fork.Layer
}

// slug is the request's place and name, as branches and files are called.
func (r *Request) slug() string { return fmt.Sprintf("%02d-%s", r.Number, r.Name) }

// placeholder ends the addresses of nobody (RFC 2606), such as that of the series' patches.
const placeholder = ".invalid"

// branchFolder is where the branches are.
const branchFolder = "mpsforge"

// Prepare makes the stack of commits, checks them, and writes a text for each pull request, and the branches or mails. On
// an error nothing is written but objects.
func Prepare(ctx context.Context, checkout *fork.Checkout, series *patches.Series, options Options, sink events.Sink) (*Prepared, error) {
	sink = events.OrDiscard(sink)
	finish := events.Step(sink, "pr")
	defer finish(events.Failed, "")
	if err := options.check(series); err != nil {
		return nil, err
	}
	for _, dir := range []string{options.Out, options.Mailbox} {
		if below, err := filepath.Rel(checkout.Dir(), dir); err == nil && filepath.IsLocal(below) {
			return nil, fmt.Errorf("%w: %s lies in the checkout, whose work tree stays as it is; name a folder elsewhere: --out, --mailbox", ErrOptions, dir)
		}
	}
	if options.Runs != nil && options.Runs.Refusal() != "" {
		sink.Emit(events.Message{Level: events.Warning, Text: fmt.Sprintf("without --dry-run this is refused: %v: %s", ErrNotRun, options.Runs.Refusal())})
	}
	carried, err := forUpstream(series, options.Author)
	if err != nil {
		return nil, err
	}
	only, err := wanted(series)
	if err != nil {
		return nil, err
	}
	stack, err := checkout.Stack(ctx, carried, options.Onto, only, sink)
	if err != nil {
		return nil, err
	}
	result := &Prepared{Checkout: checkout.Dir(), Baseline: series.Baseline.Name, Onto: stack.Onto, Ready: options.Ready, DryRun: options.DryRun,
		Requests: []*Request{}, Conflicts: stack.Conflicts, Branches: []fork.Branch{}, Stale: []string{}, Files: []string{}, Commands: []string{}}
	unnamed := ""
	for _, layer := range stack.Layers {
		if h := layer.Patch.Header; layer.Commit != "" && strings.HasSuffix(h.AuthorEmail, placeholder) {
			unnamed = h.AuthorName + " <" + h.AuthorEmail + ">"
		}
		result.Patches = append(result.Patches, layer.PortedPatch)
		if layer.Commit != "" {
			result.Requests = append(result.Requests, &Request{Number: len(result.Requests) + 1, Name: layer.Name, Title: layer.Patch.Header.Subject,
				Commit: layer.Commit, Labels: labels(layer.Patch), layer: layer})
		}
	}
	if len(result.Conflicts) > 0 || len(result.Requests) == 0 {
		finish(events.OK, fmt.Sprintf("conflicts: %d", len(result.Conflicts)))
		return result, nil
	}
	if err := linkIssues(result.Requests, series, options.Issue); err != nil {
		return nil, err
	}
	gate, err := readGate(ctx, checkout, stack.Onto)
	if err != nil {
		return nil, err
	}
	if err := gate.measure(result.Requests); err != nil {
		return result, err
	}
	if result.Lint, err = runLint(ctx, checkout, stack.Onto, result.Requests, sink); err != nil {
		return nil, err
	}
	if n := len(result.Lint.Findings); options.Ready && n > 0 { // a check that could not run is reported in the text
		return result, fmt.Errorf("%w: %d findings in style; fix them in the series (mpsforge apply, git rebase -i, "+
			"mpsforge export), or leave --ready out", ErrLint, n)
	}
	if err := result.write(ctx, checkout, series, options, sink); err != nil {
		return nil, err
	}
	if unnamed != "" {
		sink.Emit(events.Message{Level: events.Warning, Text: fmt.Sprintf(
			"the commits are by the placeholder %s, for whom nobody can sign upstream's CLA; before anything is pushed, name their author: "+
				"--author \"Name <address>\"", unnamed)})
	}
	finish(events.OK, fmt.Sprintf("pull requests: %d", len(result.Requests)))
	return result, nil
}

// check refuses what can be refused before any work.
func (o *Options) check(series *patches.Series) error {
	for flag, person := range map[string]string{"--author": o.Author, "--reviewed-by-human": o.Reviewer} {
		switch _, address, err := patches.ParseAuthor(person); {
		case person == "" && o.Ready:
			return fmt.Errorf(
				"%w: --ready needs %s \"Name <address>\": upstream accepts only work that a named person answers for (its AI_POLICY.md); leave "+
					"--ready out for drafts", ErrOptions, flag)
		case person == "":
		case err != nil:
			return fmt.Errorf("%w: %s: %w; write it like \"Name <address>\"", ErrOptions, flag, err)
		case strings.HasSuffix(address, placeholder):
			return fmt.Errorf("%w: %s: %s is a placeholder, not a person's address", ErrOptions, flag, address)
		}
	}
	if o.Issue != "" {
		if _, err := issueNumber(o.Issue); err != nil {
			return fmt.Errorf("%w: --issue: %w", ErrOptions, err)
		}
	}
	if o.Series != nil {
		if bad := o.Series.Of(patches.SeverityError); len(bad) > 0 {
			return fmt.Errorf("%w: %d errors in the series, the first: %s; mpsforge lint lists them", ErrLint, len(bad), bad[0])
		}
	}
	if o.Runs != nil && o.Runs.Refusal() != "" && !o.DryRun { // a dry run makes nothing that anybody could believe
		return fmt.Errorf("%w: %s", ErrNotRun, o.Runs.Refusal())
	}
	if o.Report == nil {
		return nil
	}
	switch is, want := o.Report.Identity, series.Digest(); {
	case o.Report.Shard != nil:
		return fmt.Errorf("%w: it is shard %s; mpsforge report merge makes a whole report of all shards", ErrPart, o.Report.Shard)
	case is.Baseline != series.Baseline.Name:
		return fmt.Errorf("%w: it is of baseline %s, the series is %s; make one: mpsforge verify --report FILE.json", ErrReport, is.Baseline,
			series.Baseline.Name)
	case is.SeriesDigest != want:
		return fmt.Errorf("%w: it verified the series with digest %.12s, this one has %.12s; make a new one: mpsforge verify --report FILE.json",
			ErrReport, is.SeriesDigest, want)
	case o.Ready && o.Report.Verdict != reports.Passed:
		return fmt.Errorf("%w: its verdict is %q; --ready needs one that passed", ErrReport, o.Report.Verdict)
	}
	return nil
}

// wanted names the patches that upstream is to get: all but those marked as not for it. It is empty for all.
func wanted(series *patches.Series) ([]string, error) {
	var names []string
	for _, patch := range series.Patches {
		if !strings.HasPrefix(upstreamStatus(patch), "Inappropriate") {
			names = append(names, patch.Name)
		}
	}
	switch len(names) {
	case 0:
		return nil, fmt.Errorf("%w: the series for %s has no patch for upstream: all have Upstream-Status: Inappropriate", ErrOptions, series.Baseline.Name)
	case len(series.Patches):
		return nil, nil
	}
	return names, nil
}

func upstreamStatus(patch *patches.Patch) string {
	return strings.Join(patch.Header.Values("Upstream-Status"), ", ")
}

// ownTrailers speak to the maintainer of the series and say nothing to upstream.
var ownTrailers = []string{"Upstream-Status", "Scenario", "BC-Note"}

// forUpstream gives the series with the messages, and if one is named the author, that upstream is to see.
func forUpstream(series *patches.Series, author string) (*patches.Series, error) {
	carried := &patches.Series{Baseline: series.Baseline}
	for _, patch := range series.Patches {
		copied := *patch
		h := patch.Header
		if author != "" {
			var err error
			if h.AuthorName, h.AuthorEmail, err = patches.ParseAuthor(author); err != nil {
				return nil, fmt.Errorf("%w: --author: %w", ErrOptions, err)
			}
		}
		copied.Header = patches.NewHeader(h.AuthorName, h.AuthorEmail, h.Date, h.Subject+"\n\n"+withoutTrailers(h))
		carried.Patches = append(carried.Patches, &copied)
	}
	return carried, nil
}

// withoutTrailers is a message's body without the trailers that are the series' own.
func withoutTrailers(h patches.Header) string {
	if len(h.Trailers) == 0 {
		return h.Body
	}
	lines := strings.Split(h.Body, "\n")
	start := 0 // of the last paragraph, which holds the trailers
	for i, line := range lines {
		if line == "" {
			start = i + 1
		}
	}
	kept, drop := lines[:start:start], false
	for _, line := range lines[start:] {
		if !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") { // else the line before goes on
			key, _, _ := strings.Cut(line, ":")
			drop = slices.Contains(ownTrailers, key)
		}
		if !drop {
			kept = append(kept, line)
		}
	}
	return strings.TrimRight(strings.Join(kept, "\n"), "\n")
}

var issueForm = regexp.MustCompile(`^(?:#|https://github\.com/pytorch/pytorch/issues/)?([1-9][0-9]*)$`)

func issueNumber(text string) (string, error) {
	m := issueForm.FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%q is not an issue of pytorch/pytorch; write its number", text)
	}
	return "#" + m[1], nil
}

// linkIssues gives each request its issue. One that the patch names itself is fixed by it; the one of the whole stack is
// fixed by its last part, since GitHub closes an issue with the first pull request that says so.
func linkIssues(requests []*Request, series *patches.Series, issue string) error {
	var none []string
	for i, request := range requests {
		at := slices.IndexFunc(series.Patches, func(p *patches.Patch) bool { return p.Name == request.Name })
		own := series.Patches[at].Header.Values("Fixes")
		var parts []string
		for _, text := range own {
			number, err := issueNumber(text)
			if err != nil {
				return fmt.Errorf("%w: patch %s: Fixes: %w", ErrOptions, request.Name, err)
			}
			parts = append(parts, "Fixes "+number)
		}
		if len(own) == 0 && issue == "" {
			none = append(none, request.Name)
			continue
		}
		if len(own) == 0 {
			number, err := issueNumber(issue)
			if err != nil {
				return fmt.Errorf("%w: --issue: %w", ErrOptions, err)
			}
			parts = []string{"Part of " + number}
			if i == len(requests)-1 {
				parts[0] = "Fixes " + number
			}
		}
		request.Issue = strings.Join(parts, ", ")
	}
	if len(none) > 0 {
		return fmt.Errorf("%w: upstream closes pull requests without a linked issue, and these patches name none: %s; give one for the stack: "+
			"--issue NUMBER, or a patch's own with a trailer Fixes: #NUMBER",
			ErrOptions, strings.Join(none, ", "))
	}
	return nil
}

func testsOnly(patch *patches.Patch) bool {
	return !slices.ContainsFunc(patch.Files, func(f *patches.File) bool { return !strings.HasPrefix(f.Path(), "test/") })
}

// labels are those that upstream's bots do not set by the paths alone, and the one that they set, for completeness.
func labels(patch *patches.Patch) []string {
	if testsOnly(patch) {
		return []string{"topic: not user facing", "ciflow/mps"}
	}
	return []string{"release notes: mps", "ciflow/mps"}
}

// write puts texts, mails and branches where they belong; the refs come last, in one transaction.
func (p *Prepared) write(ctx context.Context, checkout *fork.Checkout, series *patches.Series, options Options, sink events.Sink) error {
	var wanted []fork.Branch
	mails := map[string][]byte{}
	for _, request := range p.Requests {
		request.Text = filepath.Join(options.Out, request.slug()+".md")
		if options.Mailbox != "" {
			name := request.slug() + ".patch"
			request.Mail = filepath.Join(options.Mailbox, name)
			mails[name] = request.layer.Patch.Raw
			continue
		}
		request.Branch = branchFolder + "/" + request.slug()
		wanted = append(wanted, fork.Branch{Name: request.Branch, Commit: request.Commit})
	}
	texts, err := p.texts(ctx, checkout, series, options, sink)
	if err != nil {
		return err
	}
	folders := []*folder{{dir: options.Out, files: texts}}
	if options.Mailbox != "" {
		folders = append(folders, &folder{dir: options.Mailbox, files: mails})
	} else {
		branches, err := checkout.MakeBranches(ctx, branchFolder, wanted, options.Replace, true)
		if err != nil {
			return err
		}
		p.Branches, p.Stale = branches.Made, branches.Stale
	}
	for _, f := range folders {
		changed, err := f.write(options.DryRun)
		if err != nil {
			return err
		}
		p.Files = append(p.Files, changed...)
	}
	if options.Mailbox == "" && !options.DryRun {
		if _, err := checkout.MakeBranches(ctx, branchFolder, wanted, options.Replace, false); err != nil {
			return err
		}
	}
	p.Commands = p.commands()
	return nil
}
