//go:build cgo

package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mpsforge/internal/cxx"
	"mpsforge/internal/run"
	"mpsforge/native/script"
	"mpsforge/validate/judge/corpus"
	"mpsforge/validate/judge/stagetest"
)

// fault is a bug planted into a source of the engine or the reference pool. The program of the corpus that must find it
// names it in its front matter.
type fault struct {
	name     string
	file     string
	old, new string   // old is in the file just once
	way      way      // how the program is run
	want     sighting // what it must find
}

// way is how a program is run: the mode, first seed, number of runs, deviations, longest delay and patience.
type way []string

var (
	drawn    = way{"drawn", "1", "1000", "0", "0", "3000"}
	searched = way{"search", "1", "20000", "1", "0", "3000"}
	freely   = way{"free", "1", "20", "0", "100", "3000"}
)

// sighting is what a fault must show itself by: the kind of a finding, or one of the kinds below.
type sighting struct {
	kind      script.Kind
	signature int
	text      string // a regular expression that the message matches; of a stuck run: its trace
}

// Kinds of sightings that are no findings.
const (
	unmet   script.Kind = "unmet expectation" // a value of the program is wrong
	stuck   script.Kind = "stuck run"         // by the scheduler, which knows that no thread can go on: never by a time-out
	missing script.Kind = "missing finding"   // the program is there to be found wrong, and is not in every run
)

