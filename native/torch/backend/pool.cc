// The C ABI of a stream pool (native/pool/pool.h) over the checkout's own sources, so that the programs of the
// reference pool run on them. Where the sources have no guards, there is no such pool.
#include "pool/pool.h"

#if __has_include(<ATen/mps/MPSOpGuard.h>)
#include <ATen/ATen.h>
#include <ATen/detail/MPSHooksInterface.h>
#include <ATen/mps/MPSEvent.h>
#include <ATen/mps/MPSOpGuard.h>
#include <ATen/mps/MPSStreamPool.h>
#if __has_include(<ATen/mps/MPSStreamChoice.h>)
#include <ATen/mps/MPSStreamChoice.h>
#endif
#include <c10/core/impl/VirtualGuardImpl.h>
#include <mpsforge/host.h>
#include <torch/csrc/autograd/graph_task.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

extern "C" int64_t mpsforge_hostmps_stream_statistic(const char* name);
extern "C" void mpsforge_hostmps_release_stream_slot();

struct mpsforge_pool_tensor {
  at::Tensor own;
};

struct mpsforge_pool_event {
  uint32_t id;
};

struct mpsforge_pool_host {
  at::Tensor own;
};

struct mpsforge_pool {
  mpsforge_pool_config config;
  std::mutex mutex;             // guards the next
  std::set<const void*> given;  // addresses of tensors so far
  std::atomic<uint64_t> reused{0};
  std::atomic<int> handlers{0};  // that have not returned
};

namespace at::mps {
class MPSOpSuspension;  // the patch fences makes it
}

namespace {

using at::mps::MPSOpArgument;
using at::mps::MPSOpGuard;
using at::mps::MPSStream;

constexpr auto kInt = at::kInt;

// Whether the calling thread does what the guards of autograd's engine do.
thread_local bool in_engine = false;

#if __has_include(<ATen/mps/MPSStreamChoice.h>)
// As PyTorch's Python module does it, which says it again where there is one.
[[maybe_unused]] const bool knows_choices = [] {
  at::mps::setMPSBackwardQuery([] { return in_engine || torch::autograd::get_current_graph_task_id() != -1; });
  return true;
}();
#endif

class Warnings : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
    text_ += warning.msg() + "\n";
  }
  int copy(char* buffer, size_t size) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::strncpy(buffer, text_.c_str(), size);
    buffer[size - 1] = '\0';
    return count_;
  }

 private:
  std::mutex mutex_;
  int count_ = 0;
  std::string text_;
};

Warnings& warnings_of_process() {
  static auto& all = *new Warnings;
  return all;
}

thread_local std::string failure;

