// What make bench measures: times of the same operators by each thread, and instructions, which callgrind counts.
#include "scenarios.h"
#if __has_include(<ATen/mps/MPSOpGuard.h>)
#include <ATen/mps/MPSOpGuard.h>
#define MPSFORGE_HAS_GUARDS 1
#endif

// callgrind collects inside of this function alone (--toggle-collect), for the thread that calls it.
extern "C" __attribute__((noinline)) void mpsforge_counted(const std::function<void()>& work) {
  work();
  asm volatile("" ::: "memory");  // so that this is no jump into work
}

namespace mpsforge::hostmps {
namespace {

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

// Four small operators an iteration.
BENCHMARK(bench_operators) {
  run.in_parallel([&](int number) { chain(run, number, at_once); });
}

// The same, one thread at a time, as stock needs it.
BENCHMARK(bench_operators_locked) {
  std::mutex mutex;
  run.in_parallel([&](int number) {
    chain(run, number, [&](const std::function<void()>& work) {
      std::lock_guard<std::mutex> lock(mutex);
      work();
    });
  });
}

// The same on the main thread alone.
BENCHMARK(bench_operators_main) { chain(run, 0, at_once); }

void make_second_stream() {
  const c10::StreamGuard on_other(new_stream());
  at::zeros({8}, kMPS);
}

// The same once there is a second stream, which does nothing.
BENCHMARK(bench_operators_beside) {
  make_second_stream();
  chain(run, 0, at_once);
}

// A request to valgrind, of which the processor alone sees nothing; numbers and code are those of valgrind.h and
// callgrind.h.
void ask_callgrind(uint64_t request) {
#if defined(__x86_64__)
  const uint64_t arguments[6] = {(uint64_t{'C'} << 24 | uint64_t{'T'} << 16) + request};
  uint64_t result = 0;
  asm volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
               : "=d"(result)
               : "a"(&arguments[0]), "0"(result)
               : "cc", "memory");
#endif
}

// Instructions are counted between the two requests alone, as it takes callgrind minutes to follow the start of a
// process.
void count(const std::function<void()>& work) {
  constexpr uint64_t kStart = 4, kStop = 5;
  ask_callgrind(kStart);
  mpsforge_counted(work);
  ask_callgrind(kStop);
}

// Fifty operators that models use most, small, so that it is the host's work that counts.
struct Fifty {
  at::Tensor x = at::rand({8, 8}, kMPS), y = at::rand({8, 8}, kMPS), row = at::rand({8}, kMPS),
             out = at::zeros({8, 8}, kMPS);
  at::Tensor images = at::rand({1, 2, 6, 6}, kMPS), kernels = at::rand({2, 2, 3, 3}, kMPS),
             batch = at::rand({2, 8, 8}, kMPS);
  at::Tensor mask = at::gt(x, y), two = at::rand({2}, kMPS);
  at::Tensor rows = at::arange(8, kMPS.dtype(at::kLong)), places = at::zeros({8, 8}, kMPS.dtype(at::kLong));

  void run() {
    at::add(x, y), at::sub(x, y), at::mul(x, y), at::div(x, y), at::add(x, 1.0), at::mul(x, 0.5);
    at::neg(x), at::exp(x), at::log(x), at::sqrt(x), at::rsqrt(x), at::abs(x), at::pow(x, 2), at::clamp(x, 0.2, 0.8);
    at::relu(x), at::sigmoid(x), at::tanh(x), at::gelu(x), at::silu(x), at::softmax(x, 1), at::log_softmax(x, 1);
    at::mm(x, y), at::bmm(batch, batch), at::addmm(row, x, y), at::matmul(x, y), at::linear(x, y, row);
    at::conv2d(images, kernels), at::max_pool2d(images, 2), at::avg_pool2d(images, 2), at::layer_norm(x, {8}, row, row);
    at::batch_norm(images, two, two, two, two, false, 0.1, 1e-5, false), at::embedding(x, rows), at::mse_loss(x, y);
    at::sum(x), at::mean(x), at::sum(x, 1), at::amax(x, 1), at::argmax(x, 1), at::cumsum(x, 1);
    at::cat({x, y}), at::stack({x, y}), at::where(mask, x, y), at::gather(x, 1, places), at::index_select(x, 0, rows);
    at::eq(x, y), at::gt(x, y), out.copy_(x), out.fill_(1.0), x.t().contiguous(), out.add_(y);
  }
};

// Fifty operators on the main thread alone.
BENCHMARK(count_operators) {
  Fifty fifty;
  for (int i = 0; i < 3; ++i) fifty.run();
  hooks().deviceSynchronize();
  count([&] {
    for (int i = 0; i < run.iterations; ++i) fifty.run();
  });
  run.expect_close("out", fifty.out, at::ones({8, 8}) + fifty.y.cpu());
}

// The work of one operator, and a commit.
BENCHMARK(count_commits) {
  at::Tensor x = at::zeros({8}, kMPS);
  const auto work = [&] {
    for (int i = 0; i < run.iterations; ++i) {
      x.add_(1.0);
      hooks().commitStream();
    }
  };
  work();
  hooks().deviceSynchronize();
  count(work);
  run.expect_close("commits", x, at::full({8}, 2.0 * run.iterations));
}

// What a kernel's guard costs by itself, with so many buffers of this stream that nobody else uses.
void guards(Run& run, int buffers, bool several_streams) {
#ifdef MPSFORGE_HAS_GUARDS
  if (several_streams) make_second_stream();
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < buffers; ++i) tensors.push_back(at::zeros({8}, kMPS));
  count([&] {
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
  });
  run.expect_close("a buffer of the guards", tensors[0], at::zeros({8}));
#else
  run.expect(false, "these sources have guards");
#endif
}

// The fifty once there is a second stream, which does nothing.
BENCHMARK(count_operators_beside) {
  make_second_stream();
  count_operators(run);
}

// The fifty on another thread than the main one.
BENCHMARK(count_operators_worker) {
  run.in_parallel([&](int) { count_operators(run); });
}

// The commits once there is a second stream, which does nothing.
BENCHMARK(count_commits_beside) {
  make_second_stream();
  count_commits(run);
}

// Guards of one buffer with one stream, and of one, four and a list of 32 with several.
BENCHMARK(count_guard_alone) { guards(run, 1, false); }
BENCHMARK(count_guard_1) { guards(run, 1, true); }
BENCHMARK(count_guard_4) { guards(run, 4, true); }
BENCHMARK(count_guard_32) { guards(run, 32, true); }

}  // namespace
}  // namespace mpsforge::hostmps
