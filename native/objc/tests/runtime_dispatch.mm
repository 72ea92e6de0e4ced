// Queues, once, semaphores, groups and data.
#import <Foundation/Foundation.h>

#include <mpsforge/host.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "harness.h"

using namespace mpsforge::objc::test;

namespace {

void each_of(int threads, void (^work)(int index)) {
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) all.emplace_back([=] { work(i); });
  for (std::thread& thread : all) thread.join();
}

CASE(one_at_a_time) {
  dispatch_queue_t queue = dispatch_queue_create("serial", DISPATCH_QUEUE_SERIAL);
  __block int count = 0;
  __block bool inside = false;
  each_of(8, ^(int) {
    for (int i = 0; i < 100; ++i) {
      dispatch_sync(queue, ^{
        CHECK(!inside);
        inside = true;
        ++count;
        inside = false;
      });
    }
  });
  CHECK(count == 800);
  dispatch_release(queue);
}

// Queues of one target take turns with each other, and a block knows its own queue and the target.
CASE(one_target) {
  dispatch_queue_t target = dispatch_queue_create("target", nullptr);
  dispatch_queue_t queues[] = {dispatch_queue_create_with_target("one", nullptr, target),
                               dispatch_queue_create_with_target("other", nullptr, target)};
  static const char key = 0;
  static int values[2];  // blocks capture no arrays
  __block int count = 0;
  __block bool inside = false;
  for (int i = 0; i < 2; ++i) dispatch_queue_set_specific(queues[i], &key, &values[i], nullptr);
  dispatch_queue_t const* all = queues;
  each_of(4, ^(int index) {
    for (int i = 0; i < 100; ++i) {
      dispatch_sync(all[index % 2], ^{
        CHECK(!inside && dispatch_get_specific(&key) == &values[index % 2]);
        dispatch_assert_queue(target);
        inside = true;
        ++count;
        inside = false;
      });
    }
  });
  dispatch_async(queues[0], ^{
    ++count;
  });
  dispatch_sync(queues[0], ^{
    CHECK(count == 401);
  });
  for (dispatch_queue_t queue : queues) dispatch_release(queue);
  dispatch_release(target);
}

CASE(in_order) {
  dispatch_queue_t queue = dispatch_queue_create("in order", nullptr);
  __block std::vector<int> seen;
  for (int i = 0; i < 100; ++i) {
    dispatch_async(queue, ^{
      seen.push_back(i);
    });
  }
  dispatch_sync(queue, ^{
    CHECK(seen.size() == 100);
    for (int i = 0; i < 100; ++i) CHECK(seen[static_cast<size_t>(i)] == i);
  });
  dispatch_release(queue);
}

// What was put in runs before the queue ends, and blocks may put in more.
CASE(released_with_work) {
  dispatch_queue_t queue = dispatch_queue_create("released", nullptr);
  dispatch_semaphore_t done = dispatch_semaphore_create(0);
  __block int count = 0;
  dispatch_async(queue, ^{
    ++count;
    dispatch_async(queue, ^{
      ++count;
      dispatch_semaphore_signal(done);
    });
    dispatch_release(queue);
  });
  CHECK(dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER) == 0 && count == 2);
  dispatch_release(done);
}

char first_key;
char second_key;
std::atomic<int> destructed{0};

CASE(contexts) {
  dispatch_queue_t outer = dispatch_queue_create("outer", nullptr);
  dispatch_queue_t inner = dispatch_queue_create("inner", nullptr);
  static int value = 5;
  dispatch_queue_set_specific(outer, &first_key, &value, [](void*) { ++destructed; });
  dispatch_queue_set_specific(inner, &second_key, &value, nullptr);
  CHECK(dispatch_get_specific(&first_key) == nullptr);
  CHECK(dispatch_queue_get_specific(outer, &first_key) == &value);
  dispatch_sync(outer, ^{
    CHECK(dispatch_get_specific(&first_key) == &value && dispatch_get_specific(&second_key) == nullptr);
    CHECK(std::strcmp(dispatch_queue_get_label(DISPATCH_CURRENT_QUEUE_LABEL), "outer") == 0);
    dispatch_assert_queue(outer);
    dispatch_sync(inner, ^{
      CHECK(dispatch_get_specific(&second_key) == &value && dispatch_get_specific(&first_key) == nullptr);
      dispatch_assert_queue(outer);
    });
    dispatch_assert_queue_not(inner);
  });
  dispatch_queue_set_specific(inner, &second_key, nullptr, nullptr);
  CHECK(dispatch_queue_get_specific(inner, &second_key) == nullptr);
  CHECK(std::strcmp(dispatch_queue_get_label(nullptr), "com.apple.main-thread") == 0);
  dispatch_release(outer);
  CHECK(destructed == 1);
  dispatch_release(inner);
}

CASE(once) {
  static dispatch_once_t predicate;
  __block int ran = 0;
  __block int plain = 0;
  each_of(8, ^(int) {
    dispatch_once(&predicate, ^{
      std::this_thread::yield();
      plain = 7;
      ++ran;
    });
    CHECK(plain == 7);
  });
  CHECK(ran == 1);
}

