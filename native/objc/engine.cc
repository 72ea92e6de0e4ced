#include "engine.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../metal/random.h"
#include "record.h"
#include "runtime/runtime.h"

// Of ThreadSanitizer's runtime; absent without it.
extern "C" {
void AnnotateIgnoreSyncBegin(const char* file, int line) __attribute__((weak));
void AnnotateIgnoreSyncEnd(const char* file, int line) __attribute__((weak));
void AnnotateIgnoreReadsBegin(const char* file, int line) __attribute__((weak));
void AnnotateIgnoreReadsEnd(const char* file, int line) __attribute__((weak));
void AnnotateIgnoreWritesBegin(const char* file, int line) __attribute__((weak));
void AnnotateIgnoreWritesEnd(const char* file, int line) __attribute__((weak));
void __tsan_acquire(void* address) __attribute__((weak));
void __tsan_release(void* address) __attribute__((weak));
}

namespace mpsforge::objc {
namespace {

// How many EngineCalls this thread is in. Plain data: static destructors still make calls.
thread_local unsigned depth = 0;

void look_away() {
  if (!AnnotateIgnoreSyncBegin) return;
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

void look_again() {
  if (!AnnotateIgnoreSyncEnd) return;
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
}

// ThreadSanitizer refuses a thread that ends while it looks away.
void end_engine_thread(void*) {
  if (depth > 0) look_again();
  depth = 0;
}

pthread_key_t engine_thread_key() {
  static const pthread_key_t made = [] {
    pthread_key_t key;
    pthread_key_create(&key, end_engine_thread);
    return key;
  }();
  return made;
}

// What the engine's own threads do is the engine's, but for callbacks.
void begin_engine_thread() {
  pthread_setspecific(engine_thread_key(), &depth);
  depth = 1;
  look_away();
}

uint64_t number(const char* name, uint64_t otherwise, uint64_t highest) {
  const char* text = std::getenv(name);
  if (!text || !*text) return otherwise;
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (errno != 0 || *end || *text == '-' || value > highest)
    fail("%s=%s is not a number up to %llu", name, text, static_cast<unsigned long long>(highest));
  return value;
}

uint32_t small_number(const char* name, uint32_t otherwise, uint32_t highest = UINT32_MAX) {
  return static_cast<uint32_t>(number(name, otherwise, highest));
}

bool by_seed(const char* name) {
  const char* text = std::getenv(name);
  return text && std::strcmp(text, "seed") == 0;
}

// A sequence of the seed that nothing of the engine has.
constexpr uint64_t kModels = (uint64_t{1} << 63) + 1;

Environment read_environment() {
  Environment read{};
  mpsforge_metal_config& config = read.config;
  config.seed = number("MPSFORGE_METAL_SEED", 1, UINT64_MAX);
  config.max_delay_us = small_number("MPSFORGE_METAL_MAX_DELAY_US", 0);
  config.check_order = small_number("MPSFORGE_METAL_CHECK_ORDER", 1, 1);
  read.check_kernels = small_number("MPSFORGE_METAL_CHECK_KERNELS", 0, 1) != 0;
  read.record = small_number("MPSFORGE_METAL_RECORD", 0, 1) != 0;
  read.in_step = read.record && small_number("MPSFORGE_METAL_IN_STEP", 0, 1) != 0;
  if (read.in_step) config.wait_covers_handlers = MPSFORGE_METAL_WAIT_COVERS;
  config.watchdog_ms = small_number("MPSFORGE_METAL_WATCHDOG_MS", 0);
  config.models = by_seed("MPSFORGE_METAL_MODELS") ? metal::draw(config.seed, kModels, 0) & MPSFORGE_METAL_MODEL_ALL
                                                   : small_number("MPSFORGE_METAL_MODELS", 0, MPSFORGE_METAL_MODEL_ALL);
  if (small_number("MPSFORGE_METAL_CHECK_WAITS", 0, 1)) config.models |= MPSFORGE_METAL_MODEL_EARLY_WAIT;
  config.graph_split = by_seed("MPSFORGE_METAL_GRAPH_SPLIT") ? MPSFORGE_METAL_SPLIT_BY_SEED
                                                             : small_number("MPSFORGE_METAL_GRAPH_SPLIT", 0);
  read.working_set_bytes = static_cast<size_t>(number("MPSFORGE_METAL_WORKING_SET_MB", 8192, 1 << 20)) << 20;
  const auto max_buffer = static_cast<size_t>(number("MPSFORGE_METAL_MAX_BUFFER_MB", 0, 1 << 20)) << 20;
  read.max_buffer_bytes = max_buffer != 0 ? max_buffer : read.working_set_bytes / 4 * 3;
  const char* violation = std::getenv("MPSFORGE_METAL_ON_VIOLATION");
  if (!violation || !*violation || std::strcmp(violation, "abort") == 0) {
    config.on_violation = MPSFORGE_METAL_ABORT;
  } else if (std::strcmp(violation, "record") == 0) {
    config.on_violation = MPSFORGE_METAL_RECORD;
  } else {
    fail("MPSFORGE_METAL_ON_VIOLATION=%s is neither abort nor record", violation);
  }
  const char* macos = std::getenv("MPSFORGE_METAL_MACOS");
  if (!macos || !*macos) macos = "15.5";
  int length = 0;
  if (std::sscanf(macos, "%2u.%2u%n", &read.macos_major, &read.macos_minor, &length) != 2 || macos[length] ||
      read.macos_major < 10) {
    fail("MPSFORGE_METAL_MACOS=%s is not a version such as 15.1", macos);
  }
  config.macos = 100 * read.macos_major + read.macos_minor;
  if (const char* folder = std::getenv("MPSFORGE_METAL_TRACE"); folder && *folder) {
    const std::string path = std::string(folder) + "/%p.trace";
    if (const int error = mpsforge_metal_trace(path.c_str()))
      fail("MPSFORGE_METAL_TRACE: cannot write %s: %s", path.c_str(), std::strerror(error));
  }
  return read;
}

// Made under the runtime's lock, not by a static variable: the latter's guard would order threads for ThreadSanitizer.
std::atomic<const Environment*> known_environment{nullptr};
std::atomic<mpsforge_metal_device*> made_device{nullptr};
std::atomic<bool> closed{false};

}  // namespace

void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs("mpsforge: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
  std::abort();
}

const Environment& environment() {
  if (const Environment* known = known_environment.load(std::memory_order_acquire)) return *known;
  RuntimeLock lock;
  if (!known_environment.load()) known_environment.store(new Environment(read_environment()));
  return *known_environment.load();
}

const mpsforge_metal_api& api() { return environment().record ? recording_api() : *mpsforge_metal_software(); }

mpsforge_metal_device* device() {
  if (mpsforge_metal_device* made = made_device.load(std::memory_order_acquire)) return made;
  RuntimeLock lock;
  if (!made_device.load()) {
    EngineCall call;
    mpsforge_metal_device* made = api().device_create(&environment().config);
    if (!made) fail("the software Metal refuses its configuration; see the MPSFORGE_METAL_ variables");
    static const mpsforge_metal_observer observer{begin_engine_thread, sanitizer_release, sanitizer_acquire};
    api().observe(made, &observer);
    made_device.store(made, std::memory_order_release);
  }
  return made_device.load();
}

mpsforge_metal_device* device_if_made() { return made_device.load(std::memory_order_acquire); }

void close_device() {
  mpsforge_metal_device* made = device_if_made();
  if (!made || closed.exchange(true)) return;
  EngineCall call;
  api().device_close(made);
}

EngineCall::EngineCall() {
  if (depth++ == 0) look_away();
}

EngineCall::~EngineCall() {
  if (--depth == 0) look_again();
}

OutsideEngine::OutsideEngine() : depth_(depth) {
  if (depth > 0) look_again();
  depth = 0;
}

OutsideEngine::~OutsideEngine() {
  // A thread of the engine's own comes here without an EngineCall; from its first callback on it counts as inside, so
  // that the engine's locks do not order one callback before the next.
  if (depth_ == 0) pthread_setspecific(engine_thread_key(), &depth);
  depth = depth_ == 0 ? 1 : depth_;
  look_away();
}

void came_back_undone(const char* call) {
  if (environment().config.on_violation == MPSFORGE_METAL_RECORD) return;
  std::vector<mpsforge_metal_finding> found;
  {
    EngineCall inside;
    found.resize(api().findings(device(), nullptr, 0));
    found.resize(std::min(found.size(), api().findings(device(), found.data(), found.size())));
  }
  for (const mpsforge_metal_finding& each : found) {
    if (each.kind == MPSFORGE_METAL_DEADLOCK) fail("%s did not end: %s", call, each.message);
  }
  fail("%s did not do its work", call);
}

bool inside_engine() { return depth > 0; }

void sanitizer_release(const void* object) {
  if (!__tsan_release) return;
  if (depth > 0) look_again();
  __tsan_release(const_cast<void*>(object));
  if (depth > 0) look_away();
}

void sanitizer_acquire(const void* object) {
  if (!__tsan_acquire) return;
  if (depth > 0) look_again();
  __tsan_acquire(const_cast<void*>(object));
  if (depth > 0) look_away();
}

// Without a device there are no accesses yet that the checker could order, and after its end no more.
void checker_release(const void* object) {
  mpsforge_metal_device* made = device_if_made();
  if (!made || depth > 0 || closed.load(std::memory_order_relaxed)) return;
  EngineCall call;
  api().order_release(made, object);
}

void checker_acquire(const void* object) {
  mpsforge_metal_device* made = device_if_made();
  if (!made || depth > 0 || closed.load(std::memory_order_relaxed)) return;
  EngineCall call;
  api().order_acquire(made, object);
}

void order_release(const void* object) {
  sanitizer_release(object);
  checker_release(object);
}

void order_acquire(const void* object) {
  sanitizer_acquire(object);
  checker_acquire(object);
}

}  // namespace mpsforge::objc
