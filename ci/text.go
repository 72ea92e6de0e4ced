package ci

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"unicode"

	"mpsforge/fork"
	"mpsforge/internal/events"
	"mpsforge/patches"
	"mpsforge/reports"
)

//go:embed pull_request.md.tmpl
var requestText string

// page is what the template of a pull request's text shows.
type page struct {
	*Request
	Ready              bool
	Total              int
	Words              string // the user's own, with the marks around them
	Below, Onto        string // title of the part below; the commit that the stack is on
	Checklist          []item
	Commands           string
	Evidence           string
	Benchmark, BC      string
	Disclosure         string
	Message            string
	baseline           string
	report             *reports.Report
	onBase             bool // the stack is on the commit that the report's series was on
	first              bool // it is no part of a stack
	author, reviewedBy string
}

// item is a line of the checklist.
type item struct {
	Done bool
	Text string
}

// upstreamTemplate is what upstream asks a text to follow. Its text is not copied: its headings are compared.
const upstreamTemplate = ".github/PULL_REQUEST_TEMPLATE/fix_issue.md"

// texts renders all texts, by file name. What the user wrote between the marks of an earlier run is kept.
func (p *Prepared) texts(ctx context.Context, checkout *fork.Checkout, series *patches.Series, options Options, sink events.Sink) (map[string][]byte, error) {
	form, err := template.New("pull request").Funcs(template.FuncMap{"code": code, "fence": fence}).Parse(requestText)
	if err != nil {
		return nil, fmt.Errorf("read the form of a pull request's text: %w", err)
	}
	base, _ := checkout.Base()
	texts := map[string][]byte{}
	var wordless []string
	for i, request := range p.Requests {
		words, err := ownWords(options.Out, request.Name)
		if err != nil {
			return nil, err
		}
		if words == "" {
			wordless = append(wordless, request.Name)
		}
		at := slices.IndexFunc(series.Patches, func(patch *patches.Patch) bool { return patch.Name == request.Name })
		one := page{Request: request, Ready: options.Ready, Total: len(p.Requests), Words: wordsBegin + "\n" + words + wordsEnd, Onto: code(short(p.Onto)),
			Message: request.layer.Patch.Header.Body, baseline: series.Baseline.Name, report: options.Report, onBase: base == p.Onto, first: options.First,
			author: request.layer.Patch.Header.AuthorName, reviewedBy: options.Reviewer}
		if i > 0 {
			one.Below = p.Requests[i-1].Title
		}
		if one.onBase || base == "" {
			one.Onto = series.Baseline.Name + " (" + one.Onto + ")"
		}
		one.Checklist = one.checklist(p, i)
		one.Commands = one.commands()
		one.Evidence = one.evidence(series.Patches[at].Header.Values("Scenario"))
		one.Benchmark = one.benchmark()
		one.BC = one.compatibility(series.Patches[at].Header.Values("BC-Note"))
		one.Disclosure = one.disclosure()
		var text bytes.Buffer
		if err := form.Execute(&text, one); err != nil {
			return nil, fmt.Errorf("write the text of %s: %w", request.Name, err)
		}
		texts[filepath.Base(request.Text)] = text.Bytes()
	}
	if options.Ready && len(wordless) > 0 {
		sink.Emit(events.Message{Level: events.Warning, Text: fmt.Sprintf(
			"upstream's AI policy wants a human's own words beside what was written with AI: add them between the marks under Summary of %s, in %s",
			strings.Join(wordless, ", "), options.Out)})
	}
	return texts, p.compareTemplate(ctx, checkout, texts, sink)
}

// compareTemplate warns of headings that upstream's template has and the texts lack.
func (p *Prepared) compareTemplate(ctx context.Context, checkout *fork.Checkout, texts map[string][]byte, sink events.Sink) error {
	wanted, err := checkout.File(ctx, p.Onto, upstreamTemplate)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(wanted)) {
		for _, text := range texts {
			if strings.HasPrefix(line, "## ") && !strings.Contains(string(text), strings.TrimSpace(line)+"\n") {
				sink.Emit(events.Message{Level: events.Warning,
					Text: fmt.Sprintf("%s of %s has a section %q, which the texts lack: add it by hand, and report this as a bug of mpsforge",
						upstreamTemplate, short(p.Onto), strings.TrimSpace(line))})
				break
			}
		}
	}
	return nil
}

