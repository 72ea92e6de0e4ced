// Package pytests holds the Python parallel tests and runs each in a process of its own, after it has proven which torch that
// process loads. Several stages use it, so nothing of one stage's report belongs in it.
package pytests

import (
	"slices"
	"time"

	"mpsforge/validate/judge/process"
)

// Test is one row of the python stage: a test of validate/judge/pytests, how it is run, and what must come of it.
type Test struct {
	Name    string // of the method test_NAME, with dashes
	About   string
	Section Section
	// Class of operation, a column of the thread-limit table.
	Class string
	// patches are those without which it must fail or cannot run; while the series lacks one, the test waits.
	patches []string
	stock   process.Stock // what an unpatched torch does with several threads
	// ends say how an unpatched torch fails that must, as process.Result.Among has it.
	ends []string
	// threads at once, in the long and in the short form; processes for section processes.
	threads, quick []int
	// iterations of each thread, in the long and in the short form.
	iterations, quickIterations int
	// graph: also with inputs that take the graph path of Linear.
	Graph bool
	// environment of the process.
	environment []string
	// Noisy tests use all processors; nothing else runs beside them.
	Noisy bool
	// extension: it needs the functions that a host build's Python has; on another torch it skips itself.
	extension bool
	// packages: it needs those of WithPackages; on a Python without them it skips itself.
	packages bool
	// lacking: versions of PyTorch that lack what it needs; on those it skips itself, on any other a skip is a failure.
	lacking []string
	// once: one process for each thread count and path, unless --repeat asks for more.
	once bool
	// deadline ends a process that has done nothing for so long; 0 is that of all tests.
	deadline time.Duration
}

// Patches are those without which the test must fail or cannot run.
func (t *Test) Patches() []string { return slices.Clone(t.patches) }

// Stock is what an unpatched torch does with several threads.
func (t *Test) Stock() process.Stock { return t.stock }

// Section groups tests as the report's tables do.
type Section string

const (
	BasicSection   Section = "basic and stress"
	limitSection   Section = "thread limit"
	streamSection  Section = "streams"
	memorySection  Section = "hand-over and memory"
	frontSection   Section = "front end"
	fieldSection   Section = "programs of the field"
	ProcessSection Section = "processes"
	ColdSection    Section = "cold and warm"
	BenchSection   Section = "bench"
)

// limitThreads are the columns of the field reports' thread-limit table, and 16.
var limitThreads = []int{2, 3, 4, 5, 8, 16}

// poolOf sets the number of streams: the default one and one less worker streams.
func poolOf(size, exhausted string) []string {
	return []string{"PYTORCH_MPS_STREAM_POOL_SIZE=" + size, "PYTORCH_MPS_STREAM_POOL_EXHAUSTED=" + exhausted}
}

