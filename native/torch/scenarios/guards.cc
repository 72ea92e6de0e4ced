// Scenarios of what hand-over must see though no schema says it, of readers that poll, and of the moment in which the
// second stream comes to be.
#include <ATen/ops/native_batch_norm.h>
#include <mpsforge/host.h>

#include <thread>

#include "scenarios.h"

namespace mpsforge::hostmps {
namespace {

// One thread adds to a number that the others poll; it comes to its turn, so they all see the last number.
SCENARIO(pollers) {
  const at::Tensor flag = at::zeros({1}, kMPS);
  run.in_parallel([&](int number) {
    if (number == 0) {
      for (int i = 0; i < run.iterations; ++i) flag.add_(1.0);
      run.expect_close("the writer's number", flag, at::full({1}, static_cast<double>(run.iterations)));
      return;
    }
    float seen = 0;
    while (seen < static_cast<float>(run.iterations)) {
      const float before = seen;
      seen = flag.item<float>();
      run.expect(seen >= before, "a number that only rises has fallen");
    }
  });
}

// The main thread and every other one work on the default stream while the rest begin: some operators of theirs are
// under way when there is a second stream. nonzero() waits for the number before it encodes the rest.
SCENARIO(birth) {
  const at::Tensor sum = at::zeros({64}, kMPS), larger = at::ones({64, 64}, kMPS);
  std::atomic<int> begun{0};
  const int birth = 0, end = 0;
  mpsforge_host_order_release(&birth);
  std::thread others([&] {
    mpsforge_host_order_acquire(&birth);
    run.in_parallel([&](int number) {
      if (number % 2 == 1) {
        const c10::StreamGuard on(guard().getDefaultStream(at::Device(at::kMPS, 0)));
        for (int i = 0; i < run.iterations; ++i) {
          run.expect(at::nonzero(larger).size(0) == larger.numel(), "not all are ones");
          if (i == 0) ++begun;
        }
        return;
      }
      while (begun < 1 + run.threads / 2) std::this_thread::yield();
      larger.add_(0.0);
      for (int i = 0; i < run.iterations; ++i) sum.add_(1.0);
    });
    mpsforge_host_order_release(&end);
  });
  for (int i = 0; i < run.iterations; ++i) {
    sum.add_(1.0);
    if (i == 0) ++begun;
    sum.add_(at::mm(larger, larger).select(0, 0), 1.0 / 64);
    run.expect(sum.select(0, 0).item<float>() >= static_cast<float>(2 * i), "an addition is lost");
  }
  others.join();
  mpsforge_host_order_acquire(&end);
  run.expect_close("sum", sum, at::full({64}, static_cast<double>(((run.threads + 1) / 2 + 2) * run.iterations)));
}

// The first that a thread does is to copy a strided view, which is gathered on the GPU, to the CPU.
SCENARIO(strided_first) {
  const at::Tensor here = at::arange(96, at::kFloat).view({8, 12});
  for (int i = 0; i < run.iterations; ++i) {
    const at::Tensor there = at::add(here.to(at::kMPS), static_cast<double>(i));
    run.in_parallel([&](int number) {
      const auto view = [&](const at::Tensor& of) {
        return number % 2 == 0 ? of.unfold(1, 3, 1) : of.t().slice(0, 1, 9, 2);
      };
      run.expect_close("strided view", view(there), view(here) + static_cast<double>(i));
    });
  }
}

// Threads train one batch norm in turn; all read its running mean, which the schema does not mark as written.
SCENARIO(running_mean) {
  const at::Tensor weight = at::ones({8}, kMPS), bias = at::zeros({8}, kMPS);
  const at::Tensor mean = at::zeros({8}, kMPS), variance = at::ones({8}, kMPS);
  run.in_parallel([&](int number) {
    const c10::OptionalStreamGuard on(stream_of(number));
    for (int i = 0; i < run.iterations; ++i) {
      if (number == i % run.threads) {
        const at::Tensor input = at::full({4, 8, 3}, i + 1.0, kMPS);
        at::native_batch_norm(input, weight, bias, mean, variance, /*training=*/true, /*momentum=*/1.0, /*eps=*/1e-5);
      }
      run.meet();
      run.expect_close("running mean", at::add(mean, 1.0), at::full({8}, i + 2.0));
      run.meet();
    }
  });
}

// A thread makes another's tensor larger, which frees its memory inside the operator; the maker gets memory of that
// size again, and a third thread reads what it computes there.
SCENARIO(freed_inside) {
  const size_t count = static_cast<size_t>(run.threads);
  std::vector<at::Tensor> letters(count), answers(count);
  run.in_parallel([&](int number) {
    const c10::OptionalStreamGuard on(stream_of(number));
    const size_t own = static_cast<size_t>(number), next = (own + 1) % count;
    for (int i = 0; i < run.iterations; ++i) {
      letters[own] = at::zeros({64, 64}, kMPS);
      run.meet();
      letters[next].resize_({128, 128});
      run.meet();
      const at::Tensor value = at::full({64, 64}, number + i + 1.0, kMPS);
      answers[own] = at::div(at::mm(value, at::ones({64, 64}, kMPS)), 64.0);
      run.meet();
      run.expect_close("answer", answers[next], at::full({64, 64}, static_cast<double>(next) + i + 1.0));
      run.meet();
    }
  });
}

}  // namespace
}  // namespace mpsforge::hostmps