func (p *page) checklist(prepared *Prepared, i int) []item {
	var tests, docs, later []string
	for _, file := range p.layer.Patch.Files {
		switch path := file.Path(); {
		case strings.HasPrefix(path, "test/"):
			tests = append(tests, code(path))
		case strings.HasPrefix(path, "docs/"):
			docs = append(docs, code(path))
		}
	}
	for _, other := range prepared.Requests[i+1:] {
		if slices.ContainsFunc(other.layer.Patch.Files, func(f *patches.File) bool { return strings.HasPrefix(f.Path(), "test/") }) {
			later = append(later, fmt.Sprintf("part %d", other.Number))
		}
	}
	tested := "Added/updated tests: " + strings.Join(tests, ", ")
	switch {
	case len(tests) == 0 && len(later) > 0:
		tested = "Added/updated tests: not in this part, but in " + strings.Join(later, " and ")
	case len(tests) == 0:
		tested = "Added/updated tests: none in PyTorch's own suite"
	}
	documented := "Updated documentation (if applicable): " + strings.Join(docs, ", ")
	if len(docs) == 0 {
		documented = "Updated documentation (if applicable): nothing below `docs/` is changed"
	}
	measured := "Included benchmark results (for PRs impacting perf)"
	clean, how := prepared.Lint.of(p.Name)
	return []item{{clean, "Passes lint (`spin fixlint`): " + how}, {len(tests) > 0, tested}, {len(docs) > 0, documented},
		{p.bench() != nil && p.Number == p.Total, measured}}
}

// commands are what a reviewer can run, exactly.
func (p *page) commands() string {
	built := "  # on a Mac, with this stack built"
	if p.first {
		built = "  # on a Mac, with this change built"
	}
	var lines []string
	for _, file := range p.layer.Patch.Files {
		if strings.HasPrefix(file.Path(), "test/test_") {
			lines = append(lines, "python "+file.Path()+built)
		}
	}
	if p.testsOnly() {
		return strings.Join(append(lines, fmt.Sprintf("mpsforge verify --baseline %s --stages python  # on Linux, over a software Metal", p.baseline)), "\n")
	}
	if len(lines) == 0 {
		lines = append(lines, "python test/test_mps.py"+built)
	}
	if p.first {
		return strings.Join(append(lines,
			"go test -run TestFirstPullRequestKeepsThreadsAlive ./validate/stages/runtime  # in mpsforge's repository, on Linux, over a software Metal"), "\n")
	}
	return strings.Join(append(lines,
		fmt.Sprintf("mpsforge verify --baseline %s --stages conformance,runtime,python --ablate %s  # on Linux, over a software Metal", p.baseline,
			p.Name)), "\n")
}

func (p *page) testsOnly() bool { return testsOnly(p.layer.Patch) }

// maxDetail is how much of a check's detail a table shows, in characters.
const maxDetail = 100

