package crash

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mpsforge/internal/suggest"
	"mpsforge/patches"
)

// ErrUnknownSignature says that a text names no crash signature and holds none.
var ErrUnknownSignature = errors.New("no such crash signature")

// Class is what a crash says about threads.
type Class string

const (
	ThreadClass    Class = "thread class"     // several threads in PyTorch's MPS backend explain it
	NotThreadClass Class = "not thread class" // it has another cause, however many threads there are
	UnknownClass   Class = "unknown"
)

// Signature is a crash that is distinguished from others by its text or its stack, with what is known about it. Numbers and
// phrases are those of docs/dev/spec/metal.md; line numbers in Apple's texts vary by macOS, so only words count.
type Signature struct {
	Number  int      `json:"number,omitempty"` // 0: listed only to be distinguished from the others
	Slug    string   `json:"slug"`
	Class   Class    `json:"class"`
	Texts   []string `json:"texts,omitempty"`  // phrases of messages; … is for anything between
	Stacks  []string `json:"stacks,omitempty"` // what a crash report or a sample shows, if no message says it
	Meaning string   `json:"meaning"`
	Cause   string   `json:"cause"`
	Sites   string   `json:"sites,omitempty"`   // where Apple's frameworks print it, with the lines seen
	Patches []string `json:"patches,omitempty"` // of the series, that address it
	Remains string   `json:"remains,omitempty"` // what they do not address
	Sources []string `json:"sources"`
}

// Name is what the command line calls the signature.
func (s *Signature) Name() string {
	if s.Number == 0 {
		return s.Slug
	}
	return fmt.Sprintf("%d %s", s.Number, s.Slug)
}

const (
	fieldReport = "a field report of the public predecessor, without a link"
	fieldNote   = "a field note, without a link"
)

func pytorch(numbers ...int) []string { return github("pytorch/pytorch", numbers...) }

func github(repository string, numbers ...int) []string {
	var links []string
	for _, number := range numbers {
		links = append(links, fmt.Sprintf("https://github.com/%s/issues/%d", repository, number))
	}
	return links
}

