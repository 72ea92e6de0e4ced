// Scenarios of what extensions do: work that they encode themselves, with and without guards of their own.
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/mps/MPSStream.h>
#include <ATen/native/mps/OperationUtils.h>
#import <Metal/Metal.h>
#include <dispatch/dispatch.h>

#include <memory>
#include <thread>

#include "scenarios.h"
#if __has_include(<ATen/mps/MPSOpGuard.h>)
#include <ATen/mps/MPSOpGuard.h>
#define MPSFORGE_HAS_GUARDS 1
#endif
#if __has_include(<ATen/mps/MPSInterop.h>)
#include <ATen/mps/MPSInterop.h>
#define MPSFORGE_HAS_INTEROP 1
#endif

// native/objc/system/mutex_order.cc
extern "C" uint64_t mpsforge_mutex_locks();

namespace mpsforge::hostmps {
namespace {

void encode_copy(id<MTLCommandBuffer> buffer, const at::Tensor& to, const at::Tensor& from) {
  const id<MTLBlitCommandEncoder> blit = [buffer blitCommandEncoder];
  [blit copyFromBuffer:static_cast<id<MTLBuffer>>(from.storage().mutable_data())
           sourceOffset:0
               toBuffer:static_cast<id<MTLBuffer>>(to.storage().mutable_data())
      destinationOffset:0
                   size:from.nbytes()];
  [blit endEncoding];
}

// Copies memory on the queue of the thread's stream, where no encoder is open, and names no tensor to anybody.
void copy_on(dispatch_queue_t queue, const at::Tensor& to, const at::Tensor& from) {
  dispatch_sync(queue, ^() {
    encode_copy(static_cast<id<MTLCommandBuffer>>(hooks().getCommandBuffer()), to, from);
  });
}

void copy_by_hand(const at::Tensor& to, const at::Tensor& from) {
  hooks().commitStream();  // no encoder is open then
  copy_on(dispatch_queue(), to, from);
}

// Each thread writes a tensor, copies its neighbour's in a way that is no operator, and reads the copy of its own.
void copies_between_threads(Run& run, const std::function<void(const at::Tensor& to, const at::Tensor& from)>& copy) {
  const size_t count = static_cast<size_t>(run.threads);
  std::vector<at::Tensor> from(count), to(count);
  for (at::Tensor& tensor : to) tensor = at::zeros({64, 64}, kMPS);
  run.in_parallel([&](int number) {
    const c10::OptionalStreamGuard on(stream_of(number));
    const size_t own = static_cast<size_t>(number), next = (own + 1) % count;
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor value = at::full({64, 64}, number + i + 1.0, kMPS);
      from[own] = at::div(at::mm(value, at::ones({64, 64}, kMPS)), 64.0);
      run.meet();
      copy(to[next], from[next]);
      run.meet();
      run.expect_close("copy", at::add(to[own], 1.0), at::full({64, 64}, number + i + 2.0));
      run.meet();
    }
  });
}

// No guard covers the copies.
SCENARIO(raw_work) { copies_between_threads(run, copy_by_hand); }

// A tensor is freed while a copy that no guard covers reads it. A guard that began before gets memory of that size.
#ifdef MPSFORGE_HAS_GUARDS
SCENARIO(freed_after_raw_work) {
  at::Tensor from, to;
  run.in_parallel([&](int number) {
    const at::Tensor own = at::zeros({8}, kMPS);
    for (int i = 0; i < run.iterations; ++i) {
      const int64_t size = 40000 + 8192 * i;  // nothing else that is free is as large
      if (number == 0) {
        to = at::zeros({size}, kMPS);
        from = at::full({size}, 1.0, kMPS);
      }
      run.meet();
      if (number == 0) {
        const at::mps::MPSOpGuard guard({{own}});
        run.meet();
        run.meet();
        const at::Tensor next = at::empty({size}, kMPS);
        at::mps::getCurrentMPSStream()->fill(static_cast<id<MTLBuffer>>(next.storage().mutable_data()), 0xFF,
                                             next.nbytes(), 0);
      } else {
        run.meet();
        if (number == 1) {
          copy_by_hand(to, from);
          from = at::Tensor();
        }
        run.meet();
      }
      run.meet();
      if (number == 1) run.expect_close("a copy of what was freed", to, at::ones({size}));
      run.expect_close("its own tensor", own, at::zeros({8}));
      run.meet();
    }
  });
}
#else
SCENARIO(freed_after_raw_work) { run.expect(false, "these sources have no guards"); }
#endif

// The queue was asked for before an operator of the same extension.
SCENARIO(late_encoders) {
  copies_between_threads(run, [](const at::Tensor& to, const at::Tensor& from) {
    const auto queue = dispatch_queue();
    at::neg(from);
    hooks().commitStream();
    copy_on(queue, to, from);
  });
}

// The same by PyTorch's own function for a block, after work that was committed since.
SCENARIO(late_blocks) {
  copies_between_threads(run, [](const at::Tensor& to, const at::Tensor& from) {
    at::mps::MPSStream* const stream = at::mps::getCurrentMPSStream();
    at::neg(from);
    hooks().commitStream();
    at::native::mps::dispatch_sync_with_rethrow(stream->queue(), ^{
      stream->endKernelCoalescing();
      encode_copy(stream->commandBuffer(), to, from);
    });
  });
}

// A kernel of PyTorch's has left its encoder open when an extension asks for the command buffer.
SCENARIO(hook_after_kernel) {
  run.in_parallel([&](int number) {
    const at::Tensor own = at::full({64, 64}, number, kMPS), to = at::zeros({64, 64}, kMPS);
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor value = at::add(own, i + 1.0);
      copy_on(dispatch_queue(), to, value);
      run.expect_close("copy", to, at::full({64, 64}, number + i + 1.0));
    }
  });
}