// faults has one for each clause of the guard protocol (docs/dev/spec/guard.md) but one, and for what else keeps the pool
// right. The clause that is missing is that a stream closes its own earlier work before it waits: leaving it out breaks
// nothing, because a wait names a signal that is committed already. It keeps others from waiting for more than they need.
var faults = []fault{
	{name: "guard: no order at entry", file: "pool/guard.cc",
		old: "if (needed.empty()) return;", new: "return;",
		want: sighting{kind: script.Race,
			text: `buffer tensor: nothing orders the write by dispatch pool_fill, .* and the write by dispatch pool_increment, .* on queue stream 2, `}},
	{name: "guard: no record of writes", file: "pool/guard.cc",
		old: "block.written = stamp;", new: "",
		want: sighting{kind: script.Race,
			text: `buffer tensor: nothing orders the write by dispatch pool_increment, .* and the write by dispatch pool_increment, `}},
	{name: "guard: no record of uses", file: "pool/guard.cc",
		old: "raise(block.used, stamp);", new: "",
		want: sighting{kind: script.Race,
			text: `buffer tensor: nothing orders the read by dispatch pool_copy, .* encoded by thread B, and the write by dispatch pool_fill, .* ` +
				`encoded by thread C$`}},
	{name: "guard: a write waits for the last write only", file: "pool/guard.cc",
		old: "for (const auto& [id, position] : block.used) raise(needed, {id, position});", new: "",
		want: sighting{kind: script.Race,
			text: `buffer tensor: nothing orders the read by dispatch pool_copy, .* encoded by thread A, and the write by dispatch pool_fill, .* ` +
				`encoded by thread C$`}},
	{name: "guard: the other stream is not closed", file: "pool/guard.cc",
		old: "other.run([&, position = position] { other.close_up_to(position); });", new: "(void)other, (void)position;",
		want: sighting{kind: stuck, text: `; 2: lock wait; 1: .*; 5: lock wait$`}},
	{name: "guard: a wait is committed before its signal", file: "pool/guard.cc",
		old: "other.run([&, position = position] { other.close_up_to(position); });", new: "(void)other, (void)position;",
		want: sighting{kind: script.Model, text: `^a wait is committed before its signal: for event stream 1 value 1, now 0`}},
	{name: "guard: waits are noted, not encoded", file: "pool/stream.cc",
		old: "backend_.metal.encode_wait(buffer, other.event_.get(), position);", new: "(void)buffer;",
		want: sighting{kind: script.Race,
			text: `buffer tensor: nothing orders the write by dispatch pool_fill, .* on queue stream 0, .* and the write by dispatch pool_increment, `}},
	{name: "guard: what was seen is not noted", file: "pool/stream.cc",
		old: "seen_[other.id_] = position;", new: "",
		want: sighting{kind: unmet, text: `^A, line 11: is 10, not 1$`}},
	{name: "guard: a block without a record counts as unused", file: "pool/guard.cc",
		old: "block.written = Stamp{block.owner, pool_.streams.enqueued(block.owner)};", new: "block.written = Stamp{block.owner, 0};",
		want: sighting{kind: unmet, text: `^A, line 9: is 0, not 6$`}},
	{name: "guard: no lock", file: "pool/guard.cc",
		old: "while (!block.lock.may_enter(ticket, hold.writes)) {", new: "while (false) {",
		want: sighting{kind: script.Race,
			text: `buffer tensor: nothing orders the write by dispatch pool_add, .* encoded by thread B, and the write by dispatch pool_increment, ` +
				`.* encoded by thread A$`}},
	{name: "guard: a birth does not wait for guards in flight", file: "pool/announcements.cc",
		old: "ended_.wait(lock);", new: "break;",
		want: sighting{kind: script.Race,
			text: `buffer tensor: nothing orders the read by dispatch pool_copy, .* on queue stream 0, .* and the write by dispatch pool_fill, .* ` +
				`on queue stream 1, `}},
	{name: "guard: announced after the look for a second stream", file: "pool/guard.cc",
		old: "first.announced_ = announcements.announce();\n  const bool several = announcements.several();",
		new: "const bool several = announcements.several();\n  sync::point(\"the store comes late\");\n  first.announced_ = announcements.announce();",
		want: sighting{kind: script.Race,
			text: `buffer tensor: nothing orders the write by dispatch pool_increment, .* on queue stream [01], .* and the write by dispatch ` +
				`pool_increment, .* on queue stream [01], `}},
	{name: "guard: on a queue it takes part", file: "pool/guard.cc",
		old: "on_queue_(Stream::here() != nullptr)", new: "on_queue_(false)",
		want: sighting{kind: script.Deadlock, text: `thread A is in serial_sync on serial queue stream 2, held by thread B`}},
	{name: "guard: locks are not taken in the order of addresses", file: "pool/guard.cc",
		old: "return a.second->use->block->address < b.second->use->block->address;", new: "return (void)a, (void)b, false;",
		want: sighting{kind: stuck, text: `for-buffer wait.* for-buffer wait`}},
	{name: "guard: an inner guard waits with the outer ones' locks held", file: "pool/guard.cc",
		old: "suspend(outer);\n    suspended_ = std::move(outer);", new: "",
		want: sighting{kind: stuck, text: `for-buffer wait.* for-buffer wait`}},
	{name: "guard: an outer guard is not resumed", file: "pool/guard.cc",
		old: "if (!suspended_.empty()) enter(suspended_);", new: "",
		want: sighting{kind: script.Race,
			text: `buffer tensor: nothing orders the write by dispatch pool_increment, .* and the write by dispatch pool_increment, `}},
	{name: "guard: an outer guard on another stream counts as cover", file: "pool/guard.cc",
		old: "if (hold && &guard->stream_ == &stream_) same_stream = hold;", new: "if (hold) same_stream = hold;",
		want: sighting{kind: unmet, text: `^main, line 8: is 102, not 112$`}},
	{name: "guard: Python runs inside the guards around it", file: "pool/guard.cc",
		old: "const Group group = Stream::here() ? Group{} : active_guards();", new: "const Group group;",
		want: sighting{kind: stuck, text: `for-buffer wait`}},
	{name: "guard: suspended without a record", file: "pool/guard.cc",
		old: "guard->drop_all(guard->stream_.enqueued(), false);", new: "guard->drop_all(0, false);",
		want: sighting{kind: script.Race,
			text: `buffer tensor: nothing orders the write by dispatch pool_increment, .* and the write by dispatch pool_increment, `}},
	{name: "guard: not resumed after Python", file: "pool/guard.cc",
		old: "const Blocking gil(pool.config);\n  enter(group);", new: "for (Guard* guard : group) guard->active_ = true;",
		want: sighting{kind: script.Race,
			text: `buffer tensor: nothing orders the write by dispatch pool_increment, .* and the write by dispatch pool_increment, `}},
	{name: "guard: the CPU's kernel runs inside a guard", file: "pool/pool.cc",
		old: "int fallback(mpsforge_pool*, const mpsforge_pool_use*, size_t, mpsforge_metal_function function,\n" +
			"             void* context) noexcept {\n  return guarded([&] { function(context); });",
		new: "int fallback(mpsforge_pool* pool, const mpsforge_pool_use* uses, size_t count, mpsforge_metal_function function,\n" +
			"             void* context) noexcept {\n  return guard(pool, uses, count, function, context);",
		want: sighting{kind: stuck, text: `for-buffer wait`}},
	{name: "guard: an item is waited for with the locks held", file: "pool/operators.cc",
		old: "Guard::suspended(pool, [&] { stream.wait_for(position); });", new: "stream.wait_for(position);",
		want: sighting{kind: script.Deadlock, text: `thread A is in event_wait, .* waits for event e value 1, now 0`}},
	{name: "guard: an item is waited for inside the guard that a birth waits for", file: "pool/operators.cc",
		old: "Guard::suspended(pool, [&] { stream.wait_for(position); });", new: "stream.wait_for(position);",
		want: sighting{kind: script.Deadlock, text: `thread A is in event_wait, .* waits for event e value 1, now 0`}},
	{name: "guard: a birth inside an operator is not refused", file: "pool/streams.cc",
		old: "if (Guard::here()) throw", new: "if (false) throw",
		want: sighting{kind: stuck, text: `birth wait`}},
	{name: "guard: a free inside takes effect at once", file: "pool/memory.cc",
		old: "if (block->pins > 0) {", new: "if (false) {",
		want: sighting{kind: script.Race, text: `buffer tensor: nothing orders the read by .* and the write by dispatch pool_fill, `}},
	{name: "guard: allocation keeps the records", file: "pool/memory.cc",
		old: "block.written.reset();\n  block.used.clear();", new: "",
		want: sighting{kind: script.Race, text: `buffer tensor: nothing orders the read by .* and the write by dispatch pool_fill, `}},
	{name: "guard: a fence orders nothing", file: "pool/guard.cc",
		old: "fences_.open(stream.id());\n  order_after_all(stream);", new: "fences_.open(stream.id());",
		want: sighting{kind: script.Race, text: `buffer tensor: nothing orders the read by dispatch pool_copy, .* and the write by dispatch pool_fill, `}},
	{name: "guard: a fence leaves no unknown use", file: "pool/guard.cc",
		old: "fences_.open(stream.id());", new: "",
		want: sighting{kind: script.Race, text: `buffer tensor: nothing orders the read by dispatch pool_copy, .* and the write by dispatch pool_fill, `}},
	{name: "guard: an unknown use is forgotten at the thread's next guard", file: "pool/fences.h",
		old: "unknown.position = std::max(unknown.position, streams_.enqueued(id));", new: "",
		want: sighting{kind: script.Race, text: `buffer tensor: nothing orders the read by dispatch pool_copy, .* and the write by dispatch pool_fill, `}},
	{name: "guard: the GIL is taken back before the locks are released", file: "pool/guard.cc",
		old: "leave();\n  innermost = outer_;\n  gil_.reset();", new: "gil_.reset();\n  leave();\n  innermost = outer_;",
		want: sighting{kind: stuck, text: `for-buffer wait`}},
	{name: "guard: the GIL is held while a lock is waited for", file: "pool/guard.cc",
		old: ": gil_(std::in_place, pool.config),", new: ":",
		want: sighting{kind: stuck, text: `for-gil`}},
	{name: "guard: readers overtake a waiting writer", file: "pool/buffer_lock.h",
		old: "return ticket == serving_ && ", new: "(void)ticket;\n    return ",
		want: sighting{kind: unmet, text: `^main, line \d+: is \d+, not 0$`}},
	{name: "choice: a copy to the CPU covers its own thread alone", file: "pool/operators.cc",
		old: "metal.cpu_read(staging.buffer(), 0, tensor.bytes(), to);\n  await_copies(pool);", new: "metal.cpu_read(staging.buffer(), 0, tensor.bytes(), to);",
		want: sighting{kind: unmet, text: `^B, line 20: is 0, not 3$`}},
	{name: "choice: a copy from the CPU covers its own thread alone", file: "pool/operators.cc",
		old: "stream.close();\n  });\n  await_copies(pool);", new: "stream.close();\n  });",
		want: sighting{kind: unmet, text: `^B, line 24: is 0, not 3$`}},
	{name: "choice: an event covers its own stream alone", file: "pool/pool.cc",
		old: "pool.guards.order_after_all(on);", new: "(void)pool.guards;",
		want: sighting{kind: unmet, text: `^B, line 21: is 0, not 3$`}},
	{name: "choice: an event on a stream that the program names covers all", file: "pool/pool.cc",
		old: " && !pool.streams.is_explicit(stream)", new: "",
		want: sighting{kind: unmet, text: `^B, line 34: is 1, not 0$`}},
	{name: "choice: an event on a chosen stream covers all", file: "pool/pool.cc",
		old: "!pool.threads.orders_itself() && ", new: "",
		want: sighting{kind: unmet, text: `^B, line 21: is 1, not 0$`}},
	{name: "choice: a copy on a chosen stream covers all", file: "pool/operators.cc",
		old: "if (pool.threads.orders_itself()) return;", new: "",
		want: sighting{kind: unmet, text: `^B, line 24: is 1, not 0$`}},
	{name: "choice: the engine's guard counts as a choice", file: "pool/threads.cc",
		old: "choice = {stream + 1, by_program && streams_.is_explicit(stream)};", new: "choice = {stream + 1, true};",
		want: sighting{kind: unmet, text: `^device, line 22: is 0, not 3$`}},
	{name: "choice: in the engine's guard the program cannot choose", file: "pool/threads.cc",
		old: "choice = {stream + 1, by_program && streams_.is_explicit(stream)};", new: "choice = {stream + 1, by_program && choice.stream == 0};",
		want: sighting{kind: unmet, text: `^B, line 28: is 1, not 0$`}},
	{name: "choice: setting the current stream counts", file: "pool/threads.cc",
		old: "} else if (choice.stream != stream + 1) {", new: "} else {",
		want: sighting{kind: unmet, text: `^B, line 30: is 0, not 3$`}},
	{name: "choice: setting its own stream ties a thread to it", file: "pool/threads.cc",
		old: "if (own_stream(*state) == stream) {", new: "if (false) {",
		want: sighting{kind: unmet, text: `^B, line 25: is 1, not 0$`}},
	{name: "choice: reset does not go back", file: "pool/pool.cc",
		old: "pool->threads.restore(0);", new: "(void)pool;",
		want: sighting{kind: unmet, text: `^B, line 18: is 3, not 2$`}},
	{name: "choice: the end of a context leaves the choice", file: "pool/threads.cc",
		old: "state->choice = {token / 2, token % 2 != 0};", new: "state->choice = {token / 2, token > 1 && state->choice.by_program};",
		want: sighting{kind: unmet, text: `^B, line 33: is 0, not 3$`}},
	{name: "choice: the default stream counts", file: "pool/threads.cc",
		old: " && streams_.is_explicit(stream)", new: "",
		want: sighting{kind: unmet, text: `^B, line 23: is 0, not 3$`}},
	{name: "choice: an event on another thread's stream covers that alone", file: "pool/pool.cc",
		old: "!pool.streams.is_explicit(stream)", new: "stream == pool.threads.current()",
		want: sighting{kind: unmet, text: `^B, line 26: is 0, not 3$`}},
	{name: "choice: a copy covers no events of other threads", file: "pool/pool.cc",
		old: "if (after_all) on.run([&] { on.note_copy(); });", new: "", way: searched,
		want: sighting{kind: unmet, text: `^B, line 15: is 0, not 1$`}},
	{name: "choice: asking for the stream leases nothing", file: "pool/pool.cc",
		old: "result = pool->threads.working();", new: "result = pool->threads.current();",
		want: sighting{kind: unmet, text: `^A, line 4: is 0, not 1$`}},
	{name: "choice: the engine asks in every thread", file: "pool/pool.cc",
		old: "result = pool->threads.has_stream();", new: "result = pool != nullptr;",
		want: sighting{kind: unmet, text: `^A, line 4: is 1, not 0$`}},
	{name: "a commit does not signal", file: "pool/stream.cc",
		old: "metal.encode_signal(open_.get(), event_.get(), position);", new: "",
		want: sighting{kind: script.Deadlock, text: `thread A is in event_wait, for event stream 1 value 2, now 0, signalled by nobody committed; the GPU, `}},
	{name: "memory: other streams' uses are ignored", file: "pool/memory.cc",
		old: "if (completed[id] >= position || (own && !for_cpu && id == stream.id())) continue;", new: "continue;",
		want: sighting{kind: script.Race,
			text: `buffer tensor: nothing orders the read by dispatch pool_copy, .* encoded by thread B, and the write by dispatch pool_fill, .* ` +
				`encoded by thread A$`}},
	{name: "memory: the owner's use is not noted at the free", file: "pool/memory.cc",
		old: "raise(block->used, {block->owner, streams_.enqueued(block->owner)});", new: "",
		want: sighting{kind: script.Race,
			text: `buffer tensor: nothing orders the write by dispatch pool_fill, .* encoded by thread (A|main), and the write by dispatch ` +
				`pool_fill, .* encoded by thread (A|main)$`}},
	{name: "memory: record_stream is ignored", file: "pool/memory.cc",
		old: "block->recorded.insert(stream);", new: "(void)block, (void)stream;",
		want: sighting{kind: unmet, text: `^main, line 18: is 5, not 4$`}},
	{name: "memory: the CPU writes what the GPU still reads", file: "pool/memory.cc",
		old: "(own && !for_cpu && id == stream.id())", new: "(own && id == stream.id())",
		want: sighting{kind: unmet, text: `^main, line 10: is 4, not 3$`}},
	{name: "memory: work outside of operators is ignored", file: "pool/memory.cc",
		old: "for (const Fences::Work& work : fences_.all()) raise(block->used, {work.stream, work.position});", new: "",
		want: sighting{kind: unmet, text: `^main, line 13: is 4, not 3$`}},
	{name: "handlers are attached while an encoder is open", file: "pool/stream.cc",
		old:  "handlers_.push_back(std::move(function));\n",
		new:  "handlers_.push_back(function);\n    attach_handlers();\n    handlers_.push_back(std::move(function));\n",
		want: sighting{kind: script.Violation, text: `^completed handler added while a command encoder is open`}},
	{name: "matrix kernels are encoded without the lock", file: "pool/operators.cc",
		old: "const sync::Lock lock(pool_.encode_lock);", new: "",
		want: sighting{kind: script.Model, signature: 10, text: `A and B index not found`}},
	{name: "streams are changed off their queue", file: "pool/stream.h",
		old: "if (here() == this) {", new: "if (true) {", way: searched,
		want: sighting{kind: script.Violation, signature: 3, text: `commit an already committed command buffer`}},
	{name: "a slot comes back before its work is committed", file: "pool/threads.cc",
		old: "stream->run([&] { stream->close(); });", new: "(void)stream;",
		want: sighting{kind: unmet, text: `^main, line 7: is 0, not 1$`}},
	{name: "graphs: one in use is given to another thread", file: "pool/caches.cc",
		old: "(*entry)->used || ", new: "",
		want: sighting{kind: script.Model, signature: 11, text: `^Invalid KernelDAG`}},
	{name: "graphs: the bound is ignored", file: "pool/caches.cc",
		old: "limit_ > 0 && ", new: "limit_ > SIZE_MAX - 1 && ",
		want: sighting{kind: unmet, text: `^main, line \d+: is 3, not 2$`}},
	{name: "a slot that comes back wakes nobody", file: "pool/leases.cc",
		old: "if (any) served_.notify_all();", new: "",
		want: sighting{kind: stuck, text: `; 2: notified lock lock wait; 1: notified sleep lock; 3: lock$`}},
	{name: "an event waits for no stream", file: "pool/events.cc",
		old: "stream.run([&] { stream.order_after(streams_.at(record->stream), record->position); });", new: "",
		want: sighting{kind: script.Race,
			text: `buffer tensor: nothing orders the read by dispatch pool_copy, .* on queue stream 2, .* and the write by dispatch pool_fill, .* ` +
				`on queue stream 1, `}},
	{name: "a record does not commit", file: "pool/events.cc",
		old: "stream.close();\n    record.position = stream.committed();", new: "record.position = stream.enqueued();",
		want: sighting{kind: script.Model, text: `^a wait is committed before its signal: for event stream 1 value 1, now 0`}},
	{name: "engine: early waits are not looked for", file: "metal/command_buffer.cc",
		old: "if (!wait || wait->event->is_promised(wait->value)) continue;", new: "if (!wait || wait->event) continue;",
		want: sighting{kind: missing, text: `^no model in any of 1000 schedules$`}},
	{name: "engine: a committed signal makes no wait right", file: "metal/event.h",
		old: "promised_ = std::max(promised_, value);", new: "(void)value;",
		want: sighting{kind: script.Model, text: `^a wait is committed before its signal: for event e value 1, now 0, signalled by command buffer `}},
	{name: "engine: what the CPU will set makes no wait right", file: "metal/event.cc",
		old: "set_by_cpu_ = true;", new: "",
		want: sighting{kind: script.Model, text: `^a wait is committed before its signal: for event f value 1, now 0`}},
	{name: "engine: a wait seems to know what later signals know", file: "metal/signals.cc",
		old: "return found == signals_.end() ? nullptr : &found->second;", new: "return found == signals_.end() ? nullptr : &signals_.rbegin()->second;",
		want: sighting{kind: missing, text: `^a race in \d+ of 1000 runs only$`}},
	{name: "engine: a handler keeps what earlier ones knew", file: "metal/checker.cc",
		old: "order_->forget(actor);", new: "",
		want: sighting{kind: missing, text: `^a race in \d+ of 1000 runs only$`}},
	{name: "engine: completion tells a waiting thread nothing", file: "metal/command_buffer.cc",
		old:  "if (!device().block(lock, queue->changed, thread, what, done)) return;\n  saw_end(*thread);",
		new:  "device().block(lock, queue->changed, thread, what, done);",
		want: sighting{kind: script.Race, text: `buffer b: nothing orders the read by cpu_read, thread A, and the write by fill, `}},
	{name: "engine: a queue holds any number of command buffers", file: "metal/queue.cc",
		old: "[&] { return uncompleted_ < limit; }", new: "[&] { return limit > 0; }",
		want: sighting{kind: missing, text: `^a deadlock in 0 of 1000 runs only$`}},
	{name: "engine: a second encoder is let through", file: "metal/command_buffer.cc",
		old: "if (open_) {\n    device().findings.violation(while_encoding", new: "if (false) {\n    device().findings.violation(while_encoding",
		want: sighting{kind: missing, text: `^a violation in 0 of 1000 runs only$`}},
	{name: "engine: an error does not stop the work", file: "metal/executor.cc",
		old: "return has(buffer, MPSFORGE_METAL_INJECT_ERROR) ? kInjected : \"\";", new: "return \"\";",
		want: sighting{kind: unmet, text: `^main, line 12: is 4, not 5$`}},
	{name: "engine: matrix kernels may be encoded at once", file: "metal/models.cc",
		old: "const bool matrices =", new: "const bool matrices = false &&",
		want: sighting{kind: missing, text: `^no model in any of 1000 schedules$`}},
	{name: "engine: writes by the CPU and the GPU are not compared", file: "metal/order.cc",
		old: "const bool apart = other.end <= offset || end <= other.begin;", new: "const bool apart = false;",
		want: sighting{kind: missing, text: `^no model in any of 1000 schedules$`}},
	{name: "engine: what orders the CPU and the GPU is not looked at", file: "metal/order.cc",
		old: "!shadow.mixed && !state_->knows(actor, other.made)", new: "!shadow.mixed",
		want: sighting{kind: script.Model, text: `^the CPU and the GPU write buffer b and nothing orders them$`}},
	{name: "engine: uses of a kernel object are not compared", file: "metal/models.cc",
		old: "if (uses_)", new: "if (false)",
		want: sighting{kind: missing, text: `^no model in any of 1000 schedules$`}},
	{name: "engine: the seed has no graph commit", file: "metal/models.cc",
		old: "graphs_) % 4 == 0", new: "graphs_) % 4 == 5",
		want: sighting{kind: script.Deadlock, text: `wait_until_completed, for command buffer \d+ of queue q, which was never committed`}},
	{name: "the child of a fork goes on", file: "pool/fork.cc",
		old: "return forked;", new: "return false;", way: freely,
		want: sighting{kind: unmet, text: `^in the forked child: child, line 10: set does not fail`}},
}