// Tests is the table; the field reports' rows come first.
func Tests() []Test {
	discipline := []string{"stream-discipline"}
	limit := func(name, about, class string, graph bool) Test {
		return Test{Name: name, About: about, Section: limitSection, Class: class, patches: discipline, stock: process.StockFails,
			threads: limitThreads, quick: []int{4},
			iterations: 20, quickIterations: 8, Graph: graph}
	}
	return append([]Test{
		{Name: "basic", About: "randn, mm and relu", Section: BasicSection, Class: "raw tensor operations", patches: discipline,
			stock: process.StockFails, threads: limitThreads, quick: []int{4}, iterations: 10, quickIterations: 10},
		{Name: "stress", About: "the same, many threads for long", Section: BasicSection, Class: "raw tensor operations", patches: discipline,
			stock: process.StockFails, threads: []int{8, 16}, quick: []int{8}, iterations: 50, quickIterations: 50},
		{Name: "large", About: "products of 1024x1024 matrices", Section: BasicSection, patches: discipline, stock: process.StockFails,
			threads: []int{4}, quick: []int{2}, iterations: 20, quickIterations: 1, Noisy: true},
		limit("linear", "one nn.Linear for all threads", "nn.Linear", true),
		limit("f-linear", "torch.nn.functional.linear", "F.linear", true),
		limit("mlp", "two layers, shared", "MLP", true),
		limit("sequential", "an nn.Sequential, shared", "nn.Sequential", true),
		limit("conv1d", "an nn.Conv1d, shared", "nn.Conv1d", false),
		limit("layer-norm", "an nn.LayerNorm, shared", "nn.LayerNorm", false),
		limit("softmax", "torch.softmax", "softmax", false),
		limit("transformer", "an nn.TransformerEncoderLayer, shared", "transformer layer", false),
		limit("linear-own", "an nn.Linear for each thread, created there", "nn.Linear, own", false),
		limit("sequential-own", "an nn.Sequential for each thread, created there", "nn.Sequential, own", false),
		{Name: "training", About: "training steps on each thread", Section: limitSection, Class: "training", patches: []string{"stream-pool"},
			stock: process.StockMay, threads: []int{2, 4, 8}, quick: []int{4}, iterations: 5, quickIterations: 3},
		{Name: "boundary", About: "1 thread to one more than there are worker streams, all holding theirs at once", Section: streamSection,
			patches: discipline, stock: process.StockFails,
			threads: upTo(33), quick: []int{1, 31, 32}, iterations: 2, quickIterations: 2},
		{Name: "churn", About: "threads that come and go", Section: streamSection, patches: []string{"thread-leases"}, stock: process.StockMay,
			threads: []int{4}, quick: []int{4}, iterations: 50, quickIterations: 20},
		{Name: "stream-assignment", About: "which thread has which stream", Section: streamSection, patches: []string{"thread-leases",
			"python-streams"}, stock: process.StockMay, threads: []int{2, 8}, quick: []int{8}, iterations: 1, quickIterations: 1},
		{Name: "release-slot", About: "a stream given back and leased again", Section: streamSection, patches: []string{"thread-leases",
			"python-streams"}, stock: process.StockMay, threads: []int{4}, quick: []int{4}, iterations: 10, quickIterations: 5},
		{Name: "explicit-streams", About: "streams that the program asks for", Section: streamSection, patches: []string{"stream-pool",
			"python-streams"}, stock: process.StockMay, threads: []int{4, 40}, quick: []int{4}, iterations: 8, quickIterations: 4},
		{Name: "device-functions", About: "what takes a device takes the one of MPS, and refuses every other", Section: streamSection,
			patches: []string{"python-streams"}, stock: process.StockMay, threads: []int{4}, quick: []int{4}, iterations: 8, quickIterations: 4},
		{Name: "over-subscription", About: "more threads than streams: share the default one", Section: streamSection,
			patches: []string{"thread-leases"}, stock: process.StockMay, threads: []int{40}, quick: []int{40}, iterations: 4, quickIterations: 2},
		{Name: "over-subscription-wait", About: "more threads than streams: wait for one", Section: streamSection, patches: []string{"thread-leases",
			"python-streams"}, stock: process.StockMay, threads: []int{8}, quick: []int{8}, iterations: 4, quickIterations: 2,
			environment: poolOf("3", "wait")},
		{Name: "over-subscription-error", About: "more threads than streams: a normal exception", Section: streamSection,
			patches: []string{"thread-leases", "python-streams"}, stock: process.StockMay, threads: []int{3}, quick: []int{3}, iterations: 1,
			quickIterations: 1, environment: poolOf("3", "error")},
		{Name: "profiled-stream", About: "a stream that begins within torch.mps.profiler.profile()", Section: streamSection,
			patches: []string{"stream-pool"}, stock: process.StockMay, threads: []int{1}, quick: []int{1}, iterations: 100, quickIterations: 100},
		{Name: "events", About: "events with timing", Section: streamSection, patches: []string{"event-streams"}, stock: process.StockMay,
			threads: []int{2, 4}, quick: []int{4}, iterations: 8, quickIterations: 4},
		{Name: "hand-over", About: "tensors passed on round a ring of threads", Section: memorySection, patches: []string{"hand-over"},
			stock: process.StockLives, threads: []int{2, 4, 8}, quick: []int{4}, iterations: 10, quickIterations: 5},
		{Name: "cross-stream", About: "weights of the main thread used by all, results read by it", Section: memorySection,
			patches: []string{"hand-over"}, stock: process.StockLives, threads: []int{2, 4, 8}, quick: []int{4}, iterations: 10, quickIterations: 5},
		{Name: "in-place", About: "a tensor that all read and the main thread changes", Section: memorySection, patches: []string{"hand-over"},
			stock: process.StockLives, threads: []int{4}, quick: []int{4}, iterations: 10, quickIterations: 5},
		{Name: "buffer-reuse", About: "memory made and dropped all the time", Section: memorySection, patches: []string{"allocator-streams"},
			stock: process.StockLives, threads: []int{4, 8}, quick: []int{4}, iterations: 30, quickIterations: 15},
		{Name: "idle-consumer", About: "a tensor for each of many streams, which nobody waits for: the memory comes back", Section: memorySection,
			patches: []string{"allocator-streams"}, stock: process.StockMay, threads: []int{1}, quick: []int{1}, iterations: 30, quickIterations: 30},
		{Name: "scalars", About: "numbers that graphs are fed with: none is left in memory when the work is complete", Section: memorySection,
			patches: []string{"allocator-streams"}, stock: process.StockMay, threads: []int{4, 8}, quick: []int{4}, iterations: 30, quickIterations: 10},
		{Name: "device-synchronize", About: "the device synchronised while threads compute", Section: memorySection, patches: discipline,
			stock: process.StockFails, threads: []int{2, 4, 8}, quick: []int{4}, iterations: 20, quickIterations: 10},
		{Name: "failed-work", About: "work that fails on the GPU", Section: memorySection, patches: []string{"failed-work"}, stock: process.StockMay,
			threads: []int{1, 4}, quick: []int{4}, iterations: 4, quickIterations: 2, extension: true},
		{Name: "failed-operators", About: "which operators the exception names", Section: memorySection, patches: []string{"failed-work"},
			stock: process.StockMay, threads: []int{4}, quick: []int{4}, iterations: 1, quickIterations: 1, extension: true},
		{Name: "failed-work-once", About: "which threads raise what failed on one of them", Section: memorySection, patches: []string{"failed-work"},
			stock: process.StockMay, threads: []int{4}, quick: []int{4}, iterations: 1, quickIterations: 1, extension: true},
		{Name: "copies", About: "copies between CPU and MPS: views, other types, sources that are freed", Section: memorySection,
			patches: []string{"cpu-copies"}, stock: process.StockFails, threads: []int{1, 4, 8}, quick: []int{4}, iterations: 20, quickIterations: 5,
			ends: []string{"^wrong values", process.HeapCorrupted}},
		{Name: "dropped-copies", About: "non-blocking copies to the CPU whose destinations are dropped", Section: memorySection,
			patches: []string{"cpu-copies"}, stock: process.StockFails, threads: []int{1, 4, 8}, quick: []int{4}, iterations: 20, quickIterations: 5,
			ends: []string{"^wrong values", process.HeapCorrupted}},
		{Name: "finalizers", About: "finalizers that PyTorch runs within operators, and that wait for threads", Section: memorySection,
			patches: []string{"hand-over", "cpu-copies"}, stock: process.StockLives, threads: []int{1}, quick: []int{1}, iterations: 1, quickIterations: 1},
		{Name: "sanitizer-raises", About: "memory that nothing orders, with PYTORCH_MPS_SANITIZE=error", Section: memorySection,
			patches: []string{"sanitizer"}, stock: process.StockMay, threads: []int{1}, quick: []int{1}, iterations: 3, quickIterations: 3,
			extension: true, environment: []string{"PYTORCH_MPS_SANITIZE=error"}},
		{Name: "sanitizer-warns", About: "the same with warn", Section: memorySection, patches: []string{"sanitizer"}, stock: process.StockMay,
			threads: []int{1}, quick: []int{1}, iterations: 3, quickIterations: 3, extension: true, environment: []string{"PYTORCH_MPS_SANITIZE=warn"}},
		{Name: "sanitizer-waits", About: "explicit streams that the program does not make wait for each other", Section: memorySection,
			patches: []string{"sanitizer"}, stock: process.StockMay, threads: []int{1}, quick: []int{1}, iterations: 4, quickIterations: 4,
			environment: []string{"PYTORCH_MPS_SANITIZE=warn,waits"}},
		{Name: "sanitizer-poison", About: "memory that nobody has written", Section: memorySection, patches: []string{"sanitizer"},
			stock: process.StockMay, threads: []int{1, 4}, quick: []int{4}, iterations: 16, quickIterations: 8,
			environment: []string{"PYTORCH_MPS_SANITIZE=poison"}},
		{Name: "fork", About: "first use in a forked child", Section: ProcessSection, patches: []string{"stream-pool"}, stock: process.StockMay,
			threads: []int{2}, quick: []int{2}, iterations: 1, quickIterations: 1},
		{Name: "fork-functions", About: "functions of torch.mps in forked children of threads that use it", Section: ProcessSection,
			patches: []string{"stream-pool", "allocator-streams"}, stock: process.StockMay, threads: []int{4}, quick: []int{4}, iterations: 20,
			quickIterations: 6},
		{Name: "fork-workers", About: "a DataLoader's forked workers beside threads that use mps", Section: ProcessSection, patches: discipline,
			stock: process.StockMay, threads: []int{4}, quick: []int{4}, iterations: 4, quickIterations: 2},
		{Name: "profiling-stats", About: "operators of several threads in the statistics at a process's end", Section: ProcessSection,
			patches: []string{"profiler-streams"}, stock: process.StockMay, threads: []int{1, 4}, quick: []int{4}, iterations: 20, quickIterations: 10},
		{Name: "spawn", About: "a spawned process beside threads", Section: ProcessSection, patches: discipline, stock: process.StockMay,
			threads: []int{2}, quick: []int{2}, iterations: 10, quickIterations: 4},
		{Name: "exit", About: "the interpreter's end while threads compute", Section: ProcessSection, patches: discipline, stock: process.StockMay,
			threads: []int{4}, quick: []int{4}, iterations: 4, quickIterations: 2},
		{Name: "processes", About: "nn.Linear in so many processes", Section: ProcessSection, Class: "nn.Linear", stock: process.StockLives,
			threads: []int{2, 4, 6, 8}, quick: []int{2}, iterations: 20, quickIterations: 5, Noisy: true},
		{Name: "cold-start", About: "all threads use everything for the first time at once", Section: ColdSection, patches: []string{"kernel-locks",
			"graph-and-kernel-cache"}, stock: process.StockMay, threads: []int{2, 8, 16}, quick: []int{8}, iterations: 1, quickIterations: 1},
		{Name: "empty-cache", About: "the graph cache emptied while in use", Section: ColdSection, patches: []string{"graph-and-kernel-cache"},
			stock: process.StockMay, threads: []int{4}, quick: []int{4}, iterations: 20, quickIterations: 10},
		{Name: "graph-cache-bound", About: "more shapes than graphs may be kept: those used last are kept", Section: ColdSection,
			patches: []string{"allocator-streams"}, stock: process.StockMay, threads: []int{1, 4}, quick: []int{4}, iterations: 40, quickIterations: 20,
			environment: []string{"PYTORCH_MPS_GRAPH_CACHE_SIZE=16"}},
		{Name: "batching", About: "one thread, batches of several sizes", Section: BenchSection, stock: process.StockLives, threads: []int{1},
			quick: []int{1}, iterations: 40, quickIterations: 10, Noisy: true},
		{Name: "steps-16", About: "small steps of a model by threads that share its weights", Section: BenchSection, stock: process.StockMay,
			threads: []int{1, 4}, quick: []int{4}, iterations: 300, quickIterations: 100, Noisy: true},
		{Name: "steps-512", About: "larger steps", Section: BenchSection, stock: process.StockMay, threads: []int{1, 4}, quick: []int{4},
			iterations: 150, quickIterations: 50, Noisy: true},
		{Name: "scale", About: "small steps by up to 256 threads, each with a stream", Section: BenchSection, patches: []string{"thread-leases"},
			stock: process.StockMay, threads: []int{1, 2, 4, 8, 16, 32, 64, 128, 256}, quick: []int{1, 8, 64},
			iterations: 40, quickIterations: 10, environment: poolOf("257", "error"), Noisy: true},
		{Name: "cpu-cost", About: "operators of the CPU beside several streams", Section: BenchSection, stock: process.StockLives, threads: []int{1},
			quick: []int{1}, iterations: 15, quickIterations: 5, Noisy: true},
	}, slices.Concat(oneStreamTests(), frontEndTests(), fieldTests(), reportedTests())...)
}

