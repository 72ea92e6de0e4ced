// What PyTorch's headers of MPS offer to programs in C++ and PyTorch itself does not call.
#include <ATen/mps/MPSAllocatorInterface.h>
#include <ATen/mps/MPSEvent.h>
#include <ATen/mps/MPSProfiler.h>
#include <ATen/mps/MPSStream.h>
#include <ATen/native/mps/OperationUtils.h>
#import <Metal/Metal.h>
#include <dispatch/dispatch.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "scenarios.h"

extern "C" void* objc_autoreleasePoolPush(void);
extern "C" void objc_autoreleasePoolPop(void*);

namespace mpsforge::hostmps {
namespace {

using at::mps::getCurrentMPSStream;
using at::mps::MPSStream;
using at::mps::SyncType;

// What the GPU has written to memory that the CPU shares is there once the memory's event was waited for. A program may
// set the allocator's limits meanwhile.
SCENARIO(shared_memory) {
  constexpr size_t kSize = 256;
  at::globalContext().hasMPS();
  auto& allocator = *at::mps::getIMPSAllocator(/*sharedAllocator=*/true);
  {  // no memory is nobody's, also after so many buffers were freed that each place of a table had one
    std::vector<c10::DataPtr> freed;
    for (int i = 0; i < 1 << 15; ++i) freed.push_back(allocator.allocate(16));
  }
  allocator.emptyCache();
  run.expect(!allocator.isSharedBuffer(nullptr), "no memory is a buffer");
  // Without a limit Metal is asked for nothing: its locks would order the threads, and hide from ThreadSanitizer a race
  // here.
  run.in_parallel([&](int) { allocator.setLowWatermarkRatio(0.0); });
  run.in_parallel([&](int) { allocator.setHighWatermarkRatio(0.0); });
  run.in_parallel([&](int number) {
    for (int i = 0; i < run.iterations; ++i) {
      allocator.setHighWatermarkRatio(1.7);
      allocator.setLowWatermarkRatio(1.4);
      const c10::DataPtr memory = allocator.allocate(kSize);
      const void* const buffer = memory.get();
      run.expect(allocator.isSharedBuffer(buffer), "memory of the shared allocator is not shared");
      const auto value = static_cast<uint8_t>(number * run.iterations + i + 1);
      const auto* bytes = static_cast<const uint8_t*>(allocator.getSharedBufferPtr(buffer).first);
      const auto reads_back = [&](uint8_t written) {  // on the current stream
        MPSStream* const stream = getCurrentMPSStream();
        stream->fill(static_cast<id<MTLBuffer>>(const_cast<void*>(buffer)), written, kSize, 0);
        run.expect(allocator.recordEvents(buffer), "no event was recorded");
        stream->synchronize(SyncType::COMMIT);
        allocator.waitForEvents(buffer);
        return std::all_of(bytes, bytes + kSize, [&](uint8_t byte) { return byte == written; });
      };
      run.expect(reads_back(value), "the CPU reads other bytes than the GPU has written");
      const c10::StreamGuard on_another(new_stream());
      run.expect(reads_back(value + 1), "the event was recorded on a stream that used the memory before");
    }
  });
  // Threads record the first events of new buffers: nothing but the allocator's lock orders them.
  allocator.emptyCache();  // what it has kept has an event
  std::vector<c10::DataPtr> shared(20 * static_cast<size_t>(run.iterations));
  for (c10::DataPtr& memory : shared) memory = allocator.allocate(kSize);
  run.in_parallel([&](int) {
    run.meet();
    for (const c10::DataPtr& memory : shared) {
      const void* const buffer = memory.get();
      allocator.recordEvents(buffer);
    }
  });
  hooks().deviceSynchronize();
}

// Who waits in a block on a stream's queue, where nothing was encoded since the last commit, waits for that one's work.
// While signposts are traced, a stream keeps a command buffer for this that it has committed.
SCENARIO(waits_in_blocks) {
  constexpr size_t kSize = 1 << 16;
  at::globalContext().hasMPS();
  auto& allocator = *at::mps::getIMPSAllocator(/*sharedAllocator=*/true);
  run.in_parallel([&](int number) {
    for (int i = 0; i < run.iterations; ++i) {
      const c10::DataPtr memory = allocator.allocate(kSize);
      void* const buffer = memory.get();
      const auto* bytes = static_cast<const uint8_t*>(allocator.getSharedBufferPtr(buffer).first);
      const auto value = static_cast<uint8_t>(number * run.iterations + i + 1);
      MPSStream* const stream = getCurrentMPSStream();
      __block bool written = false;
      dispatch_sync(stream->queue(), ^{
        stream->fill(static_cast<id<MTLBuffer>>(buffer), value, kSize, 0);
        stream->synchronize(SyncType::COMMIT);
        stream->synchronize(SyncType::COMMIT_AND_WAIT);
        written = std::all_of(bytes, bytes + kSize, [&](uint8_t byte) { return byte == value; });
      });
      run.expect(written, "the GPU's work is not done after the wait for it");
    }
  });
}

// Events that a program has from the pool, each thread its own and one for all, and whose methods choose the stream.
SCENARIO(own_events) {
  at::globalContext().hasMPS();
  const auto pool = at::mps::getMPSEventPool();
  const auto of_all = pool->acquireEvent(/*enable_timing=*/false, nullptr);
  run.in_parallel([&](int number) {
    for (int i = 0; i < run.iterations; ++i) {
      auto event = pool->acquireEvent(/*enable_timing=*/false, getCurrentMPSStream());
      const auto notified = std::make_shared<std::atomic<bool>>(false);
      const auto notify = ^(id<MTLSharedEvent>, uint64_t) {
        *notified = true;
      };
      run.expect(!event->notify(/*needsLock=*/true, notify), "an event that was not recorded will notify");
      const at::Tensor sum = at::add(at::full({8}, number, kMPS), 1.0);
      const bool open = i % 2 == 0;
      event->record(/*needsLock=*/true, /*syncEvent=*/!open);
      const bool will = event->notify(/*needsLock=*/true, notify);
      // Threads that share a stream commit each other's work, so that it may be complete already.
      if (open && run.threads <= 8) run.expect(will, "an event whose work is not committed will not notify");
      of_all->record(getCurrentMPSStream(), /*syncEvent=*/true);
      of_all->notify(/*needsLock=*/true, ^(id<MTLSharedEvent>, uint64_t){
                     });
      of_all->query();  // while others record it
      of_all->wait(/*needsLock=*/true);
      event->wait(/*needsLock=*/true);
      event->synchronize();
      run.expect(event->query(), "an event that was waited for is not complete");
      for (int wait = 0; will && !*notified && wait < 10000; ++wait) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      run.expect(*notified == will, "nobody was notified of an event that is complete");
      if (run.wrong() > 0) return;  // it would wait as long each time
      run.expect_close("sum", sum, at::full({8}, number + 1.0));
      // a record that is committed later, by another thread
      MPSStream* const stream = getCurrentMPSStream();
      at::add(sum, 1.0);
      event->record(/*needsLock=*/true, /*syncEvent=*/false);
      std::thread later([stream] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        stream->synchronize(SyncType::COMMIT);
      });
      event->synchronize();
      run.expect(event->query(), "an event that was waited for is not complete, as its record was not committed");
      later.join();
      // and one that only this thread can commit, for which the GPU waits on another stream
      at::add(sum, 1.0);
      event->record(/*needsLock=*/true, /*syncEvent=*/false);
      {
        const c10::StreamGuard on_another(new_stream());
        event->wait(getCurrentMPSStream(), /*syncEvent=*/true);
        getCurrentMPSStream()->synchronize(SyncType::COMMIT_AND_WAIT);
      }
      run.expect(event->query(), "an event that another stream waited for is not complete");
      event.reset();
      pool->emptyCache();
    }
  });
}

// A stream that PyTorch does not know, and a queue that is no stream's.
SCENARIO(own_stream) {
  constexpr int64_t kSize = 64;
  run.in_parallel([&](int number) {
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor tensor = at::zeros({kSize}, kMPS.dtype(at::kByte));
      tensor.cpu();  // no other stream has work with it
      {
        const auto buffer = at::native::mps::getMTLBufferStorage(tensor);
        MPSStream stream(c10::Stream(c10::Stream::UNSAFE, c10::Device(at::kMPS, 0), 5000 + number));
        stream.fill(buffer, 1, kSize, 0, SyncType::COMMIT_AND_CONTINUE);
        stream.fill(buffer, 2, kSize / 2, 0, SyncType::COMMIT);
        stream.fill(buffer, 3, kSize / 4, 0);
        stream.synchronize(SyncType::COMMIT_AND_WAIT);
      }
      at::Tensor expected = at::ones({kSize}, at::kByte);
      expected.narrow(0, 0, kSize / 2).fill_(2);
      expected.narrow(0, 0, kSize / 4).fill_(3);
      run.expect_close("filled", tensor, expected);
      const dispatch_queue_t queue = dispatch_queue_create("the program's own", nullptr);
      run.expect_error("a block that raises", "raised by the block", [&] {
        at::native::mps::dispatch_sync_with_rethrow(queue, ^{
          TORCH_CHECK(false, "raised by the block");
        });
      });
      dispatch_release(queue);
      // A handler is of its stream's next command buffer.
      MPSStream* const own = getCurrentMPSStream();
      own->synchronize(SyncType::COMMIT_AND_WAIT);
      auto* const heard = new std::atomic<int>{0};
      own->addCompletedHandler(^(id<MTLCommandBuffer> buffer) {
        *heard = buffer ? 1 : 2;
      });
      // A guard of another thread commits what this one may have encoded without one, and the handler's buffer with it.
      run.expect(run.threads > 1 || *heard == 0, "a handler ran before the work that it is of");
      at::add(tensor, 1);
      own->synchronize(SyncType::COMMIT_AND_WAIT);
      while (*heard == 0) std::this_thread::yield();  // the wait may end before it
      run.expect(*heard == 1, "a handler was given no command buffer");
      delete heard;
      // Memory of a number that is freed in a block on the queue of another stream than its own.
      float two = 2.0f;
      c10::DataPtr number_memory = at::mps::getIMPSAllocator()->allocScalarBufferWithValue(&two, sizeof(two));
      c10::DataPtr* const memory = &number_memory;
      const c10::StreamGuard on_another(new_stream());
      dispatch_sync(getCurrentMPSStream()->queue(), ^{
        memory->clear();
      });
      run.expect_close("product", at::mul(at::full({4}, number, kMPS), 2.0), at::full({4}, 2.0 * number));
    }
  });
}