// judge says whether a run of a program on the engine with a fault shows what is expected. A process that dies, does not
// end in time or answers something else shows nothing, whatever it may have been up to: the error says what came instead.
func (s sighting) judge(program corpus.Expectation, stdout []byte, err error) error {
	if err != nil {
		return fmt.Errorf("not found as expected: no %s, but the process failed: %w", s, err)
	}
	var result struct {
		Error string `json:"error"`
		script.Result
	}
	if err := json.Unmarshal(stdout, &result); err != nil {
		return fmt.Errorf("not found as expected: no %s, but no result: %w: %.200s", s, err, stdout)
	}
	if result.Error != "" {
		return fmt.Errorf("not found as expected: no %s, but no run: %s", s, result.Error)
	}
	problem := program.Problem(&result.Result)
	if problem == "" {
		return fmt.Errorf("not found as expected: no %s: %d runs, nothing found", s, result.Runs)
	}
	if !s.in(&result.Result, problem) {
		return fmt.Errorf("not found as expected: no %s, but %s", s, problem)
	}
	return nil
}

func (s sighting) in(result *script.Result, problem string) bool {
	text := regexp.MustCompile(s.text)
	switch s.kind {
	case missing:
		return text.MatchString(problem)
	case stuck: // with a trace: what ran freely has none
		return result.Stuck && slices.ContainsFunc(result.Failures, func(f script.Failure) bool {
			trace, traced := strings.CutPrefix(f.Text, "the run is stuck: every thread waits: ")
			return traced && text.MatchString(trace)
		})
	case unmet:
		return !result.Stuck && slices.ContainsFunc(result.Failures, func(f script.Failure) bool { return text.MatchString(f.Text) })
	default:
		return !result.Stuck && slices.ContainsFunc(result.Findings, func(f script.Finding) bool {
			return f.Kind == s.kind && f.Signature == s.signature && text.MatchString(f.Message)
		})
	}
}

