package process

import (
	"regexp"
	"slices"
	"time"
)

// Stock is what stock does in a scenario.
type Stock string

const (
	StockFails Stock = "must fail"
	// One queue orders everything on stock: what can go wrong there comes with several streams.
	StockLives Stock = "must live"
	// A race that shows now and then, or in the sanitizer alone.
	StockMay Stock = "may fail"
)

// Patient is how long a run may take of which a hang is bad news; where it is expected, Impatient is enough.
const (
	Patient   = 3 * time.Minute
	Impatient = 20 * time.Second
)

// encodedAtOnce is how processes end in which several threads encode on one stream at once: crash signatures 2 to 7, a call on an encoder or
// a command buffer that another thread has ended, an object that another thread has released.
const encodedAtOnce = `\(signature [2-7] | of command buffer \d+ of queue \d+ by thread |message sent to deallocated instance|` +
	`^died by signal segmentation fault`

// HeapCorrupted is a name for the ends of processes that glibc ends as the heap is damaged.
const HeapCorrupted = "heap corrupted"

const heapCorrupted = `^died by signal aborted: (malloc|free|realloc|corrupted|double free|munmap_chunk|tcache)`

// Among reports whether the process ended in a way that regular expressions or HeapCorrupted name, or as those do in which threads encode on
// one stream at once. Stock's other ends show nothing.
func (r Result) Among(ends []string) bool {
	text := r.Problem
	if r.Signature != "" {
		text += " (signature " + r.Signature + ")"
	}
	return slices.ContainsFunc(append(slices.Clone(ends), encodedAtOnce), func(one string) bool {
		if one == HeapCorrupted {
			one = heapCorrupted
		}
		return regexp.MustCompile(one).MatchString(text)
	})
}