// signatures is the table, in the order of the numbers, and behind them what is not of the thread class.
var signatures = []*Signature{
	{
		Number: 1, Slug: "scheduled-handler-after-commit", Class: ThreadClass,
		Texts:   []string{"Scheduled handler provided after commit call"},
		Sites:   "-[_MTLCommandBuffer addScheduledHandler:], lines 787 and 807",
		Meaning: "A scheduled handler was added to a command buffer that had been committed already; handlers are allowed before commit only.",
		Cause:   "Another thread committed the command buffer that both share, between the moment this thread got it and the moment it added the handler.",
		Patches: []string{"stream-discipline", "thread-leases"},
		Sources: github("vladmandic/sdnext", 4059),
	},
	{
		Number: 2, Slug: "completed-handler-after-commit", Class: ThreadClass,
		Texts:   []string{"Completed handler provided after commit call"},
		Sites:   "-[_MTLCommandBuffer addCompletedHandler:], lines 867 and 976",
		Meaning: "A completed handler was added to a command buffer that had been committed already.",
		Cause: "Another thread committed the shared command buffer first; or a handler was added to the previous buffer, which had been flushed. " +
			"Also seen with dropout in training.",
		Patches: []string{"stream-discipline", "allocator-streams", "thread-leases"},
		Sources: pytorch(100285),
	},
	{
		Number: 3, Slug: "double-commit", Class: ThreadClass,
		Texts:   []string{"commit an already committed command buffer"},
		Sites:   "-[IOGPUMetalCommandBuffer validate], lines 213 to 215; MTLIOAccelCommandBuffer, line 207; -[_MTLCommandBuffer commit], line 682",
		Meaning: "One command buffer was committed twice.",
		Cause: "Two threads committed the one open command buffer of the stream that they share: commit paths outside the stream's queue, such " +
			"as the device-wide synchronise and commit hooks.",
		Patches: []string{"stream-discipline", "thread-leases"},
		Remains: "In one of the reports (Wan2GP 2014) threads are not proven to be the cause.",
		Sources: append(github("AUTOMATIC1111/stable-diffusion-webui", 13159, 14761), github("deepbeepmeep/Wan2GP", 2014)...),
	},
	{
		Number: 4, Slug: "commit-with-open-encoder", Class: ThreadClass,
		Texts:   []string{"commit command buffer with uncommitted encoder"},
		Sites:   "-[IOGPUMetalCommandBuffer validate], lines 215 and 216; -[_MTLCommandBuffer commit], lines 683 and 691",
		Meaning: "A command buffer was committed while an encoder on it was still open.",
		Cause:   "One thread commits the shared command buffer while another is encoding into it.",
		Patches: []string{"stream-discipline", "thread-leases"},
		Sources: github("AUTOMATIC1111/stable-diffusion-webui", 13159, 14761),
	},
	{
		Number: 5, Slug: "second-encoder", Class: ThreadClass,
		Texts: []string{"A command encoder is already encoding to this command buffer"},
		Sites: "-[AGXG…FamilyCommandBuffer tryCoalescingPreviousComputeCommandEncoderWithConfig:nextEncoderClass:] of G13 to G16, lines 1015, " +
			"1090, 1091 and 1094; blitCommandEncoderCommon:, line 836",
		Meaning: "An encoder was made on a command buffer that has one open; a command buffer has one active encoder at a time.",
		Cause: "Two threads encode into the command buffer that they share. One thread alone can do it too: an extension that makes an encoder " +
			"of its own while PyTorch keeps one open.",
		Patches: []string{"stream-discipline", "kernel-locks", "thread-leases"},
		Remains: "The patches do not help an extension that makes encoders itself instead of using the stream's.",
		Sources: append(pytorch(197805, 163721), github("huggingface/kernels", 307)...),
	},
	{
		Number: 6, Slug: "encode-after-commit", Class: ThreadClass,
		Texts:   []string{"_status < MTLCommandBufferStatusCommitted"},
		Sites:   "-[IOGPUMetalCommandBuffer setCurrentCommandEncoder:], lines 322 and 323",
		Meaning: "An encoder was made on a command buffer that had been committed already.",
		Cause:   "synchronize() of one thread, outside the stream's queue, commits the command buffer that another thread is about to encode into.",
		Patches: []string{"stream-discipline", "thread-leases"},
		Sources: append(pytorch(197836), github("deepbeepmeep/Wan2GP", 2014)...),
	},
	{
		Number: 7, Slug: "event-with-open-encoder", Class: ThreadClass,
		Texts:   []string{"encodeSignalEvent:value: with uncommitted encoder"},
		Sites:   "IOGPUMetalCommandBuffer, line 426; MTLIOAccelCommandBuffer, line 414",
		Meaning: "An event was signalled while an encoder was open; signals and waits are encoded between encoders.",
		Cause:   "An event is recorded while another thread has opened an encoder on the same stream.",
		Patches: []string{"stream-discipline", "event-streams"},
		Sources: []string{fieldReport},
	},
	{
		Number: 8, Slug: "double-enqueue", Class: ThreadClass,
		Texts:   []string{"enqueue an already enqueued command buffer"},
		Sites:   "-[_MTLCommandBuffer enqueue], line 669",
		Meaning: "A command buffer was enqueued that had been enqueued or committed already.",
		Cause:   "Two threads enqueue or commit the command buffer that they share.",
		Patches: []string{"stream-discipline", "thread-leases"},
		Sources: []string{fieldReport},
	},
	{
		Number: 9, Slug: "encoder-lost", Class: ThreadClass,
		Texts:   []string{"Command encoder released without endEncoding"},
		Sites:   "-[_MTLCommandEncoder dealloc], lines 70 and 131",
		Meaning: "The last reference to an encoder went while it was open.",
		Cause: "Two threads create the stream's encoder at the same time, and one overwrites what the other has stored; or an encoder is dropped " +
			"on an error path.",
		Patches: []string{"stream-discipline"},
		Sources: []string{fieldReport},
	},
	{
		Number: 10, Slug: "matrix-multiplication-encoded-twice", Class: ThreadClass,
		Texts:   []string{"A and B index not found"},
		Meaning: "Apple's matrix multiplication kernel lost its operands while it was being encoded.",
		Cause: "Two threads encode MPSNDArrayMatrixMultiplication at the same time, even on different instances, buffers and queues: the kernel " +
			"keeps state outside its instances. PyTorch's nn.Linear uses it where it skips the graph.",
		Patches: []string{"kernel-locks"},
		Remains: "The lock makes these encodes run one after another. PYTORCH_MPS_STREAM_PER_THREAD=0 gives all threads one queue, on which no two " +
			"encode anything at once.",
		Sources: []string{fieldReport},
	},
	{
		Number: 11, Slug: "invalid-kernel-dag", Class: ThreadClass,
		Texts:   []string{"Invalid KernelDAG"},
		Meaning: "Apple's graph compiler found its kernel graph in a state that one thread alone never makes.",
		Cause: "Threads share what Metal does not make safe: one compiled MPSGraph or MPSKernel from a cache that all threads use, or the matrix " +
			"multiplication of signature 10.",
		Patches: []string{"graph-and-kernel-cache", "kernel-locks"},
		Sources: []string{fieldReport},
	},
	{
		Number: 12, Slug: "graph-freed-in-use", Class: ThreadClass,
		Texts:   []string{"Cannot form weak reference to instance … of class MPSGraph"},
		Meaning: "An MPSGraph was being freed while something still used it.",
		Cause:   "empty_cache() of one thread clears the graph cache while another thread runs a graph out of it.",
		Patches: []string{"graph-and-kernel-cache"},
		Sources: append([]string{fieldNote}, pytorch(181485)...),
	},
	{
		Number: 13, Slug: "shader-cache-corrupted", Class: ThreadClass,
		Texts:   []string{"malloc: Double free of object", "malloc: … double free", "BUG IN LIBMALLOC: asking for start of chunk"},
		Stacks:  []string{"SIGSEGV in __hash_table…__emplace_unique_key_args, with PyTorch's or Metal's frames on the thread"},
		Meaning: "The heap or a hash table was damaged. Any program's double free prints such texts, so look at the stack for MetalShaderLibrary.",
		Cause: "Threads insert into PyTorch's caches of shader libraries, pipelines and functions without a lock, mostly at a cold start with " +
			"several threads (27 of 28 field notes).",
		Patches: []string{"kernel-locks"},
		Sources: append(pytorch(167541, 197837), fieldNote),
	},
	{
		Number: 14, Slug: "encoder-gone", Class: ThreadClass,
		Stacks:  []string{"SIGSEGV at address 0x98, 0x184, 0x5c8 or 0x5f4 with a frame of AGX…ComputeContext"},
		Meaning: "A compute encoder was used whose driver object is gone; the addresses are offsets from a null pointer.",
		Cause: "Another thread ended and released the stream's encoder, by a synchronise or by ending kernel coalescing outside the stream's " +
			"queue, while this thread was still encoding with it. The predecessor blamed Apple's driver; PyTorch's own use explains it as well.",
		Patches: []string{"stream-discipline", "thread-leases"},
		Sources: append(pytorch(197836), fieldReport),
	},
	{
		Number: 15, Slug: "released-object", Class: ThreadClass,
		Stacks: []string{"objc_msgSend + 32 on top", "objc_retain + 16 on top", "possible pointer authentication failure",
			"each with PyTorch's or Metal's frames on the thread"},
		Meaning: "A message was sent to an Objective-C object that had been freed. Any program can do that, so look at the frames below for what was used.",
		Cause:   "Another thread released the encoder, command buffer, graph or event: 116 of the predecessor's 274 crashes are of this kind.",
		Patches: []string{"stream-discipline", "graph-and-kernel-cache", "profiler-streams", "event-streams"},
		Sources: []string{fieldReport},
	},
	{
		Number: 16, Slug: "dispatch-sync-own-queue", Class: ThreadClass,
		Texts:   []string{"dispatch_sync called on queue already owned by current thread"},
		Meaning: "A thread waited for a queue whose block it was running, which would never end.",
		Cause: "A block on the stream's queue calls something that enters the queue again: a synchronise inside an operation, or a fix that " +
			"wraps each call without looking where it runs.",
		Patches: []string{"stream-discipline"},
		Sources: []string{fieldReport},
	},
	{
		Number: 17, Slug: "hang", Class: ThreadClass,
		Stacks: []string{"a sample or spindump in which a thread waits in dispatch_sync, or in waitUntilCompleted, with PyTorch's or Metal's frames"},
		Meaning: "A thread waits for something that does not come. A sample shows where threads were, not why: in waitUntilCompleted alone a " +
			"thread may simply be waiting for a long kernel.",
		Cause: "The thread that runs a block of the queue has aborted or waits itself; or all 64 command buffers that a queue holds are open, " +
			"and the next thread blocks in making one; or the GPU stopped at a fault.",
		Patches: []string{"stream-discipline", "hand-over", "thread-leases"},
		Remains: "The patches do not help when the GPU stopped at a fault.",
		Sources: append(pytorch(197836, 144634), github("gfx-rs/wgpu", 8574)...),
	},
	{
		Number: 18, Slug: "gpu-fault", Class: NotThreadClass,
		Texts:   []string{"command buffer exited with error status"},
		Meaning: "The GPU gave up a command buffer: a fault in a kernel, a time limit or no memory. What it should have computed was not computed.",
		Cause:   "Not the order of calls, so not threads; the error code in the next lines shows the kind of fault.",
		Remains: "No patch of the series addresses it.",
		Sources: pytorch(125442, 193571),
	},
	{
		Slug: "ndarray-shape", Class: NotThreadClass,
		Texts:   []string{"MPSNDArray.mm…failed assertion", "NDArray init…Error: ", "NDArray, init…Error: "},
		Meaning: "An array's shape or size is one that MPSNDArray does not take, such as more than 4 GB or a buffer that is too small.",
		Cause:   "The operation and its shapes; it happens on one thread too.",
		Remains: "No patch of the series addresses it.",
		Sources: pytorch(77851, 143859),
	},
	{
		Slug: "mlir-error", Class: NotThreadClass,
		Texts:   []string{"LLVM ERROR"},
		Meaning: "MPSGraph's compiler refused a graph, often for types or shapes that do not go together.",
		Cause:   "The operation and its operands; it happens on one thread too.",
		Remains: "No patch of the series addresses it.",
		Sources: github("vladmandic/sdnext", 413),
	},
	{
		Slug: "async-copy-corruption", Class: NotThreadClass,
		Meaning: "Weights copied with non_blocking=True arrive damaged. It prints nothing, so classify never finds it.",
		Cause:   "The copy reads the source after its memory was freed; one thread is enough.",
		Patches: []string{"cpu-copies"},
		Remains: "Without it: copy without non_blocking, or keep the source until a synchronise.",
		Sources: pytorch(189690),
	},
	{
		Slug: "segmentation-fault-in-mps", Class: ThreadClass,
		Stacks:  []string{"Segmentation fault: 11, with frames of MPSStream, MPSGraph, MetalPerformanceShaders or AGX"},
		Meaning: "The process used memory that was not its own, inside PyTorch's MPS backend or Apple's frameworks below it.",
		Cause: "With more than one thread on mps, mostly that: an encoder, a graph or a kernel that two threads had at once. With one thread it is something " +
			"else. The top frames say which; mpsforge metal classify FILE reads them out of a crash report.",
		Patches: []string{"stream-discipline", "kernel-locks", "graph-and-kernel-cache"},
		Remains: "A crash of a program with one thread.",
		Sources: append(pytorch(197836), github("huggingface/transformers", 48196)...),
	},
	{
		Slug: "segmentation-fault", Class: UnknownClass,
		Stacks:  []string{"Segmentation fault: 11, zsh: segmentation fault, EXC_BAD_ACCESS or SIGSEGV, and nothing else"},
		Meaning: "The process used memory that was not its own. The shell's line does not say where.",
		Cause: "Threads in the MPS backend are one of many. macOS has written a report: give ~/Library/Logs/DiagnosticReports/python3*.ips to mpsforge metal " +
			"classify, or run the program with python3 -X faulthandler.",
		Remains: "Whether the patches help is known once the frames are.",
		Sources: []string{"the shell's words for the signals 11 and 10"},
	},
	{
		Slug: "abort-in-mps", Class: ThreadClass,
		Stacks:  []string{"Abort trap: 6, with frames of MPSStream, MPSGraph, MetalPerformanceShaders or Metal"},
		Meaning: "Apple's frameworks or PyTorch ended the process on purpose, after a check failed inside the MPS backend.",
		Cause: "With more than one thread on mps, mostly that. The line before says which check: look for \"failed assertion\" and give that line to " +
			"mpsforge metal explain.",
		Patches: []string{"stream-discipline", "graph-and-kernel-cache"},
		Remains: "Checks that fail on one thread too.",
		Sources: pytorch(197836),
	},
	{
		Slug: "abort", Class: UnknownClass,
		Stacks:  []string{"zsh: abort, Abort trap: 6 or SIGABRT, and nothing else"},
		Meaning: "A check inside the process failed, and it ended itself. The shell's line does not say which.",
		Cause: "The line before says it, often with \"failed assertion\" or \"libc++abi\": give that line to mpsforge metal explain, or the whole log, " +
			"or the report in ~/Library/Logs/DiagnosticReports, to mpsforge metal classify.",
		Remains: "Whether the patches help is known once the line is.",
		Sources: []string{"the shell's words for the signal 6"},
	},
	{
		Slug: "out-of-memory", Class: NotThreadClass,
		Stacks:  []string{"RuntimeError: MPS backend out of memory (MPS allocated: ..., max allowed: ...)"},
		Meaning: "An allocation would go over the limit of the MPS allocator, or Metal had none left. It is an exception: the process can go on.",
		Cause: "Live tensors, cached blocks and compiled graphs; more threads at once need more of each. torch.mps.empty_cache() gives back what is cached, " +
			"smaller batches need less. PYTORCH_MPS_HIGH_WATERMARK_RATIO moves the limit; 0 takes it away, and then macOS may end the process or " +
			"other programs.",
		Remains: "No patch of the series makes memory; blocks that are free on other streams are used before it is raised.",
		Sources: append(github("actions/runner-images", 9918), "docs of torch.mps, PYTORCH_MPS_HIGH_WATERMARK_RATIO"),
	},
	{
		Slug: "hangs", Class: UnknownClass,
		Stacks:  []string{"it hangs, it is stuck, or it does not respond"},
		Meaning: "A thread waits for something that does not come; or it waits for long work on the GPU, or for a first compilation.",
		Cause: "sample PID 5 on the Mac shows where each thread is: waitUntilCompleted, dispatch_sync and __DISPATCH_WAIT_FOR_QUEUE__ are signature 17. " +
			"mpsforge metal classify reads what sample writes.",
		Remains: "Whether the patches help is known once the frames are.",
		Sources: pytorch(144634),
	},
}