// upTo lists the numbers from 1.
func upTo(last int) []int {
	var all []int
	for n := 1; n <= last; n++ {
		all = append(all, n)
	}
	return all
}

func Named(name string) (Test, bool) {
	all := Tests()
	i := slices.IndexFunc(all, func(t Test) bool { return t.Name == name })
	if i < 0 {
		return Test{}, false
	}
	return all[i], true
}

// Listed is a test as verify --list shows it.
type Listed struct {
	Name    string   `json:"name"`
	About   string   `json:"about"`
	Section string   `json:"section"`
	Threads []int    `json:"threads"`
	Quick   []int    `json:"quick"`
	Paths   []string `json:"paths,omitempty"`
	Needs   []string `json:"needs,omitempty"` // patches
}

// List lists the tests whose names match a regular expression.
func List(pattern string) ([]Listed, error) {
	selected, err := SelectTests(Tests(), pattern)
	if err != nil {
		return nil, err
	}
	var all []Listed
	for _, t := range selected {
		shown := Listed{Name: t.Name, About: t.About, Section: string(t.Section), Threads: t.threads, Quick: t.quick, Needs: t.patches}
		if t.Graph {
			shown.Paths = []string{"no graph", "graph"}
		}
		all = append(all, shown)
	}
	return all, nil
}
