//go:build cgo

package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/cxx"
	"mpsforge/internal/run"
	"mpsforge/internal/words"
	"mpsforge/native/script"
	"mpsforge/validate/stagetest"
)

// fault is a bug planted into a source of the engine or the reference pool, and a program that must find it.
type fault struct {
	name     string
	file     string
	old, new string // old stands in the file just once
	program  string // of the corpus, the scenarios, the cases or the random shapes
	free     bool   // found freely; else under the scheduler
}

// faults has one for each clause of the hand-over protocol but one, and for what else keeps the pool right. The clause
// that is missing is that a stream closes its own earlier work before it waits: leaving it out breaks nothing, because a
// wait names a signal that is committed already. It keeps others from waiting for more than they need.
var faults = []fault{
	{name: "hand-over: no order at entry", file: "pool/hand_over.cc",
		old: "if (needed.empty()) return;", new: "return;", program: "a tensor goes round a ring of threads"},
	{name: "hand-over: no stamp of writes", file: "pool/hand_over.cc",
		old: "block->written = stamp;", new: "(void)stamp;", program: "a tensor goes round a ring of threads"},
	{name: "hand-over: no stamp of uses", file: "pool/hand_over.cc",
		old: "raise(block->used, stamp);", new: "", program: "a write after uses on other streams"},
	{name: "hand-over: a write waits for the last write only", file: "pool/hand_over.cc",
		old: "for (const auto& [id, position] : block->used) raise(needed, {id, position});", new: "", program: "a write after uses on other streams"},
	{name: "hand-over: the other stream is not closed", file: "pool/hand_over.cc",
		old: "other.run([&, position = position] { other.close_up_to(position); });", new: "(void)other, (void)position;", program: "a tensor is read while its writer has nothing more to do"},
	{name: "hand-over: waits are noted, not encoded", file: "pool/stream.cc",
		old: "backend_.metal.encode_wait(buffer, other.event_.get(), position);", new: "(void)buffer;", program: "a tensor goes round a ring of threads"},
	{name: "hand-over: what was seen is not noted", file: "pool/stream.cc",
		old: "seen_[other.id_] = position;", new: "", program: "the same weights are waited for once"},
	{name: "hand-over: a block without a stamp counts as unused", file: "pool/hand_over.cc",
		old: "block->written = Stamp{block->owner, streams_.enqueued(block->owner)};", new: "block->written = Stamp{block->owner, 0};", program: "a model made on the main thread is used by workers at once"},
	{name: "hand-over: operators in flight are not waited for", file: "pool/hand_over.cc",
		old: "exited_.wait(lock, [&] { return !conflicts(stream, uses); });", new: "", program: "two threads change one tensor at the same time"},
	{name: "hand-over: no second look when the second stream comes to life", file: "pool/hand_over.cc",
		old: "if (streams_.tracking()) return;", new: "", program: "an operator is in flight when the second stream comes to life"},
	{name: "hand-over: the second stream is announced off the default stream's queue", file: "pool/streams.cc",
		old: "table_[0].load()->run([&] { tracking_ = true; });", new: "tracking_ = true;", program: "two threads change one tensor when the second stream comes to life"},
	{name: "hand-over: inside a block it takes part", file: "pool/hand_over.cc",
		old: "if (Stream::here()) {", new: "if (false) {", program: "an operator inside a block takes no part"},
	{name: "a commit does not signal", file: "pool/stream.cc",
		old: "metal.encode_signal(open_.get(), event_.get(), position);", new: "", program: "a tensor goes round a ring of threads"},
	{name: "memory: other streams' uses are ignored", file: "pool/memory.cc",
		old: "if (completed[id] >= position || (own && !for_cpu && id == stream.id())) continue;", new: "continue;", program: "memory goes back while another stream reads it"},
	{name: "memory: the owner's use is not noted at the free", file: "pool/memory.cc",
		old: "raise(block->used, {block->owner, now});", new: "(void)now;", program: "memory freed before the second stream comes to life"},
	{name: "memory: record_stream is ignored", file: "pool/memory.cc",
		old: "block->recorded.insert(stream);", new: "(void)block, (void)stream;", program: "record_stream keeps memory for the stream"},
	{name: "memory: the CPU writes what the GPU still reads", file: "pool/memory.cc",
		old: "(own && !for_cpu && id == stream.id())", new: "(own && id == stream.id())", program: "memory that the CPU writes"},
	{name: "handlers are attached while an encoder is open", file: "pool/stream.cc",
		old: "handlers_.push_back(std::move(function));\n", new: "handlers_.push_back(std::move(function));\n    attach_handlers();\n", program: "a handler added while an encoder is open"},
	{name: "matrix kernels are encoded without the lock", file: "pool/operators.cc",
		old: "if (!lock.owns_lock()) lock.lock();", new: "", program: "matrix multiplications of two threads are encoded one at a time"},
	{name: "streams are changed off their queue", file: "pool/stream.h",
		old: "if (here() == this) {", new: "if (true) {", program: "two threads commit one stream"},
	{name: "a slot comes back before its work is committed", file: "pool/threads.cc",
		old: "stream->run([&] { stream->close(); });", new: "(void)stream;", program: "the end of a thread commits its work without waiting for it"},
	{name: "a slot that comes back wakes nobody", file: "pool/leases.cc",
		old: "if (any) served_.notify_all();", new: "", program: "wait: first come, first served"},
	{name: "an event waits for no stream", file: "pool/events.cc",
		old: "stream.run([&] { stream.order_after(streams_.at(record->stream), record->position); });", new: "", program: "an event orders two streams"},
	{name: "engine: a wait seems to know what later signals know", file: "metal/signals.cc",
		old: "return found == signals_.end() ? nullptr : &found->second;", new: "return found == signals_.end() ? nullptr : &signals_.rbegin()->second;", program: "a late wait for a low value knows no more for it"},
	{name: "engine: a handler keeps what earlier ones knew", file: "metal/checker.cc",
		old: "order_->forget(actor);", new: "", program: "a handler that knows of one queue only"},
	{name: "engine: completion tells a waiting thread nothing", file: "metal/command_buffer.cc",
		old: "if (!device().block(lock, queue->changed, thread, what, done)) return;\n  saw_end(*thread);", new: "device().block(lock, queue->changed, thread, what, done);", program: "completion waited for before the CPU reads"},
	{name: "engine: a queue holds any number of command buffers", file: "metal/queue.cc",
		old: "[&] { return uncompleted_ < limit; }", new: "[&] { return limit > 0; }", program: "sixty-four command buffers that are never committed"},
	{name: "engine: a second encoder is let through", file: "metal/command_buffer.cc",
		old: "if (open_) {\n    device().findings.violation(while_encoding", new: "if (false) {\n    device().findings.violation(while_encoding", program: "two encoders at once"},
	{name: "engine: an error does not stop the work", file: "metal/executor.cc",
		old: "return has(buffer, MPSFORGE_METAL_INJECT_ERROR) ? kInjected : \"\";", new: "return \"\";", program: "the second buffer from now ends in error"},
	{name: "engine: matrix kernels may be encoded at once", file: "metal/models.cc",
		old: "const bool matrices =", new: "const bool matrices = false &&", program: "two threads encode a matrix multiplication"},
	{name: "the child of a fork goes on", file: "pool/fork.cc",
		old: "return forked;", new: "return false;", program: "the child of a fork gets an exception, the parent is undisturbed", free: true},
}

