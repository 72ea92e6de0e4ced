package runtime

import (
	"fmt"
	"strings"

	"mpsforge/validate/judge/corpus"
)

// difference is where PyTorch's sources do something else than the reference pool, which is known and no fault, or a limit
// that patches/README.md names.
type difference struct {
	why string
	// replace is what the program has and, in the next place, what it has here. Without any it is not run.
	replace []string
}

const (
	afterBirth  = "a kernel that began with one stream and calls Python, in which the second stream comes to life, goes on without locks (patches/README.md)"
	itemHolds   = "guards stay active while item() waits for the GPU, so that it waits for whoever waits for its guard"
	realEnds    = "the end of a thread is its real end here, and no call"
	ownNumbers  = "each operator of PyTorch compiles graphs of its own, so that the numbers differ; scenarios graph-cache, graph-cache-bound, graphs-in-turn"
	forTheCPU   = "PyTorch has no tensors on mps that the CPU writes without a copy"
	fullQueues  = "the queues of a host build hold 64 command buffers"
	onCommitted = "the sources' commit goes on with an open command buffer, as stock's does, and synchronize commits that, empty as it may be"
)

var differences = map[string]difference{
	"a bound on graphs, least recently used out first":            {why: ownNumbers},
	"threads in turn use one compiled graph, which outlives them": {why: ownNumbers},
	"emptying the cache frees what nobody uses":                   {why: ownNumbers},
	"matrix multiplications of two threads are encoded one at a time": {
		why: "PyTorch's operators choose their own path, and whole numbers never use matrix kernels; scenario matrix-kernels"},
	"the profiler counts the operators of all threads": {why: "PyTorch's profiler has no counter; scenario profiler"},
	"emptying the cache returns complete memory": {
		why: "PyTorch gives memory back in completion handlers, which may run after the wait; scenario empty-cache"},
	"memory that the CPU writes":                                  {why: forTheCPU},
	"the CPU does not write what work outside of operators reads": {why: forTheCPU},
	"after its end a thread uses the default stream":              {why: realEnds},
	"the end of a thread gives its slot back":                     {why: realEnds + "; program \"a slot changes hands\""},
	"error: a slot on its way back is waited for": {
		why: "its outcome depends on time; stage conformance does it on the checkout's slot allocator"},
	"others use a tensor while its item is waited for":                 {why: itemHolds},
	"the second stream comes to life while an item is waited for":      {why: itemHolds},
	"the second stream comes to life in a backward inside an operator": {why: afterBirth},
	"a handler with no pending work runs at once": {why: "a handler of the sources is of the stream's next work then, as stock's is",
		replace: []string{"look\nawait", "look\nset t 2\nsynchronize_device\nawait"}},
	"a query of a stream": {why: "the first query of a stream that nobody has used begins to count, and may answer no",
		replace: []string{"query 0 = 1\nset", "query 0\nset"}},
	"a device-wide synchronize on a queue": {why: "on a queue the sources wait for its own work when the block has ended, so that others can use it",
		replace: []string{"query 2 = 1", "query 2"}},
	"a single-threaded program makes the commits that stock makes": {why: onCommitted,
		replace: []string{"synchronize 0\ncommits 0 = 2\nstatistic commits = 2", "synchronize 0\ncommits 0 = 3\nstatistic commits = 3"}},
	"more commits than a queue holds": {why: fullQueues,
		replace: []string{"device cap=3\n", "", "repeat 12", "repeat 100", "= 12", "= 100"}},
	"two threads hand over and over with short queues": {why: fullQueues,
		replace: []string{"device cap=2\n", "", "repeat 4\nincrement x 1\ncommit_stream current\npost a",
			"repeat 80\nincrement x 1\ncommit_stream current\npost a",
			"repeat 4\nawait a", "repeat 80\nawait a"}},
	"the second stream is refused inside an operator and on a queue": {why: "the sources refuse it when it is selected",
		replace: []string{"use 1\nfails \"cannot be made inside an operator\" increment x 1", "fails \"cannot be made inside of an operator\" use 1",
			"fails \"cannot be released inside an operator\" release_slot\nrestore", "fails \"cannot be released inside of an operator\" release_slot",
			"use 1\nfails \"cannot be made on a stream's queue\" increment x 1\nrestore", "fails \"in a block of a stream's dispatch queue\" use 1"}},
}

// translated is the program as PyTorch's sources must do it, or empty, and what differs.
func translated(program corpus.Program) (text, why string, err error) {
	differs := differences[program.Name]
	if differs.why != "" && differs.replace == nil {
		return "", differs.why, nil
	}
	text = program.Text
	for i := 0; i < len(differs.replace); i += 2 {
		if strings.Count(text, differs.replace[i]) != 1 {
			return "", "", fmt.Errorf("%w: %s: %q", errDifference, program.Name, differs.replace[i])
		}
		text = strings.Replace(text, differs.replace[i], differs.replace[i+1], 1)
	}
	return withoutCounters(text), differs.why, nil
}

// withoutCounters leaves out the lines that ask how often a writer was passed, which PyTorch's sources do not count.
func withoutCounters(text string) string {
	return strings.ReplaceAll(text, "statistic overtakes = 0", "") // the numbers of lines stay
}
