package ci

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"mpsforge/reports"
)

// ErrNoActions is returned, wrapped, by what needs a step of GitHub Actions around it.
var ErrNoActions = errors.New("this is not a step of GitHub Actions")

// SummaryLimit is how many bytes GitHub takes for the summary of one step. Of a longer one it shows nothing at all:
// "$GITHUB_STEP_SUMMARY upload aborted, supports content up to a size of 1024k".
const SummaryLimit = 1 << 20

// annotationLimit is how many annotations of one kind GitHub keeps of one step; it drops the rest without a word.
const annotationLimit = 10

// WriteSummary writes the report as a step summary of at most limit bytes. One that is longer is cut between two lines, with a
// sentence at its end that says so.
func WriteSummary(w io.Writer, report *reports.Report, limit int) error {
	var whole bytes.Buffer
	if err := report.WriteMarkdown(&whole); err != nil {
		return fmt.Errorf("write the step summary: %w", err)
	}
	if _, err := w.Write(cutMarkdown(whole.Bytes(), limit)); err != nil {
		return fmt.Errorf("write the step summary: %w", err)
	}
	return nil
}

// cutMarkdown cuts a text to the limit, and closes what is open there, a fence or details, so that what follows in the
// summary is not swallowed. Where not even the sentence fits, nothing is left.
func cutMarkdown(text []byte, limit int) []byte {
	if len(text) <= limit {
		return text
	}
	sentence := fmt.Sprintf("\n**Cut here.** The report is %d bytes long and GitHub shows at most %d of a step. The report file holds all of it; "+
		"`mpsforge report FILE` prints it.\n", len(text), SummaryLimit)
	var kept bytes.Buffer
	fence, details := "", 0
	end := 0
	ending := sentence
	for line := range bytes.Lines(text) {
		trimmed := strings.TrimSpace(string(line))
		ticks := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
		switch {
		case fence != "" && trimmed == fence:
			fence = ""
		case fence == "" && len(ticks) >= 3:
			fence = ticks
		case fence == "":
			details += strings.Count(trimmed, "<details>") - strings.Count(trimmed, "</details>")
		}
		kept.Write(line)
		closing := ""
		if fence != "" {
			closing = fence + "\n"
		}
		closing += strings.Repeat("\n</details>\n", max(0, details)) + sentence
		if kept.Len()+len(closing) > limit {
			break
		}
		end, ending = kept.Len(), closing
	}
	if end == 0 && len(sentence) > limit {
		return nil
	}
	return append(kept.Bytes()[:end:end], ending...)
}

// Annotation is a remark that GitHub shows on a run, and in the changed file where it names one.
type Annotation struct {
	Level   string `json:"level"` // error or warning
	File    string `json:"file,omitempty"`
	Line    string `json:"line,omitempty"`
	Title   string `json:"title"`
	Message string `json:"message"`
}

// String is the workflow command that makes GitHub show the annotation.
func (a Annotation) String() string {
	var properties []string
	for _, property := range [][2]string{{"file", a.File}, {"line", a.Line}, {"title", a.Title}} {
		if property[1] != "" {
			properties = append(properties, property[0]+"="+escapeProperty(property[1]))
		}
	}
	return fmt.Sprintf("::%s %s::%s", a.Level, strings.Join(properties, ","), escapeData(a.Message))
}

// escapeData writes a text so that it stays one workflow command, as GitHub's own toolkit does (@actions/core, command.ts).
func escapeData(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text)
}

func escapeProperty(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(text)
}

// place is the subject of a check that looked at one line of a file.
var place = regexp.MustCompile(`^([^\s:]+):(\d+)$`)

// Annotations are the report's failures as errors, and required or wanted stages that could not run as warnings, in order.
// GitHub keeps ten of each kind, so the tenth counts the rest.
func Annotations(report *reports.Report) []Annotation {
	var failures, warnings []Annotation
	for _, stage := range report.Stages {
		failed := 0
		for _, check := range stage.Checks {
			if check.Verdict != reports.Failed {
				continue
			}
			failed++
			a := Annotation{Level: "error", Title: stage.Name + ": " + check.Name, Message: check.Detail}
			if at := place.FindStringSubmatch(check.Subject); at != nil {
				a.File, a.Line = at[1], at[2]
			} else if check.Subject != "" {
				a.Title += " (" + check.Subject + ")"
			}
			if check.Detail == "" {
				a.Message = "the check failed; the report has more"
			}
			failures = append(failures, a)
		}
		switch {
		case stage.Verdict == reports.Failed && failed == 0:
			failures = append(failures, Annotation{Level: "error", Title: "stage " + stage.Name + " failed", Message: stage.Reason})
		case stage.Verdict == reports.Skipped && !slices.Contains(report.Missing, stage.Name):
			warnings = append(warnings, Annotation{Level: "warning", Title: "stage " + stage.Name + " did not run", Message: stage.Reason})
		}
	}
	for _, name := range report.Missing {
		reason := "no verdict; see the stages in the summary"
		if stage := report.Stage(name); stage != nil && stage.Reason != "" {
			reason = stage.Reason
		}
		failures = append(failures, Annotation{Level: "error", Title: "required stage " + name + " did not run", Message: reason})
	}
	return append(bound(failures, "errors"), bound(warnings, "warnings")...)
}

// bound keeps as many annotations of a kind as GitHub does.
func bound(all []Annotation, kind string) []Annotation {
	if len(all) <= annotationLimit {
		return all
	}
	rest := len(all) - annotationLimit + 1
	return append(all[:annotationLimit-1:annotationLimit-1], Annotation{Level: all[0].Level, Title: fmt.Sprintf("%d more %s", rest, kind),
		Message: "GitHub shows ten annotations of a step; the report has all of them"})
}