CASE(semaphores) {
  dispatch_semaphore_t semaphore = dispatch_semaphore_create(0);
  CHECK(dispatch_semaphore_wait(semaphore, DISPATCH_TIME_NOW) != 0);
  CHECK(dispatch_semaphore_wait(semaphore, dispatch_time(DISPATCH_TIME_NOW, 2 * NSEC_PER_MSEC)) != 0);
  int value = 0;
  std::thread other([&] {
    value = 3;
    dispatch_semaphore_signal(semaphore);
  });
  CHECK(dispatch_semaphore_wait(semaphore, DISPATCH_TIME_FOREVER) == 0);
  CHECK(value == 3);
  other.join();
  dispatch_release(semaphore);
}

CASE(groups) {
  dispatch_group_t group = dispatch_group_create();
  dispatch_queue_t first = dispatch_queue_create("first", nullptr);
  dispatch_queue_t second = dispatch_queue_create("second", nullptr);
  __block int a = 0;
  __block int b = 0;
  __block int c = 0;
  dispatch_group_async(group, first, ^{
    a = 1;
  });
  dispatch_group_async(group, second, ^{
    b = 2;
  });
  dispatch_group_async(group, dispatch_get_global_queue(0, 0), ^{
    c = 3;
  });
  CHECK(dispatch_group_wait(group, DISPATCH_TIME_FOREVER) == 0);
  CHECK(a + b + c == 6);
  dispatch_semaphore_t done = dispatch_semaphore_create(0);
  dispatch_group_enter(group);
  dispatch_group_notify(group, first, ^{
    CHECK(a == 9);
    dispatch_semaphore_signal(done);
  });
  CHECK(dispatch_group_wait(group, DISPATCH_TIME_NOW) != 0);
  a = 9;
  dispatch_group_leave(group);
  dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
  dispatch_release(done);
  dispatch_release(first);
  dispatch_release(second);
  dispatch_release(group);
}

CASE(data) {
  const char bytes[] = "data";
  dispatch_data_t copied = dispatch_data_create(bytes, 4, nullptr, DISPATCH_DATA_DESTRUCTOR_DEFAULT);
  dispatch_data_t borrowed = dispatch_data_create(bytes, 4, dispatch_get_main_queue(),
                                                  ^{
                                                  });
  const void* at = nullptr;
  size_t size = 0;
  dispatch_data_t map = dispatch_data_create_map(copied, &at, &size);
  CHECK(size == 4 && at != bytes && std::memcmp(at, bytes, 4) == 0);
  dispatch_release(map);
  dispatch_release(copied);
  map = dispatch_data_create_map(borrowed, &at, &size);
  CHECK(at == bytes && dispatch_data_get_size(borrowed) == 4);
  dispatch_release(map);
  dispatch_release(borrowed);
  dispatch_queue_t queue = dispatch_queue_create("destructors", nullptr);
  dispatch_semaphore_t done = dispatch_semaphore_create(0);
  dispatch_release(dispatch_data_create(bytes, 4, queue, ^{
    dispatch_semaphore_signal(done);
  }));
  CHECK(dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER) == 0);
  dispatch_release(done);
  dispatch_release(queue);
}

DIES(own_queue, "dispatch_sync called on queue already owned by current thread") {
  dispatch_queue_t queue = dispatch_queue_create("own", nullptr);
  dispatch_sync(queue, ^{
    dispatch_sync(queue, ^{
                  });
  });
}

DIES(two_queues_across, "dispatch_sync did not end: deadlock: thread ", "MPSFORGE_METAL_WATCHDOG_MS=300") {
  dispatch_queue_t first = dispatch_queue_create("first", nullptr);
  dispatch_queue_t second = dispatch_queue_create("second", nullptr);
  static std::atomic<int> in{0};
  each_of(2, ^(int index) {
    dispatch_sync(index ? first : second, ^{
      for (++in; in < 2;) std::this_thread::yield();
      dispatch_sync(index ? second : first, ^{
                    });
    });
  });
}

DIES(main_queue, "dispatch_async to the main queue: no run loop serves it") {
  dispatch_async(dispatch_get_main_queue(), ^{
                 });
}
DIES(no_queue, "dispatch_sync: the object is NULL") {
  dispatch_sync(static_cast<dispatch_queue_t>(nullptr), ^{
                });
}
DIES(left_too_often, "unbalanced call to dispatch_group_leave()") { dispatch_group_leave(dispatch_group_create()); }
DIES(semaphore_in_use, "ends while in use") {
  dispatch_semaphore_t semaphore = dispatch_semaphore_create(1);
  dispatch_semaphore_wait(semaphore, DISPATCH_TIME_FOREVER);
  dispatch_release(semaphore);
}
DIES(not_on_queue, "block was expected to execute on queue [elsewhere (0x") {
  dispatch_assert_queue(dispatch_queue_create("elsewhere", nullptr));
}
DIES(barrier, "dispatch_barrier_sync on the concurrent queue concurrent is not implemented") {
  dispatch_barrier_sync(dispatch_queue_create("concurrent", DISPATCH_QUEUE_CONCURRENT), ^{
                        });
}

}  // namespace
