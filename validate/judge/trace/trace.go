// Package trace judges the order of memory accesses in a trace of what a program did with the software Metal (docs/dev/trace.md).
//
// It is a second opinion on the software Metal's own checker: written from the rules of docs/dev/spec/metal.md alone, by another
// method (the whole trace as a graph, after the program has ended), and sharing no code with the engine. Where the two differ, one is wrong.
package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Race is two accesses of the same bytes, one of them a write, that no rule orders.
type Race struct {
	Buffer int    `json:"buffer"` // the how-manieth that was made
	Offset uint64 `json:"offset"` // bytes
	Length uint64 `json:"length"`
	First  string `json:"first"` // the line of the trace that made the access, and its verb
	Second string `json:"second"`
}

func (r Race) String() string {
	return fmt.Sprintf("buffer %d, %d bytes from %d: %s, and %s", r.Buffer, r.Length, r.Offset, r.First, r.Second)
}

// Engine is what the software Metal found by itself in the same run.
type Engine struct {
	Races  uint64 `json:"races"`  // pairs of places
	Undone uint64 `json:"undone"` // violations and deadlocks: calls that had no effect
}

// Run is what a trace says of one device, from its creation to its end.
type Run struct {
	Accesses int    `json:"accesses"`
	Races    []Race `json:"races"` // each pair of lines once
	// Engine is what was found when somebody last asked, or at the end; nil where the trace breaks off before, as that of a process that was
	// killed.
	Engine *Engine `json:"engine"`
	// Problem is why the order cannot be judged, or empty.
	Problem string `json:"problem"`
}

// Verdict is how the two opinions compare.
type Verdict string

// The verdicts.
const (
	Agree     Verdict = "agree"
	Differ    Verdict = "differ"
	NotJudged Verdict = "not judged" // Problem says why; or the engine's opinion is not known
)

// Verdict compares whether there are races, not how many: the engine counts pairs of places, of which a line of a loop is one.
func (r Run) Verdict() Verdict {
	switch {
	case r.Problem != "" || r.Engine == nil || r.Engine.Undone > 0:
		return NotJudged
	case (len(r.Races) > 0) == (r.Engine.Races > 0):
		return Agree
	}
	return Differ
}

// ErrTrace is returned, wrapped, for a text that is no trace.
var ErrTrace = errors.New("not a trace")

// Judge reads a trace and judges each of its runs. A trace that breaks off is judged up to there.
func Judge(from io.Reader) ([]Run, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	var runs []Run
	var b *builder
	end := func() {
		if b != nil {
			runs = append(runs, b.judge())
		}
		b = nil
	}
	for number := 1; lines.Scan(); number++ {
		words := strings.Fields(lines.Text())
		var err error
		switch {
		case len(words) < 2:
			err = errors.New("it must be a thread and what it did")
		case words[1] == "device":
			end()
			b = newBuilder()
		case b != nil: // before there is a device only calls are made that need none
			err = b.add(number, words)
		}
		if err == nil {
			continue
		}
		text := lines.Text()
		if !lines.Scan() { // the last line, of a process that was killed while it wrote it
			break
		}
		return nil, fmt.Errorf("%w: line %d, %q: %w", ErrTrace, number, text, err)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	end()
	if len(runs) == 0 {
		return nil, fmt.Errorf("%w: no line says that a device was made", ErrTrace)
	}
	return runs, nil
}