func (s sighting) String() string {
	text := string(s.kind)
	if s.signature != 0 {
		text += fmt.Sprintf(" with signature %d", s.signature)
	}
	if s.text != "" {
		text += fmt.Sprintf(" like %q", s.text)
	}
	return text
}

// programOf is the program that names the fault.
func programOf(t *testing.T, fault string) corpus.Program {
	t.Helper()
	for _, program := range programsOf(t) {
		if slices.Contains(program.Finds, fault) {
			return program
		}
	}
	t.Fatalf("no program of the corpus names the fault %q", fault)
	return corpus.Program{}
}

// What a program says that it finds is planted, and nothing is named twice.
func TestCorpusNamesThePlantedFaults(t *testing.T) {
	named := map[string]int{}
	for _, program := range programsOf(t) {
		for _, found := range program.Finds {
			named[found]++
			if !slices.ContainsFunc(faults, func(f fault) bool { return f.name == found }) {
				t.Errorf("%s: %s finds %q, which nobody plants", program.Group, program.Name, found)
			}
		}
	}
	for _, fault := range faults {
		if n := named[fault.name]; n != 1 {
			t.Errorf("%q is found by %d programs, want 1", fault.name, n)
		}
	}
}

// The rules of the guard protocol name the faults that prove them: all of them, and no others.
func TestGuardRulesNameTheirFaults(t *testing.T) {
	page, err := os.ReadFile("../../../docs/dev/spec/guard.md")
	if err != nil {
		t.Fatal(err)
	}
	var cited []string
	for _, found := range regexp.MustCompile("`((?:guard|memory): [^`]+)`").FindAllSubmatch(page, -1) {
		cited = append(cited, string(found[1]))
	}
	for _, name := range cited {
		if !slices.ContainsFunc(faults, func(f fault) bool { return f.name == name }) {
			t.Errorf("docs/dev/spec/guard.md names the fault %q, which nobody plants", name)
		}
	}
	for _, fault := range faults {
		if strings.HasPrefix(fault.name, "guard: ") && !slices.Contains(cited, fault.name) {
			t.Errorf("no rule of docs/dev/spec/guard.md names the fault %q", fault.name)
		}
	}
}