// programOf finds a program of any table, with what it must come to.
func programOf(t *testing.T, name string) (string, expectation) {
	t.Helper()
	for _, scenario := range append(poolScenarios(), poolCases()...) {
		if scenario.name == name {
			return scenario.text, clean
		}
	}
	for _, program := range append(orderPrograms(), rulePrograms()...) {
		if program.name == name {
			return program.text, program.want
		}
	}
	t.Fatalf("no program %q", name)
	return "", clean
}

// Each fault must be found by the program named after what is broken: a judge that accepts them proves nothing.
func TestPlantedFaultsAreFound(t *testing.T) {
	cache := stagetest.Cache()
	tools := cxx.Find(t.Context(), cache)
	if tools.Err != nil {
		t.Skipf("SKIP planted faults: %v", tools.Err)
	}
	builder := cxx.Builder{Cache: cache, Compiler: tools}
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			program, err := builder.Build(t.Context(), cxx.Target{Flavour: cxx.Program, Sources: plantFault(t, fault)})
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "program.txt")
			text, want := programOf(t, fault.program)
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			ways := [][]string{{"drawn", "1", "1000", "0", "0", "3000"}, {"search", "1", "20000", "1", "0", "3000"}, {"free", "1", "20", "0", "100", "3000"}}
			if fault.free {
				ways = ways[2:]
			}
			for _, way := range ways {
				limited, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				result, err := run.Command{Name: program, Args: append(way, path)}.Run(limited)
				late := limited.Err()
				cancel()
				if late != nil { // it found nothing: the engine itself ends what is stuck
					t.Fatalf("%s: %v", way[0], late)
				}
				var found script.Result
				if err != nil {
					t.Logf("found %s: the process died: %v", way[0], words.FirstLine(err.Error()))
					return
				}
				if err := json.Unmarshal(result.Stdout, &found); err != nil {
					t.Fatalf("%v: %s", err, result.Stdout)
				}
				if problem := want.problem(&found); problem != "" {
					t.Logf("found %s: %.300s", way[0], problem)
					return
				}
			}
			t.Errorf("not found by %q", fault.program)
		})
	}
}

// plantFault returns the engine's sources with the fault in them.
func plantFault(t *testing.T, fault fault) []cxx.Source {
	t.Helper()
	sources, err := engineSources()
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range sources {
		if file.Path != fault.file {
			continue
		}
		if n := bytes.Count(file.Data, []byte(fault.old)); n != 1 {
			t.Fatalf("%s has %d places like %q", fault.file, n, fault.old)
		}
		sources[i].Data = []byte(strings.Replace(string(file.Data), fault.old, fault.new, 1))
		return sources
	}
	t.Fatalf("no source %s", fault.file)
	return nil
}
