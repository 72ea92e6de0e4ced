package crash

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"mpsforge/internal/require"
	"mpsforge/patches"
)

// ipsReport builds a report of Apple's shape around what a test wants to vary.
func ipsReport(exception, asi, frames string) string {
	return `{"app_name":"python3.11","timestamp":"2026-09-20 10:11:12.00 +0200","bug_type":"309","os_version":"macOS 26.5 (25F71)","incident_id":"0"}
{"procName":"python3.11","exception":` + exception + `,"asi":` + asi + `,"faultingThread":1,
 "threads":[{"id":1,"queue":"com.apple.main-thread","frames":[{"imageOffset":4,"symbol":"__psynch_cvwait","symbolLocation":8,"imageIndex":0}]},
  {"id":2,"triggered":true,"name":"worker","frames":[` + frames + `]}],
 "usedImages":[{"name":"libsystem_kernel.dylib"},{"name":"libobjc.A.dylib"},{"name":"AGXMetalG16X"},{"name":"libtorch_cpu.dylib"}]}
`
}

const (
	badAccess  = `{"type":"EXC_BAD_ACCESS","signal":"SIGSEGV","codes":"0x0000000000000001, %s","subtype":"KERN_INVALID_ADDRESS at %s"}`
	aborted    = `{"type":"EXC_CRASH","signal":"SIGABRT","codes":"0x0000000000000000, 0x0000000000000000"}`
	torchFrame = `{"imageOffset":9,"symbol":"at::mps::MPSStream::endKernelCoalescing()","symbolLocation":40,"imageIndex":3}`
	abortFrame = `{"imageOffset":38400,"symbol":"__pthread_kill","symbolLocation":8,"imageIndex":0}`
)

func badAccessAt(address string) string { return fmt.Sprintf(badAccess, address, address) }

const textCrashReport = `Process:               python3.11 [4711]
Incident Identifier:   00000000-0000-0000-0000-000000000000

Crashed Thread:        7  Dispatch queue: metal gpu stream

Exception Type:        EXC_BAD_ACCESS (SIGSEGV)
Exception Codes:       KERN_INVALID_ADDRESS at 0x0000000000000098
Termination Reason:    Namespace SIGNAL, Code 11 Segmentation fault: 11

Thread 0::  Dispatch queue: com.apple.main-thread
0   libsystem_kernel.dylib        	       0x18f0d4020 __psynch_cvwait + 8

Thread 7 Crashed:: Dispatch queue: metal gpu stream
0   AGXMetalG16X                  	       0x1204a3c10 -[AGXG16XFamilyComputeContext setComputePipelineState:] + 20
1   libtorch_cpu.dylib            	       0x11c0d4020 at::native::mps::fill(at::Tensor&) + 412
2   libdispatch.dylib             	       0x18ef54020 _dispatch_client_callout + 20

Thread 7 crashed with ARM Thread State (64-bit):
    x0: 0x0000000000000000   x1: 0x0000000000000000
`

const hangSample = `Analysis of sampling python3.11 (pid 4711) every 1 millisecond
Call graph:
    2741 Thread_100   DispatchQueue_1: com.apple.main-thread  (serial)
    + 2741 start  (in dyld) + 2840  [0x18ec]
    +   2741 _dispatch_event_loop_wait  (in libdispatch.dylib) + 8
    2741 Thread_200
    + 2741 thread_start  (in libsystem_pthread.dylib) + 8
    +   2741 at::mps::MPSStream::synchronize(at::mps::SyncType)  (in libtorch_cpu.dylib) + 92
    +     2741 _dispatch_sync_f_slow  (in libdispatch.dylib) + 148
    +       2741 __DISPATCH_WAIT_FOR_QUEUE__  (in libdispatch.dylib) + 368
    2741 Thread_300   DispatchQueue_77: metal gpu stream  (serial)
    + 2741 -[_MTLCommandBuffer waitUntilCompleted]  (in Metal) + 84
`