// runFault runs the program that is there for the fault on some build of the engine.
func runFault(t *testing.T, engine string, fault fault, program corpus.Program) ([]byte, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program.txt")
	if err := os.WriteFile(path, []byte(program.Text), 0o644); err != nil {
		t.Fatal(err)
	}
	limited, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	way := fault.way
	if way == nil {
		way = drawn
	}
	result, err := run.Command{Name: engine, Args: append(slices.Clone(way), path)}.Run(limited)
	if late := limited.Err(); late != nil { // the engine itself ends what is stuck
		err = fmt.Errorf("no end: %w", late)
	}
	return result.Stdout, err
}

// Each fault must be found by the program named after what is broken, by the finding that is expected: a judge that
// accepts them proves nothing, and one that dies of them proves no more. Beside each is its control: on the engine
// without a fault the same program, run the same way, comes to what it must.
func TestPlantedFaultsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP in the short form: each faulty engine is compiled and run; go test -run '^TestPlantedFaultsAreFound$' ./validate/stages/reference")
	}
	cache := stagetest.Cache()
	tools := cxx.Find(t.Context(), cache)
	if tools.Err != nil {
		t.Skipf("SKIP planted faults: %v", tools.Err)
	}
	builder := cxx.Builder{Cache: cache, Compiler: tools}
	build := func(t *testing.T, sources []cxx.Source) string {
		t.Helper()
		program, err := builder.Build(t.Context(), cxx.Target{Flavour: cxx.Program, Sources: sources})
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	sources, err := engineSources()
	if err != nil {
		t.Fatal(err)
	}
	sound := build(t, sources)
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			program := programOf(t, fault.name)
			stdout, err := runFault(t, build(t, plantFault(t, sources, fault)), fault, program)
			if err := fault.want.judge(program.Expect, stdout, err); err != nil {
				t.Errorf("%q: %v", program.Name, err)
			}
			stdout, err = runFault(t, sound, fault, program)
			var result script.Result
			if err != nil || json.Unmarshal(stdout, &result) != nil || result.Runs == 0 {
				t.Fatalf("control without the fault: %v: %.300s", err, stdout)
			}
			if problem := program.Expect.Problem(&result); problem != "" {
				t.Errorf("control without the fault: %s", problem)
			}
		})
	}
}

