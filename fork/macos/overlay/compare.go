package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"mpsforge/patches"
)

// Selftest is the file that "python -m mpsforge_overlay --selftest" writes.
type Selftest struct {
	Schema      int               `json:"schema"` // always 1
	Machine     map[string]string `json:"machine"`
	Environment map[string]string `json:"environment"` // those variables that begin with PYTORCH_ or MPSFORGE_
	Status      Status            `json:"status"`
	Checks      []SelfCheck       `json:"checks"`
	Seconds     float64           `json:"seconds"`
	Faults      []string          `json:"faults"`
}

// SelfCheck is what one of its checks found.
type SelfCheck struct {
	Check    string   `json:"check"`
	Backend  string   `json:"backend"`
	Compared int      `json:"compared"`
	Wrong    []string `json:"wrong"`
	Fault    string   `json:"fault"`
	Stderr   string   `json:"stderr"` // the end of what a process wrote that died or hung
	Facts    struct {
		Time   float64 `json:"time"`   // of one thread, times torch's own backend
		Memory []int64 `json:"memory"` // of the driver, in bytes: ours, torch's own
	} `json:"facts"`
}

// ErrSelftest is returned, wrapped, for a file that is none that the selftest wrote.
var ErrSelftest = errors.New("not a file of python -m mpsforge_overlay --selftest")

// ReadSelftest reads it; its reader's name is for messages.
func ReadSelftest(from io.Reader) (*Selftest, error) {
	var found Selftest
	if err := json.NewDecoder(from).Decode(&found); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSelftest, err)
	}
	if found.Schema != 1 || len(found.Checks) == 0 {
		return nil, fmt.Errorf("%w of this release: schema %d, checks: %d", ErrSelftest, found.Schema, len(found.Checks))
	}
	return &found, nil
}

// linuxChecks are the checks of the selftest, with what is right on Linux, over the software Metal, and what to try where it is not.
// docs/first-mac-run.md has the same advice with its reasons.
var linuxChecks = []linuxCheck{
	{"identity", "the overlay answers for every part of the backend",
		"pip uninstall mpsforge-overlay, and stop there: a part of torch's own backend is in use"},
	{"models in threads", "all values are those of the CPU", oneStream},
	{"hand-over", "all values are those of the CPU", oneStream},
	{"backward", "all values are those of the CPU", oneStream},
	{"copies", "all values are right, and what was copied is freed",
		oneStreamElse + "the patch cpu-copies"},
	{"memory", "threads that come and go leave none behind", oneStreamElse + "the allocator keeps what it should reuse"},
	{"streams", "each thread has a stream of its own", "nothing: slower, and not wrong"},
	{"one thread against torch's own backend", "no more than 1.5 times the processor time and 1.25 times the memory", "nothing: one thread pays for threads"},
}

type linuxCheck struct{ name, right, try string }

const (
	oneStream = "run it with PYTORCH_MPS_STREAM_PER_THREAD=0, and then over an overlay of the part fixes: where it is right, the order between " +
		"streams is at fault"
	oneStreamElse = "run it with PYTORCH_MPS_STREAM_PER_THREAD=0: where it is right, what passes between streams is at fault, else "
)

// Difference is one between what a selftest found and what it finds on Linux.
type Difference struct {
	Check string `json:"check"`
	Found string `json:"found"`
	Linux string `json:"linux"`          // what is right there
	Try   string `json:"try,omitempty"`  // first
	Said  string `json:"said,omitempty"` // by a process that died or hung, at its end
}

// CompareSelftest says in which checks a file differs from what Linux has, over the wheel of a series or of its first part.
func CompareSelftest(found *Selftest, series *patches.Series) []Difference {
	all := []Difference{}
	if found.Status.Active && found.Status.Stamp != nil {
		if _, same := found.Status.seriesOf(series); !same {
			all = append(all, Difference{Check: "series", Found: fmt.Sprintf("an overlay of the series %.12s over torch %s", found.Status.Stamp.Series,
				found.Status.Torch), Linux: fmt.Sprintf("this mpsforge has %.12s for %s", series.Digest(), series.Baseline.Name),
				Try: "compare it with the mpsforge that made the wheel"})
		}
	}
	inactive := false
	for _, one := range linuxChecks {
		at := slices.IndexFunc(found.Checks, func(c SelfCheck) bool { return c.Check == one.name })
		if at < 0 {
			if !inactive { // a wheel that is not in use is why nothing else was run
				all = append(all, Difference{Check: one.name, Found: "not run", Linux: one.right, Try: "run the selftest again"})
			}
			continue
		}
		if check := found.Checks[at]; check.Fault != "" {
			inactive = inactive || one.name == "identity"
			all = append(all, Difference{one.name, check.Fault, one.right, one.try, check.Stderr})
		}
	}
	for _, check := range found.Checks {
		if !slices.ContainsFunc(linuxChecks, func(one linuxCheck) bool { return one.name == check.Check }) {
			all = append(all, Difference{Check: check.Check, Found: strings.Join(append([]string{"a check that this mpsforge does not know"},
				check.Wrong...), ": "),
				Linux: "unknown", Try: "compare it with the mpsforge that made the wheel"})
		}
	}
	return all
}

// seriesOf names the series, or the part of it, whose patches the overlay has, if its digest is that of these patches here.
func (s Status) seriesOf(series *patches.Series) (name string, is bool) {
	part, name := series.Applied(s.Patches)
	if name == "" {
		return "the whole series", s.Stamp.Series == part.Digest()
	}
	return "the part " + name, s.Stamp.Series == part.Digest()
}

// Summary says in a line what was tried on what.
func (s *Selftest) Summary(series *patches.Series) string {
	of := "no overlay in use"
	if s.Status.Stamp != nil && s.Status.Active {
		of = fmt.Sprintf("an overlay of the series %.12s", s.Status.Stamp.Series)
		if name, is := s.Status.seriesOf(series); is {
			of = "an overlay of " + name
		}
	}
	on := s.Machine["processor"] + ", " + s.Machine["system"]
	if s.Machine["macos"] == "" {
		on = "Linux, over the software Metal"
	}
	text := fmt.Sprintf("torch %s, %s, on %s, %s", s.Status.Torch, of, on, s.Machine["date"])
	for _, name := range slices.Sorted(maps.Keys(s.Environment)) {
		if strings.HasPrefix(name, "PYTORCH_MPS_") || strings.HasPrefix(name, "MPSFORGE_OVERLAY") {
			text += ", " + name + "=" + s.Environment[name]
		}
	}
	return text
}
