// What make bench times: the same operators by each thread, with nothing compared but the last result.
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <functional>
#include <mutex>

#include "scenarios.h"
#if __has_include(<ATen/mps/MPSOpGuard.h>)
#include <ATen/mps/MPSOpGuard.h>
#define MPSFORGE_HAS_GUARDS 1
#endif

namespace mpsforge::hostmps {
namespace {

const auto kMPS = at::TensorOptions().device(at::kMPS).dtype(at::kFloat);

// Four small operators an iteration, so that it is the host's work that counts. What they compute stays the same. Each
// use of MPS goes through alone(work).
template <typename Alone>
void chain(Run& run, int number, const Alone& alone) {
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
}

void at_once(const std::function<void()>& work) { work(); }

void operators(Run& run) {
  run.in_parallel([&](int number) { chain(run, number, at_once); });
}

void operators_under_a_lock(Run& run) {
  std::mutex mutex;
  run.in_parallel([&](int number) {
    chain(run, number, [&](const std::function<void()>& work) {
      std::lock_guard<std::mutex> lock(mutex);
      work();
    });
  });
}

void operators_of_main_thread(Run& run) { chain(run, 0, at_once); }

void make_second_stream() {
  const c10::impl::VirtualGuardImpl guard(at::kMPS);
  const c10::StreamGuard on_other(guard.getNewStream(at::Device(at::kMPS, 0)));
  at::zeros({8}, kMPS);
}

void operators_beside_a_stream(Run& run) {
  make_second_stream();
  chain(run, 0, at_once);
}

// What a kernel's guard costs by itself, with so many buffers of this stream that nobody else uses.
void guards(Run& run, int buffers, bool several_streams) {
#ifdef MPSFORGE_HAS_GUARDS
  if (several_streams) make_second_stream();
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < buffers; ++i) tensors.push_back(at::zeros({8}, kMPS));
  for (int i = 0; i < run.iterations; ++i) {
    // kernels take tensors one by one, the largest of them here
    if (buffers == 1) {
      const at::mps::MPSOpGuard guard({{tensors[0]}});
    } else if (buffers == 4) {
      const at::mps::MPSOpGuard guard({{tensors[0]}, {tensors[1]}, {tensors[2]}, {tensors[3], true}});
    } else {
      const at::mps::MPSOpGuard guard({{at::TensorList(tensors)}});
    }
  }
#else
  run.expect(false, "these sources have guards");
#endif
}

const bool added = add_scenarios(
    Kind::benchmark,
    {
        {"bench-operators", "four small operators an iteration", operators},
        {"bench-operators-locked", "the same, one thread at a time, as stock needs it", operators_under_a_lock},
        {"bench-operators-main", "the same on the main thread alone", operators_of_main_thread},
        {"bench-operators-beside", "the same once there is a second stream, which does nothing",
         operators_beside_a_stream},
        {"bench-guard-alone", "guards of one buffer, with one stream", [](Run& run) { guards(run, 1, false); }},
        {"bench-guard-1", "guards of one buffer, with several streams", [](Run& run) { guards(run, 1, true); }},
        {"bench-guard-4", "guards of four buffers, with several streams", [](Run& run) { guards(run, 4, true); }},
        {"bench-guard-32", "guards of a list of 32 buffers, with several streams",
         [](Run& run) { guards(run, 32, true); }},
    });

}  // namespace
}  // namespace mpsforge::hostmps