func TestClassify(t *testing.T) {
	type want struct {
		verdict   Class
		kind      string
		signature string // of the first match; empty: no match
		where     string
	}
	tests := map[string]struct {
		file, content string
		want          want
	}{
		"nothing": {"a.log", "all is well\n", want{UnknownClass, "log", "", ""}},
		"empty":   {"a.log", "", want{UnknownClass, "log", "", ""}},
		"assertion in a log": {"a.log", "step 1\n-[IOGPUMetalCommandBuffer validate]:215: failed assertion `commit command buffer with uncommitted encoder'\n",
			want{ThreadClass, "log", "4 commit-with-open-encoder", "line 2"}},
		"windows line ends": {"a.log", "x\r\nInvalid KernelDAG, Number of core ops should be 1\r\n", want{ThreadClass, "log", "11 invalid-kernel-dag",
			"line 2"}},
		"matrix kernel names its file": {"a.log", "MPSNDArrayMatrixMultiplication.mm:4130: failed assertion `A and B index not found'\n",
			want{ThreadClass, "log", "10 matrix-multiplication-encoded-twice", "line 1"}},
		"double free": {"a.log", "main(42970,0x16d633000) malloc: Double free of object 0x1415077c0\n",
			want{ThreadClass, "log", "13 shader-cache-corrupted", "line 1"}},
		"GPU fault": {"a.log", "Error: command buffer exited with error status.\n", want{NotThreadClass, "log", "18 gpu-fault", "line 1"}},
		"array shape": {"a.log",
			"MPSCore/Types/MPSNDArray.mm:850: failed assertion `[MPSNDArray initWithDevice:descriptor:isTextureBacked:] Error: total bytes of " +
				"NDArray > 2**32'\n", want{NotThreadClass, "log", "ndarray-shape", "line 1"}},
		"compiler": {"a.log", "LLVM ERROR: Failed to infer result type(s).\n", want{NotThreadClass, "log", "mlir-error", "line 1"}},
		"thread class outweighs": {"a.log", "LLVM ERROR: x\ncommit an already committed command buffer\n", want{ThreadClass, "log", "mlir-error",
			"line 1"}},
		"a stack in a log is too weak": {"a.log", "objc_msgSend + 32\n0x98\n__emplace_unique_key_args\nwaitUntilCompleted\n",
			want{UnknownClass, "log", "", ""}},

		"text report, encoder gone": {"a.crash", textCrashReport, want{ThreadClass, "Apple crash report", "14 encoder-gone",
			"line 13, Thread 7 Dispatch queue: metal gpu stream"}},
		"text report, other address": {"a.crash", strings.Replace(textCrashReport, "000098", "000010", 1), want{UnknownClass, "Apple crash report", "", ""}},
		"text report, authentication": {"a.crash", strings.Replace(textCrashReport, "0x0000000000000098",
			"0x2a00000000000020 -> 0x0000000000000020 (possible pointer authentication failure)", 1),
			want{ThreadClass, "Apple crash report", "15 released-object", "line 13, Thread 7 Dispatch queue: metal gpu stream"}},
		"text report, message": {"a.crash",
			"Exception Type:  EXC_CRASH (SIGABRT)\n\nApplication Specific Information:\n-[_MTLCommandBuffer addCompletedHandler:]:976: failed " +
				"assertion `Completed handler provided after commit call'\n",
			want{ThreadClass, "Apple crash report", "2 completed-handler-after-commit", "line 4"}},

		"ips, message": {"a.ips",
			ipsReport(aborted, `{"libsystem_c.dylib":["abort() called"],"IOGPU":["-[IOGPUMetalCommandBuffer validate]:215: failed assertion `+"`"+
				`commit command buffer with uncommitted encoder'"]}`, abortFrame),
			want{ThreadClass, "Apple crash report in JSON", "4 commit-with-open-encoder", "application specific information of IOGPU"}},
		"ips by its first line": {"report.txt",
			ipsReport(aborted, `{"libdispatch.dylib":["BUG IN CLIENT OF LIBDISPATCH: dispatch_sync called on queue already owned by current thread"]}`,
				abortFrame),
			want{ThreadClass, "Apple crash report in JSON", "16 dispatch-sync-own-queue", "application specific information of libdispatch.dylib"}},
		"ips, encoder gone": {"a.ips", ipsReport(badAccessAt("0x00000000000005f4"), `{}`,
			`{"imageOffset":1,"symbol":"-[AGXG16XFamilyComputeContext dispatchThreads:]","symbolLocation":4,"imageIndex":2},`+torchFrame),
			want{ThreadClass, "Apple crash report in JSON", "14 encoder-gone", "thread 1 worker"}},
		"ips, address by codes only": {"a.ips", ipsReport(`{"type":"EXC_BAD_ACCESS","codes":"0x0000000000000001, 0x0000000000000184"}`, `{}`,
			`{"imageOffset":1,"symbol":"-[AGXG14XFamilyComputeContext endEncoding]","symbolLocation":4,"imageIndex":2}`),
			want{ThreadClass, "Apple crash report in JSON", "14 encoder-gone", "thread 1 worker"}},
		"ips, released object": {"a.ips", ipsReport(badAccessAt("0x0000000000000020"), `{}`,
			`{"imageOffset":1,"symbol":"objc_msgSend","symbolLocation":32,"imageIndex":1},`+torchFrame),
			want{ThreadClass, "Apple crash report in JSON", "15 released-object", "thread 1 worker"}},
		"ips, released object of another program": {"a.ips", ipsReport(badAccessAt("0x0000000000000020"), `{}`,
			`{"imageOffset":1,"symbol":"objc_msgSend","symbolLocation":32,"imageIndex":1},`+abortFrame),
			want{UnknownClass, "Apple crash report in JSON", "", ""}},
		"ips, hash table": {"a.ips", ipsReport(badAccessAt("0x0000000000000008"), `{}`,
			`{"imageOffset":1,"symbol":"std::__1::__hash_table<x>::__emplace_unique_key_args<y>(z)","symbolLocation":200,"imageIndex":3}`),
			want{ThreadClass, "Apple crash report in JSON", "13 shader-cache-corrupted", "thread 1 worker"}},
		"ips, frame without symbol": {"a.ips", ipsReport(badAccessAt("0x0000000000000098"), `{}`, `{"imageOffset":-1,"imageIndex":99}`),
			want{UnknownClass, "Apple crash report in JSON", "", ""}},

		"sample, hang": {"a.txt", hangSample, want{ThreadClass, "sample of a process", "17 hang", "line 9, Thread_200"}},
		"sample, ordinary wait": {"a.txt", hangSample[:strings.Index(hangSample, "    2741 Thread_200")] +
			hangSample[strings.Index(hangSample, "    2741 Thread_300"):], want{UnknownClass, "sample of a process", "17 hang",
			"line 7, Thread_300 DispatchQueue_77: metal gpu stream  (serial)"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := require.One(Read(test.file, []byte(test.content)))(t)
			if got.Verdict != test.want.verdict || got.Kind != test.want.kind {
				t.Errorf("verdict %q of a %q, want %q of a %q; matches: %+v", got.Verdict, got.Kind, test.want.verdict, test.want.kind, got.Matches)
			}
			if test.want.signature == "" {
				require.Equal(t, got.Matches, nil, "found in what shows nothing")
				return
			}
			if len(got.Matches) == 0 {
				t.Fatalf("found nothing, want %s", test.want.signature)
			}
			if first := got.Matches[0]; first.Signature != test.want.signature || strings.Join(strings.Fields(first.Where()),
				" ") != strings.Join(strings.Fields(test.want.where), " ") {
				t.Errorf("first match is %s at %q, want %s at %q", first.Signature, first.Where(), test.want.signature, test.want.where)
			}
		})
	}
}

