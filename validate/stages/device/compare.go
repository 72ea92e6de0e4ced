package device

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/native/script"
	"mpsforge/validate/judge/corpus"
)

// rule says what of a program's facts is compared. What the order of threads may change, what Metal's documentation forbids without
// saying what follows, and what was only observed from outside is recorded and never a difference.
type rule struct {
	skip     string    // why it is not run
	open     string    // why any outcome will do
	outcomes []Outcome // one of which is right
	// signature is the number of an assertion that must be this one; 0: any.
	signature int
	values    bool // compared where the software Metal gives the same in every run
}

// ownChoice finds settings of the engine that a device decides by itself, and models one of what is not Metal's rules.
var (
	ownChoice = regexp.MustCompile(`(?m)^device .*\b(split|covers|macos)=|^(inject)\b`)
	models    = regexp.MustCompile(`(?m)^device .*\bmodels=`)
)

// syncOnOwnQueue is the signature of libdispatch, which ends the process by a trap: its words are in the crash report only.
const syncOnOwnQueue = 16

func ruleOf(program corpus.Program) rule {
	expect := program.Expect
	choice := ownChoice.FindStringSubmatch(program.Text)
	switch {
	case choice != nil:
		return rule{skip: fmt.Sprintf("it sets %s, which only the software Metal has", choice[1]+choice[2])}
	case expect.Kind == script.Model || models.MatchString(program.Text):
		return rule{open: "it checks behaviour that is observed, not documented"}
	case expect.Kind == script.Violation && expect.Signature == 0:
		return rule{open: "Metal's documentation forbids it, and does not say what follows"}
	case expect.Kind == script.Violation && expect.Signature == syncOnOwnQueue:
		return rule{outcomes: []Outcome{Assertion, Crashed}}
	case expect.Kind == script.Violation:
		return rule{outcomes: []Outcome{Assertion}, signature: expect.Signature}
	case expect.Kind == script.Deadlock:
		return rule{outcomes: []Outcome{NoProgress}}
	case expect.Kind == script.Lifetime:
		return rule{outcomes: []Outcome{LeftBehind}}
	case expect.Kind == script.Race:
		return rule{outcomes: []Outcome{Ended}}
	}
	return rule{outcomes: []Outcome{Ended}, values: true}
}

// reference is what the software Metal gives in every run of a program.
type reference struct {
	values []Observation
	order  []string
}

const (
	freeRuns  = 20
	drawnRuns = 60
)

// referenceOf runs a program freely with delays, and by the deterministic scheduler: what is the same each time is kept.
func referenceOf(ctx context.Context, program corpus.Program, seed uint64) (always reference, err error) {
	for i := range uint64(freeRuns + drawnRuns) {
		options := script.Options{Mode: script.Free, Seed: seed + i, Runs: 1, MaxDelay: maxDelay, Stall: stall, Record: true}
		if i >= freeRuns {
			options.Mode = script.Drawn
		}
		result, err := script.Run(ctx, program.Text, options)
		if err != nil {
			return always, err
		}
		if problem := program.Expect.Problem(result); problem != "" {
			return always, fmt.Errorf("the software Metal itself: %s", problem)
		}
		values, order := seen(program, result.Records)
		if i == 0 {
			always = reference{values, order}
			continue
		}
		always.values = slices.DeleteFunc(always.values, func(o Observation) bool { return !slices.ContainsFunc(values, o.equal) })
		if !slices.Equal(always.order, order) {
			always.order = nil
		}
	}
	return always, nil
}

func (o Observation) equal(other Observation) bool {
	return o.at(other) && slices.Equal(o.Values, other.Values)
}

// at reports whether both are of the same line of the same thread.
func (o Observation) at(other Observation) bool {
	return o.Thread == other.Thread && o.Line == other.Line
}

// Comparison is a program's facts beside what the software Metal gives.
type Comparison struct {
	Program corpus.Program `json:"-"`
	Name    string         `json:"name"`
	// NotCompared says why, where nothing was: then there are no differences either.
	NotCompared string   `json:"not_compared,omitempty"`
	Detail      string   `json:"detail,omitempty"` // what was found
	Differences []string `json:"differences,omitempty"`
}

// Compare compares facts with the software Metal of this mpsforge. Programs that it does not have, or has with another text, are not
// compared; those that the facts lack are differences.
func Compare(ctx context.Context, facts Facts, programs []corpus.Program, seed uint64) ([]Comparison, error) {
	var all []Comparison
	left := slices.Clone(facts.Programs)
	for _, program := range programs {
		c := Comparison{Program: program, Name: program.Name}
		at := slices.IndexFunc(left, func(p Program) bool { return p.Name == program.Name })
		switch {
		case at < 0:
			c.Differences = []string{"it is not in the facts"}
		case left[at].Digest != builds.Digest(program.Text):
			c.NotCompared = "its text differs here: the facts are from another version of mpsforge"
		default:
			if err := c.judge(ctx, left[at], seed); err != nil {
				return nil, fmt.Errorf("program %q: %w", program.Name, err)
			}
		}
		if at >= 0 {
			left = slices.Delete(left, at, at+1)
		}
		all = append(all, c)
	}
	for _, other := range left {
		all = append(all, Comparison{Name: other.Name, NotCompared: "this mpsforge has no such program"})
	}
	return all, nil
}

func (c *Comparison) judge(ctx context.Context, found Program, seed uint64) error {
	c.Detail = found.String()
	rule := ruleOf(c.Program)
	if rule.skip != "" {
		c.NotCompared, c.Detail = rule.skip, ""
		return nil
	}
	if rule.open != "" {
		c.NotCompared = rule.open
		return nil
	}
	switch {
	case !slices.Contains(rule.outcomes, found.Outcome):
		c.add("%s; the software Metal: %s", found, rule.outcomes[0])
		return nil
	case rule.signature != 0 && !strings.HasPrefix(found.Signature, fmt.Sprintf("%d ", rule.signature)):
		c.add("%s; the software Metal: signature %d", found, rule.signature)
	}
	if !rule.values {
		return nil
	}
	for _, failure := range found.Failures {
		c.add("%s", failure)
	}
	always, err := referenceOf(ctx, c.Program, seed)
	if err != nil {
		return err
	}
	for _, want := range always.values {
		at := slices.IndexFunc(found.Values, want.at)
		where := fmt.Sprintf("%s, line %d, %s", want.Thread, want.Line, want.Verb)
		switch {
		case at < 0:
			c.add("%s: not reached; the software Metal: %v", where, want.Values)
		case !want.equal(found.Values[at]):
			c.add("%s: %v; the software Metal: %v", where, found.Values[at].Values, want.Values)
		}
	}
	if len(always.order) > 0 && !slices.Equal(always.order, found.Order) {
		c.add("blocks began in the order %s; the software Metal: %s", strings.Join(found.Order, ", "), strings.Join(always.order, ", "))
	}
	c.Detail = fmt.Sprintf("%s; %d of %d values, and the order of %d blocks, are the same in every run", found.Outcome, len(always.values),
		len(found.Values), len(always.order))
	return nil
}

func (c *Comparison) add(format string, args ...any) {
	c.Differences = append(c.Differences, fmt.Sprintf(format, args...))
}

// String says how the program ended.
func (p Program) String() string {
	text := string(p.Outcome)
	if p.Signature != "" {
		text += ", signature " + p.Signature
	}
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	return text
}