// torch::mps::commit() gives the GPU what an extension has encoded, though nobody waits for it.
SCENARIO(commit_hook) {
  const id<MTLDevice> device = MTLCreateSystemDefaultDevice();
  run.in_parallel([&](int number) {
    const at::Tensor own = at::full({4}, number, kMPS);
    const id<MTLSharedEvent> event = [device newSharedEvent];
    for (int i = 0; i < run.iterations; ++i) {
      const uint64_t given = static_cast<uint64_t>(i) + 1;
      const at::Tensor sum = at::add(own, i + 1.0);
      dispatch_sync(dispatch_queue(), ^{
        [static_cast<id<MTLCommandBuffer>>(hooks().getCommandBuffer()) encodeSignalEvent:event value:given];
      });
      hooks().commitStream();
      const bool signaled = [event waitUntilSignaledValue:given timeoutMS:10000];
      run.expect(signaled, "commit() has given nothing to the GPU");
      run.expect_close("sum", sum, at::full({4}, number + i + 1.0));
      if (!signaled) break;  // it would wait as long each time
    }
    [event release];
  });
}

// A number is freed while another thread waits for the stream that has yet to read it: its memory is not given out.
SCENARIO(number_beside_wait) {
  auto* const stream = at::mps::getDefaultMPSStream();
  auto& allocator = *at::mps::getIMPSAllocator();
  const id<MTLSharedEvent> event = [MTLCreateSystemDefaultDevice() newSharedEvent];
  event.signaledValue = 0;  // says that the CPU sets it, which the model of early waits must know
  for (int i = 0; i < run.iterations; ++i) {
    const uint64_t given = static_cast<uint64_t>(i) + 1;
    const at::Tensor to = at::zeros({1}, kMPS);
    to.cpu();  // nothing is left to do
    float two = 2, three = 3;
    c10::DataPtr number = allocator.allocScalarBufferWithValue(&two, sizeof(two));
    void* const memory = number.get();
    const id<MTLBuffer> target = at::native::mps::getMTLBufferStorage(to);
    __block id<MTLCommandBuffer> root = nil;
    dispatch_sync(stream->queue(), ^{
      [stream->commandBuffer() encodeWaitForEvent:event value:given];
      const id<MTLBlitCommandEncoder> blit = [stream->commandBuffer() blitCommandEncoder];
      [blit copyFromBuffer:static_cast<id<MTLBuffer>>(memory)
               sourceOffset:0
                   toBuffer:target
          destinationOffset:0
                       size:sizeof(two)];
      [blit endEncoding];
      root = [[stream->commandBuffer() rootCommandBuffer] retain];
    });
    std::thread waiter([&] { stream->synchronize(SyncType::COMMIT_AND_WAIT); });
    while ([root status] < MTLCommandBufferStatusCommitted) std::this_thread::yield();
    dispatch_sync_f(stream->queue(), nullptr, [](void*) {});  // the waiter is off the queue then
    number.clear();
    const c10::DataPtr other = allocator.allocScalarBufferWithValue(&three, sizeof(three));
    run.expect(other.get() != memory, "a number's memory is given out while the GPU has yet to read it");
    event.signaledValue = given;
    waiter.join();
    run.expect_close("number", to, at::full({1}, 2.0));
    [root release];
  }
  [event release];
}

