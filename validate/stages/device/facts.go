package device

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"mpsforge/reports"
)

// Schema is the version of the JSON form of Facts. It rises whenever a field changes its meaning or goes away.
const Schema = 1

// Facts are what programs of the corpus did on one Metal: measured, and judged by nobody. docs/device-facts.md describes the file.
type Facts struct {
	Schema   int          `json:"schema"`
	Tool     reports.Tool `json:"tool"`
	System   string       `json:"system"`  // GOOS/GOARCH
	Backend  string       `json:"backend"` // what ran the programs, in its own words: on a Mac with the versions of macOS and the device
	Programs []Program    `json:"programs"`
}

// Outcome is how a program ended.
type Outcome string

// The outcomes.
const (
	Ended      Outcome = "ended"
	LeftBehind Outcome = "left behind" // ended, and an object was never released
	Assertion  Outcome = "assertion"   // Metal ended the process, and said why
	Crashed    Outcome = "crashed"     // the process ended otherwise
	NoProgress Outcome = "no progress" // a call never returned
	NotRun     Outcome = "not run"     // it needs what no device does on request
)

// Program is what one of them did.
type Program struct {
	Name      string  `json:"name"`
	Digest    string  `json:"sha256"` // of its text
	Outcome   Outcome `json:"outcome"`
	Signature string  `json:"signature,omitempty"` // of an assertion that is in docs/dev/spec/metal.md
	Detail    string  `json:"detail,omitempty"`    // of an assertion or crash its first line; why it was not run
	// Failures are expectations in the program's text that were not met.
	Failures []string      `json:"failures,omitempty"`
	Values   []Observation `json:"values,omitempty"`
	// Order has the names of blocks, which handlers, listeners and serial queues run, in the order in which they began.
	Order []string `json:"order,omitempty"`
}

// Observation is what one line of a program saw, each time that a thread ran it.
type Observation struct {
	Thread string  `json:"thread"`
	Line   int     `json:"line"`
	Verb   string  `json:"verb"` // status, event.value, attain or peek
	Values []int64 `json:"values"`
}

// ErrFacts is returned, wrapped, for a file that holds no facts of this schema.
var ErrFacts = errors.New("not a file of a device's facts")

// ReadFacts reads a file that somebody sent.
func ReadFacts(file string) (Facts, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Facts{}, err
	}
	var facts Facts
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&facts); err != nil {
		return Facts{}, fmt.Errorf("%s: %w: %w", file, ErrFacts, err)
	}
	switch {
	case facts.Schema != Schema:
		return Facts{}, fmt.Errorf("%s: %w: its schema is %d, and this mpsforge reads %d", file, ErrFacts, facts.Schema, Schema)
	case len(facts.Programs) == 0:
		return Facts{}, fmt.Errorf("%s: %w: it has no programs", file, ErrFacts)
	}
	return facts, nil
}

// Write writes the file.
func (f Facts) Write(file string) error {
	text, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
