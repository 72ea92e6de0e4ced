// Scenarios of blocks on the queues of streams: operators in them, and waits in and beside them.
#import <Metal/Metal.h>
#include <dispatch/dispatch.h>

#include <thread>

#include "scenarios.h"
#if __has_include(<ATen/mps/MPSInterop.h>)
#include <ATen/mps/MPSStream.h>
#define MPSFORGE_HAS_INTEROP 1
#endif

namespace mpsforge::hostmps {
namespace {

// Operators in a block on the queue of their stream, as extensions call them, and the wait for a value there. Each way
// onto the queue is one of them: kernels over iterators, kernels of their own, graphs, fills, copies.
SCENARIO(operators_in_blocks) {
  using Operator = at::Tensor (*)(const at::Tensor&);
  static const std::vector<std::pair<const char*, Operator>> operators = {
      {"add", [](const at::Tensor& x) { return x + x; }},
      {"exp", [](const at::Tensor& x) { return x.exp(); }},
      {"sqrt of a view", [](const at::Tensor& x) { return x.t().sqrt(); }},
      {"bitwise_and", [](const at::Tensor& x) { return (x * 10).to(at::kInt).bitwise_and(3); }},
      {"lgamma", [](const at::Tensor& x) { return x.lgamma(); }},
      {"digamma", [](const at::Tensor& x) { return x.digamma(); }},
      {"polygamma", [](const at::Tensor& x) { return x.polygamma(1); }},
      {"renorm", [](const at::Tensor& x) { return x.renorm(2, 0, 1.0); }},
      {"repeat_interleave", [](const at::Tensor& x) { return x.repeat_interleave(2, 0); }},
      {"nonzero", [](const at::Tensor& x) { return (x > 1.0).nonzero(); }},
      {"index", [](const at::Tensor& x) { return x.index({(x > 1.0)}); }},
      {"index_select",
       [](const at::Tensor& x) { return x.index_select(0, at::tensor({2, 0, 1}, at::kLong).to(x.device())); }},
      {"mm", [](const at::Tensor& x) { return x.mm(x.t()); }},
      {"linear", [](const at::Tensor& x) { return at::linear(x, x, x.select(1, 0)); }},
      {"layer_norm", [](const at::Tensor& x) { return at::layer_norm(x, {8}); }},
      {"softmax", [](const at::Tensor& x) { return x.softmax(1); }},
      {"cumsum", [](const at::Tensor& x) { return x.cumsum(0); }},
      {"full", [](const at::Tensor& x) { return at::full_like(x, 3.0); }},
      {"clone of a view", [](const at::Tensor& x) { return x.t().clone(at::MemoryFormat::Contiguous); }},
      {"copy from the CPU", [](const at::Tensor& x) { return x.cpu().mul(2.0).to(x.device()); }},
      {"item", [](const at::Tensor& x) { return at::full({1}, x.sum().item<float>()); }},
  };
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    for (int i = 0; i < run.iterations; ++i) {
      for (const auto& one : operators) {
        const at::Tensor input = at::rand({6, 8}, generator) + 0.5;
        const at::Tensor x = input.to(at::kMPS);
        at::Tensor found;
        std::exception_ptr error;
        const auto compute = [&] {
          try {
            found = one.second(x).cpu();
          } catch (...) {
            error = std::current_exception();
          }
        };
        const auto* computing = &compute;
        const dispatch_block_t block = ^{
          (*computing)();
        };
        const auto check = [&] {
          if (error) std::rethrow_exception(error);
          run.expect_close(one.first, found, one.second(input));
        };
        dispatch_sync(dispatch_queue(), block);
        check();
#ifdef MPSFORGE_HAS_INTEROP
        at::mps::runOnStreamQueue(at::mps::getCurrentMPSStream(), block);
        check();
#endif
      }
    }
  });
}

// torch.mps.synchronize() from a block on a stream's queue: it waits for the work of the others that was committed, and
// not for their queues. Threads that do it at once, each on its own queue, would wait for each other.
SCENARIO(synchronize_in_blocks) {
  run.in_parallel([&](int number) {
    const c10::StreamGuard own(new_stream());
    // Threads with one queue cannot meet on it: on stock, whose new streams are the default one, or of many threads.
    const bool apart = own.current_stream() != own.original_stream() && run.threads <= 8;
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor input = at::full({16}, number + i + 1.0);
      const at::Tensor begun = at::exp(input.to(at::kMPS));
      const auto queue = dispatch_queue();
      // An operator may need another stream's queue. Nobody holds one until all are done with theirs.
      if (apart) run.meet();
      dispatch_sync(queue, ^() {
        if (apart) run.meet();
        hooks().deviceSynchronize();
      });
      run.expect_close("exp", begun, at::exp(input));
    }
  });
}

// One thread waits for the device, whose work waits for an event; the others encode on the same stream meanwhile, and
// the last of them gives the event. If the wait held the stream's queue, they would wait for each other.
SCENARIO(encode_beside_wait) {
  const id<MTLSharedEvent> event = [MTLCreateSystemDefaultDevice() newSharedEvent];
  event.signaledValue = 0;  // says that the CPU sets it, which the model of early waits must know
  for (int i = 0; i < run.iterations; ++i) {
    const uint64_t given = static_cast<uint64_t>(i) + 1;
    std::atomic<int> left{run.threads - 1};
    run.in_parallel([&](int number) {
      const c10::StreamGuard on_default(guard().getDefaultStream(at::Device(at::kMPS, 0)));
      if (number == 0) {
        hooks().commitStream();  // no encoder is open then
        const auto queue = dispatch_queue();
        dispatch_sync(queue, ^() {
          [static_cast<id<MTLCommandBuffer>>(hooks().getCommandBuffer()) encodeWaitForEvent:event value:given];
        });
        run.meet();
        std::atomic<bool> returned{false};
        std::thread patience([&] {
          for (int waited = 0; waited < 5000 && left > 0 && !returned; ++waited) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
          run.expect(left <= 0, "threads could not encode while another waited for the device");
          event.signaledValue = given;
        });
        hooks().deviceSynchronize();
        returned = true;
        patience.join();
        return;
      }
      run.meet();
      std::this_thread::sleep_for(
          std::chrono::milliseconds(5));  // the first thread waits by then; a hope, and no order
      const at::Tensor sum = at::add(at::full({64}, number, kMPS), 1.0);
      --left;
      run.expect_close("sum", sum, at::full({64}, number + 1.0));
    });
  }
}

}  // namespace
}  // namespace mpsforge::hostmps