// On the default stream, whatever stream the thread has.
SCENARIO(default_stream_work) {
  copies_between_threads(run, [](const at::Tensor& to, const at::Tensor& from) {
    at::mps::MPSStream* const stream = at::mps::getDefaultMPSStream();
    dispatch_sync(stream->queue(), ^() {
      stream->endKernelCoalescing();
      encode_copy(stream->commandBuffer(), to, from);
    });
  });
}

// Every other thread has taken its stream's command buffer when the others compute, and wait for all streams or for
// that one; then it encodes. Nobody commits that.
SCENARIO(taken_buffers) {
  const size_t count = (static_cast<size_t>(run.threads) + 1) / 2;
  std::vector<at::Tensor> from(count), to(count);
  std::vector<c10::Stream> streams(count, stream_of_thread());
  for (size_t i = 0; i < count; ++i) {
    from[i] = at::empty({64, 64}, kMPS);
    to[i] = at::zeros({64, 64}, kMPS);
  }
  run.in_parallel([&](int number) {
    const size_t pair = static_cast<size_t>(number) / 2;
    const bool takes = number % 2 == 1 || number == run.threads - 1;
    const at::Tensor own = at::ones({64, 64}, kMPS);
    for (int i = 0; i < run.iterations; ++i) {
      id<MTLCommandBuffer> buffer = nil;
      dispatch_queue_t queue = nullptr;
      if (takes) {
        from[pair].fill_(static_cast<double>(pair) + i);
        buffer = static_cast<id<MTLCommandBuffer>>(hooks().getCommandBuffer());
        queue = dispatch_queue();
        streams[pair] = stream_of_thread();
      }
      run.meet();
      if (!takes) at::add(own, 1.0);
      if (!takes && i % 2 == 1) hooks().deviceSynchronize();
#ifdef MPSFORGE_HAS_INTEROP
      if (!takes && i % 4 == 2) streams[pair].synchronize();
#endif
      run.meet();
      if (takes) {
        dispatch_sync(queue, ^() {
          encode_copy(buffer, to[pair], from[pair]);
        });
#ifdef MPSFORGE_HAS_INTEROP
        // who polls comes to an end, although more may be encoded at any time
        const c10::Stream stream = stream_of_thread();
        if (i % 4 == 3) run.expect(stream.query() || stream.query(), "a poll does not come to an end");
#endif
      }
      run.meet();
      if (number % 2 == 0) {
        run.expect_close("copy", at::add(to[pair], 1.0), at::full({64, 64}, static_cast<double>(pair) + i + 1.0));
      }
      run.meet();
    }
  });
}

#ifdef MPSFORGE_HAS_INTEROP
// A library took the default stream's queue once, and commits command buffers of its own to it, on any thread.
SCENARIO(external_work) {
  const id<MTLCommandQueue> queue = at::mps::MPSExternalWork().queue();
  copies_between_threads(run, [queue](const at::Tensor& to, const at::Tensor& from) {
    const c10::StreamGuard on_default(at::mps::getDefaultMPSStream()->unwrap());
    const at::mps::MPSExternalWork work(queue);
    const id<MTLCommandBuffer> buffer = [queue commandBuffer];
    encode_copy(buffer, to, from);
    [buffer commit];
  });
}

