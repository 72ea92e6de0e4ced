// Scenarios: what the field reports ran, over ATen's public operators on device mps, from several threads. Each checks
// its values against the same computation on the CPU.
#pragma once

#include <ATen/ATen.h>
#include <ATen/detail/MPSHooksInterface.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dispatch/dispatch.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// Hooks that the patches add (backend/scenarios.cc).
extern "C" int64_t mpsforge_hostmps_stream_statistic(const char* name);
extern "C" void mpsforge_hostmps_release_stream_slot();
// The n-th command buffer that the calling thread's stream commits from now on fails.
extern "C" void mpsforge_hostmps_fail_command_buffer(uint32_t n);

namespace mpsforge::hostmps {

// What all threads of a run share. Thread-safe.
class Run {
 public:
  Run(int threads, int iterations, uint64_t seed) : threads(threads), iterations(iterations), seed(seed) {}

  const int threads;
  const int iterations;
  const uint64_t seed;

  // Compares a tensor on mps with what the CPU computed; a difference is a wrong value. The first is described.
  void expect_close(const char* what, const at::Tensor& found, const at::Tensor& expected);
  void expect(bool holds, const std::string& what);
  // The call ends in an error that says the word.
  void expect_error(const std::string& what, const std::string& word, const std::function<void()>& call);
  // Starts body(thread number) on all threads at once and joins them. An exception of one is kept as a failure.
  void in_parallel(const std::function<void(int)>& body);
  // A generator of its own for each thread, so that threads do not wait for each other's random numbers.
  at::Generator generator(int thread) const;
  // Threads of one parallel part meet here.
  void meet();

  uint64_t checked() const { return checked_; }
  uint64_t wrong() const { return wrong_; }
  std::string first_wrong();
  std::vector<std::string> errors();

 private:
  std::atomic<uint64_t> checked_{0};
  std::atomic<uint64_t> wrong_{0};
  std::mutex mutex_;
  std::string first_wrong_;
  std::vector<std::string> errors_;
  std::atomic<int> arrived_{0};
  std::atomic<int> meeting_{0};
};

// What this thread is warned of while it lives, on the thread that has made it.
class Warnings : c10::WarningHandler {
 public:
  Warnings() : before_(c10::WarningUtils::get_warning_handler()) { c10::WarningUtils::set_warning_handler(this); }
  ~Warnings() override { c10::WarningUtils::set_warning_handler(before_); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;

  const std::string& text() const { return text_; }

 private:
  void process(const c10::Warning& warning) override { text_ += warning.msg() + "\n"; }

  c10::WarningHandler* before_;
  std::string text_;
};

// What is behind torch.Stream and torch.Event.
inline c10::impl::VirtualGuardImpl guard() { return c10::impl::VirtualGuardImpl(at::kMPS); }
inline c10::Stream new_stream() { return guard().getNewStream(at::Device(at::kMPS, 0)); }

// For a StreamGuard: every other thread works on a stream of the program's own, the rest on those that they lease, if
// they do. So there are several streams also where threads lease none.
inline std::optional<c10::Stream> stream_of(int number) {
  if (number % 2 == 0) return std::nullopt;
  return new_stream();
}

// What most tensors on mps are made with.
const auto kMPS = at::TensorOptions().device(at::kMPS).dtype(at::kFloat);

// What is behind torch.mps.
inline const at::MPSHooksInterface& hooks() { return at::detail::getMPSHooks(); }

// That of the calling thread's stream.
inline dispatch_queue_t dispatch_queue() { return static_cast<dispatch_queue_t>(hooks().getDispatchQueue()); }

// Handlers of command buffers may run after the wait for the GPU.
inline void wait_for(const std::function<bool()>& handled) {
  const auto started = std::chrono::steady_clock::now();
  while (!handled() && std::chrono::steady_clock::now() - started < std::chrono::seconds(5)) std::this_thread::yield();
}

using Inputs = const std::vector<at::Tensor>&;

inline at::Tensor random(at::IntArrayRef sizes, at::Generator& generator) { return at::randn(sizes, generator); }

// One layer's weights used by all threads.
struct Model {
  at::Tensor weight1, bias1, weight2, bias2;
  Model(int64_t inputs, int64_t hidden, int64_t outputs, at::Generator& generator)
      : weight1(random({hidden, inputs}, generator)),
        bias1(random({hidden}, generator)),
        weight2(random({outputs, hidden}, generator)),
        bias2(random({outputs}, generator)) {}
  Model on(at::Device device) const {
    Model moved = *this;
    for (at::Tensor* part : {&moved.weight1, &moved.bias1, &moved.weight2, &moved.bias2}) *part = part->to(device);
    return moved;
  }
  at::Tensor operator()(const at::Tensor& input) const {
    return at::linear(at::relu(at::linear(input, weight1, bias1)), weight2, bias2);
  }
};

// Runs the same function on mps and on the CPU and compares.
template <class Function>
void compare(Run& run, const char* what, Inputs inputs, Function function) {
  std::vector<at::Tensor> there;
  for (const at::Tensor& input : inputs) there.push_back(input.to(at::kMPS));
  run.expect_close(what, function(there), function(inputs));
}

// Waits for a forked child, and kills one that has not ended by then. Whether it ended by itself, with exit code 0.
bool ends_well(pid_t child, std::chrono::milliseconds patience);

// The calling thread's current one.
inline c10::Stream stream_of_thread() { return guard().getStream(at::Device(at::kMPS, 0)); }

// After this the thread has raised all that has failed so far. What is raised must be a Raised.
template <typename Raised>
void raise_all() {
  for (;;) {
    try {
      hooks().deviceSynchronize();
      return;
    } catch (const Raised&) {
    }
  }
}

// benchmark: what make bench times, found by its name alone.
enum class Kind { scenario, operation, benchmark };

struct Scenario {
  Kind kind;
  std::string name;
  void (*run)(Run&);
};

// Called before main begins, so that a program has the scenarios of the files that it is made of. The scenario's name
// is the identifier with - for _. Always true.
bool add_scenario(Kind kind, const char* identifier, void (*run)(Run&));
const std::vector<Scenario>& all_scenarios();

// SCENARIO(first_use) { ... } is a function with the argument run, and its registration as "first-use". What else there
// is to know of a scenario is its row in scenarios.json; the stage runtime refuses a program and a table that differ.
#define MPSFORGE_SCENARIO(kind, identifier)                                                     \
  void identifier(Run& run);                                                                    \
  [[maybe_unused]] const bool identifier##_added = add_scenario(kind, #identifier, identifier); \
  void identifier(Run& run)
#define SCENARIO(identifier) MPSFORGE_SCENARIO(Kind::scenario, identifier)
#define OPERATION(identifier) MPSFORGE_SCENARIO(Kind::operation, identifier)
#define BENCHMARK(identifier) MPSFORGE_SCENARIO(Kind::benchmark, identifier)

// What programs of the reference pool came to; lists are the inside of JSON arrays.
struct ProgramResults {
  std::string errors;   // expectations that were not met
  std::string records;  // of steps, if asked for
  uint64_t steps = 0;
};
// Runs programs one after another. Throws if one cannot be read.
ProgramResults run_programs(const std::vector<std::string>& paths, bool record);

}  // namespace mpsforge::hostmps