func TestClassifyRefuses(t *testing.T) {
	whole := ipsReport(aborted, `{}`, abortFrame)
	header, _, _ := strings.Cut(whole, "\n")
	tests := map[string]struct{ content, problem string }{
		"empty":            {"", "its first line is missing or cut off"},
		"text":             {"Process: python\n", "its first line is no JSON object"},
		"header only":      {header + "\n", "the report after its first line is missing or cut off"},
		"cut off":          {whole[:len(whole)/2], "the report after its first line is missing or cut off"},
		"another kind":     {`{"bug_type":"298"}` + "\n{}\n", "bug type 298"},
		"wrong shape":      {header + "\n" + `{"threads":5}`, `"threads" is a JSON number`},
		"thread not there": {strings.Replace(whole, `"faultingThread":1`, `"faultingThread":-7`, 1), "faultingThread is -7, but threads are 2"},
		"nested too deep":  {header + "\n" + strings.Repeat("[", 100_000), "no JSON object"},
		"no object at all": {"[]\n[]\n", "is a JSON array"},
		"a list behind":    {header + "\n[]", "is a JSON array"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := Read("a.ips", []byte(test.content)); err == nil {
				t.Errorf("accepted as %+v", got)
			} else if !strings.Contains(err.Error(), test.problem) || !strings.HasPrefix(err.Error(), "a.ips: ") {
				t.Errorf("refused with %q, want %q", err, test.problem)
			}
		})
	}
}

