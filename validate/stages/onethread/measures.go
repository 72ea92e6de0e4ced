package onethread

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// measure is one thing that is compared.
type measure string

// The measures.
const (
	ends     measure = "end"
	values   measure = "values"
	commits  measure = "commits"
	peak     measure = "peak memory"
	final    measure = "final memory"
	compiled measure = "compiled"
	objects  measure = "queues and events"
)

type measureText struct {
	name measure
	is   string
}

// measures are in the order in which a report has them, with what each is.
var measures = []measureText{
	{ends, "how it ended: an exception with its text, a crash, a hang, what the software Metal found"},
	{values, "outputs, gradients and changed arguments: type, shape and bytes"},
	{commits, "what was encoded, committed, signalled and waited for, in this order"},
	{peak, "the most memory that Metal had given at once: heaps, and buffers outside of them"},
	{final, "memory at the end, and when nothing of the program is left: PyTorch's count and Metal's"},
	{compiled, "graphs built, Metal libraries, functions and pipelines made"},
	{objects, "Metal's queues and events made"},
}

// facts are what is compared of one run of a program, by measure: lines, which are equal or not.
type facts map[measure][]string

var (
	address = regexp.MustCompile(`0x[0-9a-f]+`)
	// eventNumber is an event in a line of the record.
	eventNumber = regexp.MustCompile(`^(signal|notify|wait of the GPU|signal of the CPU|wait of the CPU) (\d+)`)
)

// factsOf takes a result apart.
func factsOf(r result) facts {
	end := []string{strings.TrimSpace(r.Outcome + " " + address.ReplaceAllString(r.Text, "0x"))}
	for _, finding := range r.Findings {
		end = append(end, "the software Metal finds: "+finding.Message)
	}
	f := facts{ends: end, values: r.Values}
	if r.Outcome != "passed" && r.Outcome != "error" {
		return f // a process that died reports nothing
	}
	f[final] = []string{fmt.Sprintf("at the end: tensors %d, Metal %d", r.End.Current, r.End.Driver), fmt.Sprintf("after it: tensors %d, Metal %d",
		r.After.Current, r.After.Driver)}
	made, numbers := map[string]int{}, map[string]int{}
	var now, most int64
	f[commits] = []string{}
	for _, line := range strings.Split(strings.TrimSuffix(r.Record, "\n"), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "make":
			kind, _, _ := strings.Cut(rest, " ")
			made[kind]++
		case "memory":
			bytes, _ := strconv.ParseInt(rest, 10, 64) // the engine writes numbers alone
			now += bytes
			most = max(most, now)
		case "buffer", "over": // how large MTLBuffers are shows in memory and in what is encoded
		default:
			// which of a program's own events it is, however many others there are
			if found := eventNumber.FindStringSubmatch(line); found != nil {
				if numbers[found[2]] == 0 {
					numbers[found[2]] = len(numbers) + 1
				}
				line = fmt.Sprintf("%s %d%s", found[1], numbers[found[2]], line[len(found[0]):])
			}
			f[commits] = append(f[commits], line)
		}
	}
	f[peak] = []string{fmt.Sprint(most)}
	count := func(kinds ...string) (lines []string) {
		for _, kind := range kinds {
			lines = append(lines, fmt.Sprintf("%s: %d", kind, made[kind]))
		}
		return lines
	}
	f[compiled], f[objects] = count("graph", "library", "function", "pipeline"), count("queue", "event")
	return f
}

// difference is the first line that differs, with how far it is, as (stock's, patched's).
func difference(stock, patched []string) (string, string) {
	at := 0
	for at < min(len(stock), len(patched)) && stock[at] == patched[at] {
		at++
	}
	show := func(lines []string) string {
		if at >= len(lines) {
			return fmt.Sprintf("nothing more after %d", len(lines))
		}
		text := strings.Join(lines[at:min(at+3, len(lines))], "; ")
		if len(lines) > 1 {
			text = fmt.Sprintf("[%d of %d] %s", at+1, len(lines), text)
		}
		return text
	}
	return show(stock), show(patched)
}

// same says of which measures two runs are equal.
func (f facts) same(other facts, m measure) bool { return slices.Equal(f[m], other[m]) }
