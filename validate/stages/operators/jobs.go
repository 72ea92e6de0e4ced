package operators

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"mpsforge/internal/run"
	"mpsforge/native/script"
	"mpsforge/reports"
	"mpsforge/validate/judge/crash"
	"mpsforge/validate/judge/process"
)

// entry is one of PyTorch's operator database, as validate/stages/operators/python/storm.py describes it.
type entry struct {
	Name     string   `json:"name"`
	DTypes   []string `json:"dtypes"`
	Out      bool     `json:"out"`
	InPlace  bool     `json:"in_place"`
	Backward bool     `json:"backward"`
}

// cell is what a job is about; the same cell with the same seed is the same job.
type cell struct {
	Operator string `json:"operator"`
	DType    string `json:"dtype"`
	Form     string `json:"form"`
	Threads  int    `json:"threads"`
	Seed     uint64 `json:"seed"`
}

func (c cell) String() string {
	return fmt.Sprintf("%s, %s, %s, %d threads, seed %d", c.Operator, c.DType, c.Form, c.Threads, c.Seed)
}

// job is what a process is asked to do; storm.py's head describes it.
type job struct {
	ID int `json:"id"`
	cell
	Rounds      int               `json:"rounds"`
	Samples     int               `json:"samples"` // of each entry at most
	Device      string            `json:"device"`
	Seconds     float64           `json:"seconds"` // until it counts as hung
	Environment map[string]string `json:"environment"`
}

// status is how a job ended, in the words of validate/stages/operators/python/job.py.
type status string

const (
	right        status = "right"
	wrongValues  status = "wrong values"
	raced        status = "race"
	violated     status = "violation"
	raised       status = "error" // an exception, that the same call alone does not raise
	crashed      status = "crashed"
	hung         status = "hung"
	oneStream    status = "one stream" // the threads were to have streams of their own, and had none
	notAlone     status = "does not run alone"
	doesNotApply status = "does not apply"
)

// faults are the ends that nothing excuses.
var faults = []status{wrongValues, raced, violated, raised, crashed, hung, oneStream}

// result is what a process reports of its job.
type result struct {
	ID       int              `json:"id"`
	Status   status           `json:"status"`
	Reason   string           `json:"reason,omitempty"` // of notAlone and doesNotApply: a kind, or a kind, ": " and what it is about
	Text     string           `json:"text,omitempty"`   // what went wrong first
	Case     string           `json:"case,omitempty"`   // entry and number of the sample that it went wrong with
	Problems int              `json:"problems,omitempty"`
	Findings []script.Finding `json:"findings,omitempty"` // of the software Metal, the first
	Samples  []int            `json:"samples,omitempty"`  // numbers of those that ran
	Partly   []string         `json:"not_alone,omitempty"`
	Calls    int64            `json:"calls,omitempty"`
	Values   int64            `json:"values,omitempty"`
	Streams  int              `json:"streams,omitempty"`
	Random   string           `json:"random,omitempty"` // how a random operator was compared: generator, or range
	CPU      string           `json:"cpu,omitempty"`    // how it differs from the CPU, alone
	Compared int              `json:"cpu_compared,omitempty"`
	Phase    string           `json:"phase,omitempty"` // of a crash or a hang: alone, together
	Sample   int              `json:"sample,omitempty"`
	Exit     int              `json:"exit,omitempty"`
	Stderr   string           `json:"stderr,omitempty"`
	Wall     float64          `json:"wall,omitempty"` // seconds
}

// outcome is a job and its end.
type outcome struct {
	Job    job    `json:"job"`
	Result result `json:"result"`
}

// settle judges what the process could not: a crash or a hang is a fault only if the same entry runs alone, and threads that are
// to have streams must have had several.
func (o *outcome) settle(leases bool) {
	r := &o.Result
	if r.Status == crashed || r.Status == hung {
		what := string(r.Status)
		if r.Status == crashed {
			what = fmt.Sprintf("exit code %d", r.Exit)
			if r.Exit < 0 {
				what = fmt.Sprintf("died by signal %d", -r.Exit)
			}
		}
		if found, err := crash.Read("standard error", []byte(r.Stderr)); err == nil && len(found.Matches) > 0 {
			what += ": " + found.Matches[0].Signature + ": " + found.Matches[0].Text
		} else if line := telling(r.Stderr); line != "" {
			what += ": " + line
		}
		r.Text = fmt.Sprintf("%s, with sample %d: %s", r.Phase, r.Sample, what)
		if r.Phase != "together" {
			r.Reason, r.Status = fmt.Sprintf("%s: %s", r.Status, what), notAlone
		}
	}
	if strings.Contains(r.Stderr, "WARNING: ThreadSanitizer") && r.Status == right {
		r.Status, r.Text = raced, "ThreadSanitizer reports data races"
		if found := process.Findings([]process.Result{{Output: r.Stderr}}); len(found) > 0 {
			r.Text = fmt.Sprintf("%s (%s; %s)", found[0].Message, found[0].First, found[0].Second)
		}
	}
	if r.Status == right && leases && o.Job.Threads > 1 && r.Streams < 2 {
		r.Status, r.Text = oneStream, fmt.Sprintf("%d threads had %d stream: nothing ran at the same time", o.Job.Threads, r.Streams)
	}
}

// telling is the line of a process's last words that says why it died.
func telling(output string) string {
	for _, line := range strings.Split(output, "\n") {
		for _, words := range []string{"mpsforge", "terminate called", "what():", "Assertion", "Error:"} {
			if strings.Contains(line, words) && !strings.Contains(line, "  File ") {
				return crash.Shorten(strings.TrimSpace(line))
			}
		}
	}
	return ""
}

func (o outcome) faulty() bool { return slices.Contains(faults, o.Result.Status) }

// kind is the first part of a reason, which groups.
func (o outcome) kind() string {
	kind, _, _ := strings.Cut(o.Result.Reason, ":")
	return kind
}

// kinds of the report for each fault.
func (s status) outcome() reports.Outcome {
	switch s {
	case right:
		return reports.OutcomePassed
	case wrongValues:
		return reports.OutcomeWrongValues
	case raced:
		return reports.OutcomeRace
	case violated:
		return reports.OutcomeViolation
	case crashed:
		return reports.OutcomeCrashed
	case hung:
		return reports.OutcomeHung
	case notAlone, doesNotApply:
		return reports.OutcomeSkipped
	}
	return reports.OutcomeFailed
}

// again is the command that shows the job again: verify's own for the patched subject, else the process's.
func (p *pool) again(j job) string {
	if len(p.replay) > 0 && !ownSettings(j) {
		return run.Command{Name: "mpsforge", Args: append([]string{"verify", "--stages", "operators", "--operators", j.Operator, "--form", j.Form,
			"--dtype", j.DType,
			"--threads", fmt.Sprint(j.Threads), "--seed", fmt.Sprint(j.Seed)}, p.replay...)}.String()
	}
	text, err := json.Marshal(j)
	if err != nil {
		return err.Error() // a job is plain data
	}
	return strings.Join(p.subject.Settings(), " ") + " " + p.subject.Program(p.program("--job", string(text))).String()
}

// streamPerThread is the setting that gives all threads one stream.
const streamPerThread = "PYTORCH_MPS_STREAM_PER_THREAD"

// ownSettings says whether a job turns the threads' streams off.
func ownSettings(j job) bool { return j.Environment[streamPerThread] == "0" }