// What is not the expected finding must not count as one: this is what keeps the test above from passing on any failure.
func TestPlantedFaultIsNotFoundByAnotherFailure(t *testing.T) {
	died := func(command string) error { // as the engine would, with a trap or a crash planted into it
		_, err := run.Command{Name: "sh", Args: []string{"-c", command}}.Run(t.Context())
		if err == nil {
			t.Fatalf("%q lives", command)
		}
		return err
	}
	const race = `{"runs":3,"runs_with":{"race":3},"findings":[{"kind":"race","message":"race on bytes 0 to 64 of buffer b: nothing orders"}]}`
	const violation = `{"runs":3,"runs_with":{"violation":3},"findings":[{"kind":"violation","signature":3,"message":"commit an already committed ` +
		`command buffer"}]}`
	const value = `{"runs":3,"failures":[{"text":"main, line 4: is 5, not 6"}]}`
	const waits = `{"stuck":true,"failures":[{"text":"the run is stuck: every thread waits: 0: lock"}]}`
	const late = `{"stuck":true,"failures":[{"text":"the run is stuck: every thread waits"}]}`
	const none = `{"runs":3}`
	racy := sighting{kind: script.Race, text: "buffer b:"}
	for _, c := range []struct {
		name    string
		want    sighting
		program corpus.Expectation
		stdout  string
		err     error
		problem string // empty: found
	}{
		{"the race", racy, corpus.Clean, race, nil, ""},
		{"a race on another buffer", sighting{kind: script.Race, text: "buffer d:"}, corpus.Clean, race, nil,
			"but unexpected race: race on bytes 0 to 64 of buffer b"},
		{"a violation for a race", racy, corpus.Clean, violation, nil, "but unexpected violation"},
		{"the violation", sighting{kind: script.Violation, signature: 3, text: "already committed"}, corpus.Clean, violation, nil, ""},
		{"a violation of another signature", sighting{kind: script.Violation, signature: 4, text: "already committed"}, corpus.Clean, violation, nil,
			"but unexpected violation"},
		{"the wrong value", sighting{kind: unmet, text: "line 4: is 5, not 6"}, corpus.Clean, value, nil, ""},
		{"a wrong value elsewhere", sighting{kind: unmet, text: "line 9: "}, corpus.Clean, value, nil, "but main, line 4: is 5, not 6"},
		{"a wrong value for a race", racy, corpus.Clean, value, nil, "but main, line 4"},
		{"the scheduler's word that no thread can go on", sighting{kind: stuck}, corpus.Clean, waits, nil, ""},
		{"another trace", sighting{kind: stuck, text: "1: lock"}, corpus.Clean, waits, nil, "but the run is stuck"},
		{"a time-out for it", sighting{kind: stuck}, corpus.Clean, late, nil, "but the run is stuck"},
		{"a hang for a race", racy, corpus.Clean, late, nil, "but the run is stuck"},
		{"nothing found", racy, corpus.Clean, none, nil, "3 runs, nothing found"},
		{"the missing finding", sighting{kind: missing, text: "^a violation in 0 of 3 runs only$"}, violation3, none, nil, ""},
		{"another finding for a missing one", sighting{kind: missing, text: "^a violation in 0 of 3 runs only$"}, violation3, race, nil, "but unexpected race"},
		{"a trap", racy, corpus.Clean, "", died("kill -TRAP $$"), "but the process failed: sh"},
		{"a trap after the race was printed", racy, corpus.Clean, race, died("kill -TRAP $$"), "but the process failed: sh"},
		{"a trap where the program is stuck", sighting{kind: stuck}, corpus.Clean, waits, died("kill -TRAP $$"), "but the process failed: sh"},
		{"a trap where a finding is missing", sighting{kind: missing, text: ""}, violation3, "", died("kill -TRAP $$"), "but the process failed: sh"},
		{"an exit code", racy, corpus.Clean, race, died("exit 2"), "but the process failed: sh"},
		{"half of a result", racy, corpus.Clean, race[:40], nil, "but no result"},
		{"a text that is not a program", racy, corpus.Clean, `{"error":"line 1: no verb x"}`, nil, "but no run: line 1: no verb x"},
	} {
		err := c.want.judge(c.program, []byte(c.stdout), c.err)
		switch {
		case c.problem == "":
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		case err == nil || !strings.HasPrefix(err.Error(), "not found as expected: no "+string(c.want.kind)) || !strings.Contains(err.Error(), c.problem):
			t.Errorf("%s: %v, want not found as expected: %s", c.name, err, c.problem)
		}
	}
}

// violation3 is a program that must be found to break a rule of Metal.
var violation3 = corpus.Expectation{Kind: script.Violation, Signature: 3, Text: "already committed"}

// plantFault returns the engine's sources with the fault in them.
func plantFault(t *testing.T, sources []cxx.Source, fault fault) []cxx.Source {
	t.Helper()
	planted := slices.Clone(sources)
	for i, file := range planted {
		if file.Path != fault.file {
			continue
		}
		if n := bytes.Count(file.Data, []byte(fault.old)); n != 1 {
			t.Fatalf("%s has %d places like %q", fault.file, n, fault.old)
		}
		planted[i].Data = []byte(strings.Replace(string(file.Data), fault.old, fault.new, 1))
		return planted
	}
	t.Fatalf("no source %s", fault.file)
	return nil
}
