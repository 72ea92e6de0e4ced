// The C ABI of the reference pool: arguments and results, errors, the GIL and forked children; the rest is elsewhere.
#include "pool.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "events.h"
#include "failure.h"
#include "fork.h"
#include "kernels.h"
#include "reference.h"

using mpsforge::pool::Blocking;
using mpsforge::pool::Event;
using mpsforge::pool::Failure;
using mpsforge::pool::Guard;
using mpsforge::pool::Stream;

mpsforge_pool::mpsforge_pool(const mpsforge_pool_config& given, const mpsforge::pool::Configuration& read)
    : config(given),
      backend{*given.metal, given.device},
      configuration(read),
      streams(backend, read.worker_streams, announcements),
      leases(read),
      fences(streams),
      memory(backend, streams, fences),
      guards(announcements, streams, fences),
      threads(backend, configuration, streams, leases, warnings) {}

struct mpsforge_pool_event {
  mpsforge_pool& pool;
  Event event;
};

namespace {

// A plain array: it can be written for as long as the thread runs (rule 24). Cut to its size.
thread_local char last_error_text[512];

int fail(const char* text) {
  const size_t length = std::min(std::strlen(text), sizeof last_error_text - 1);
  std::memcpy(last_error_text, text, length);
  last_error_text[length] = '\0';
  return -1;
}

// Runs what may fail, and nothing in a forked child (rule 25).
template <class Function>
int guarded(Function function) noexcept {
  if (mpsforge::pool::in_forked_child()) return fail(mpsforge::pool::forked_child_text);
  try {
    function();
    return 0;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

// The same for what may lock for long, lease or wait (rule 12).
template <class Function>
int blocking(mpsforge_pool& pool, Function function) noexcept {
  return guarded([&] {
    const Blocking gil(pool.config);
    function();
  });
}

// Runs the function on the queue of a stream that has been made; of others there is nothing to do.
template <class Function>
int on_existing(mpsforge_pool& pool, uint32_t id, Function function) noexcept {
  return blocking(pool, [&] {
    pool.streams.check(id);
    if (!pool.streams.find(id)) return;
    Stream& stream = pool.streams.reachable(id);
    stream.run([&] { function(stream); });
  });
}

mpsforge_pool* create(const mpsforge_pool_config* config) noexcept {
  mpsforge_pool* result = nullptr;
  guarded([&] {
    if (!config->metal || config->metal->abi != MPSFORGE_METAL_ABI || !config->device) throw Failure("no device");
    mpsforge::pool::watch_forks();
    mpsforge::pool::add_kernels(*config->metal, config->device);
    std::vector<std::string> warnings;
    const auto configuration = mpsforge::pool::parse_environment(config->environment, &warnings);
    result = new mpsforge_pool(*config, configuration);
    for (const std::string& warning : warnings) result->warnings.add(warning);
  });
  return result;
}

void destroy(mpsforge_pool* pool) noexcept {
  if (!pool || mpsforge::pool::in_forked_child()) return;
  // An error of the GPU that nobody has asked for is dropped.
  blocking(*pool, [&] { pool->streams.synchronize_device(); });
  delete pool;
}

int warnings(mpsforge_pool* pool, char* buffer, size_t size) noexcept {
  if (size > 0) buffer[0] = '\0';
  int count = 0;
  guarded([&] {
    std::string text;
    for (const std::string& warning : pool->warnings.all()) text += (count++ > 0 ? "\n" : "") + warning;
    if (size == 0) return;
    const size_t length = std::min(text.size(), size - 1);
    std::memcpy(buffer, text.data(), length);
    buffer[length] = '\0';
  });
  return count;
}

void statistics(mpsforge_pool* pool, mpsforge_pool_statistics* out) noexcept {
  *out = {};
  guarded([&] {
    const auto slots = pool->leases.statistics();
    out->live = slots.live;
    out->peak = slots.peak;
    out->leases = slots.leases;
    out->waits = slots.waits;
    out->shares = slots.shares;
    out->hand_over_waits = pool->guards.waits();
    out->overtakes = pool->guards.overtakes();
    for (const Stream* stream : pool->streams.live()) {
      out->commits += stream->committed();
      ++out->streams;
    }
    out->reused = pool->memory.reused();
    out->allocated = pool->memory.allocated();
    out->graphs = pool->threads.graphs.alive();
    out->kernels = pool->threads.kernels.alive();
    out->profiled = pool->profiler.finished();
  });
}

uint64_t stream_commits(mpsforge_pool* pool, uint32_t id) noexcept {
  uint64_t result = 0;
  guarded([&] {
    if (const Stream* stream = pool->streams.find(id)) result = stream->committed();
  });
  return result;
}

uint32_t current_stream(mpsforge_pool* pool) noexcept {
  uint32_t result = 0;
  blocking(*pool, [&] { result = pool->threads.working(); });
  return result;
}

int has_stream(mpsforge_pool* pool) noexcept {
  bool result = false;
  guarded([&] { result = pool->threads.has_stream(); });
  return result;
}

int working_stream(mpsforge_pool* pool, uint32_t* stream) noexcept {
  return blocking(*pool, [&] { *stream = pool->threads.working(); });
}

int set_current_stream(mpsforge_pool* pool, uint32_t stream, int by_program, uint32_t* previous) noexcept {
  return guarded([&] {
    const uint32_t token = pool->threads.set(stream, by_program != 0);
    if (previous) *previous = token;
  });
}

int restore_stream(mpsforge_pool* pool, uint32_t token, int) noexcept {
  return guarded([&] { pool->threads.restore(token); });
}

int reset_stream(mpsforge_pool* pool) noexcept {
  return guarded([&] { pool->threads.restore(0); });
}

uint32_t stream_from_pool(mpsforge_pool* pool) noexcept {
  uint32_t result = 0;
  guarded([&] { result = pool->streams.next_explicit(); });
  return result;
}

int release_stream_slot(mpsforge_pool* pool) noexcept {
  return blocking(*pool, [&] {
    // Guard rule 1: the stream holds until the guard ends.
    if (Guard::here()) throw Failure("a slot cannot be released inside an operator");
    pool->threads.release_slot();
  });
}

// Without Blocking: at a thread's end there may be no GIL to let go any more.
void end_thread(mpsforge_pool* pool) noexcept {
  guarded([&] {
    pool->fences.settle();
    pool->threads.end_thread();
  });
}

mpsforge_pool_tensor* empty(mpsforge_pool* pool, size_t elements, int for_cpu) noexcept {
  mpsforge_pool_tensor* result = nullptr;
  blocking(*pool, [&] { result = mpsforge::pool::empty(*pool, elements, for_cpu != 0); });
  return result;
}

void free_tensor(mpsforge_pool_tensor* tensor) noexcept {
  if (!tensor) return;
  guarded([&] {
    mpsforge_pool& pool = tensor->pool;
    pool.memory.give_back(tensor->block);
    const std::lock_guard<std::mutex> lock(pool.freed_lock);
    pool.freed.emplace_back(tensor);
  });
}

int record_stream(mpsforge_pool_tensor* tensor, uint32_t stream) noexcept {
  return guarded([&] {
    tensor->pool.streams.check(stream);
    tensor->pool.memory.record_stream(tensor->block, stream);
  });
}

int operate(mpsforge_pool* pool, const mpsforge_pool_operator* op) noexcept {
  return guarded([&] { mpsforge::pool::operate(*pool, *op); });
}

int read(mpsforge_pool_tensor* tensor, int32_t* to) noexcept {
  return guarded([&] { mpsforge::pool::read(*tensor, to); });
}

int write(mpsforge_pool_tensor* tensor, const int32_t* from) noexcept {
  return guarded([&] { mpsforge::pool::write(*tensor, from); });
}

mpsforge_pool_host* host_create(mpsforge_pool* pool, size_t elements) noexcept {
  mpsforge_pool_host* result = nullptr;
  guarded([&] { result = mpsforge::pool::host(*pool, elements); });
  return result;
}

void host_destroy(mpsforge_pool_host* host) noexcept {
  guarded([&] { delete host; });
}

int copy_to_host(mpsforge_pool_tensor* tensor, mpsforge_pool_host* host) noexcept {
  return guarded([&] { mpsforge::pool::copy_to_host(*tensor, *host); });
}

int host_read(mpsforge_pool_host* host, int32_t* to) noexcept {
  return guarded(
      [&] { host->pool.backend.metal.cpu_read(host->buffer.get(), 0, host->elements * sizeof(int32_t), to); });
}

int guard(mpsforge_pool* pool, const mpsforge_pool_use* uses, size_t count, mpsforge_metal_function function,
          void* context) noexcept {
  return guarded([&] {
    const Guard around(*pool, mpsforge::pool::uses_of(*pool, uses, count));
    function(context);
  });
}

int suspended(mpsforge_pool* pool, mpsforge_metal_function function, void* context) noexcept {
  return guarded([&] { Guard::suspended(*pool, [&] { function(context); }); });
}

// No guard: the CPU's kernel may be Python, and take its time, other threads and the GIL. Its copies have their own.
int fallback(mpsforge_pool*, const mpsforge_pool_use*, size_t, mpsforge_metal_function function,
             void* context) noexcept {
  return guarded([&] { function(context); });
}

// Rule 13.
int synchronize(mpsforge_pool* pool, uint32_t id) noexcept {
  std::string error;
  const int done = on_existing(*pool, id, [&](Stream& stream) { error = stream.drain(); });
  return error.empty() ? done : fail(error.c_str());
}

// Rule 14.
int synchronize_device(mpsforge_pool* pool) noexcept {
  return blocking(*pool, [&] { pool->streams.synchronize_device(); });
}

int commit(mpsforge_pool* pool, uint32_t id) noexcept {
  return on_existing(*pool, id, [](Stream& stream) { stream.close(); });
}

// Asks no queue, so that it never waits.
int query_stream(mpsforge_pool* pool, uint32_t id, int* complete) noexcept {
  return guarded([&] {
    pool->streams.check(id);
    const Stream* stream = pool->streams.find(id);
    // In this order, so that the answer 1 is true at the moment of the second reading.
    const uint64_t completed = stream ? stream->completed() : 0;
    *complete = !stream || completed >= stream->enqueued();
  });
}

int on_queue(mpsforge_pool* pool, uint32_t id, mpsforge_metal_function function, void* context) noexcept {
  return blocking(*pool, [&] {
    Stream& stream = pool->streams.reachable(id);
    pool->guards.fence(stream);
    // Rule 5: the block's current stream is the queue's, whatever the thread has.
    auto* state = pool->threads.mine();
    const mpsforge::pool::Choice before =
        state ? std::exchange(state->choice, {id + 1, false}) : mpsforge::pool::Choice{};
    stream.run([&] { function(context); });
    if (state) state->choice = before;
  });
}

// Rule 10, for code that is not the pool's. What it encodes off the queue is right on a stream of its own only.
Stream& foreign_use(mpsforge_pool& pool, uint32_t id) {
  Stream& stream = pool.streams.reachable(id);
  if (Stream::here() != &stream) {
    pool.warnings.add_once(
        "a stream's command buffer or encoder is used off its queue; that is safe only while no "
        "other thread uses the stream");
  }
  pool.guards.fence(stream);
  return stream;
}

mpsforge_metal_command_buffer* command_buffer(mpsforge_pool* pool, uint32_t id) noexcept {
  mpsforge_metal_command_buffer* result = nullptr;
  blocking(*pool, [&] {
    Stream& stream = foreign_use(*pool, id);
    stream.run([&] {
      stream.end_encoder();
      result = stream.command_buffer();
    });
  });
  return result;
}

mpsforge_metal_encoder* command_encoder(mpsforge_pool* pool, uint32_t id) noexcept {
  mpsforge_metal_encoder* result = nullptr;
  blocking(*pool, [&] {
    Stream& stream = foreign_use(*pool, id);
    stream.run([&] { result = stream.compute_encoder(); });
  });
  return result;
}

int add_completed_handler(mpsforge_pool* pool, uint32_t id, mpsforge_metal_function function, void* context) noexcept {
  bool later = false;
  const int done =
      on_existing(*pool, id, [&](Stream& stream) { later = stream.when_complete([=] { function(context); }); });
  if (done == 0 && !later) function(context);  // rule 18: at once, off the queue
  return done;
}

mpsforge_pool_event* event_create(mpsforge_pool* pool, int timing) noexcept {
  mpsforge_pool_event* result = nullptr;
  guarded([&] { result = new mpsforge_pool_event{*pool, {pool->streams, timing != 0}}; });
  return result;
}

void event_destroy(mpsforge_pool_event* event) noexcept {
  guarded([&] { delete event; });
}

int event_record(mpsforge_pool_event* event, uint32_t stream) noexcept {
  mpsforge_pool& pool = event->pool;
  return blocking(pool, [&] {
    Stream& on = pool.streams.reachable(stream);
    // Rule 13: with one stream, an event says that all enqueued before it is complete, and so does what is waited for
    // later.
    const bool after_all = !pool.threads.orders_itself() && !pool.streams.is_explicit(stream);
    if (after_all) pool.guards.order_after_all(on);
    event->event.record(on);
    if (after_all) on.run([&] { on.note_copy(); });
  });
}

int event_wait(mpsforge_pool_event* event, uint32_t stream) noexcept {
  return blocking(event->pool, [&] { event->event.wait(event->pool.streams.reachable(stream)); });
}

int event_query(mpsforge_pool_event* event, int* complete) noexcept {
  return guarded([&] { *complete = event->event.query(); });
}

int event_synchronize(mpsforge_pool_event* event) noexcept {
  return blocking(event->pool, [&] { event->event.synchronize(); });
}

int event_elapsed(mpsforge_pool_event* from, mpsforge_pool_event* to, double* milliseconds) noexcept {
  return blocking(from->pool, [&] { *milliseconds = Event::milliseconds(from->event, to->event); });
}

int empty_cache(mpsforge_pool* pool) noexcept {
  return blocking(*pool, [&] {
    pool->threads.graphs.clear();
    pool->threads.kernels.clear();
    pool->memory.reclaim();
  });
}

int profiler(mpsforge_pool* pool, int on) noexcept {
  return blocking(*pool, [&] {
    if (on != 0) {
      pool->profiler.start();
    } else {
      pool->profiler.stop(pool->streams);
    }
  });
}

const char* identity() noexcept { return "mpsforge reference pool"; }

const char* last_error() noexcept { return last_error_text; }

const mpsforge_pool_api reference = {MPSFORGE_POOL_ABI, MPSFORGE_POOL_FUNCTIONS};

}  // namespace

extern "C" const mpsforge_pool_api* mpsforge_pool_reference(void) { return &reference; }
