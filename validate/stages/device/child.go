package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"mpsforge/fork/builds"
	"mpsforge/internal/run"
	"mpsforge/internal/words"
	"mpsforge/native/script"
	"mpsforge/validate/judge/corpus"
	"mpsforge/validate/judge/crash"
)

const (
	// stall is how long nothing may happen until a program counts as stuck, and limit is for one that does not even notice that.
	stall = 5 * time.Second
	limit = time.Minute
	// maxDelay is the software GPU's, before a command or a handler.
	maxDelay = 200 * time.Microsecond
)

// answer is what a child process prints.
type answer struct {
	Backend string         `json:"backend"`
	Result  *script.Result `json:"result"`
	Error   string         `json:"error,omitempty"` // why the program could not be run at all
}

// ChildCommand makes this executable a child that calls Child; the backend comes behind it.
var ChildCommand = []string{"metal", "observe"}

// Child runs the program that it reads, once, and prints what came of it. What Metal forbids ends its process, so each program has one.
func Child(ctx context.Context, backend script.Backend, in io.Reader, out io.Writer) error {
	given, err := childAnswer(ctx, backend, in)
	if err != nil {
		given.Error = err.Error()
	}
	return json.NewEncoder(out).Encode(given)
}

func childAnswer(ctx context.Context, backend script.Backend, in io.Reader) (given answer, err error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return given, err
	}
	if given.Backend, err = script.Identity(backend); err != nil {
		return given, err
	}
	given.Result, err = script.Run(ctx, string(text), script.Options{Backend: backend, Abort: true, Runs: 1, MaxDelay: maxDelay, Stall: stall, Record: true})
	return given, err
}

// observe runs a program of the corpus in a child process.
func observe(ctx context.Context, backend script.Backend, program corpus.Program) (found Program, identity string, err error) {
	found = Program{Name: program.Name, Digest: builds.Digest(program.Text)}
	if found.Detail = ruleOf(program).skip; found.Detail != "" {
		found.Outcome = NotRun
		return found, "", nil
	}
	executable, err := os.Executable()
	if err != nil {
		return found, "", err
	}
	limited, stop := context.WithTimeout(ctx, limit)
	defer stop()
	command := run.Command{Name: executable, Args: append(slices.Clone(ChildCommand), string(backend)), Stdin: strings.NewReader(program.Text),
		Env: run.Environment([]string{"GOTRACEBACK=none"}, nil)}
	result, err := command.Run(limited)
	if ctx.Err() != nil {
		return found, "", ctx.Err()
	}
	// A stuck program's threads may keep its process from ending, so what it printed goes before how it ended.
	var given answer
	failure := (*run.Error)(nil)
	switch {
	case json.Unmarshal(result.Stdout, &given) == nil && given.Error != "":
		return found, "", fmt.Errorf("run %q: %s", program.Name, given.Error)
	case given.Result != nil:
		found.fill(program, given.Result)
	case limited.Err() != nil:
		found.Outcome = NoProgress
	case !errors.As(err, &failure):
		return found, "", fmt.Errorf("run %q: %w", program.Name, err)
	default:
		err = found.died(string(result.Stderr))
		return found, "", err
	}
	return found, given.Backend, nil
}

// died reads what a process that ended early left on standard error.
func (p *Program) died(stderr string) error {
	p.Outcome, p.Detail = Crashed, words.FirstLine(stderr)
	seen, err := crash.Read("standard error", []byte(stderr))
	if err != nil {
		return err
	}
	if len(seen.Matches) > 0 {
		p.Signature = seen.Matches[0].Signature
	}
	if p.Signature != "" || strings.Contains(stderr, "failed assertion") {
		p.Outcome = Assertion
	}
	return nil
}

// observing are the verbs of a program that see something.
var observing = []string{"status", "event.value", "attain", "peek"}

// fill takes what a child saw.
func (p *Program) fill(program corpus.Program, result *script.Result) {
	p.Outcome = Ended
	for _, finding := range result.Findings {
		switch finding.Kind { // a device has no checkers
		case script.Deadlock:
			p.Outcome = NoProgress
		case script.Lifetime:
			if p.Outcome == Ended {
				p.Outcome = LeftBehind
			}
		}
	}
	if result.Stuck {
		p.Outcome = NoProgress
	}
	if p.Outcome == NoProgress {
		return // what comes after a deadlock makes no sense
	}
	for _, failure := range result.Failures {
		p.Failures = append(p.Failures, failure.Text)
	}
	p.Values, p.Order = seen(program, result.Records)
}

// seen takes values and the order of blocks out of the steps of a run.
func seen(program corpus.Program, records []script.Record) (values []Observation, order []string) {
	lines := strings.Split(program.Text, "\n")
	type began struct {
		block string
		at    int64
	}
	var blocks []began
	for _, record := range records {
		if block, is := strings.CutPrefix(record.Thread, "block "); is && first(lines, record.Line) {
			blocks = append(blocks, began{block, record.Start})
		}
		fields := strings.Fields(lines[record.Line-1])
		if !slices.Contains(observing, fields[0]) {
			continue
		}
		at := slices.IndexFunc(values, func(o Observation) bool { return o.Thread == record.Thread && o.Line == record.Line })
		if at < 0 {
			values = append(values, Observation{Thread: record.Thread, Line: record.Line, Verb: fields[0]})
			at = len(values) - 1
		}
		values[at].Values = append(values[at].Values, record.Value)
	}
	slices.SortStableFunc(blocks, func(a, b began) int { return int(a.at - b.at) })
	for _, block := range blocks {
		order = append(order, block.block)
	}
	slices.SortFunc(values, func(a, b Observation) int { return a.Line - b.Line })
	return values, order
}

// first reports whether a line is the first of its block.
func first(lines []string, number int) bool {
	for number -= 2; number >= 0; number-- {
		if text := strings.TrimSpace(lines[number]); text != "" && !strings.HasPrefix(text, "#") {
			return strings.HasPrefix(text, "block ")
		}
	}
	return false
}