// Signatures gives the whole table.
func Signatures() []*Signature { return slices.Clone(signatures) }

// Explained is a signature with what a series does about it.
type Explained struct {
	*Signature
	InSeries []string `json:"in_series"` // those of the patches that the series holds
}

// Explain finds the signature that a number, a slug or a crash text names, and which of its patches the series has.
func Explain(query string, series *patches.Series) (*Explained, error) {
	signature, err := Find(query)
	if err != nil {
		return nil, err
	}
	explained := &Explained{Signature: signature, InSeries: []string{}}
	for _, patch := range series.Patches {
		if slices.Contains(signature.Patches, patch.Name) {
			explained.InSeries = append(explained.InSeries, patch.Name)
		}
	}
	return explained, nil
}

func Find(query string) (*Signature, error) {
	query = strings.TrimSpace(query)
	if number, err := strconv.Atoi(query); err == nil && number > 0 {
		for _, signature := range signatures {
			if signature.Number == number {
				return signature, nil
			}
		}
	}
	if signature := slugged(query); signature != nil {
		return signature, nil
	}
	if signature, _ := signatureIn(query); signature != nil {
		return signature, nil
	}
	for _, stack := range stackTexts {
		if stack.text.MatchString(query) {
			return slugged(stack.slug), nil
		}
	}
	var slugs []string
	for _, signature := range signatures {
		slugs = append(slugs, signature.Slug)
	}
	return nil, fmt.Errorf("%w: %q%s; mpsforge metal explain lists those that are known, and mpsforge metal classify FILE looks for them in a "+
		"whole log or crash report", ErrUnknownSignature, Shorten(query), suggest.Meant(query, slugs))
}

