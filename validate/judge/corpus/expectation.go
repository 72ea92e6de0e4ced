package corpus

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"mpsforge/native/script"
)

// Expectation says what a program must lead to. In words, with what may be left out in brackets:
//
//	clean                                               nothing found, no expectation of the program failed
//	race on buffer NAME [in some schedules]
//	KIND [with signature N] [in some schedules][: TEXT] violation, deadlock, lifetime or model; the finding holds TEXT
//
// What is not in some schedules is in every run, whatever the seed.
type Expectation struct {
	Kind      script.Kind // of the finding; empty: clean
	Signature int         // of a violation or model
	Text      string      // that the finding's message holds; of a race: the buffer
	// Some: in some schedules, because the order depends on the schedule: a race only on that buffer, a model's
	// observation.
	Some bool
}

// Clean is what programs without a fault must be.
var Clean = Expectation{}

var (
	raceWords    = regexp.MustCompile(`^race on buffer (\w+)( in some schedules)?$`)
	findingWords = regexp.MustCompile(`^(violation|deadlock|lifetime|model)(?: with signature ([1-9]\d*))?( in some schedules)?(?:: (.+))?$`)
)

// ParseExpectation reads an expectation in words.
func ParseExpectation(words string) (Expectation, error) {
	if words == "clean" {
		return Clean, nil
	}
	if found := raceWords.FindStringSubmatch(words); found != nil {
		return Expectation{Kind: script.Race, Text: found[1], Some: found[2] != ""}, nil
	}
	found := findingWords.FindStringSubmatch(words)
	if found == nil {
		return Expectation{}, fmt.Errorf("%q is not an expectation: clean, race on buffer NAME [in some schedules], or violation, deadlock, "+
			"lifetime or model [with signature N] [in some schedules][: TEXT]", words)
	}
	w := Expectation{Kind: script.Kind(found[1]), Some: found[3] != "", Text: found[4]}
	if w.Some != (w.Kind == script.Model) { // a model's observation takes two threads that meet; the others always come
		return Expectation{}, fmt.Errorf("%q is not an expectation: only a race or a model is in some schedules, and a model always so", words)
	}
	if found[2] != "" {
		var err error
		if w.Signature, err = strconv.Atoi(found[2]); err != nil {
			return Expectation{}, fmt.Errorf("%q is not an expectation: %w", words, err)
		}
	}
	return w, nil
}

// String is the expectation in words.
func (w Expectation) String() string {
	if w == Clean {
		return "clean"
	}
	words := string(w.Kind)
	if w.Kind == script.Race {
		words += " on buffer " + w.Text
	}
	if w.Signature != 0 {
		words += fmt.Sprintf(" with signature %d", w.Signature)
	}
	if w.Some {
		words += " in some schedules"
	}
	if w.Kind != script.Race && w.Text != "" {
		words += ": " + w.Text
	}
	return words
}

// MarshalText gives the words.
func (w Expectation) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// Matches reports whether a finding is one that is expected.
func (w Expectation) Matches(found script.Finding) bool {
	switch {
	case w == Clean || found.Kind != w.Kind:
		// A run that got stuck leaves things behind.
		return w.Kind == script.Deadlock && found.Kind == script.Lifetime
	case w.Kind == script.Race:
		return strings.Contains(found.Message, "buffer "+w.Text+":")
	default:
		return found.Signature == w.Signature && strings.Contains(found.Message, w.Text)
	}
}

// Problem says what a result has that it should not have, or lacks, or is empty.
func (w Expectation) Problem(result *script.Result) string {
	if len(result.Failures) > 0 && w.Kind != script.Deadlock { // what comes after a deadlock makes no sense
		return fmt.Sprintf("%s (%s)", result.Failures[0].Text, result.Failures[0].Example)
	}
	for _, found := range result.Findings {
		if !w.Matches(found) {
			return fmt.Sprintf("unexpected %s: %s; %s; %s (%s)", found.Kind, found.Message, found.First, found.Second, found.Example)
		}
	}
	if result.Stuck {
		return "a run did not end"
	}
	with := result.RunsWith[w.Kind]
	switch {
	case w == Clean:
	case w.Some && with == 0:
		return fmt.Sprintf("no %s in any of %d schedules", w.Kind, result.Runs)
	case !w.Some && with != result.Runs:
		return fmt.Sprintf("a %s in %d of %d runs only", w.Kind, with, result.Runs)
	}
	return ""
}