func TestClassifyLimits(t *testing.T) {
	big := filepath.Join(t.TempDir(), "big.log")
	require.NoError(t, os.WriteFile(big, nil, 0o644))
	require.NoError(t, os.Truncate(big, classifyBytes+1))
	results := Classify([]string{big, filepath.Dir(big), filepath.Join(filepath.Dir(big), "none")})
	for i, problem := range []string{"larger than 64 MiB", "is a directory", "no such file"} {
		if !strings.Contains(results[i].Error, problem) || results[i].Verdict != "" {
			t.Errorf("%s: %+v, want the error %q", results[i].File, results[i], problem)
		}
	}
	require.Says(t, Unreadable(results), "3 of 3 files")

	many, err := Read("many.log", bytes.Repeat([]byte("Invalid KernelDAG\n"), classifyMatches+5))
	if err != nil || len(many.Matches) != classifyMatches || many.More != 5 {
		t.Errorf("%d matches and %d more, error %v", len(many.Matches), many.More, err)
	}

	// One endless line, with control characters that must not reach a terminal.
	long, err := Read("long.log", []byte(strings.Repeat("é", 5000)+"\x1b[31mInvalid KernelDAG\xff"+strings.Repeat("x", 5000)))
	if err != nil || len(long.Matches) != 1 {
		t.Fatalf("%+v, error %v", long, err)
	}
	text := long.Matches[0].Text
	if !strings.Contains(text, "Invalid KernelDAG") || strings.Contains(text, "\x1b") || !utf8.ValidString(text) || len(text) > 2*matchedText {
		t.Errorf("the text is %q", text)
	}
}

func TestExplain(t *testing.T) {
	series := &patches.Series{Patches: []*patches.Patch{{Name: "sanitizer"}, {Name: "stream-discipline"}}}
	for query, want := range map[string]string{
		"4": "commit-with-open-encoder", " 18 ": "gpu-fault", "INVALID-KERNEL-DAG": "invalid-kernel-dag", "mlir-error": "mlir-error",
		"x [_MTLCommandBuffer commit]:683: failed assertion `commit command buffer with uncommitted encoder'": "commit-with-open-encoder",
		"Cannot form weak reference to instance (0x1) of class MPSGraph":                                      "graph-freed-in-use",
		"0x98": "encoder-gone", "EXC_BAD_ACCESS (code=1, address=0x5c8)": "encoder-gone", "objc_msgSend + 32": "released-object",
		"std::__hash_table<x>::__emplace_unique_key_args": "shader-cache-corrupted", "-[_MTLCommandBuffer waitUntilCompleted]": "hang",
	} {
		got, err := Explain(query, series)
		if err != nil || got.Slug != want {
			t.Errorf("explain %q: %+v, %v; want %s", query, got, err, want)
		}
	}
	for _, query := range []string{"", "0", "19", "-1", "nothing of the kind", "abortive", "hanger", "0x981234", "\x00\xff", strings.Repeat("x", 1<<20)} {
		if got, err := Explain(query, series); !errors.Is(err, ErrUnknownSignature) || len(err.Error()) > 2000 {
			t.Errorf("explain of %d bytes: %+v, %v", len(query), got, err)
		}
	}
	got, err := Explain("4", series)
	if err != nil || !slices.Equal(got.InSeries, []string{"stream-discipline"}) {
		t.Errorf("in the series: %+v, %v", got, err)
	}
}

