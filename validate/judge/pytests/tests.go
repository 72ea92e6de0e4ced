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

// NamesOf are the names of the tests that need the patch.
func NamesOf(patch string) []string {
	var names []string
	for _, t := range Tests() {
		if t.Section != BenchSection && slices.Contains(t.patches, patch) {
			names = append(names, t.Name)
		}
	}
	return names
}

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

// row is a test by what each has, threads and iterations in the long and in the short form; change sets what few have.
func row(section Section, name, about string, patches []string, stock process.Stock, threads, quick []int, iterations, quickIterations int,
	change ...func(*Test)) Test {
	t := Test{Name: name, About: about, Section: section, patches: patches, stock: stock, threads: threads, quick: quick, iterations: iterations,
		quickIterations: quickIterations}
	for _, set := range change {
		set(&t)
	}
	return t
}

func of(patches ...string) []string { return patches }

// What few rows have.
func noisy(t *Test)                      { t.Noisy = true }
func extension(t *Test)                  { t.extension = true }
func class(name string) func(*Test)      { return func(t *Test) { t.Class = name } }
func fails(how ...string) func(*Test)    { return func(t *Test) { t.ends = how } }
func lacking(in ...string) func(*Test)   { return func(t *Test) { t.lacking = in } }
func with(setting ...string) func(*Test) { return func(t *Test) { t.environment = setting } }