// evidence is what the report says: of this part's scenarios, and of the run as a whole.
func (p *page) evidence(scenarios []string) string {
	if p.first {
		return "The last command above compiles and runs these sources on Linux, over a software Metal; its output is not attached. " +
			"**No Apple GPU was used.**\n"
	}
	if p.report == nil {
		return "No verification report was given, so nothing here is shown to have run.\n"
	}
	var b strings.Builder
	what := fmt.Sprintf("From a report of %s verify: %s%s, %s, %s.", code(p.report.Tool.Name+" "+p.report.Tool.Version), prose(p.report.Conclusion()),
		map[bool]string{true: ", short form"}[p.report.Quick], code(p.report.Machine.System), p.report.Started.UTC().Format("2006-01-02"))
	if !p.report.Machine.MetalRan {
		what += " **No Apple GPU was used**: the sources ran on a CPU, over a software Metal."
	}
	if !p.onBase {
		what += fmt.Sprintf(" It verified the series on %s, not on the commit that this stack is on.", p.baseline)
	}
	fmt.Fprintf(&b, "%s\n\n| scenario of this part | unpatched | with the whole stack |\n| --- | --- | --- |\n", what)
	for _, scenario := range scenarios {
		stock, patched := p.outcome(scenario, "stock"), p.outcome(scenario, "patched")
		if stage := p.report.Stage(lastWord(scenario)); stock+patched == "" && stage != nil {
			patched = string(stage.Verdict)
		} else if stock+patched == "" {
			patched = "not in this report"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(scenario), cell(stock), cell(patched))
	}
	if without := p.outcome("without "+p.Name, ""); without != "" {
		fmt.Fprintf(&b, "\nWith this part left out: %s\n", code(without))
	} else if p.testsOnly() {
		b.WriteString("\nThis part has only tests.\n")
	} else {
		b.WriteString("\nThat run never left this part out, so it does not show that the scenarios need it.\n")
	}
	b.WriteString("\n<details><summary>All stages of that run</summary>\n\n| stage | verdict | seconds | reason |\n| --- | --- | ---: | --- |\n")
	for _, stage := range p.report.Stages {
		fmt.Fprintf(&b, "| %s | %s | %.0f | %s |\n", cell(stage.Name), prose(string(stage.Verdict)), stage.Seconds, cell(stage.Reason))
	}
	b.WriteString("\n</details>\n")
	return b.String()
}

// outcome is the detail of the first check of that name about a subject of that kind; empty if the report has none.
func (p *page) outcome(name, subject string) string {
	for _, stage := range p.report.Stages {
		for _, check := range stage.Checks {
			if check.Name == name && strings.HasPrefix(check.Subject, subject) {
				return cut(check.Detail, maxDetail)
			}
		}
	}
	return ""
}

// bench is the stage with the benchmarks, if it ran.
func (p *page) bench() *reports.Stage {
	if p.report == nil {
		return nil
	}
	if stage := p.report.Stage("bench"); stage != nil && len(stage.Tables) > 0 {
		return stage
	}
	return nil
}

// benchmark shows the numbers, which are the whole stack's, in its last part.
func (p *page) benchmark() string {
	stage := p.bench()
	if stage == nil {
		return "None was measured."
	}
	if p.Number != p.Total {
		return fmt.Sprintf("This part was not measured alone; part %d has the numbers of the whole stack.", p.Total)
	}
	var b strings.Builder
	for i, table := range stage.Tables {
		if i > 0 {
			b.WriteString("\n\n")
		}
		fmt.Fprintf(&b, "%s. %s\n\n|", prose(table.Title), prose(table.Note))
		for _, column := range table.Columns {
			fmt.Fprintf(&b, " %s |", cell(column))
		}
		b.WriteString("\n|" + strings.Repeat(" --- |", len(table.Columns)))
		for _, row := range table.Rows {
			b.WriteString("\n|")
			for _, value := range row {
				fmt.Fprintf(&b, " %s |", cell(value))
			}
		}
	}
	return b.String()
}

// compatibility is what the patch says itself, and the facts about headers that out-of-tree extensions include.
func (p *page) compatibility(notes []string) string {
	text := "No."
	if !p.Ready {
		text = "No; the reviewer should confirm this."
	}
	if len(notes) > 0 {
		text = prose(strings.Join(notes, " "))
	}
	for _, file := range p.layer.Patch.Files {
		classes := patches.ABIClasses(file.Path())
		if classes == "" {
			continue
		}
		text += fmt.Sprintf("\n- %s, which extensions include, is changed", code(file.Path()))
		for _, check := range p.layouts() {
			class, _, _ := strings.Cut(check.Subject[strings.LastIndex(check.Subject, ":")+1:], ",")
			if strings.Contains(classes, class) {
				text += fmt.Sprintf("; %s in the report: %s", code(class), code(cut(check.Detail, 3*maxDetail)))
			}
		}
	}
	return text
}

// layouts are the report's checks of sizes and offsets.
func (p *page) layouts() []reports.Check {
	var found []reports.Check
	if p.report != nil {
		for _, stage := range p.report.Stages {
			for _, check := range stage.Checks {
				if check.Name == "layout" {
					found = append(found, check)
				}
			}
		}
	}
	return found
}

