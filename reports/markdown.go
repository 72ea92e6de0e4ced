package reports

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"mpsforge/internal/words"
)

// marks are before verdicts, so that a table can be read at a glance without colour.
var marks = map[Verdict]string{Passed: "✓", Failed: "✗", Skipped: "○", NotRun: "–"}

// WriteMarkdown renders the report for people. Headings start at the third level, as a GitHub step summary wants them.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	verdict, place := r.headline()
	fmt.Fprintf(&b, "### mpsforge: %s %s\n\n%s\n\n", marks[r.Verdict], verdict, place)
	for _, line := range r.Answer() {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	fmt.Fprintf(&b, "\n#### Stages\n\n| stage | verdict | seconds | counts | reason |\n| --- | --- | ---: | --- | --- |\n")
	for _, stage := range r.Stages {
		fmt.Fprintf(&b, "| %s | %s %s | %.1f | %s | %s |\n", stage.Name, marks[stage.Verdict], stage.Verdict, stage.Seconds, counts(stage.Counts),
			cell(stage.Reason))
	}
	for _, stage := range r.Stages {
		if len(stage.Checks)+len(stage.Facts)+len(stage.Tables)+len(stage.Plots) > 0 {
			stage.section(&b)
		}
	}
	fmt.Fprintf(&b, "\n#### What this run cannot show\n\n")
	for _, limit := range r.Limits {
		fmt.Fprintf(&b, "- %s\n", limit)
	}
	b.WriteString("\n#### What was verified, with what and where\n\n| what | |\n| --- | --- |\n")
	for _, row := range r.identity() {
		fmt.Fprintf(&b, "| %s | %s |\n", row.Name, cell(row.Value))
	}
	_, err := io.WriteString(w, plain(b.String()))
	return err
}

// headline is the report in one line, and what it was run on in another.
func (r *Report) headline() (verdict, place string) {
	known := ""
	if r.Identity.BaseProof != "" {
		known = "; base: " + strings.TrimSuffix(cut(r.Identity.BaseProof), ".")
	}
	return strings.TrimPrefix(r.Verification(), "verification "), fmt.Sprintf("%s. PyTorch %s, patches: %d%s. %.1f s%s.", words.Sentence(r.Place()),
		r.Identity.Baseline, len(r.Identity.Patches), known, r.Seconds, map[bool]string{true: ", quick form"}[r.Quick])
}

// identity lists what was verified, with what and where, as names and values; without those that are not known.
func (r *Report) identity() []Fact {
	metal := "no: everything ran on this machine's CPU"
	if r.Machine.MetalRan {
		metal = "yes"
	}
	patches := strings.Join(r.Identity.Patches, ", ")
	var settings []string
	for _, name := range slices.Sorted(maps.Keys(r.Settings)) {
		settings = append(settings, name+"="+r.Settings[name])
	}
	merged := ""
	if r.Merged > 0 {
		merged = fmt.Sprintf("%d shards; machine and checkout are the first one's, seconds are those of all", r.Merged)
	}
	all := []Fact{
		{"merged from", merged},
		{"tool", strings.TrimSpace(r.Tool.Name + " " + r.Tool.Version + " " + r.Tool.Commit)},
		{"started", r.Started.UTC().Format("2006-01-02 15:04:05 UTC")},
		{"machine", fmt.Sprintf("%s, %d cores", r.Machine.System, r.Machine.Cores)},
		{"git", r.Machine.Git},
		{"real Metal used", metal},
		{"baseline", r.Identity.Baseline},
		{"series digest", r.Identity.SeriesDigest},
		{"patches", patches},
		{"checkout", r.Identity.Checkout},
		{"base commit", r.Identity.BaseCommit},
		{"base known by", r.Identity.BaseProof},
		{"HEAD commit", r.Identity.HeadCommit},
		{"HEAD tree", r.Identity.HeadTree},
		{"seed", fmt.Sprint(r.Seed)},
		{"from .mpsforge.toml", strings.Join(settings, " ")},
	}
	return slices.DeleteFunc(all, func(row Fact) bool { return row.Value == "" })
}