// Tests is the table; the field reports' rows come first.
func Tests() []Test {
	discipline := []string{"stream-discipline"}
	limit := func(name, about, operation string, graph bool) Test {
		return row(limitSection, name, about, discipline, process.StockFails, limitThreads, []int{4}, 20, 8, class(operation),
			func(t *Test) { t.Graph = graph })
	}
	return append([]Test{
		row(BasicSection, "basic", "randn, mm and relu", discipline, process.StockFails, limitThreads, []int{4}, 10, 10, class("raw tensor operations")),
		row(BasicSection, "stress", "the same, many threads for long", discipline, process.StockFails, []int{8, 16}, []int{8}, 50, 50,
			class("raw tensor operations")),
		row(BasicSection, "large", "products of 1024x1024 matrices", discipline, process.StockFails, []int{4}, []int{2}, 20, 1, noisy),
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
		row(limitSection, "training", "training steps on each thread", of("stream-pool"), process.StockMay, []int{2, 4, 8}, []int{4}, 5, 3, class("training")),
		row(limitSection, "lstm", "training of one LSTM on each thread, by the operator that PyTorch on a Mac calls", of("hand-over"), process.StockMay,
			[]int{1, 4}, []int{4}, 5, 2),
		row(streamSection, "boundary", "1 thread to one more than there are worker streams, all holding theirs at once", discipline, process.StockFails,
			upTo(33), []int{1, 31, 32}, 2, 2),
		row(streamSection, "churn", "threads that come and go", of("thread-leases"), process.StockMay, []int{4}, []int{4}, 50, 20),
		row(streamSection, "stream-assignment", "which thread has which stream", of("thread-leases", "python-streams"), process.StockMay,
			[]int{2, 8}, []int{8}, 1, 1),
		row(streamSection, "release-slot", "a stream given back and leased again", of("thread-leases", "python-streams"), process.StockMay,
			[]int{4}, []int{4}, 10, 5),
		row(streamSection, "explicit-streams", "streams that the program asks for", of("stream-pool", "python-streams"), process.StockMay,
			[]int{4, 40}, []int{4}, 8, 4),
		row(streamSection, "device-functions", "what takes a device takes the one of MPS, and refuses every other", of("python-streams"), process.StockMay,
			[]int{4}, []int{4}, 8, 4),
		row(streamSection, "series-tests", "the tests that the series adds to PyTorch", of("python-streams", "interop"), process.StockMay,
			[]int{1}, []int{1}, 1, 1, extension),
		row(streamSection, "over-subscription", "more threads than streams: share the default one", of("thread-leases"), process.StockMay,
			[]int{40}, []int{40}, 4, 2),
		row(streamSection, "over-subscription-wait", "more threads than streams: wait for one", of("thread-leases", "python-streams"), process.StockMay,
			[]int{8}, []int{8}, 4, 2, with(poolOf("3", "wait")...)),
		row(streamSection, "over-subscription-error", "more threads than streams: a normal exception", of("thread-leases", "python-streams"),
			process.StockMay, []int{3}, []int{3}, 1, 1, with(poolOf("3", "error")...)),
		row(streamSection, "profiled-stream", "a stream that begins within torch.mps.profiler.profile()", of("stream-pool"), process.StockMay,
			[]int{1}, []int{1}, 100, 100),
		row(streamSection, "events", "events with timing", of("event-streams"), process.StockMay, []int{2, 4}, []int{4}, 8, 4),
		row(streamSection, "elapsed-time", "the time between two events, in milliseconds", of("event-streams"), process.StockMay, []int{1}, []int{1}, 5, 2),
		row(memorySection, "hand-over", "tensors passed on round a ring of threads", of("hand-over"), process.StockLives, []int{2, 4, 8}, []int{4}, 10, 5),
		row(memorySection, "cross-stream", "weights of the main thread used by all, results read by it", of("hand-over"), process.StockLives,
			[]int{2, 4, 8}, []int{4}, 10, 5),
		row(memorySection, "in-place", "a tensor that all read and the main thread changes", of("hand-over"), process.StockLives, []int{4}, []int{4}, 10, 5),
		row(memorySection, "other-memory", "a tensor gets other memory while another thread's operator on it waits", of("hand-over"), process.StockMay,
			[]int{2}, []int{2}, 20, 12),
		row(memorySection, "written-elsewhere", "what operators of other threads write: out=, in place, lists, statistics", of("hand-over"),
			process.StockMay, []int{1, 4}, []int{4}, 1, 1),
		row(memorySection, "buffer-reuse", "memory made and dropped all the time", of("allocator-streams"), process.StockLives, []int{4, 8}, []int{4}, 30, 15),
		row(memorySection, "idle-consumer", "a tensor for each of many streams, which nobody waits for: the memory comes back", of("allocator-streams"),
			process.StockMay, []int{1}, []int{1}, 30, 30),
		row(memorySection, "scalars", "numbers that graphs are fed with: none is left in memory when the work is complete", of("allocator-streams"),
			process.StockMay, []int{4, 8}, []int{4}, 30, 10),
		row(memorySection, "device-synchronize", "the device synchronised while threads compute", discipline, process.StockFails, []int{2, 4, 8}, []int{4},
			20, 10),
		row(memorySection, "failed-work", "work that fails on the GPU", of("failed-work"), process.StockMay, []int{1, 4}, []int{4}, 4, 2, extension),
		row(memorySection, "failed-operators", "which operators the exception names", of("failed-work"), process.StockMay, []int{4}, []int{4}, 1, 1,
			extension),
		row(memorySection, "failed-work-once", "which threads raise what failed on one of them", of("failed-work"), process.StockMay, []int{4}, []int{4},
			1, 1, extension),
		row(memorySection, "failed-work-unheard", "a thread that begins after the failure, which nobody has raised", of("failed-work"), process.StockMay,
			[]int{1, 4}, []int{4}, 1, 1, extension),
		row(memorySection, "copies", "copies between CPU and MPS: views, other types, sources that are freed", of("cpu-copies"), process.StockFails,
			[]int{1, 4, 8}, []int{4}, 20, 5, fails("^wrong values", process.HeapCorrupted)),
		row(memorySection, "dropped-copies", "non-blocking copies to the CPU whose destinations are dropped", of("cpu-copies"), process.StockFails,
			[]int{1, 4, 8}, []int{4}, 20, 5, fails("^wrong values", process.HeapCorrupted)),
		row(memorySection, "finalizers", "finalizers that PyTorch runs within operators, and that wait for threads", of("hand-over", "cpu-copies"),
			process.StockLives, []int{1}, []int{1}, 1, 1),
		row(memorySection, "sanitizer-raises", "memory that nothing orders, with PYTORCH_MPS_SANITIZE=error", of("sanitizer"), process.StockMay,
			[]int{1}, []int{1}, 3, 3, with("PYTORCH_MPS_SANITIZE=error"), extension),
		row(memorySection, "sanitizer-warns", "the same with warn", of("sanitizer"), process.StockMay, []int{1}, []int{1}, 3, 3,
			with("PYTORCH_MPS_SANITIZE=warn"), extension),
		row(memorySection, "sanitizer-waits", "explicit streams that the program does not make wait for each other", of("sanitizer"), process.StockMay,
			[]int{1}, []int{1}, 4, 4, with("PYTORCH_MPS_SANITIZE=warn,waits")),
		row(memorySection, "sanitizer-waits-of-default", "the same with the default stream", of("sanitizer"), process.StockMay, []int{1}, []int{1}, 4, 2,
			with("PYTORCH_MPS_SANITIZE=warn,waits")),
		row(memorySection, "sanitizer-poison", "memory that nobody has written", of("sanitizer"), process.StockMay, []int{1, 4}, []int{4}, 16, 8,
			with("PYTORCH_MPS_SANITIZE=poison")),
		row(ProcessSection, "fork", "first use in a forked child", of("stream-pool"), process.StockMay, []int{2}, []int{2}, 1, 1),
		row(ProcessSection, "fork-unasked", "a forked child of a process that used MPS, and asked nothing of it before", of("stream-pool"), process.StockMay,
			[]int{1}, []int{1}, 2, 2),
		row(ProcessSection, "fork-functions", "functions of torch.mps in forked children of threads that use it", of("stream-pool", "allocator-streams"),
			process.StockMay, []int{4}, []int{4}, 20, 6),
		row(ProcessSection, "fork-workers", "a DataLoader's forked workers beside threads that use mps", discipline, process.StockMay, []int{4}, []int{4},
			4, 2),
		row(ProcessSection, "profiling-stats", "operators of several threads in the statistics at a process's end", of("profiler-streams"), process.StockMay,
			[]int{1, 4}, []int{4}, 20, 10),
		row(ProcessSection, "work-at-exit", "copies into a shared file when the process ends", of("allocator-streams"), process.StockMay, []int{1, 4},
			[]int{1, 4}, 1, 1),
		row(ProcessSection, "no-device", "a macOS that is too old for PyTorch to use its GPU", of("stream-pool"), process.StockMay, []int{1, 4}, []int{4}, 1, 1,
			extension),
		row(ProcessSection, "spawn", "a spawned process beside threads", discipline, process.StockMay, []int{2}, []int{2}, 10, 4),
		row(ProcessSection, "exit", "the interpreter's end while threads compute", discipline, process.StockMay, []int{4}, []int{4}, 4, 2),
		row(ProcessSection, "processes", "nn.Linear in so many processes", nil, process.StockLives, []int{2, 4, 6, 8}, []int{2}, 20, 5, class("nn.Linear"),
			noisy),
		row(ColdSection, "cold-start", "all threads use everything for the first time at once", of("kernel-locks", "graph-and-kernel-cache"),
			process.StockMay, []int{2, 8, 16}, []int{8}, 1, 1),
		row(ColdSection, "empty-cache", "the graph cache emptied while in use", of("graph-and-kernel-cache"), process.StockMay, []int{4}, []int{4}, 20, 10),
		row(ColdSection, "graph-cache-bound", "more shapes than graphs may be kept: those used last are kept", of("allocator-streams"), process.StockMay,
			[]int{1, 4}, []int{4}, 40, 20, with("PYTORCH_MPS_GRAPH_CACHE_SIZE=16")),
		row(BenchSection, "batching", "one thread, batches of several sizes", nil, process.StockLives, []int{1}, []int{1}, 40, 10, noisy),
		row(BenchSection, "steps-16", "small steps of a model by threads that share its weights", nil, process.StockMay, []int{1, 4}, []int{4}, 300, 100,
			noisy),
		row(BenchSection, "steps-512", "larger steps", nil, process.StockMay, []int{1, 4}, []int{4}, 150, 50, noisy),
		row(BenchSection, "scale", "small steps by up to 256 threads, each with a stream", of("thread-leases"), process.StockMay,
			[]int{1, 2, 4, 8, 16, 32, 64, 128, 256}, []int{1, 8, 64}, 40, 10, with(poolOf("257", "error")...), noisy),
		row(BenchSection, "cpu-cost", "operators of the CPU beside several streams", nil, process.StockLives, []int{1}, []int{1}, 15, 5, noisy),
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
