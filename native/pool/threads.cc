#include "threads.h"

#include <map>
#include <utility>

#include "failure.h"
#include "fork.h"

namespace mpsforge::pool {
namespace {

// The pools that live, by number. Never destroyed (rule 24): threads may end after everything else.
struct Registry {
  std::mutex mutex;  // nothing is called under it
  uint64_t last = 0;
  std::map<uint64_t, Threads*> threads;
};

Registry& registry() {
  static auto* const instance = new Registry;
  return *instance;
}

uint64_t enter_registry(Threads* threads) {
  Registry& pools = registry();
  const std::lock_guard<std::mutex> lock(pools.mutex);
  pools.threads[++pools.last] = threads;
  return pools.last;
}

// A plain value: it can be read when the thread's other thread-local objects are gone.
thread_local bool thread_is_over = false;

}  // namespace

// The states of one thread in all pools. Its destructor is the thread's end (rule 2).
class ThreadLocal {
 public:
  ~ThreadLocal() {
    thread_is_over = true;
    if (in_forked_child()) return;
    for (const auto& [number, state] : states) {
      Threads* threads = nullptr;
      {
        Registry& pools = registry();
        const std::lock_guard<std::mutex> lock(pools.mutex);
        const auto entry = pools.threads.find(number);
        if (entry != pools.threads.end()) threads = entry->second;
      }
      if (threads) threads->end(state);
    }
  }

  std::map<uint64_t, std::shared_ptr<ThreadState>> states;
};

namespace {

thread_local ThreadLocal own;

}  // namespace

Threads::Threads(const Backend& backend, const Configuration& configuration, Streams& streams, Leases& leases,
                 Warnings& warnings)
    : graphs(backend, MPSFORGE_METAL_MPS_GRAPH, configuration.graph_cache_size),
      kernels(backend, MPSFORGE_METAL_MPS_MATRIX, configuration.graph_cache_size),
      configuration_(configuration),
      streams_(streams),
      leases_(leases),
      warnings_(warnings),
      number_(enter_registry(this)) {
  mine()->main = true;
}

Threads::~Threads() {
  {
    Registry& pools = registry();
    const std::lock_guard<std::mutex> lock(pools.mutex);
    pools.threads.erase(number_);
  }
  own.states.erase(number_);
}

ThreadState* Threads::mine() {
  if (thread_is_over) return nullptr;
  std::shared_ptr<ThreadState>& state = own.states[number_];
  if (!state) state = std::make_shared<ThreadState>();
  return state.get();
}

uint32_t Threads::current() {
  const ThreadState* state = mine();
  if (state && state->choice.stream != 0) return state->choice.stream - 1;
  if (const Stream* here = Stream::here()) return here->id();
  return state && state->slot ? *state->slot + 1 : 0;
}

// The thread's own stream; nothing if it would have to lease one.
std::optional<uint32_t> Threads::own_stream(const ThreadState& state) const {
  if (state.slot) return *state.slot + 1;
  if (state.main || state.ended || state.shares || !configuration_.stream_per_thread) return 0;
  return std::nullopt;
}

bool Threads::has_stream() {
  const ThreadState* state = mine();
  return !state || state->choice.stream != 0 || Stream::here() || own_stream(*state);
}

uint32_t Threads::working() {
  if (!has_stream()) {
    ThreadState* state = mine();
    bool first_share = false;
    state->slot = leases_.acquire(&first_share);
    state->shares = !state->slot;
    if (first_share) warnings_.add(leases_.share_warning());
  }
  return current();
}

uint32_t Threads::set(uint32_t stream, bool by_program) {
  streams_.check(stream);
  ThreadState* state = mine();
  if (!state || state->ended) throw Failure("the thread has ended and keeps to the default stream");
  Choice& choice = state->choice;
  const uint32_t before = choice.stream * 2 + (choice.by_program ? 1 : 0);
  if (own_stream(*state) == stream) {
    choice = {};
  } else if (choice.stream != stream + 1) {
    choice = {stream + 1, by_program && streams_.is_explicit(stream)};
  }
  return before;
}

void Threads::restore(uint32_t token) {
  if (token != 0) streams_.check(token / 2 - 1);
  ThreadState* state = mine();
  if (state && !state->ended) state->choice = {token / 2, token % 2 != 0};
}

bool Threads::orders_itself() {
  const ThreadState* state = mine();
  return Stream::here() || (state && state->choice.by_program);
}

void Threads::release_slot() {
  if (ThreadState* state = mine()) give_up(*state);
}

void Threads::end_thread() {
  if (mine()) end(own.states[number_]);
}

// Rule 2. No wait: queue order keeps the next holder of the slot behind what was committed here.
void Threads::give_up(ThreadState& state) {
  state.shares = false;
  if (!state.slot) return;
  Stream* stream = streams_.find(*state.slot + 1);
  const Stream* here = Stream::here();
  // On another stream's queue (rule 11) the work stays open; the next close of the stream commits it.
  if (stream && (!here || here == stream)) {
    stream->run([&] { stream->close(); });
  }
  const uint32_t slot = *state.slot;
  state.slot.reset();
  leases_.release(slot);
}

void Threads::end(const std::shared_ptr<ThreadState>& state) {
  if (state->ended) return;
  state->ended = true;
  state->choice = {};
  give_up(*state);
}

}  // namespace mpsforge::pool
