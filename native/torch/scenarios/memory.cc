// Scenarios of what becomes of memory, and of what is noted about it: when it is allocated in a block on a queue, at
// the end of threads and in a forked child.
#include <ATen/mps/MPSAllocatorInterface.h>
#import <Metal/Metal.h>
#include <dispatch/dispatch.h>
#include <unistd.h>

#include <thread>

#include "scenarios.h"
#if __has_include(<ATen/mps/MPSBufferRecord.h>)
#include <ATen/mps/MPSBufferRecord.h>
#include <ATen/mps/MPSStreamPool.h>
#define MPSFORGE_HAS_RECORDS 1
#endif

namespace mpsforge::hostmps {
namespace {

// Holds the allocator's mutex when an allocation has failed, once, until it may go on.
struct HoldsMutex : at::mps::IMpsAllocatorCallback {
  static inline std::atomic<bool> armed{false}, inside{false}, may_go{false};

  void executeMPSAllocatorCallback(void*, EventType) override {
    if (!armed.exchange(false)) return;
    inside = true;
    while (!may_go) std::this_thread::yield();
  }
};

}  // namespace
}  // namespace mpsforge::hostmps

namespace at::mps {
REGISTER_MPS_ALLOCATOR_CALLBACK("mpsforge_holds_mutex", mpsforge::hostmps::HoldsMutex)
}