int attempt(const std::function<void()>& call) noexcept {
  c10::WarningUtils::set_warning_handler(&warnings_of_process());  // of the calling thread
  try {
    call();
    return 0;
  } catch (const c10::Error& error) {
    failure = error.what_without_backtrace();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  return -1;
}

template <class T>
T* made(const std::function<T*()>& make) noexcept {
  T* result = nullptr;
  attempt([&] { result = make(); });
  return result;
}

const at::MPSHooksInterface& hooks() { return at::detail::getMPSHooks(); }

const c10::impl::VirtualGuardImpl& device_guard() {
  static const auto& guard = *new c10::impl::VirtualGuardImpl(at::kMPS);
  return guard;
}

// Numbers of the ABI leave no gap between worker streams and explicit ones.
c10::StreamId workers_and_default() {
  const char* text = std::getenv("PYTORCH_MPS_STREAM_POOL_SIZE");
  const int size = text ? std::atoi(text) : 0;
  return size >= 2 && size <= 1024 ? size : 32;
}

c10::StreamId id_of(uint32_t number) {
  const c10::StreamId first = workers_and_default();
  return number < first ? number : at::mps::kFirstExplicitStream + number - first;
}

uint32_t number_of(c10::StreamId id) {
  return static_cast<uint32_t>(
      id < at::mps::kFirstExplicitStream ? id : id - at::mps::kFirstExplicitStream + workers_and_default());
}

MPSStream* stream(uint32_t number) { return at::mps::getMPSStreamFromID(id_of(number)); }

c10::Stream of_id(c10::StreamId id) { return c10::Stream(c10::Stream::UNSAFE, {at::kMPS, 0}, id); }

c10::Stream public_stream(uint32_t number) { return of_id(id_of(number)); }

const char* identity() { return "PyTorch's MPS sources in a host build"; }

// The interpreter's lock is the program's.
std::atomic<mpsforge_pool*> with_interpreter{nullptr};

bool holds_interpreter() { return with_interpreter != nullptr; }

void* release_interpreter() {
  mpsforge_pool* pool = with_interpreter;
  pool->config.blocking(pool->config.context, 1);
  return pool;
}

void acquire_interpreter(void* released) {
  auto* pool = static_cast<mpsforge_pool*>(released);
  pool->config.blocking(pool->config.context, 0);
}

// PyTorch reads each variable once; so the process must have been started with them.
mpsforge_pool* create(const mpsforge_pool_config* config) {
  return made<mpsforge_pool>([&] {
    std::istringstream lines(config->environment ? config->environment : "");
    for (std::string line; std::getline(lines, line);) {
      const size_t equals = line.find('=');
      const char* value = std::getenv(line.substr(0, equals).c_str());
      TORCH_CHECK(value && line.substr(equals + 1) == value, "the process does not have ", line);
    }
    mpsforge_hostmps_stream_statistic("live");  // reads the variables, which may warn
    auto* pool = new mpsforge_pool;
    pool->config = *config;
    if (config->blocking) {
      with_interpreter = pool;
      at::mps::setMPSInterpreterLock(holds_interpreter, release_interpreter, acquire_interpreter);
    }
    return pool;
  });
}

// What handlers run belongs to the program, so they must have returned.
void destroy(mpsforge_pool* pool) {
  attempt([] { hooks().deviceSynchronize(); });
  while (pool->handlers > 0) std::this_thread::yield();
  with_interpreter = nullptr;
  delete pool;
}

const char* last_error() { return failure.c_str(); }

int warnings(mpsforge_pool*, char* buffer, size_t size) { return warnings_of_process().copy(buffer, size); }

void statistics(mpsforge_pool* pool, mpsforge_pool_statistics* out) {
  const auto named = [](const char* name) {
    return static_cast<uint64_t>(mpsforge_hostmps_stream_statistic(name));  // -1 if there is none
  };
  std::memset(out, 0xff, sizeof *out);
  out->live = named("live");
  out->peak = named("peak");
  out->leases = named("leases");
  out->waits = named("waits");
  out->shares = named("shares");
  out->hand_over_waits = named("hand_over_waits");
  out->streams = named("streams");
  out->reused = pool->reused;
  out->commits = 0;
  for (const auto* state : at::mps::liveMPSStreams()) out->commits += state->committed;
}

uint64_t stream_commits(mpsforge_pool*, uint32_t number) {
  const auto* state = at::mps::MPSStreamState::find(id_of(number));
  return state ? state->committed.load() : 0;
}

uint32_t current_stream(mpsforge_pool*) { return number_of(device_guard().getStream({at::kMPS, 0}).id()); }

int has_stream(mpsforge_pool*) { return hooks().hasPrimaryContext(0); }

int working_stream(mpsforge_pool*, uint32_t* number) {
  return attempt([&] { *number = number_of(at::mps::threadMPSStream()->unwrap().id()); });
}

// As a guard of c10 does it, which may be the engine's. Returns the stream that was set before, or that none was.
c10::Stream exchange(c10::Stream given, bool by_program) {
  const bool before = std::exchange(in_engine, !by_program);
  const c10::Stream result = device_guard().exchangeStream(given);
  in_engine = before;
  return result;
}

#if __has_include(<ATen/mps/MPSStreamChoice.h>)
// As torch.mps.stream() does it, which gives back exactly what there was, also inside of a guard of the engine. A token
// has the choice in its lowest bit.
uint32_t choose(uint32_t number) {
  const at::mps::MPSStreamChoice before = at::mps::setMPSStream(id_of(number), /*by_program=*/true);
  const c10::StreamId id = before.stream ? before.stream->unwrap().id() : at::mps::kNoMPSStream;
  return static_cast<uint32_t>(id) * 2 + (before.by_program ? 1 : 0);
}

void give_back(uint32_t token) {
  const c10::StreamId id = static_cast<int32_t>(token) >> 1;
  at::mps::restoreMPSStream({id < 0 ? nullptr : at::mps::getMPSStreamFromID(id), token % 2 != 0});
}
#else
uint32_t choose(uint32_t number) { return static_cast<uint32_t>(exchange(public_stream(number), true).id()); }
void give_back(uint32_t token) { exchange(of_id(static_cast<int32_t>(token)), true); }
#endif

int set_current_stream(mpsforge_pool*, uint32_t number, int by_program, uint32_t* previous) {
  return attempt([&] {
    stream(number);  // raises if there can be none, which exchangeStream() may not
    const uint32_t before =
        by_program ? choose(number) : static_cast<uint32_t>(exchange(public_stream(number), false).id());
    if (previous) *previous = before;
  });
}

int restore_stream(mpsforge_pool*, uint32_t token, int by_program) {
  return attempt([&] {
    if (by_program) {
      give_back(token);
    } else {
      exchange(of_id(static_cast<int32_t>(token)), false);
    }
  });
}

int reset_stream(mpsforge_pool*) {
  return attempt([] { at::mps::setCurrentMPSStream(nullptr); });
}

uint32_t stream_from_pool(mpsforge_pool*) {
  uint32_t result = 0;
  attempt([&] { result = number_of(device_guard().getNewStream({at::kMPS, 0}).id()); });
  return result;
}

int release_stream_slot(mpsforge_pool*) {
  return attempt([] { mpsforge_hostmps_release_stream_slot(); });
}

void end_thread(mpsforge_pool*) {}  // its real end does it

mpsforge_pool_tensor* empty(mpsforge_pool* pool, size_t elements, int for_cpu) {
  return made<mpsforge_pool_tensor>([&] {
    TORCH_CHECK(!for_cpu, "tensors on mps are not for the CPU to write");
    auto* tensor = new mpsforge_pool_tensor{
        at::empty({static_cast<int64_t>(elements)}, at::TensorOptions().device(at::kMPS).dtype(kInt))};
    std::lock_guard<std::mutex> lock(pool->mutex);
    pool->reused += !pool->given.insert(tensor->own.storage().data()).second;
    return tensor;
  });
}

// As resize_() and set_() free memory: at once, whoever else holds the tensor.
void free_tensor(mpsforge_pool_tensor* tensor) {
  attempt([&] {
    tensor->own.storage().set_data_ptr_noswap(at::DataPtr(nullptr, {at::kMPS, 0}));
    delete tensor;
  });
}

int record_stream(mpsforge_pool_tensor* tensor, uint32_t number) {
  return attempt(
      [&] { device_guard().recordDataPtrOnStream(tensor->own.storage().data_ptr(), public_stream(number)); });
}

int operate(mpsforge_pool*, const mpsforge_pool_operator* op) {
  return attempt([&] {
    const std::string name = op->name;
    at::Tensor& out = op->output->own;
    const auto in = [&](size_t index) -> const at::Tensor& { return op->inputs[index]->own; };
    if (name == "fill") {
      out.fill_(op->value);
    } else if (name == "copy") {
      out.copy_(in(0));
    } else if (name == "add") {
      at::add_out(out, in(0), in(1));
    } else if (name == "multiply") {
      at::mul_out(out, in(0), in(1));
    } else if (name == "scale") {
      at::mul_out(out, in(0), at::scalar_tensor(op->value, kInt));
    } else {
      TORCH_CHECK(name == "increment", "no operator ", name);
      out.add_(op->value);
    }
  });
}

int read(mpsforge_pool_tensor* tensor, int32_t* to) {
  return attempt([&] {
    const at::Tensor here = tensor->own.cpu();
    std::memcpy(to, here.const_data_ptr<int32_t>(), here.nbytes());
  });
}

int write(mpsforge_pool_tensor* tensor, const int32_t* from) {
  return attempt([&] {
    const at::Tensor here = at::empty(tensor->own.sizes(), kInt);
    std::memcpy(here.mutable_data_ptr<int32_t>(), from, here.nbytes());
    tensor->own.copy_(here);
  });
}

mpsforge_pool_host* host_create(mpsforge_pool*, size_t elements) {
  return made<mpsforge_pool_host>(
      [&] { return new mpsforge_pool_host{at::zeros({static_cast<int64_t>(elements)}, kInt)}; });
}

void host_destroy(mpsforge_pool_host* host) { delete host; }

int copy_to_host(mpsforge_pool_tensor* tensor, mpsforge_pool_host* host) {
  return attempt([&] { host->own.copy_(tensor->own, /*non_blocking=*/true); });
}

int host_read(mpsforge_pool_host* host, int32_t* to) {
  return attempt([&] {
    mpsforge_host_cpu_access(host->own.const_data_ptr(), host->own.nbytes(), MPSFORGE_HOST_READ);
    std::memcpy(to, host->own.const_data_ptr<int32_t>(), host->own.nbytes());
  });
}

int guard(mpsforge_pool*, const mpsforge_pool_use* uses, size_t count, mpsforge_metal_function function,
          void* context) {
  return attempt([&] {
    std::vector<at::Tensor> read, written;
    for (size_t i = 0; i < count; ++i) (uses[i].writes ? written : read).push_back(uses[i].tensor->own);
    const at::ArrayRef<at::Tensor> reads(read), writes(written);
    const MPSOpGuard around({MPSOpArgument(reads), MPSOpArgument(writes, true)});
    function(context);
  });
}

template <class Suspension, size_t = sizeof(Suspension)>
void with_guards_suspended(mpsforge_metal_function function, void* context, int) {
  const Suspension suspension;
  function(context);
}
template <class>
void with_guards_suspended(mpsforge_metal_function function, void* context, long) {
  function(context);
}

int suspended(mpsforge_pool*, mpsforge_metal_function function, void* context) {
  return attempt([&] { with_guards_suspended<at::mps::MPSOpSuspension>(function, context, 0); });
}

int fallback(mpsforge_pool*, const mpsforge_pool_use*, size_t, mpsforge_metal_function function, void* context) {
  return attempt([&] { function(context); });  // MPSFallback.mm has no guard
}

int synchronize(mpsforge_pool*, uint32_t number) {
  return attempt([&] { device_guard().synchronizeStream(public_stream(number)); });
}

int synchronize_device(mpsforge_pool*) {
  return attempt([] { hooks().deviceSynchronize(); });
}

int commit(mpsforge_pool*, uint32_t number) {
  return attempt([&] { stream(number)->synchronize(at::mps::SyncType::COMMIT); });
}

// Commits nothing where there are several streams: programs ask whether something has waited for a stream.
int query_stream(mpsforge_pool*, uint32_t number, int* complete) {
  return attempt([&] {
    const c10::Stream asked = public_stream(number);
    const auto& state = at::mps::MPSStreamState::get(asked.id());
    const uint64_t completed = state.completed();
    *complete = at::mps::liveMPSStreams().size() > 1 ? completed >= state.enqueued : device_guard().queryStream(asked);
  });
}

// As an extension does it: it asks for its stream, which is the fence, and for the queue of that.
int on_queue(mpsforge_pool* pool, uint32_t number, mpsforge_metal_function function, void* context) {
  return attempt([&] {
    MPSStream* on = stream(number);
    if (!MPSOpGuard::isActive() && !at::mps::getStreamOfCurrentQueue()) {
      const bool other = at::mps::threadMPSStream() != on;
      const c10::Stream before = other ? device_guard().exchangeStream(on->unwrap()) : on->unwrap();
      at::mps::getCurrentMPSStream();
      if (other) device_guard().exchangeStream(before);
    }
    at::mps::runOnStreamQueue(on, ^() {
      function(context);
    });
  });
}

mpsforge_metal_command_buffer* command_buffer(mpsforge_pool*, uint32_t number) {
  return made<mpsforge_metal_command_buffer>([&] {
    stream(number)->endKernelCoalescing();
    return reinterpret_cast<mpsforge_metal_command_buffer*>(stream(number)->commandBuffer());
  });
}

mpsforge_metal_encoder* command_encoder(mpsforge_pool*, uint32_t number) {
  return made<mpsforge_metal_encoder>(
      [&] { return reinterpret_cast<mpsforge_metal_encoder*>(stream(number)->commandEncoder()); });
}

int add_completed_handler(mpsforge_pool* pool, uint32_t number, mpsforge_metal_function function, void* context) {
  return attempt([=] {
    ++pool->handlers;
    // The block outlives this call, so it must not use what a lambda has captured.
    mpsforge_pool* const of = pool;
    const mpsforge_metal_function run = function;
    void* const with = context;
    stream(number)->addCompletedHandler(^(id<MTLCommandBuffer>) {
      run(with);
      --of->handlers;
    });
  });
}

mpsforge_pool_event* event_create(mpsforge_pool*, int timing) {
  return made<mpsforge_pool_event>([&] { return new mpsforge_pool_event{hooks().acquireEvent(timing != 0)}; });
}

void event_destroy(mpsforge_pool_event* event) {
  attempt([&] { hooks().releaseEvent(event->id); });
  delete event;
}

// As torch.Event does it.
int event_record(mpsforge_pool_event* event, uint32_t number) {
  return attempt([&] {
    void* handle = reinterpret_cast<void*>(static_cast<uintptr_t>(event->id));
    device_guard().record(&handle, public_stream(number), 0, c10::EventFlag::PYTORCH_DEFAULT);
  });
}

int event_wait(mpsforge_pool_event* event, uint32_t number) {
  return attempt(
      [&] { device_guard().block(reinterpret_cast<void*>(static_cast<uintptr_t>(event->id)), public_stream(number)); });
}

int event_query(mpsforge_pool_event* event, int* complete) {
  return attempt([&] { *complete = hooks().queryEvent(event->id); });
}

int event_synchronize(mpsforge_pool_event* event) {
  return attempt([&] { hooks().synchronizeEvent(event->id); });
}

int event_elapsed(mpsforge_pool_event* from, mpsforge_pool_event* to, double* milliseconds) {
  return attempt([&] { *milliseconds = hooks().elapsedTimeOfEvents(from->id, to->id); });
}

int empty_cache(mpsforge_pool*) {
  return attempt([] { hooks().emptyCache(); });
}

int profiler(mpsforge_pool*, int on) {
  return attempt([&] { on ? hooks().profilerStartTrace("interval", false) : hooks().profilerStopTrace(); });
}

const mpsforge_pool_api table = {MPSFORGE_POOL_ABI, MPSFORGE_POOL_FUNCTIONS};

}  // namespace

extern "C" const mpsforge_pool_api* mpsforge_hostmps_pool() { return &table; }
#else
extern "C" const mpsforge_pool_api* mpsforge_hostmps_pool() { return nullptr; }
#endif