// Lines as people paste them: the first ten as this project's field notes quote them, then what shells and systems
// print where no message is left, with frames of the MPS backend or without.
func TestExplainKnowsWhatPeoplePaste(t *testing.T) {
	for query, want := range map[string]string{
		"commit an already committed command buffer":                                                               "double-commit",
		"commit command buffer with uncommitted encoder":                                                           "commit-with-open-encoder",
		"A command encoder is already encoding to this command buffer":                                             "second-encoder",
		"Completed handler provided after commit call":                                                             "completed-handler-after-commit",
		"Command encoder released without endEncoding":                                                             "encoder-lost",
		"Invalid KernelDAG, Number of core ops should be 1":                                                        "invalid-kernel-dag",
		"BUG IN LIBMALLOC: asking for start of chunk…":                                                             "shader-cache-corrupted",
		"MPS backend out of memory (MPS allocated: 0 bytes ... max allowed: 7.93 GB). Tried to allocate 256 bytes": "out-of-memory",
		"Segmentation fault: 11":                                                                                   "segmentation-fault",
		"zsh: abort":                                                                                               "abort",

		"MPS backend out of memory":                                                                 "out-of-memory",
		"zsh: segmentation fault  python3 train.py":                                                 "segmentation-fault",
		"Segmentation fault: 11\n3 libtorch_cpu.dylib at::mps::MPSStream::commit()":                 "segmentation-fault-in-mps",
		"MetalPerformanceShadersGraph -[MPSGraph encodeToCommandBuffer:]\nEXC_BAD_ACCESS (SIGSEGV)": "segmentation-fault-in-mps",
		"Abort trap: 6":                     "abort",
		"Abort trap: 6 in MTLReportFailure": "abort-in-mps",
		"Fatal Python error: Aborted":       "abort",
		"my program hangs":                  "hangs",
		"stuck in waitUntilCompleted":       "hang",
		"python is not responding":          "hangs",
		"RuntimeError: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)": "out-of-memory",
	} {
		got, err := Explain(query, &patches.Series{})
		if err != nil || got.Slug != want {
			t.Errorf("explain %q: %+v, %v; want %s", query, got, err, want)
		}
	}
}

// TestSignatures checks what the table promises.
func TestSignatures(t *testing.T) {
	planned := []string{"stream-discipline", "kernel-locks", "graph-and-kernel-cache", "profiler-streams",
		"event-streams", "stream-pool", "allocator-streams", "hand-over", "thread-leases", "python-streams", "cpu-copies"}
	slugs := map[string]bool{}
	number := 0
	for _, s := range Signatures() {
		if s.Number != 0 {
			number++
			require.Equal(t, s.Number, number, s.Slug, "has number")
		}
		if slugs[s.Slug] || s.Slug != strings.ToLower(s.Slug) || strings.ContainsAny(s.Slug, " _") {
			t.Errorf("slug %q", s.Slug)
		}
		slugs[s.Slug] = true
		if s.Meaning == "" || s.Cause == "" || len(s.Sources) == 0 || (len(s.Patches) == 0 && s.Remains == "") {
			t.Errorf("%s tells too little", s.Slug)
		}
		for _, patch := range s.Patches {
			if !slices.Contains(planned, patch) {
				t.Errorf("%s names a patch %q", s.Slug, patch)
			}
		}
		for _, text := range s.Texts {
			if found, _ := signatureIn("before " + strings.ReplaceAll(text, "…", " between ") + " after"); found != s {
				t.Errorf("%q is found as %+v, want %s", text, found, s.Slug)
			}
		}
	}
	require.Equal(t, number, 18, "numbers")
}

func FuzzClassify(f *testing.F) {
	f.Add("a.log", []byte("commit an already committed command buffer\n"))
	f.Add("a.crash", []byte(textCrashReport))
	f.Add("a.crash", []byte(strings.Replace(textCrashReport, "metal gpu", "\x1b[31m\x00\x80", 2)))
	f.Add("a.txt", []byte(hangSample))
	f.Add("a.ips", []byte(ipsReport(badAccessAt("0x0000000000000098"), `{"a":["LLVM ERROR"]}`, torchFrame)))
	f.Add("a.ips", []byte("{}\n{}"))
	f.Add("b", []byte(`{"bug_type":309}{"faultingThread":0,"threads":[{"frames":[{"imageIndex":-1}]}]}`))
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		got, err := Read(name, content)
		if err != nil {
			if !strings.HasPrefix(err.Error(), name+": ") {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		if got.Verdict == "" || (got.Verdict != UnknownClass && len(got.Matches) == 0) || len(got.Matches) > classifyMatches {
			t.Errorf("verdict %q with %d matches", got.Verdict, len(got.Matches))
		}
		for _, match := range got.Matches {
			if match.Signature == "" || match.Where() == "" || !utf8.ValidString(match.Text+match.Where()) ||
				strings.ContainsAny(match.Text+match.Where(), "\x1b\n\x00") {
				t.Errorf("match %#v", match)
			}
		}
	})
}