namespace mpsforge::hostmps {
namespace {

// The GPU is not done with the tensors that one thread has freed, more than it keeps without use, when another
// allocates as large ones in a block on its stream's queue, where it can order nothing.
SCENARIO(memory_in_blocks) {
  constexpr int kTensors = 6;
  const id<MTLSharedEvent> event = [MTLCreateSystemDefaultDevice() newSharedEvent];
  event.signaledValue = 0;  // says that the CPU sets it, which the model of early waits must know
  run.in_parallel([&](int number) {
    dispatch_queue_t queue = nullptr;
    if (number == 1) {
      at::ones({8}, kMPS);
      queue = dispatch_queue();  // comes after what others do before this
    }
    run.meet();
    if (number == 0) {
      hooks().commitStream();  // no encoder is open then
      dispatch_sync(dispatch_queue(), ^() {
        [static_cast<id<MTLCommandBuffer>>(hooks().getCommandBuffer()) encodeWaitForEvent:event value:1];
      });
      std::vector<at::Tensor> held;
      for (int i = 0; i < kTensors; ++i) held.push_back(at::full({2 << 20}, 1.0, kMPS));
    }
    run.meet();
    std::vector<at::Tensor> own;
    auto* const made = &own;
    if (number == 1) {
      dispatch_sync(queue, ^() {
        for (int i = 0; i < kTensors; ++i) made->push_back(at::full({2 << 20}, 2.0, kMPS));
      });
      stream_of_thread().synchronize();  // a guard would come after the wait, which no guard covers
    }
    run.meet();
    if (number == 0) {
      event.signaledValue = 1;
      run.expect_close("after the event", at::full({8}, 1.0, kMPS), at::ones({8}));
    }
    run.meet();
    for (const at::Tensor& one : own) run.expect_close("a tensor made in a block", one, at::full({2 << 20}, 2.0));
  });
}

// Adds to a tensor when its thread ends.
struct AddsAtTheEnd {
  ~AddsAtTheEnd() {
    if (to.defined()) to.add_(1.0);
  }
  at::Tensor to;
};
thread_local AddsAtTheEnd adds_at_the_end;

// An operator in the destructor of what the thread had before its stream, which is gone by then.
SCENARIO(work_at_thread_ends) {
  // threads have streams of their own once there is another
  new_stream();
  const at::Tensor sum = at::zeros({8}, kMPS);
  run.in_parallel([&](int number) {
    for (int i = 0; i < run.iterations; ++i) {
      std::thread one([&] {
        adds_at_the_end.to = sum;
        run.expect_close("a sum of its own", at::full({8}, number, kMPS), at::full({8}, number, at::kFloat));
      });
      one.join();
    }
  });
  run.expect(mpsforge_hostmps_stream_statistic("live") <= 0, "slots are leased and no thread lives");
  run.expect_close("sum", sum, at::full({8}, static_cast<double>(run.threads * run.iterations)));
}

// A forked child frees a tensor, and the parent's allocator was busy: nobody is left who would unlock its mutex.
SCENARIO(fork_beside_allocation) {
  at::Tensor value = at::ones({8}, kMPS);
  run.expect_close("value", value, at::ones({8}));
  const auto& allocator = *at::mps::getIMPSAllocator();
  allocator.setHighWatermarkRatio(1e-12);
  HoldsMutex::inside = HoldsMutex::may_go = false;
  HoldsMutex::armed = true;
  std::thread other([] {
    try {
      at::empty({1 << 20}, kMPS);
    } catch (const c10::Error&) {
    }
  });
  while (!HoldsMutex::inside) std::this_thread::yield();
  const pid_t child = ::fork();
  if (child == 0) {
    value = at::Tensor();
    _exit(0);
  }
  const bool ended = ends_well(child, std::chrono::seconds(5));
  HoldsMutex::may_go = true;
  other.join();
  allocator.setHighWatermarkRatio(1.7);
  run.expect(ended, "a forked child that frees a tensor hangs");
  run.expect_close("after all", at::add(value, 1.0), at::full({8}, 2.0));
}

#ifdef MPSFORGE_HAS_RECORDS
// What is noted of a thread's uses is used again by the threads after it.
SCENARIO(notes_of_threads) {
  const auto count = [] {
    int all = 0;
    for (const at::mps::MPSThreadUses* one = at::mps::MPSThreadUses::all; one != nullptr; one = one->next) ++all;
    return all;
  };
  const auto use_threads = [&] {
    run.in_parallel([&](int number) {
      const at::Tensor own = at::full({8}, number, kMPS);
      run.meet();
      run.expect_close("a sum", at::add(own, 1.0), at::full({8}, number + 1.0));
    });
  };
  use_threads();
  const int before = count();
  for (int i = 0; i < run.iterations; ++i) use_threads();
  run.expect(count() == before, "threads leave their notes behind");
}

// Nobody may ever wait for what an ended thread has left, and who polls an event of it must see it run.
SCENARIO(ended_threads_commit) {
  run.in_parallel([&](int number) {
    for (int i = 0; i < run.iterations; ++i) {
      at::Tensor value;
      at::mps::MPSStreamState* stream = nullptr;
      uint64_t position = 0;
      std::thread one([&] {
        value = at::full({8}, number + i, kMPS);
        stream = at::mps::MPSStreamState::find(stream_of_thread().id());
        position = stream->enqueued;
      });
      one.join();
      // a thread without a lease shares the default stream, which goes on
      run.expect(stream->streamId() == 0 || stream->committed >= position,
                 "the work of a thread that has ended is not committed");
      run.expect_close("what it has left", value, at::full({8}, static_cast<double>(number) + i));
    }
  });
}
// Free memory is given out again once an idle stream has done what it was given: so somebody has to commit that. Each
// block is larger than those before, which so are no choice.
SCENARIO(memory_of_an_idle_stream) {
  auto& allocator = *at::mps::getIMPSAllocator(/*sharedAllocator=*/true);
  allocator.emptyCache();  // of a run before this one
  const c10::Stream idle = new_stream();
  auto& stream = at::mps::MPSStreamState::get(idle.id());
  for (int i = 1; i <= run.iterations; ++i) {
    const size_t size = static_cast<size_t>(i) << 16;
    c10::DataPtr memory = allocator.allocate(size);
    {
      const c10::StreamGuard on_idle(idle);
      stream.stream.fill(static_cast<id<MTLBuffer>>(memory.get()), 1, size, 0);
    }
    guard().recordDataPtrOnStream(memory, idle);
    const uint64_t position = stream.enqueued;
    memory.clear();
    allocator.allocate(size);
    run.expect(stream.committed >= position, "nobody commits what free memory is to wait for");
  }
}
#else
SCENARIO(memory_of_an_idle_stream) { run.expect(false, "these sources have no ATen/mps/MPSBufferRecord.h"); }
SCENARIO(ended_threads_commit) { run.expect(false, "these sources have no ATen/mps/MPSBufferRecord.h"); }
SCENARIO(notes_of_threads) { run.expect(false, "these sources have no ATen/mps/MPSBufferRecord.h"); }
#endif

}  // namespace
}  // namespace mpsforge::hostmps