// Mistakes raise, at once or, where a destructor may not, by the thread's next operator, and the thread goes on.
SCENARIO(misuse) {
  at::globalContext().hasMPS();
  auto& allocator = *at::mps::getIMPSAllocator(/*sharedAllocator=*/true);
  run.in_parallel([&](int number) {
    const at::Tensor own = at::full({4}, number, kMPS);
    const c10::DataPtr memory = allocator.allocate(64);
    const auto* const bytes = static_cast<const uint8_t*>(allocator.getSharedBufferPtr(memory.get()).first);
    for (int i = 0; i < run.iterations; ++i) {
      for (const int64_t unknown : {1 << 20, 1 << 21}) {
        guard().destroyEvent(reinterpret_cast<void*>(unknown), 0);
      }
      run.expect_error("the next operator", "Invalid Event ID: " + std::to_string(1 << 21), [&] { at::add(own, 1.0); });
      std::string said;
      try {
        at::native::mps::MetalShaderLibrary("kernel void none() {{}}", /*nparams=*/1).getFunctionNames();
      } catch (const std::runtime_error& error) {
        said = error.what();
      }
      run.expect(said == "Library must be initialized first", "functions of a library without its parameters: " + said);
      getCurrentMPSStream()->fill(static_cast<id<MTLBuffer>>(memory.get()), static_cast<uint8_t>(i + 1), 64, 0);
      at::mps::getMPSProfiler().endProfileKernel(&own, SyncType::COMMIT_AND_WAIT);  // that nobody has begun
      run.expect(*bytes == static_cast<uint8_t>(i + 1),
                 "who ends a profile that nobody has begun does not wait for the GPU");
      run.expect_close("sum", at::add(own, 1.0), at::full({4}, number + 1.0));
    }
  });
}