func (p *page) disclosure() string {
	const assisted = "AI assistance was used: code, tests, commit message and this text were written with AI tools."
	if !p.Ready {
		return assisted + " **No human has reviewed this part yet.** Before it leaves draft, a named person has to read it, understand it and own " +
			"it, as `AI_POLICY.md` asks."
	}
	reviewer, _, err := patches.ParseAuthor(p.reviewedBy)
	if err != nil { // refused before
		reviewer = p.reviewedBy
	}
	return fmt.Sprintf("%s %s has reviewed all of it and answers for it; the author of the commit is %s.", assisted, code(reviewer), code(p.author))
}

// The marks between which a text is the user's.
const (
	wordsBegin = "<!-- Your own words, at most a paragraph. What is between these two comments is kept by mpsforge pr. -->"
	wordsEnd   = "<!-- End of your own words. -->"
)

// ownWords takes what the user wrote into the text of a patch, whatever number it had; empty, or ending in a newline.
func ownWords(dir, name string) (string, error) {
	files, err := filepath.Glob(filepath.Join(quoteGlob(dir), "[0-9][0-9]-"+name+".md"))
	if err != nil {
		return "", fmt.Errorf("look for earlier texts: %w", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read an earlier text: %w", err)
		}
		_, after, begun := strings.Cut(string(text), wordsBegin)
		words, _, ended := strings.Cut(after, wordsEnd)
		if !begun || !ended {
			return "", fmt.Errorf("%w: %s has lost the comments around your own words; move the file away, run again, and put them back in", ErrText, file)
		}
		if words = strings.TrimSpace(words); words != "" {
			return words + "\n", nil
		}
	}
	return "", nil
}

func quoteGlob(text string) string {
	return regexp.MustCompile(`[\\*?\[]`).ReplaceAllString(text, `\$0`)
}

// folder is one whose files are to become what files says; others that an earlier run made for these patches go.
type folder struct {
	dir   string
	files map[string][]byte
}

var madeFile = regexp.MustCompile(`^[0-9][0-9]-(.+)$`)

// write gives the files that changed, or would with dry.
func (f *folder) write(dry bool) ([]string, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("write pull requests: %w", err)
	}
	names := map[string]bool{}
	for name := range f.files {
		names[madeFile.FindStringSubmatch(name)[1]] = true
	}
	var remove []string
	for _, entry := range entries {
		m := madeFile.FindStringSubmatch(entry.Name())
		if m != nil && names[m[1]] && f.files[entry.Name()] == nil {
			remove = append(remove, entry.Name())
		}
	}
	var changed []string
	if dry {
		changed = remove
		for name, content := range f.files {
			if was, err := os.ReadFile(filepath.Join(f.dir, name)); err != nil || !bytes.Equal(was, content) {
				changed = append(changed, name)
			}
		}
	} else if changed, err = patches.Rewrite(f.dir, f.files, remove); err != nil {
		return nil, err
	}
	slices.Sort(changed)
	for i, name := range changed {
		changed[i] = filepath.Join(f.dir, name)
	}
	return changed, nil
}

// code shows outside text in a code span, where nothing of it is Markdown, HTML, a mention or a link to an issue.
func code(text string) string {
	text = printable(text)
	run, longest := 0, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	ticks := strings.Repeat("`", longest+1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return ticks + text + ticks
}

// cell is code in a table, where a vertical bar ends it otherwise.
func cell(text string) string {
	if text == "" {
		return "-"
	}
	return strings.ReplaceAll(code(text), "|", `\|`)
}

var markup = regexp.MustCompile("[\\\\`*_{}\\[\\]<>()#+!|~&@]")

// prose shows outside text as running text of which nothing is Markdown or HTML.
func prose(text string) string { return markup.ReplaceAllString(printable(text), `\$0`) }

// fence shows text as a block of code.
func fence(kind, text string) string {
	ticks := "```"
	for strings.Contains(text, ticks) {
		ticks += "`"
	}
	return ticks + kind + "\n" + text + "\n" + ticks
}

// printable makes one line of a text and replaces what could do more than be seen.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.TrimSpace(text))
}

func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return strings.TrimSpace(string(runes[:most-1])) + "…"
	}
	return text
}

func short(commit string) string { return commit[:min(len(commit), 12)] }

func lastWord(text string) string { return text[strings.LastIndex(text, " ")+1:] }
