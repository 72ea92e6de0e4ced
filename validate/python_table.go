package validate

import "slices"

// pythonTest is one row of the python stage: a test of validate/python, how it is run, and what must come of it.
type pythonTest struct {
	name    string // of the method test_NAME, with dashes
	about   string
	section pythonSection
	// class of operation, a column of the thread-limit table.
	class string
	// patches are those without which it must fail or can not run; while the series lacks one, the test waits.
	patches []string
	stock   stockOutcome // what an unpatched torch does with several threads
	// threads at once, in the long and in the short form; processes for section processes.
	threads, quick []int
	// iterations of each thread, in the long and in the short form.
	iterations, quickIterations int
	// graph: also with inputs that take the graph path of Linear.
	graph bool
	// environment of the process.
	environment []string
	// noisy tests use all processors; nothing else runs beside them.
	noisy bool
}

// pythonSection groups tests as the report's tables do.
type pythonSection string

const (
	basicSection   pythonSection = "basic and stress"
	limitSection   pythonSection = "thread limit"
	streamSection  pythonSection = "streams"
	memorySection  pythonSection = "hand-over and memory"
	processSection pythonSection = "processes"
	coldSection    pythonSection = "cold and warm"
	benchSection   pythonSection = "bench"
)

// limitThreads are the columns of the field reports' thread-limit table, and 16.
var limitThreads = []int{2, 3, 4, 5, 8, 16}

// poolOf sets the number of streams: the default one and one less worker streams.
func poolOf(size, exhausted string) []string {
	return []string{"PYTORCH_MPS_STREAM_POOL_SIZE=" + size, "PYTORCH_MPS_STREAM_POOL_EXHAUSTED=" + exhausted}
}

