package patches

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"
)

// ControlsFile holds the controls of a baseline's checks, in the baseline's folder.
const ControlsFile = "controls.json"

// Controls are faults that people have chosen, each of which makes named checks fail. They show of checks that pass on stock, and that no
// ablation makes fail, that they can fail. People write the faults; what was seen is recorded.
type Controls struct {
	Schema   int       `json:"schema"` // always 1
	Tag      string    `json:"tag"`
	Controls []Control `json:"controls"`
}

// Control is one fault.
type Control struct {
	Name  string `json:"name"`
	Fault string `json:"fault"` // what goes wrong, in words
	Path  string `json:"path"`
	// Old is whole lines that the file has once with the whole series applied, and New what is in their place.
	Old []string `json:"old"`
	New []string `json:"new"`
	// By is a regular expression for how checks must fail with the fault: a crash, a hang or a value of another kind is not the one.
	By string `json:"by"`
	// Checks must fail with the fault, each as STAGE/NAME.
	Checks []string `json:"checks"`
	// Flavour of the host build that the stage runtime runs them on: "plain" if empty, or "tsan".
	Flavour string `json:"flavour,omitempty"`
	// Environment is put over that of the processes of the stage python, as NAME=value.
	Environment []string `json:"environment,omitempty"`
	// Seen is nil until the fault was planted.
	Seen *ControlSeen `json:"seen,omitempty"`
}

// ControlSeen is how the checks ended with the fault.
type ControlSeen struct {
	SeriesDigest string         `json:"series_digest"`
	Checks       []ControlCheck `json:"checks"`
	Date         time.Time      `json:"date"`
	Tool         string         `json:"mpsforge"`
	Seed         uint64         `json:"seed"`
}

// ControlCheck is how one check ended.
type ControlCheck struct {
	Check  string `json:"check"` // as STAGE/NAME
	Failed bool   `json:"failed"`
	Detail string `json:"detail"`
}

// ErrControls is returned, wrapped, for controls that cannot be planted or judged.
var ErrControls = errors.New("controls")

// ReadControls reads what a baseline's folder holds. Without the file the error wraps fs.ErrNotExist.
func ReadControls(fsys fs.FS, baseline string) (Controls, error) {
	var all Controls
	err := readRecord(fsys, baseline, ControlsFile, &all, &all.Schema)
	return all, err
}

// Plant gives the series with the fault as one patch more. read gives a file's content with the whole series applied.
func (c Control) Plant(series *Series, read func(path string) ([]byte, error)) (*Series, error) {
	content, err := read(c.Path)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrControls, c.Name, err)
	}
	lines := slices.Collect(strings.Lines(string(content)))
	at := 0
	for i := range len(lines) - len(c.Old) + 1 {
		if strings.Join(lines[i:i+len(c.Old)], "") != strings.Join(c.Old, "\n")+"\n" {
			continue
		}
		if at > 0 {
			return nil, fmt.Errorf("%w: %s: %s has the lines of old twice, from lines %d and %d; take a line before them with them", ErrControls, c.Name,
				c.Path, at, i+1)
		}
		at = i + 1
	}
	if at == 0 {
		return nil, fmt.Errorf("%w: %s: %s has no such lines as old; write those that it has now", ErrControls, c.Name, c.Path)
	}
	faulty, err := planted(series, c.Name, "a control", c.Path, lines, at, c.Old, c.New)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrControls, c.Name, err)
	}
	return faulty, nil
}

// Names are the names of those controls of which a condition holds.
func (c Controls) Names(of func(Control) bool) []string { return namesOf(c.Controls, controlName, of) }

func controlName(c Control) string { return c.Name }

// Control gives the one of a name.
func (c Controls) Control(name string) (*Control, error) {
	return named(c.Controls, controlName, name, ErrControls)
}

// SeenToFail reports whether the fault was seen to make the check fail as it must.
func (c Control) SeenToFail(check string) bool {
	return c.Seen != nil && slices.Contains(c.Checks, check) && slices.ContainsFunc(c.Seen.Checks, func(seen ControlCheck) bool {
		by, err := regexp.Compile(c.By)
		return seen.Check == check && seen.Failed && c.By != "" && err == nil && by.MatchString(seen.Detail)
	})
}

// ControlsResult is what LintControls found.
type ControlsResult struct {
	Recorded
	Controls `json:"controls"`
}

// LintControls compares the recorded controls of a baseline with its series as it is now. A baseline without the file is asked for none.
func LintControls(fsys fs.FS, baseline string) (*ControlsResult, error) {
	result := &ControlsResult{Recorded: recordedOf(baseline), Controls: Controls{Controls: []Control{}}}
	add := result.finding(ControlsFile, RuleControls)
	table, err := ReadControls(fsys, baseline)
	series, err := comparedWith(fsys, baseline, err, table.Tag, "controls are", "write the baseline's tag", add)
	if series == nil {
		return result, err
	}
	result.Controls = table
	command := "mpsforge baseline controls --baseline " + baseline + " --patches DIR --judge "
	if waiting := table.Names(func(c Control) bool { return c.Seen == nil }); len(waiting) > 0 {
		add(SeverityWarning, command+"all", "these controls were never planted: "+strings.Join(waiting, ", "))
	}
	old := table.Names(func(c Control) bool { return c.Seen != nil && c.Seen.SeriesDigest != series.Digest() })
	if len(old) > 0 {
		add(SeverityWarning, command+strings.Join(old, ","), "the series has changed since these controls were planted: "+strings.Join(old, ", "))
	}
	for _, control := range table.Controls {
		if _, err := regexp.Compile(control.By); err != nil || control.By == "" {
			add(SeverityError, "write a regular expression that the checks' details match", fmt.Sprintf("control %s does not say by what its checks fail: %q",
				control.Name, control.By))
			continue
		}
		for _, check := range control.Checks {
			if control.Seen == nil || control.SeenToFail(check) {
				continue
			}
			message := fmt.Sprintf("control %s did not make %s fail", control.Name, check)
			if at := slices.IndexFunc(control.Seen.Checks, func(seen ControlCheck) bool { return seen.Check == check && seen.Failed }); at >= 0 {
				message += fmt.Sprintf(" by %s, but by %s", control.By, control.Seen.Checks[at].Detail)
			}
			add(SeverityWarning, "choose another fault for it", message)
		}
	}
	return result, nil
}
