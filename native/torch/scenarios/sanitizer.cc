// Mistakes that PYTORCH_MPS_SANITIZE must find, planted, and beside each the right way, in which it must find nothing.
#include <c10/core/Event.h>

#include <thread>

#include "scenarios.h"
#if __has_include(<ATen/mps/MPSSanitizer.h>)
#include <ATen/mps/MPSOpGuard.h>
#include <ATen/mps/MPSStream.h>
#include <ATen/native/mps/OperationUtils.h>
#define MPSFORGE_HAS_SANITIZER 1
#endif

namespace mpsforge::hostmps {
namespace {

#ifdef MPSFORGE_HAS_SANITIZER
using at::mps::getCurrentMPSStream;
using at::mps::MPSOpGuard;

// The planted mistakes of one thread are found for certain only while no other one waits for a stream of it, or shares
// one: threads take turns, and no more of them take part than there are streams for.
constexpr int kThreads = 10;
std::mutex& turn() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

c10::Stream explicit_stream() { return at::mps::getStreamFromPool()->unwrap(); }

// What a kernel does with each of its tensors.
void bind(const at::Tensor& tensor) { at::native::mps::getMTLBufferStorage(tensor); }

// What waits until the other thread has written, and lets it end.
void while_another_thread_has_written(const at::Tensor& tensor, const std::function<void()>& call) {
  std::atomic<bool> written{false}, may_end{false};
  std::thread writer([&] {
    tensor.add_(1.0);
    written = true;
    while (!may_end) std::this_thread::yield();  // its end would give the work to the GPU, which might complete it
  });
  while (!written) std::this_thread::yield();
  call();
  may_end = true;
  writer.join();
}

// Kernels of the program's own that bind a tensor of another stream.
void unordered(Run& run, int number) {
  const std::lock_guard<std::mutex> lock(turn());
  const at::Tensor theirs = at::full({64}, number, kMPS);
  const c10::StreamGuard on_another(explicit_stream());
  const at::Tensor own = at::full({64}, number, kMPS);
  for (const char* said : {"planted kernel gives stream", "last written by Scalar_fill_ on stream"}) {
    run.expect_error("a tensor that the guard does not name", said, [&] {
      const MPSOpGuard guard({{own, /*writes=*/true}}, "planted kernel");
      bind(own);
      bind(theirs);
    });
    run.expect_error("neither a guard nor a fence", "code outside of PyTorch's operators", [&] { bind(theirs); });
    own.add_(1.0);
  }
  bind(own);  // no other stream uses it
  {
    const c10::StreamGuard on_third(explicit_stream());
    at::add(own, 1.0);
  }
  run.expect_error("memory that another stream reads", "memory that other streams use", [&] { bind(own); });
  {
    const MPSOpGuard guard({{own, /*writes=*/true}, {theirs}});
    bind(own);
    bind(theirs);
  }
  getCurrentMPSStream();
  bind(theirs);
  while_another_thread_has_written(theirs, [&] {
    run.expect_error("a stream that was asked for before the write", "has written after", [&] { bind(theirs); });
    getCurrentMPSStream();
    bind(theirs);
  });
  run.expect_close("sum", at::add(own, theirs), at::full({64}, 2.0 * number + 3.0));
}

// Memory that nobody has written, new and used before.
void poisoned(Run& run) {
  for (int64_t size : {16, 4096, 1 << 20}) {
    for (int i = 0; i < 3; ++i) {
      run.expect(at::empty({size}, kMPS).cpu().isnan().all().item<bool>(), "memory that nobody has written is no NaN");
      const at::Tensor sum = at::add(at::ones({size}, kMPS), 1.0);
      run.expect(sum.cpu().eq(2.0).all().item<bool>(), "memory that was written is not what was written");
    }
  }
}

SCENARIO(sanitizer) {
  run.in_parallel([&](int number) {
    for (int i = 0; i < run.iterations && number < kThreads; ++i) {
      unordered(run, number);
      poisoned(run);
    }
  });
  // Nothing but the lock of the records orders who looks for other uses of a tensor and who uses it.
  const at::Tensor shared = at::ones({64}, kMPS);
  run.in_parallel([&](int number) {
    for (int i = 0; i < 20 * run.iterations && number < kThreads; ++i) {
      if (number % 2 == 1) {
        at::add(shared, 1.0);
        continue;
      }
      try {
        bind(shared);
      } catch (const c10::Error&) {  // as others use it
      }
    }
  });
}

// Operators on explicit streams that use each other's tensors, with and without a wait of the program's own.
SCENARIO(missing_waits) {
  run.in_parallel([&](int number) {
    if (number >= kThreads) return;
    const c10::Stream first = explicit_stream(), second = explicit_stream(), third = explicit_stream();
    const auto wait = [](const c10::Stream& waiter, const c10::Stream& stream) {
      c10::Event event(at::kMPS);
      event.record(stream);
      event.block(waiter);
    };
    for (int i = 0; i < run.iterations; ++i) {
      const std::lock_guard<std::mutex> lock(turn());
      c10::StreamGuard on(first);
      const at::Tensor tensor = at::full({64}, number, kMPS);
      on.reset_stream(second);
      run.expect_error("a tensor of another stream", "did not make it wait", [&] { at::add(tensor, 1.0); });
      wait(second, first);
      const at::Tensor sum = at::add(tensor, 1.0);
      on.reset_stream(first);
      run.expect_error("a write after another stream's use", "has used, and the program", [&] { tensor.add_(1.0); });
      wait(third, second);
      on.reset_stream(third);
      tensor.add_(1.0);  // after the second stream, and so after the first
      c10::Event event(at::kMPS);
      event.record(third);
      event.synchronize();
      on.reset_stream(first);
      run.expect_close("difference", at::sub(tensor, sum), at::zeros({64}));
    }
  });
}
#else
SCENARIO(sanitizer) { run.expect(false, "these sources have no ATen/mps/MPSSanitizer.h"); }
SCENARIO(missing_waits) { sanitizer(run); }
#endif

}  // namespace
}  // namespace mpsforge::hostmps