// The stream was asked for before an operator of the same extension, and the command buffer after it.
SCENARIO(late_interop) {
  copies_between_threads(run, [](const at::Tensor& to, const at::Tensor& from) {
    at::mps::MPSStream* const stream = at::mps::getCurrentMPSStream();
    at::neg(from);
    hooks().commitStream();
    at::mps::runOnStreamQueue(stream, ^{
      encode_copy(at::mps::getMPSCommandBuffer(), to, from);
    });
  });
}

// What MPSInterop.h says that raises does, on each thread, and leaves the thread usable.
SCENARIO(interop_rules) {
  using namespace at::mps;
  run.in_parallel([&](int number) {
    const at::Tensor own = at::full({64}, number, kMPS);
    const auto begin = [] { MPSExternalWork(); };
    run.expect_error("a command buffer off the queue", "outside of a block", [] { getMPSCommandBuffer(); });
    run.expect_error("an encoder off the queue", "outside of a block", [] { getMPSCommandEncoder(); });
    run.expect_error("an end without a begin", "There is no external", [] { endMPSExternalWork(); });
    run.expect_error("external work in a block", "cannot begin", [&] {
      runOnStreamQueue(getCurrentMPSStream(), ^{
        begin();
      });
    });
    run.expect_error("external work inside of a guard", "cannot begin", [&] {
      const MPSOpGuard guard({{own}});
      begin();
    });
    const id<MTLCommandQueue> queue = getDefaultMPSStream()->commandQueue();
    run.expect_error("the queue of another stream", "not the command queue", [&] {
      const c10::StreamGuard on_another(getStreamFromPool()->unwrap());
      MPSExternalWork work(queue);
    });
    {
      const MPSExternalWork work;
      run.expect_error("external work inside of external work", "inside of external", begin);
      run.expect_error("an operator inside of external work", "inside of external", [&] { at::add(own, 1.0); });
      run.expect_error("a fence of another stream inside of external work", "inside of external", [] {
        const c10::StreamGuard on_another(getStreamFromPool()->unwrap());
        getCurrentMPSStream();
      });
    }
    run.expect_close("sum", at::add(own, 1.0), at::full({64}, number + 1.0));
  });
}

// The end of external work on a thread that has begun none, by a destructor: the thread's next operator raises that.
// The work goes on where it was begun, until it is ended there.
SCENARIO(errors_kept) {
  run.in_parallel([&](int number) {
    const at::Tensor own = at::full({64}, number, kMPS);
    for (int i = 0; i < run.iterations; ++i) {
      auto work = std::make_unique<at::mps::MPSExternalWork>();
      const auto begun = at::mps::getMPSExternalWork();
      std::thread other([&] {
        work.reset();
        run.expect_error("the next operator", "There is no external", [&] { at::add(own, 1.0); });
        run.expect_close("the one after it", at::add(own, 1.0), at::full({64}, number + 1.0));
      });
      other.join();
      run.expect_error("an operator inside of external work", "inside of external", [&] { at::add(own, 1.0); });
      at::mps::endMPSExternalWork();
      at::mps::endMPSExternalWork(begun);  // it has ended
      run.expect_close("after all", at::add(own, 1.0), at::full({64}, number + 1.0));
    }
  });
}
#else
SCENARIO(external_work) { run.expect(false, "these sources have no ATen/mps/MPSInterop.h"); }
SCENARIO(late_interop) { external_work(run); }
SCENARIO(interop_rules) { external_work(run); }
SCENARIO(errors_kept) { external_work(run); }
#endif

#ifdef MPSFORGE_HAS_GUARDS
using at::mps::MPSOpGuard;

struct SparseTensor {
  at::Tensor whole;
  std::vector<at::Tensor> parts;
};

SparseTensor coordinates() {
  const at::Tensor indices = at::zeros({1, 64}, kMPS.dtype(at::kLong)), values = at::zeros({64}, kMPS);
  auto whole = c10::make_intrusive<at::SparseTensorImpl>(c10::DispatchKeySet(c10::DispatchKey::SparseMPS),
                                                         caffe2::TypeMeta::Make<float>());
  whole->raw_resize_(/*sparse_dim=*/1, /*dense_dim=*/0, {64});
  whole->set_indices_and_values_unsafe(indices, values);
  return {at::Tensor(std::move(whole)), {indices, values}};
}

// PyTorch 2.6.0 makes compressed tensors on other devices only, so it begins as one of the CPU.
struct CompressedOnMPS : at::SparseCsrTensorImpl {
  CompressedOnMPS()
      : SparseCsrTensorImpl(c10::DispatchKeySet(c10::DispatchKey::SparseCsrCPU), at::kCPU, at::kSparseCsr,
                            caffe2::TypeMeta::Make<float>()) {
    key_set_ = c10::DispatchKeySet(c10::DispatchKey::SparseCsrMPS);
    device_opt_ = at::Device(at::kMPS, 0);
  }
};

