package pytests

import (
	"slices"
	"time"

	"mpsforge/validate/judge/process"
)

// fieldTests are programs as people write them, each right on stock's one queue and wrong, or hung for ever, when ordering looks
// at operators' schemas from outside. They hang where they fail, so each has a deadline; an operation takes milliseconds.
func fieldTests() []Test {
	test := func(name, about string, iterations int, change ...func(*Test)) Test {
		t := row(fieldSection, name, about, of("hand-over"), process.StockLives, []int{4}, []int{4}, 2*iterations, iterations, change...)
		t.deadline = 45 * time.Second
		return t
	}
	threads := func(counts ...int) func(*Test) { return func(t *Test) { t.threads, t.quick = counts, counts[:1] } }
	// mayDie: threads use MPS at once, of which stock may die, or it has not what the test needs.
	mayDie := func(t *Test) { t.stock = process.StockMay }
	needs := func(patches ...string) func(*Test) {
		return func(t *Test) { t.patches = slices.Concat(t.patches, patches) }
	}
	return []Test{
		test("running-statistics", "batch norm's running mean and variance, which no schema marks as written", 3),
		test("freed-inside", "operators that free the memory of what they write", 3),
		test("stream-inside-an-operator", "an operator in Python that writes on another stream than its caller's", 3, mayDie, needs("python-streams")),
		test("record-function-off", "a reader that has record functions switched off", 3),
		test("strided-first", "a strided view copied to the CPU as a thread's first work", 5, threads(5)),
		test("gathered-inputs", "an operator that gathers two inputs, as before macOS 15", 3, needs("stream-discipline"), with("MPSFORGE_METAL_MACOS=14.4")),
		test("host-memory", "memory of the host, written by one thread and read by another", 3),
		test("host-memory-in-part", "the same, with tensors that overlap in part", 3),
		test("host-memory-twice", "memory of the host, written by two streams and read by a third", 3, mayDie, threads(1), needs("python-streams")),
		test("event-first", "an event as a thread's first call", 2),
		test("foreign-buffer", "a tensor over memory that another library allocated", 3, extension),
		test("raw-encoding", "an extension that encodes on the thread's stream", 2, extension),
		test("raw-encoding-first", "the same as a thread's only work", 2, extension),
		test("external-work", "a library that commits command buffers of its own to the default stream's queue", 2, mayDie, extension, needs("interop")),
		test("interrupted-external-work", "a signal handler that raises at a random moment of external work", 200, mayDie, threads(1), needs("interop")),
		test("dropped-external-work", "external work whose context is dropped inside of it", 3, mayDie, needs("interop")),
		test("external-work-entered-twice", "one context of external work that two threads enter at once", 100, mayDie, needs("interop")),
		test("kernels-of-an-extension", "an extension's kernels in turn with operators", 4, mayDie, extension, needs("interop")),
		test("command-block", "runCommandBlock without an operator, as compiled models call it", 2, extension),
		test("compiled-shader", "a shader of the program's own", 2),
		test("compiled-shader-waits", "how often threads wait for each other that read shared weights by a shader of the program's own", 20, mayDie,
			needs("python-streams")),
		test("index-by-tensor", "indexing beside an operator in Python that waits for it", 5),
		test("pool-in-operator", "an operator in Python that maps its arguments over a pool of threads", 5),
		test("python-kernel", "the same, registered as a kernel of device mps", 5),
		test("python-inside-a-kernel", "a kernel in Python that one of PyTorch's own kernels calls", 5),
		test("python-inside-two-kernels", "a kernel in Python inside of two of PyTorch's own; in it the second thread uses mps for the first time", 1,
			threads(1)),
		test("fallback-in-python", "a kernel in Python under the CPU fallback, with a pool of threads that use mps", 5, with("PYTORCH_ENABLE_MPS_FALLBACK=1")),
		test("nested-operators", "operators whose bodies write each other's tensors", 10, mayDie, threads(4, 8)),
		test("pollers", "many threads poll a number, one adds to it", 5, mayDie, threads(17, 9)),
		test("synchronize-together", "two threads of one stream wait for the device at the same time", 5, mayDie, threads(1), needs("stream-discipline"),
			with("PYTORCH_MPS_STREAM_PER_THREAD=0")),
		test("sub-interpreter", "an operator after a sub-interpreter was made", 2, threads(1)),
		test("exhausted-indexing", "more threads than streams, which wait for one; each begins with an index", 1, mayDie, threads(8),
			needs("thread-leases", "python-streams"),
			with(poolOf("3", "wait")...)),
		test("operators-beside-stalled-peer", "indexing, numbers and copies while another stream is stalled", 1, mayDie, extension, threads(1),
			needs("python-streams")),
		test("functions-beside-stalled-peer", "every function of torch.mps while another stream is stalled", 1, mayDie, extension, threads(1),
			needs("python-streams", "interop")),
		test("no-global-callback", "callbacks for all operators are refused once there are several streams", 1, mayDie),
	}
}

// reportedTests are programs after public reports. Stock 2.6.0 survives most of them: what they name came to PyTorch later. Each runs
// once, as they are many; with --repeat they are a long form.
func reportedTests() []Test {
	test := func(name, about string, threads, iterations int) Test {
		return row(fieldSection, name, about, of("stream-discipline"), process.StockMay, []int{threads}, []int{threads}, 2*iterations, iterations,
			func(t *Test) { t.once = true })
	}
	server := test("web-server", "FastAPI and uvicorn: requests at once, whose functions measure their time", 32, 1)
	server.stock, server.packages = process.StockFails, true
	coroutines := test("web-to-thread", "the same by asyncio.to_thread, and torch.mps.empty_cache after each request (khora#989, trip2g#181)", 32, 1)
	coroutines.packages = true
	return []Test{
		test("ranges", "arange and linspace (pytorch#197805)", 2, 30),
		test("functions-first-used", "each thread's first operator is another one (pytorch#167541)", 15, 1),
		test("weights-loaded", "weights of a mapped file, cast by a pool of threads (transformers#48029)", 4, 2),
		test("reranker", "one model for queries at once, by asyncio.to_thread (open-webui#29722)", 16, 2),
		test("sampler-batches", "a sampling for each batch of a text, by a pool of threads (F5-TTS in pytorch#197805)", 4, 1),
		test("synchronize-others", "the device is waited for when other threads have enqueued (CTranslate2#2077)", 4, 10),
		server,
		coroutines,
	}
}
