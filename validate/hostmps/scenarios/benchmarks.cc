// What make bench times: the same operators by each thread, with nothing compared but the last result.
#include <mutex>

#include "scenarios.h"

namespace mpsforge::hostmps {
namespace {

const auto kMPS = at::TensorOptions().device(at::kMPS).dtype(at::kFloat);

// Four small operators an iteration, so that it is the host's work that counts. What they compute stays the same.
void chain(Run& run, bool locked) {
  std::mutex mutex;
  const auto alone = [&](const auto& work) {
    std::unique_lock<std::mutex> lock(mutex, std::defer_lock);
    if (locked) lock.lock();
    work();
  };
  run.in_parallel([&](int number) {
    at::Tensor weight, value;
    alone([&] {
      weight = at::full({8, 8}, 0.125, kMPS);
      value = at::full({8, 8}, number + 1.0, kMPS);
    });
    for (int i = 0; i < run.iterations; ++i) {
      alone([&] { value = at::relu(at::add(at::mul(at::mm(value, weight), 0.5), 0.5 * (number + 1.0))); });
    }
    alone([&] {
      run.expect_close("chain", value, at::full({8, 8}, number + 1.0));
      weight.reset();
      value.reset();
    });
  });
}

void operators(Run& run) { chain(run, false); }

void operators_under_a_lock(Run& run) { chain(run, true); }

}  // namespace

const std::vector<Scenario>& benchmarks() {
  static const std::vector<Scenario> all = {
      {"bench-operators", "four small operators an iteration", operators},
      {"bench-operators-locked", "the same, one thread at a time, as stock needs it", operators_under_a_lock},
  };
  return all;
}

}  // namespace mpsforge::hostmps