SparseTensor compressed() {
  const at::Tensor rows = at::zeros({65}, kMPS.dtype(at::kInt)), columns = at::zeros({64}, kMPS.dtype(at::kInt));
  const at::Tensor values = at::zeros({64}, kMPS);
  auto whole = c10::make_intrusive<CompressedOnMPS>();
  whole->set_member_tensors(rows, columns, values, at::IntArrayRef{64, 64});
  return {at::Tensor(std::move(whole)), {rows, columns, values}};
}

// Each thread writes a part of its sparse tensor, and then copies that of its neighbour's under a guard that names the
// whole. One part at a time: what is ordered for one part would be for another that the same stream wrote before.
SCENARIO(sparse_parts) {
  const size_t count = static_cast<size_t>(run.threads);
  for (SparseTensor (*make)() : {&coordinates, &compressed}) {
    std::vector<SparseTensor> tensors(count);
    run.in_parallel([&](int number) {
      const size_t own = static_cast<size_t>(number), next = (own + 1) % count;
      tensors[own] = make();
      for (int i = 0; i < run.iterations; ++i) {
        const size_t index = static_cast<size_t>(i) % tensors[own].parts.size();
        tensors[own].parts[index].fill_(number + i + 1);
        run.meet();
        const at::Tensor& part = tensors[next].parts[index];
        const at::Tensor copy = at::zeros_like(part);
        {
          const MPSOpGuard guard({{tensors[next].whole}, {copy, /*writes=*/true}});
          copy_by_hand(copy, part);
        }
        run.expect_close("part of a sparse tensor", copy,
                         at::full(copy.sizes(), static_cast<int64_t>(next) + i + 1, copy.dtype()));
        run.meet();
      }
    });
  }
}

// The tensor whose lock a guard takes first, and then the other: locks are taken in the order of addresses.
std::pair<at::Tensor, at::Tensor> in_order_of_locks() {
  const at::Tensor one = at::zeros({64, 64}, kMPS), other = at::zeros({64, 64}, kMPS);
  return one.storage().data() < other.storage().data() ? std::pair(one, other) : std::pair(other, one);
}

// A guard that writes two tensors is inside one that reads the second of them, so that it gets the first one's lock
// without waiting, fails to get the second's, and begins again. The other threads have just read the first tensor.
SCENARIO(nested_try) {
  const auto pair = in_order_of_locks();
  const at::Tensor &first = pair.first, &second = pair.second;
  run.in_parallel([&](int number) {
    for (int i = 0; i < run.iterations; ++i) {
      at::Tensor seen;
      if (number > 0 || run.threads == 1) seen = at::add(first, 1.0);
      run.meet();
      if (number == 0) {
        const MPSOpGuard outer({{second}});
        const MPSOpGuard nested({{first, /*writes=*/true}, {second, /*writes=*/true}});
        first.add_(1.0);
        second.add_(first);
      }
      run.meet();
      if (seen.defined()) run.expect_close("what was read before", seen, at::full({64, 64}, i + 1.0));
    }
  });
  run.expect_close("first", first, at::full({64, 64}, static_cast<double>(run.iterations)));
  run.expect_close("second", second, at::full({64, 64}, run.iterations * (run.iterations + 1) / 2.0));
}

// A guard that covers one of a nested guard's tensors and reads the other, which the nested one writes: so it is
// suspended, and the nested one must lock both. Odd threads write another number to the covered tensor meanwhile.
SCENARIO(nested_covered) {
  const at::Tensor covered = at::ones({64, 64}, kMPS), other = at::ones({64, 64}, kMPS);
  const auto check = [&] {
    run.expect(at::min(other).item<float>() > 0, "a number came between a guard's two copies");
  };
  run.in_parallel([&](int number) {
    const at::Tensor own = at::full({64, 64}, number + 1.0, kMPS);
    for (int i = 0; i < run.iterations; ++i) {
      if (number % 2 == 1) {
        covered.fill_(-1.0);
        check();
        continue;
      }
      const MPSOpGuard outer({{covered, /*writes=*/true}, {other}});
      const MPSOpGuard nested({{own}, {covered, /*writes=*/true}, {other, /*writes=*/true}});
      copy_by_hand(covered, own);
      std::this_thread::sleep_for(std::chrono::microseconds(200));  // others come to their turn, if nothing stops them
      copy_by_hand(other, covered);
    }
  });
  check();
}