func (s *Stage) section(b *strings.Builder) {
	fmt.Fprintf(b, "\n#### %s: %s\n\n", s.Name, s.Question)
	for _, fact := range s.Facts {
		fmt.Fprintf(b, "- %s: `%s`\n", fact.Name, fact.Value)
	}
	if len(s.Seeds) > 0 {
		fmt.Fprintf(b, "- seeds: %s\n", strings.Trim(fmt.Sprint(s.Seeds), "[]"))
	}
	for _, table := range s.Tables {
		table.write(b)
	}
	for _, plot := range s.Plots {
		plot.write(b)
	}
	s.threadGrid().markdown(b)
	if len(s.Checks) == 0 {
		return
	}
	fmt.Fprintf(b, "\n| check | subject | rule | verdict | seconds | detail |\n| --- | --- | --- | --- | ---: | --- |\n")
	for _, check := range s.Checks {
		fmt.Fprintf(b, "| %s | %s | %s | %s %s | %.2f | %s |\n", cell(check.Name), check.Subject, check.Rule, marks[check.Verdict], check.Verdict,
			check.Seconds, cell(check.Detail))
	}
	for _, check := range s.Checks {
		if check.Verdict != Failed || check.Output == "" && check.Artifact == "" && len(check.Findings) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n<details><summary>%s</summary>\n\n", check.Name)
		if check.Artifact != "" {
			fmt.Fprintf(b, "kept: `%s`\n\n", check.Artifact)
		}
		for _, found := range check.Findings {
			fmt.Fprintf(b, "- %s\n", found.text())
		}
		if check.Output != "" {
			fmt.Fprintf(b, "````\n%s\n````\n\n", strings.TrimRight(check.Output, "\n"))
		}
		b.WriteString("</details>\n")
	}
}

// text is a finding with both sides, in one line.
func (f Finding) text() string {
	text := f.Kind
	if f.Threads > 0 {
		text += " at " + inThreads(fmt.Sprint(f.Threads))
	}
	text += ": " + cell(f.Message)
	for _, side := range [][2]string{{"first", f.First}, {"second", f.Second}, {"signature", f.Signature}} {
		if side[1] != "" {
			text += "; " + side[0] + ": " + cell(side[1])
		}
	}
	return text
}

func (t Table) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n**%s**\n\n", t.Title)
	if t.Note != "" {
		fmt.Fprintf(b, "%s\n\n", t.Note)
	}
	for i, row := range append([][]string{t.Columns}, t.Rows...) {
		for _, text := range row {
			fmt.Fprintf(b, "| %s ", cell(text))
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString(strings.Repeat("| --- ", len(row)) + "|\n")
		}
	}
}

func (p Plot) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n**%s** (%s)\n\n```\n", p.Title, p.Unit)
	p.writeBars(b, PipeWidth)
	b.WriteString("```\n")
}

// markdown writes the thread grid, folded: the tables above it say the same where a stage has them.
func (g grid) markdown(b *strings.Builder) {
	if len(g.Rows)+len(g.Wide) == 0 {
		return
	}
	fmt.Fprintf(b, "\n<details><summary>thread grid</summary>\n\n%s\n\n%s\n", legend(), g.signatures())
	if len(g.Rows) > 0 {
		b.WriteString("\n| check | on |")
		for _, threads := range g.Threads {
			fmt.Fprintf(b, " %d |", threads)
		}
		b.WriteString("\n| --- | --- |" + strings.Repeat(" --- |", len(g.Threads)) + "\n")
		for _, row := range g.Rows {
			fmt.Fprintf(b, "| %s | %s |", map[bool]string{true: cell(row.Check.Name)}[row.First], row.Subject)
			for _, one := range row.Cells {
				fmt.Fprintf(b, " %s |", cell(one.text()))
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n")
	for _, row := range g.Wide {
		fmt.Fprintf(b, "- %s, %s: %s\n", row.Check.Name, row.Subject, rangesText(row.Cells))
	}
	b.WriteString("\n</details>\n")
}

func rangesText(cells []Cell) string {
	var parts []string
	for _, one := range ranges(cells) {
		parts = append(parts, one.threads()+" "+one.Cell.text())
	}
	return strings.Join(parts, "; ")
}

// counts renders counters in a fixed order.
func counts(values map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, fmt.Sprintf("%s: %d", name, values[name]))
	}
	return cell(strings.Join(parts, ", "))
}

// cellText is made once: a report can have a million cells.
var cellText = strings.NewReplacer("\n", " ", "|", `\|`)

// cell makes text fit into a table cell.
func cell(text string) string { return cellText.Replace(strings.TrimSpace(text)) }