// A thread asks a library for its functions' names once another one has loaded it, or at the same time. Nothing but the
// library's own lock orders the two.
SCENARIO(function_names) {
  at::globalContext().hasMPS();
  std::atomic<bool> loaded{false};
  run.in_parallel([&](int number) {
    if (number == 0) {
      while (run.threads > 1 && !loaded.load(std::memory_order_relaxed))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const auto names = at::native::mps::MetalShaderLibrary::getBundledLibrary().getFunctionNames();
      run.expect(!names.empty(), "the bundled library has no function");
    } else {
      const at::Tensor found = at::renorm(at::full({6, 4}, 2.0, kMPS), 2, 0, 1.0);
      run.expect_close("renorm", found, at::full({6, 4}, 0.5));
      loaded.store(true, std::memory_order_relaxed);
    }
  });
  at::native::mps::MetalShaderLibrary compiled("kernel void none() {}");
  at::native::mps::MetalShaderLibrary from_template("kernel void none_{}() {{}}", /*nparams=*/1);
  run.in_parallel([&](int) {
    run.expect(from_template.getPipelineStateForFunc("none_half", {"half"}) != nil, "no kernel from a template");
    const std::vector<std::string> names = compiled.getFunctionNames();
    run.expect(names == std::vector<std::string>{"none"}, "a compiled library has not the one function of its source");
  });
}

struct Graph : at::native::mps::MPSCachedGraph {
  explicit Graph(MPSGraph* graph) : MPSCachedGraph(graph) {}
  MPSGraphTensor* input = nil;
  MPSGraphTensor* output = nil;
};

// Code that is no operator has a cached graph until its autorelease pool drains, whoever empties the cache.
SCENARIO(graphs_outside_operators) {
  using namespace at::native::mps;
  at::mps::getIMPSAllocator()->setLowWatermarkRatio(1e-12);  // from here on empty_cache() frees graphs, too
  run.in_parallel([&](int number) {
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor input = at::full({4}, number + i, kMPS), output = at::zeros({4}, kMPS);
      const auto find = [&] {
        return LookUpOrCreateCachedGraph<Graph>("a program's own", [&](auto made, auto cached) {
          cached->input = mpsGraphRankedPlaceHolder(made, input);
          cached->output = [made squareWithTensor:cached->input name:nil];
        });
      };
      void* const pool_of_first = objc_autoreleasePoolPush();
      find();  // compiled here, if no thread has
      objc_autoreleasePoolPop(pool_of_first);
      void* const pool = objc_autoreleasePoolPush();
      auto* const graph = find();
      hooks().emptyCache();
      Placeholder from(graph->input, input), to(graph->output, output);
      runMPSGraph(getCurrentMPSStream(), graph->graph(), dictionaryFromPlaceholders(from), to);
      objc_autoreleasePoolPop(pool);
      run.expect_close("square", output, at::full({4}, 1.0 * (number + i) * (number + i)));
    }
  });
}

}  // namespace
}  // namespace mpsforge::hostmps