// A guard of more buffers than a thread has places for those that it locks without a mutex (MPSThreadUses::kHeld).
// Their next writers wait for the guard's end, and the guard copies them by then.
void many_buffers_once(Run& run) {
  constexpr size_t kBuffers = 100;
  std::vector<at::Tensor> all, copies;
  run.in_parallel([&](int number) {
    for (size_t i = 0; number == 0 && i < kBuffers; ++i) all.push_back(at::ones({64}, kMPS));
    for (size_t i = 0; number == 0 && i < kBuffers; ++i) copies.push_back(at::zeros({64}, kMPS));
    run.meet();
    if (number == 0) {
      const at::ArrayRef<at::Tensor> reads(all), writes(copies);
      const MPSOpGuard guard({{reads}, {writes, /*writes=*/true}});
      run.meet();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the writers begin, if nothing stops them
      for (size_t i = 0; i < kBuffers; ++i) copy_by_hand(copies[i], all[i]);
      return;
    }
    run.meet();
    const size_t writers = static_cast<size_t>(run.threads) - 1, own = static_cast<size_t>(number) - 1;
    for (size_t i = kBuffers; i-- > 0;) {  // those without a place first
      if (i % writers == own) all[i].add_(1.0);
    }
  });
  run.expect_close("copies of before the addition", at::stack(copies), at::ones({kBuffers, 64}));
  run.expect_close("sums", at::stack(all), at::full({kBuffers, 64}, run.threads > 1 ? 2.0 : 1.0));
}

SCENARIO(many_buffers) {
  for (int i = 0; i < run.iterations; ++i) many_buffers_once(run);
}

// Once all threads have done the work before, each locks at most so many mutexes for it.
void expect_locks(Run& run, const char* what, uint64_t most, const std::function<void()>& work) {
  for (int i = 0; i < 3; ++i) work();
  run.meet();  // others may have made this thread's stream commit, and its next use is a new one then
  work();
  const uint64_t before = mpsforge_mutex_locks();
  work();
  const uint64_t locks = mpsforge_mutex_locks() - before;
  run.expect(locks <= most, std::string(what) + ": " + std::to_string(locks) + " locks");
}

// Two threads use one stream. A guard of the second one reads, without a mutex, what the first one has allocated, until
// a guard inside of it writes that, for which it is suspended; when both have ended, the first thread can write it.
void nested_write(Run& run) {
  const c10::Stream stream = new_stream();
  const c10::StreamGuard on(stream);
  const at::Tensor sum = at::zeros({8}, kMPS);
  std::thread second([&] {
    const c10::StreamGuard on_it(stream);
    for (int i = 0; i < 3; ++i) {
      const MPSOpGuard outer({{sum}});
      if (i > 0) const MPSOpGuard inner({{sum, true}});
    }
  });
  second.join();
  sum.add_(1.0);
  run.expect_close("a sum after nested guards", sum, at::ones({8}));
}

// A buffer that one thread uses, or that all read, is locked without a mutex; an operator takes the allocator's for its
// result, once to allocate and once to free it (one whose kernel is of the bundled library, in 2.6.0 too).
SCENARIO(unshared_locks) {
  const uint64_t before = mpsforge_mutex_locks();
  const at::Tensor weight = at::ones({8}, kMPS);
  run.expect(mpsforge_mutex_locks() > before, "no lock is counted");
  run.in_parallel([&](int number) {
    const at::Tensor own = at::full({8}, number + 1.0, kMPS);
    const auto work = [&](const at::Tensor& other) { const MPSOpGuard guard({{own}, {other}, {own, true}}); };
    for (int i = 0; i < run.iterations; ++i) {
      expect_locks(run, "a guard of a thread's own buffer", 0, [&] { work(own); });
      expect_locks(run, "a guard of a buffer that all read", 0, [&] { work(weight); });
      expect_locks(run, "an operator of a thread's own buffer", 2, [&] { at::i0(own); });
      run.meet();
      if (number == 0) weight.add_(1.0);
      run.meet();
      run.expect_close("weight", at::mul(weight, own), at::full({8}, (i + 2.0) * (number + 1.0)));
      run.meet();
      if (number == 0) nested_write(run);
    }
  });
}
#else
SCENARIO(sparse_parts) { run.expect(false, "these sources have no guards"); }
SCENARIO(nested_try) { run.expect(false, "these sources have no guards"); }
SCENARIO(nested_covered) { run.expect(false, "these sources have no guards"); }
SCENARIO(many_buffers) { run.expect(false, "these sources have no guards"); }
SCENARIO(unshared_locks) { run.expect(false, "these sources have no guards"); }
#endif

}  // namespace
}  // namespace mpsforge::hostmps
