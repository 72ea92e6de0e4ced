// Semaphores and groups. Their own lock must not order more than they do, so ThreadSanitizer looks away while it is
// held; the edges are declared.
#include <cerrno>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <vector>

#include "objects.h"

using mpsforge::objc::checked;
using mpsforge::objc::checked_block;
using mpsforge::objc::EngineCall;

namespace {

uint64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * NSEC_PER_SEC + static_cast<uint64_t>(time.tv_nsec);
}

// A count that can be waited for.
class Counter {
 public:
  explicit Counter(intptr_t value) : value_(value) {}

  // Waits until the condition holds for the count, then changes it. False if the time is up first.
  template <typename Condition>
  bool wait(dispatch_time_t timeout, intptr_t change, Condition condition) {
    EngineCall unseen;
    std::unique_lock<std::mutex> lock(mutex_);
    while (!condition(value_)) {
      if (timeout == DISPATCH_TIME_FOREVER) {
        changed_.wait(lock);
        continue;
      }
      const uint64_t present = now();
      if (timeout <= present) return false;
      changed_.wait_for(lock, std::chrono::nanoseconds(timeout - present));
    }
    value_ += change;
    return true;
  }

  intptr_t add(intptr_t change) {
    EngineCall unseen;
    std::lock_guard<std::mutex> lock(mutex_);
    value_ += change;
    changed_.notify_all();
    return value_;
  }

  intptr_t value() {
    EngineCall unseen;
    std::lock_guard<std::mutex> lock(mutex_);
    return value_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  intptr_t value_;
};

}  // namespace

struct dispatch_semaphore_s final : mpsforge::objc::DispatchObject {
  explicit dispatch_semaphore_s(intptr_t value) : DispatchObject("semaphore"), initial(value), count(value) {}
  // As on macOS, a semaphore in use is not to end.
  ~dispatch_semaphore_s() override {
    if (count.value() < initial)
      mpsforge::objc::fail("dispatch_release: semaphore %p ends while in use", static_cast<void*>(this));
  }
  const intptr_t initial;
  Counter count;
};

struct dispatch_group_s final : mpsforge::objc::DispatchObject {
  dispatch_group_s() : DispatchObject("group"), count(0) {}

  struct Notice {
    dispatch_queue_t queue;
    dispatch_block_t block;
  };

  std::vector<Notice> take_notices() {
    EngineCall unseen;
    std::lock_guard<std::mutex> lock(mutex);
    return std::move(notices);
  }

  Counter count;
  std::mutex mutex;
  std::vector<Notice> notices;
};

namespace {

// The objects that a block of a group needs until it has run.
struct GroupWork {
  dispatch_group_t group;
  void* block;
};

void run_in_group(void* argument) {
  auto* work = static_cast<GroupWork*>(argument);
  mpsforge::objc::call_and_release_block(work->block);
  dispatch_group_leave(work->group);
  work->group->release();
  delete work;
}

void deliver(std::vector<dispatch_group_s::Notice> notices) {
  for (const dispatch_group_s::Notice& notice : notices) {
    dispatch_async_f(notice.queue, static_cast<void*>(notice.block), mpsforge::objc::call_and_release_block);
    notice.queue->release();
  }
}

}  // namespace

extern "C" {

dispatch_time_t dispatch_time(dispatch_time_t when, int64_t delta) {
  if (when == DISPATCH_TIME_FOREVER) return when;
  const uint64_t base = when == DISPATCH_TIME_NOW ? now() : when;
  if (delta < 0) return base > static_cast<uint64_t>(-delta) ? base - static_cast<uint64_t>(-delta) : 1;
  return static_cast<uint64_t>(delta) >= DISPATCH_TIME_FOREVER - base ? DISPATCH_TIME_FOREVER
                                                                      : base + static_cast<uint64_t>(delta);
}

dispatch_semaphore_t dispatch_semaphore_create(intptr_t value) {
  return value < 0 ? nullptr : new dispatch_semaphore_s(value);
}

intptr_t dispatch_semaphore_wait(dispatch_semaphore_t semaphore, dispatch_time_t timeout) {
  checked(semaphore, "dispatch_semaphore_wait");
  // DISPATCH_TIME_NOW is 0: the time is up at once.
  if (!semaphore->count.wait(timeout, -1, [](intptr_t value) { return value > 0; })) return ETIMEDOUT;
  mpsforge::objc::order_acquire(semaphore);
  return 0;
}

intptr_t dispatch_semaphore_signal(dispatch_semaphore_t semaphore) {
  checked(semaphore, "dispatch_semaphore_signal");
  mpsforge::objc::order_release(semaphore);
  semaphore->count.add(1);
  return 0;
}

dispatch_group_t dispatch_group_create(void) { return new dispatch_group_s; }

void dispatch_group_enter(dispatch_group_t group) { checked(group, "dispatch_group_enter")->count.add(1); }

void dispatch_group_leave(dispatch_group_t group) {
  checked(group, "dispatch_group_leave");
  mpsforge::objc::order_release(group);
  const intptr_t left = group->count.add(-1);
  if (left < 0) mpsforge::objc::fail("unbalanced call to dispatch_group_leave()");
  if (left > 0) return;
  mpsforge::objc::order_acquire(group);
  deliver(group->take_notices());
}

intptr_t dispatch_group_wait(dispatch_group_t group, dispatch_time_t timeout) {
  checked(group, "dispatch_group_wait");
  if (!group->count.wait(timeout, 0, [](intptr_t value) { return value == 0; })) return ETIMEDOUT;
  mpsforge::objc::order_acquire(group);
  return 0;
}

void dispatch_group_async(dispatch_group_t group, dispatch_queue_t queue, dispatch_block_t block) {
  checked(group, "dispatch_group_async")->retain();
  dispatch_group_enter(group);
  auto* work = new GroupWork{group, _Block_copy(checked_block(block, "dispatch_group_async"))};
  dispatch_async_f(queue, work, run_in_group);
}

void dispatch_group_notify(dispatch_group_t group, dispatch_queue_t queue, dispatch_block_t block) {
  checked(group, "dispatch_group_notify");
  checked(queue, "dispatch_group_notify")->retain();
  {
    EngineCall unseen;
    std::lock_guard<std::mutex> lock(group->mutex);
    group->notices.push_back({queue, reinterpret_cast<dispatch_block_t>(_Block_copy(block))});
  }
  if (group->count.value() == 0) deliver(group->take_notices());
}

}  // extern "C"
