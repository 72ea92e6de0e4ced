package reports

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// The elements of JUnit's XML, as Jenkins, GitLab and GitHub's actions read it: https://github.com/testmoapp/junitxml
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string           `xml:"name,attr"`
	Tests      int              `xml:"tests,attr"`
	Failures   int              `xml:"failures,attr"`
	Skipped    int              `xml:"skipped,attr"`
	Time       string           `xml:"time,attr"`
	Timestamp  string           `xml:"timestamp,attr"`
	Properties *junitProperties `xml:"properties"`
	Cases      []junitCase      `xml:"testcase"`
}

type junitProperties struct {
	All []junitProperty `xml:"property"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitMessage `xml:"failure"`
	Skipped *junitMessage `xml:"skipped"`
	Output  string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit renders the report for CI systems: a suite for each stage, a case for each check. A stage that has no
// checks, because it did not run or broke down, is a case of its own, so that it cannot be overlooked.
func (r *Report) WriteJUnit(w io.Writer) error {
	all := junitSuites{Name: "mpsforge " + r.Identity.Baseline + ", " + r.Place(), Time: junitTime(r.Seconds)}
	for i := range r.Stages {
		suite := r.Stages[i].junit(r)
		suite.Timestamp = r.Started.UTC().Format(time.RFC3339)
		if len(all.Suites) == 0 {
			suite.Properties = &junitProperties{All: []junitProperty{{"result", r.Conclusion()}, {"ran", r.Place()}}}
			for _, row := range r.identity() {
				suite.Properties.All = append(suite.Properties.All, junitProperty(row))
			}
		}
		all.Tests, all.Failures, all.Skipped = all.Tests+suite.Tests, all.Failures+suite.Failures, all.Skipped+suite.Skipped
		all.Suites = append(all.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w) // it replaces what XML cannot hold
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *Stage) junit(r *Report) junitSuite {
	suite := junitSuite{Name: s.Name, Time: junitTime(s.Seconds)}
	add := func(one junitCase, verdict Verdict, reason, text string) {
		message := &junitMessage{Message: reason, Text: text}
		suite.Tests++
		switch verdict {
		case Passed:
		case Failed:
			suite.Failures++
			one.Failure = message
		default:
			suite.Skipped++
			one.Skipped = message
		}
		suite.Cases = append(suite.Cases, one)
	}
	failed := false
	for _, check := range s.Checks {
		failed = failed || check.Verdict == Failed
		one := junitCase{Name: check.Name, Class: strings.TrimSuffix(s.Name+"."+check.Subject, "."), Time: junitTime(check.Seconds)}
		if check.Artifact != "" {
			one.Output = "kept: " + check.Artifact
		}
		add(one, check.Verdict, check.Detail, check.Output)
	}
	if s.Verdict == Failed && !failed || s.Verdict != Failed && s.Verdict != Passed {
		reason := strings.TrimSuffix(string(s.Verdict)+": "+s.Reason, ": ")
		verdict := s.Verdict
		for _, missing := range r.Missing {
			if missing == s.Name {
				verdict, reason = Failed, "required, but "+reason
			}
		}
		add(junitCase{Name: "stage " + s.Name, Class: s.Name, Time: junitTime(0)}, verdict, reason, "")
	}
	return suite
}

func junitTime(seconds float64) string { return fmt.Sprintf("%.3f", seconds) }