// pythonTests is the table; the field reports' rows come first.
func pythonTests() []pythonTest {
	discipline := []string{"stream-discipline"}
	limit := func(name, about, class string, graph bool) pythonTest {
		return pythonTest{name: name, about: about, section: limitSection, class: class, patches: discipline, stock: stockFails, threads: limitThreads, quick: []int{4},
			iterations: 20, quickIterations: 8, graph: graph}
	}
	return []pythonTest{
		{name: "basic", about: "randn, mm and relu", section: basicSection, class: "raw tensor operations", patches: discipline, stock: stockFails, threads: limitThreads, quick: []int{4}, iterations: 10, quickIterations: 10},
		{name: "stress", about: "the same, many threads for long", section: basicSection, class: "raw tensor operations", patches: discipline, stock: stockFails, threads: []int{8, 16}, quick: []int{8}, iterations: 50, quickIterations: 50},
		{name: "large", about: "products of 1024x1024 matrices", section: basicSection, patches: discipline, stock: stockFails, threads: []int{4}, quick: []int{2}, iterations: 20, quickIterations: 1, noisy: true},
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
		{name: "training", about: "training steps on each thread", section: limitSection, class: "training", patches: []string{"stream-pool"}, stock: stockMay, threads: []int{2, 4, 8}, quick: []int{4}, iterations: 5, quickIterations: 3},
		{name: "boundary", about: "1 thread to one more than there are worker streams, all holding theirs at once", section: streamSection, patches: discipline, stock: stockFails,
			threads: upTo(33), quick: []int{1, 31, 32}, iterations: 2, quickIterations: 2},
		{name: "churn", about: "threads that come and go", section: streamSection, patches: []string{"thread-leases"}, stock: stockMay, threads: []int{4}, quick: []int{4}, iterations: 50, quickIterations: 20},
		{name: "stream-assignment", about: "which thread has which stream", section: streamSection, patches: []string{"thread-leases", "python-streams"}, stock: stockMay, threads: []int{2, 8}, quick: []int{8}, iterations: 1, quickIterations: 1},
		{name: "release-slot", about: "a stream given back and leased again", section: streamSection, patches: []string{"thread-leases", "python-streams"}, stock: stockMay, threads: []int{4}, quick: []int{4}, iterations: 10, quickIterations: 5},
		{name: "explicit-streams", about: "streams that the program asks for", section: streamSection, patches: []string{"stream-pool", "python-streams"}, stock: stockMay, threads: []int{4, 40}, quick: []int{4}, iterations: 8, quickIterations: 4},
		{name: "over-subscription", about: "more threads than streams: share the default one", section: streamSection, patches: []string{"thread-leases"}, stock: stockMay, threads: []int{40}, quick: []int{40}, iterations: 4, quickIterations: 2},
		{name: "over-subscription-wait", about: "more threads than streams: wait for one", section: streamSection, patches: []string{"thread-leases", "python-streams"}, stock: stockMay, threads: []int{8}, quick: []int{8}, iterations: 4, quickIterations: 2, environment: poolOf("3", "wait")},
		{name: "over-subscription-error", about: "more threads than streams: a normal exception", section: streamSection, patches: []string{"thread-leases", "python-streams"}, stock: stockMay, threads: []int{3}, quick: []int{3}, iterations: 1, quickIterations: 1, environment: poolOf("3", "error")},
		{name: "events", about: "events with timing", section: streamSection, patches: []string{"event-streams"}, stock: stockMay, threads: []int{2, 4}, quick: []int{4}, iterations: 8, quickIterations: 4},
		{name: "hand-over", about: "tensors passed on round a ring of threads", section: memorySection, patches: []string{"hand-over"}, stock: stockLives, threads: []int{2, 4, 8}, quick: []int{4}, iterations: 10, quickIterations: 5},
		{name: "cross-stream", about: "weights of the main thread used by all, results read by it", section: memorySection, patches: []string{"hand-over"}, stock: stockLives, threads: []int{2, 4, 8}, quick: []int{4}, iterations: 10, quickIterations: 5},
		{name: "in-place", about: "a tensor that all read and the main thread changes", section: memorySection, patches: []string{"hand-over"}, stock: stockLives, threads: []int{4}, quick: []int{4}, iterations: 10, quickIterations: 5},
		{name: "buffer-reuse", about: "memory made and dropped all the time", section: memorySection, patches: []string{"allocator-streams"}, stock: stockLives, threads: []int{4, 8}, quick: []int{4}, iterations: 30, quickIterations: 15},
		{name: "device-synchronize", about: "the device synchronised while threads compute", section: memorySection, patches: discipline, stock: stockFails, threads: []int{2, 4, 8}, quick: []int{4}, iterations: 20, quickIterations: 10},
		{name: "fork", about: "first use in a forked child", section: processSection, patches: []string{"stream-pool"}, stock: stockMay, threads: []int{2}, quick: []int{2}, iterations: 1, quickIterations: 1},
		{name: "spawn", about: "a spawned process beside threads", section: processSection, patches: discipline, stock: stockMay, threads: []int{2}, quick: []int{2}, iterations: 10, quickIterations: 4},
		{name: "exit", about: "the interpreter's end while threads compute", section: processSection, patches: discipline, stock: stockMay, threads: []int{4}, quick: []int{4}, iterations: 4, quickIterations: 2},
		{name: "processes", about: "nn.Linear in so many processes", section: processSection, class: "nn.Linear", stock: stockLives, threads: []int{2, 4, 6, 8}, quick: []int{2}, iterations: 20, quickIterations: 5, noisy: true},
		{name: "cold-start", about: "all threads use everything for the first time at once", section: coldSection, patches: []string{"shader-library-locks", "graph-and-kernel-cache"}, stock: stockMay, threads: []int{2, 8, 16}, quick: []int{8}, iterations: 1, quickIterations: 1},
		{name: "empty-cache", about: "the graph cache emptied while in use", section: coldSection, patches: []string{"graph-and-kernel-cache"}, stock: stockMay, threads: []int{4}, quick: []int{4}, iterations: 20, quickIterations: 10},
		{name: "batching", about: "one thread, batches of several sizes", section: benchSection, stock: stockLives, threads: []int{1}, quick: []int{1}, iterations: 40, quickIterations: 10, noisy: true},
	}
}

// upTo lists the numbers from 1.
func upTo(last int) []int {
	var all []int
	for n := 1; n <= last; n++ {
		all = append(all, n)
	}
	return all
}

func pythonTestNamed(name string) (pythonTest, bool) {
	all := pythonTests()
	i := slices.IndexFunc(all, func(t pythonTest) bool { return t.name == name })
	if i < 0 {
		return pythonTest{}, false
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

// ListTests lists the tests whose names match a regular expression.
func ListTests(pattern string) ([]Listed, error) {
	selected, err := selectTests(pythonTests(), pattern)
	if err != nil {
		return nil, err
	}
	var all []Listed
	for _, t := range selected {
		shown := Listed{Name: t.name, About: t.about, Section: string(t.section), Threads: t.threads, Quick: t.quick, Needs: t.patches}
		if t.graph {
			shown.Paths = []string{"no graph", "graph"}
		}
		all = append(all, shown)
	}
	return all, nil
}
