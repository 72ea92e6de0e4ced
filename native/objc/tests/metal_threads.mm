// Several threads: what Metal allows, where neither checker may say a word, and what it forbids, where ThreadSanitizer
// must.
#import <Foundation/Foundation.h>

#include <mpsforge/host.h>

#include <cstring>
#include <thread>
#include <vector>

#include "metal_scenarios.h"

namespace mpsforge::objc::test {
namespace {

template <class Function>
void on_threads(int count, Function function) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([function, i] {
      @autoreleasepool {
        function(i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void check_no_findings() {
  mpsforge_host_finding found;
  if (mpsforge_host_findings(&found, 1) > 0) check(false, found.message, __FILE__, __LINE__);
}

CASE(a_queue_a_thread) {
  on_threads(8, [](int number) {
    id<MTLCommandQueue> queue = [device() newCommandQueue];
    id<MTLBuffer> buffer = shared_buffer(64);
    for (int i = 0; i < 50; ++i) {
      @autoreleasepool {
        [fill(queue, buffer, NSMakeRange(0, 64), static_cast<uint8_t>(number + i)) waitUntilCompleted];
        CHECK(static_cast<const uint8_t*>([buffer contents])[63] == static_cast<uint8_t>(number + i));
      }
    }
    [buffer release];
    [queue release];
  });
  check_no_findings();
}

CASE(one_queue_for_all) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  on_threads(8, [queue](int number) {
    id<MTLBuffer> buffer = shared_buffer(64);
    for (int i = 0; i < 50; ++i) {
      @autoreleasepool {
        [fill(queue, buffer, NSMakeRange(0, 64), static_cast<uint8_t>(number + i)) waitUntilCompleted];
        CHECK(static_cast<const uint8_t*>([buffer contents])[63] == static_cast<uint8_t>(number + i));
      }
    }
    [buffer release];
  });
  check_no_findings();
}

// What the committing thread wrote before is there for the handler, and what the handler wrote for who waits for it.
CASE(handlers_come_after_the_commit) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  on_threads(4, [queue](int) {
    for (int i = 0; i < 50; ++i) {
      @autoreleasepool {
        int number = 0;
        int* const pointer = &number;
        dispatch_semaphore_t ended = dispatch_semaphore_create(0);
        id<MTLCommandBuffer> commands = [queue commandBuffer];
        [commands addCompletedHandler:^(id<MTLCommandBuffer>) {
          *pointer += 1;
          dispatch_semaphore_signal(ended);
        }];
        number = 41;
        [commands commit];
        dispatch_semaphore_wait(ended, DISPATCH_TIME_FOREVER);
        CHECK(number == 42);
        dispatch_release(ended);
      }
    }
  });
}

// A serial queue orders the threads that share a command buffer, as PyTorch does it.
CASE(one_command_buffer_on_a_serial_queue) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  dispatch_queue_t serial = dispatch_queue_create("stream", nullptr);
  MPSCommandBuffer* commands = [[MPSCommandBuffer commandBufferFromCommandQueue:queue] retain];
  id<MTLBuffer> buffer = shared_buffer(64);
  on_threads(8, [=](int number) {
    for (int i = 0; i < 50; ++i) {
      dispatch_sync(serial, ^{
        @autoreleasepool {
          id<MTLBlitCommandEncoder> encoder = [commands blitCommandEncoder];
          [encoder fillBuffer:buffer range:NSMakeRange(0, 64) value:static_cast<uint8_t>(number)];
          [encoder endEncoding];
          if (i % 5 == 4) [commands commitAndContinue];
        }
      });
    }
  });
  check_no_findings();
}

// Two threads use one command buffer, a second apart: no rule of Metal is broken in this run, and nothing orders them.
DIES(one_command_buffer_on_two_threads, "data race", nullptr, Case::kThreadSanitizer) {
  id<MTLCommandBuffer> commands = [[[device() newCommandQueue] commandBuffer] retain];
  on_threads(2, [commands](int number) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200 * number));
    [commands addCompletedHandler:^(id<MTLCommandBuffer>){
    }];
  });
}

// A handler writes what another thread reads, and nothing waits for the handler.
DIES(handler_races_reader, "data race", nullptr, Case::kThreadSanitizer) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  int* const number = new int(0);
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  [commands addCompletedHandler:^(id<MTLCommandBuffer>) {
    *number = 1;
  }];
  [commands commit];
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(*number != 2);
}

}  // namespace

}  // namespace mpsforge::objc::test
