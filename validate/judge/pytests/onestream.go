package pytests

import "mpsforge/validate/judge/process"

// oneStreamTests are programs that rely on what is true where there is one stream: what a thread that has chosen none may
// rely on, and how much memory and how many graphs a program takes.
func oneStreamTests() []Test {
	streams := func(name, about, patch string, threads, iterations, quick int, change ...func(*Test)) Test {
		return row(streamSection, name, about, of(patch), process.StockMay, []int{threads}, []int{threads}, iterations, quick, change...)
	}
	memory := func(name, about, patch string, threads, iterations, quick int, change ...func(*Test)) Test {
		t := streams(name, about, patch, threads, iterations, quick, change...)
		t.Section, t.Noisy = memorySection, true
		return t
	}
	cyclic := memory("cyclic-graphs", "more shapes than the default bound of graphs, again and again", "allocator-streams", 1, 1, 1)
	cyclic.Section = ColdSection
	return []Test{
		streams("hooks", "item() in the backward pass, after copies of other threads that do not block", "python-streams", 4, 3, 1),
		streams("hook-events", "events in the backward pass", "python-streams", 4, 3, 1),
		streams("same-stream", "setting the stream that a thread has is no choice", "python-streams", 4, 3, 3),
		streams("captured-stream", "an event on the stream that another thread had", "python-streams", 2, 10, 3),
		streams("earlier-events", "events of other threads after a wait of one", "python-streams", 4, 5, 2),
		streams("named-stream-waits", "waits that name streams and events, called on another stream", "python-streams", 1, 10, 3),
		streams("current-stream", "the current stream before and after a thread's first operator", "python-streams", 4, 10, 3),
		streams("shared-leaf", "threads whose first use of mps is autograd's of one leaf", "thread-leases", 8, 60, 30),
		streams("asks-again", "a thread that found no stream gets the first that is free", "thread-leases", 1, 5, 2, with(poolOf("2", "share")...)),
		streams("interrupted-stream", "Ctrl-C as a stream context begins, runs and ends", "python-streams", 1, 2000, 500),
		streams("unknown-streams", "streams that do not exist, and a forked child", "python-streams", 1, 3, 1),
		streams("forked-inside", "a fork inside of an operator, while its tensor is used", "python-streams", 1, 3, 1),
		streams("forked-exit", "the exit of a forked child while its parent profiles", "stream-pool", 1, 3, 2),
		streams("forked-worker", "the exit of a forked worker whose stream's queue another thread is on", "thread-leases", 1, 5, 2, extension),
		streams("work-ended-elsewhere", "external work that another thread ends", "interop", 4, 10, 3),
		streams("refusals", "Metal makes no queue, event or buffer", "cpu-copies", 1, 2, 1, extension),
		streams("refused-lease", "Metal makes no queue for a thread's own stream", "thread-leases", 4, 1, 1, extension),
		streams("polled-handlers", "an event and a stream are polled while handlers need the interpreter lock", "failed-work", 1, 40, 20, extension),
		memory("uploads", "copies to MPS that do not block, while the GPU is behind", "cpu-copies", 1, 60, 30),
		memory("uploads-beside-download", "an upload that does not block, while the GPU has yet to do a download", "cpu-copies", 1, 20, 8),
		memory("upload-around-download", "the same, of memory around the download's", "cpu-copies", 1, 20, 5),
		memory("written-targets", "what copies to the CPU have written is let go", "cpu-copies", 1, 5, 2),
		memory("idle-target", "what the last copy to the CPU has written is let go with no further call", "cpu-copies", 1, 5, 2),
		memory("oversized", "what is longer than Metal's longest buffer", "cpu-copies", 1, 3, 2, with("MPSFORGE_METAL_MAX_BUFFER_MB=48")),
		memory("small-turns", "threads that take turns with small temporaries", "allocator-streams", 16, 1, 1),
		memory("turns", "threads that take turns with temporaries", "allocator-streams", 16, 1, 1),
		memory("small-from-large", "small tensors that wait for a consumer, beside large temporaries", "allocator-streams", 1, 60, 40),
		memory("come-and-go", "threads that come and go, 10,000 in the long form, 16 at once", "allocator-streams", 16, 625, 60),
		memory("producer", "a producer and a consumer", "allocator-streams", 1, 200, 60),
		memory("uploads-at-limit", "uploads of one thread that has room for them once", "cpu-copies", 1, 200, 40),
		memory("limit-in-turns", "a memory limit that has room for one thread at a time", "allocator-streams", 8, 40, 10),
		cyclic,
	}
}