// inMPS are words of frames of the MPS backend and of Apple's frameworks below it.
const inMPS = `(MPSStream|MPSGraph|MetalPerformanceShaders|at::(native::)?mps|AGX|MTL\w+|IOGPU)`

// stackTexts are words of a stack, a report or a shell by which Explain knows a signature that has no message, in this order. They are
// too weak alone for Classify.
var stackTexts = []struct {
	slug string
	text *regexp.Regexp
}{
	{"shader-cache-corrupted", regexp.MustCompile(`__emplace_unique_key_args`)},
	{"encoder-gone", regexp.MustCompile(`AGX.*ComputeContext|(?i)\b0x0*(98|184|5c8|5f4)\b`)},
	{"released-object", regexp.MustCompile(`objc_msgSend|objc_retain|pointer authentication failure`)},
	{"hang", regexp.MustCompile(`waitUntilCompleted|dispatch_sync|__DISPATCH_WAIT_FOR_QUEUE__`)},
	{"out-of-memory", regexp.MustCompile(`(?i)\bout of memory\b|Insufficient Memory|\bOOM\b`)},
	{"segmentation-fault-in-mps", regexp.MustCompile(`(?is)(segmentation fault|EXC_BAD_ACCESS|SIGSEGV|SIGBUS).*` + inMPS + `|` + inMPS +
		`.*(segmentation fault|EXC_BAD_ACCESS|SIGSEGV|SIGBUS)`)},
	{"segmentation-fault", regexp.MustCompile(`(?i)segmentation fault|segfault|EXC_BAD_ACCESS|SIGSEGV|SIGBUS|bus error`)},
	{"abort-in-mps", regexp.MustCompile(`(?is)(\babort|SIGABRT|EXC_CRASH).*` + inMPS + `|` + inMPS + `.*(\babort|SIGABRT|EXC_CRASH)`)},
	{"abort", regexp.MustCompile(`(?i)\babort(ed)?\b|SIGABRT|EXC_CRASH|SIGTRAP|trace trap`)},
	{"hangs", regexp.MustCompile(`(?i)\b(hangs?|hung|stuck|freezes?|frozen|deadlock(ed)?|(does not|doesn't|not) respond(ing)?)\b`)},
}

// slugged is nil for a slug that the table does not have.
func slugged(slug string) *Signature {
	at := slices.IndexFunc(signatures, func(s *Signature) bool { return strings.EqualFold(s.Slug, slug) })
	if at < 0 {
		return nil
	}
	return signatures[at]
}

// signatureIn finds the first signature of the table with a phrase in the text, and that phrase.
func signatureIn(text string) (*Signature, string) {
	for _, signature := range signatures {
		for _, phrase := range signature.Texts {
			if holds(text, phrase) {
				return signature, phrase
			}
		}
	}
	return nil, ""
}

// holds reports whether a text has the parts of a phrase, which … separates, in their order.
func holds(text, phrase string) bool {
	for phrase != "" {
		part, rest, _ := strings.Cut(phrase, "…")
		_, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text, phrase = after, rest
	}
	return true
}

// numbered gives an entry that the table is known to have.
func numbered(number int) *Signature {
	return signatures[slices.IndexFunc(signatures, func(s *Signature) bool { return s.Number == number })]
}

// NumberName is the name of the signature that a finding of the software Metal has, "" for 0: most findings have none.
func NumberName(number int) string {
	if number == 0 { // also the number of entries that have only a slug
		return ""
	}
	return numbered(number).Name()
}
