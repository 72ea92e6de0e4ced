// Which threads are ordered, for ThreadSanitizer and for the engine's checker, and above all which are not: a layer
// that orders too much hides the races that it is there to find.
#import <Foundation/Foundation.h>

#include <mpsforge/host.h>

#include <atomic>
#include <initializer_list>
#include <mutex>
#include <thread>

#include "../engine.h"
#include "harness.h"

using namespace mpsforge::objc::test;
using mpsforge::objc::api;
using mpsforge::objc::EngineCall;

@interface Holder : NSObject {
 @public
  int plain_;
}
@property(retain) NSString* text;
@property(nonatomic, retain) NSString* loose;
- (int)read;
@end
int last_read = 0;
@implementation Holder
- (int)read {
  return plain_;
}
- (void)dealloc {
  last_read = plain_;
  [_text release];
  [_loose release];
  [super dealloc];
}
@end

namespace {

// Runs first, then second, on two threads that no edge known to ThreadSanitizer orders.
template <typename First, typename Second>
void unordered(First first, Second second) {
  static std::atomic<int> stage;
  stage.store(0, std::memory_order_relaxed);
  std::thread one([&] {
    first();
    stage.store(1, std::memory_order_relaxed);
  });
  std::thread two([&] {
    while (stage.load(std::memory_order_relaxed) != 1) std::this_thread::yield();
    second();
  });
  one.join();
  two.join();
}

int shared_value = 0;

constexpr const char* kRace = "ThreadSanitizer: data race";
constexpr const char* kRecord = "MPSFORGE_METAL_ON_VIOLATION=record";

// --- must be reported

// Messages, retains, releases, pools, engine calls and other queues between two accesses order nothing.
DIES(sends_do_not_order, kRace, nullptr, Case::kThreadSanitizer) {
  Holder* holder = [[Holder alloc] init];
  dispatch_queue_t first = dispatch_queue_create("first", nullptr);
  dispatch_queue_t second = dispatch_queue_create("second", nullptr);
  const auto busy = [&](dispatch_queue_t queue) {
    @autoreleasepool {
      [[holder retain] release];
      [holder description];
      dispatch_sync(queue, ^{
        [holder read];
      });
    }
  };
  unordered(
      [&] {
        busy(first);
        shared_value = 1;
        busy(first);
      },
      [&] {
        busy(second);
        shared_value = 2;
      });
}

// Blocks of two queues, each on its own thread of the engine.
DIES(two_queues_do_not_order, kRace, nullptr, Case::kThreadSanitizer) {
  dispatch_queue_t first = dispatch_queue_create("first", nullptr);
  dispatch_queue_t second = dispatch_queue_create("second", nullptr);
  static std::atomic<int> ran{0};
  for (int i = 0; i < 4; ++i) {
    for (dispatch_queue_t queue : {first, second}) {
      dispatch_async(queue, ^{
        ++shared_value;
        ran.fetch_add(1, std::memory_order_relaxed);
      });
    }
  }
  while (ran.load(std::memory_order_relaxed) < 8) std::this_thread::yield();
}

DIES(loose_property, kRace, nullptr, Case::kThreadSanitizer) {
  Holder* holder = [[Holder alloc] init];
  unordered([&] { holder.loose = @"a"; }, [&] { holder.loose = @"b"; });
}

DIES(array_of_two_threads, kRace, nullptr, Case::kThreadSanitizer) {
  NSMutableArray* array = [NSMutableArray arrayWithCapacity:8];
  unordered([&] { [array addObject:@1]; }, [&] { [array addObject:@2]; });
}

DIES(first_uses_do_not_order, kRace, nullptr, Case::kThreadSanitizer) {
  unordered(
      [&] {
        shared_value = 1;
        mpsforge::objc::device();
        [NSProcessInfo processInfo];
      },
      [&] {
        mpsforge::objc::device();
        shared_value = 2;
      });
}

DIES(different_locks, kRace, nullptr, Case::kThreadSanitizer) {
  NSObject* first = [NSObject new];
  NSObject* second = [NSObject new];
  unordered(
      [&] {
        @synchronized(first) {
          shared_value = 1;
        }
      },
      [&] {
        @synchronized(second) {
          shared_value = 2;
        }
      });
}

// --- must not be reported

CASE(queue_orders) {
  dispatch_queue_t queue = dispatch_queue_create("orders", nullptr);
  unordered(
      [&] {
        dispatch_sync(queue, ^{
          shared_value = 1;
        });
      },
      [&] {
        dispatch_sync(queue, ^{
          shared_value = 2;
        });
      });
  unordered(
      [&] {
        shared_value = 3;
        dispatch_async(queue, ^{
          shared_value = 4;
        });
      },
      [&] {
        dispatch_sync(queue, ^{
          CHECK(shared_value == 4);
        });
      });
}

// The last release happens after all others, and so does dealloc.
CASE(releases_order_the_end) {
  Holder* holder = [[Holder alloc] init];
  [holder retain];
  unordered(
      [&] {
        holder->plain_ = 5;
        [holder release];
      },
      [&] { [holder release]; });
  CHECK(last_read == 5);
}

CASE(blocks_order_their_end) {
  struct Written {
    int value = 0;
    ~Written() { last_read = value; }
  };
  __block Written written;
  void (^block)(void) = Block_copy(^{
    ++written.value;
  });
  void (^other)(void) = Block_copy(block);
  unordered(
      [=] {
        block();
        Block_release(block);
      },
      [=] { Block_release(other); });
}

CASE(atomic_property) {
  Holder* holder = [[Holder alloc] init];
  unordered([&] { holder.text = @"a"; }, [&] { CHECK([holder.text isEqual:@"a"]); });
}

CASE(same_lock) {
  NSObject* lock = [NSObject new];
  unordered(
      [&] {
        @synchronized(lock) {
          shared_value = 1;
        }
      },
      [&] {
        @synchronized(lock) {
          shared_value = 2;
        }
      });
}

// A device that is closed while ThreadSanitizer watches: its threads end while they look away.
CASE(closed_device) {
  dispatch_queue_t queue = dispatch_queue_create("closed", nullptr);
  dispatch_async(queue, ^{
    shared_value = 1;
  });
  dispatch_sync(queue, ^{
    CHECK(shared_value == 1);
  });
  dispatch_release(queue);
  mpsforge_host_close();
  mpsforge_host_statistics statistics;
  mpsforge_host_get_statistics(&statistics);
  CHECK(mpsforge_host_findings(nullptr, 0) == 0 && statistics.violations == 0);
}

// --- the engine's checker. This file is linked with the wrapped mutex functions.

// Fills on the GPU, waits, and hands over to a thread that writes. Races found.
size_t races(void (*hand_over)(), void (*take_over)()) {
  mpsforge_metal_device* device = mpsforge::objc::device();
  mpsforge_metal_buffer* buffer = nullptr;
  std::thread([&] {
    {
      EngineCall call;
      buffer = api().buffer_create(device, 64, MPSFORGE_METAL_SHARED, "handed over");
      mpsforge_metal_queue* queue = api().queue_create(device, "q");
      mpsforge_metal_command_buffer* commands = api().command_buffer(queue);
      mpsforge_metal_encoder* encoder = api().blit_encoder(commands);
      api().fill(encoder, buffer, 0, 64, 1);
      api().end_encoding(encoder);
      api().commit(commands);
      api().wait_until_completed(commands);
    }
    hand_over();
  }).join();
  std::thread([&] {
    take_over();
    EngineCall call;
    api().cpu_access(buffer, 0, 64, MPSFORGE_METAL_WRITE);
  }).join();
  mpsforge_host_statistics statistics;
  mpsforge_host_get_statistics(&statistics);
  return statistics.races;
}

std::mutex mutex;
std::mutex other_mutex;
void use(std::mutex& which) { std::lock_guard<std::mutex> lock(which); }

CASE(checker_knows_mutexes, kRecord) {
  CHECK(races([] { use(mutex); }, [] { use(mutex); }) == 0);
}
CASE(checker_knows_locks, kRecord) {
  static NSObject* const lock = [NSObject new];
  CHECK(races(
            [] {
              @synchronized(lock) {
              }
            },
            [] {
              @synchronized(lock) {
              }
            }) == 0);
}
CASE(checker_knows_semaphores, kRecord) {
  static dispatch_semaphore_t const semaphore = dispatch_semaphore_create(0);
  CHECK(races([] { dispatch_semaphore_signal(semaphore); },
              [] { dispatch_semaphore_wait(semaphore, DISPATCH_TIME_FOREVER); }) == 0);
}
CASE(checker_knows_queues, kRecord) {
  static dispatch_queue_t const queue = dispatch_queue_create("q", nullptr);
  CHECK(races(
            [] {
              dispatch_sync(queue, ^{
                            });
            },
            [] {
              dispatch_sync(queue, ^{
                            });
            }) == 0);
}
CASE(checker_without_edge, kRecord) {
  CHECK(races([] {}, [] {}) == 1);
}
CASE(checker_with_other_mutex, kRecord) {
  CHECK(races([] { use(mutex); }, [] { use(other_mutex); }) == 1);
}

}  // namespace
