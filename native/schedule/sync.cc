#include "sync.h"

#include <exception>
#include <utility>

#include "scheduler.h"

namespace mpsforge::sync {

using schedule::Scheduler;

bool scheduled() { return Scheduler::self() >= 0; }

void point(const char* what) {
  if (scheduled()) Scheduler::current()->point(what);
}

void note(const char* what) {
  if (scheduled()) Scheduler::current()->note(what);
}

void sleep(std::chrono::microseconds time) {
  if (scheduled()) {
    Scheduler::current()->point("sleep");
  } else {
    std::this_thread::sleep_for(time);
  }
}

uint64_t now() {
  if (scheduled()) return Scheduler::current()->tick();
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

void Mutex::lock() {
  if (!scheduled()) {
    free_.lock();
    return;
  }
  Scheduler::current()->point("lock");
  take();
}

// Without a scheduling point: a wait and its end are one step with what surrounds them.
void Mutex::take() {
  while (held_) Scheduler::current()->block_for_mutex(this);
  held_ = true;
}

bool Mutex::try_lock() {
  if (!scheduled()) return free_.try_lock();
  Scheduler::current()->point("try-lock");
  return !std::exchange(held_, true);
}

void Mutex::unlock() {
  if (!scheduled()) {
    free_.unlock();
    return;
  }
  held_ = false;
  Scheduler::current()->mutex_freed(this);
}

void Condition::notify_one() {
  if (scheduled()) {
    Scheduler::current()->notify(this, false);
  } else {
    free_.notify_one();
  }
}

void Condition::notify_all() {
  if (scheduled()) {
    Scheduler::current()->notify(this, true);
  } else {
    free_.notify_all();
  }
}

bool Condition::block(Lock& lock, bool timed) {
  lock.mutex()->unlock();
  const bool in_time = Scheduler::current()->block_for_notification(this, timed);
  lock.mutex()->take();
  return in_time;
}

void Condition::wait(Lock& lock) {
  if (scheduled()) {
    block(lock, false);
    return;
  }
  std::unique_lock<std::mutex> inner(lock.mutex()->free_, std::adopt_lock);
  free_.wait(inner);
  inner.release();
}

bool Condition::wait_for(Lock& lock, std::chrono::microseconds time) {
  if (scheduled()) return block(lock, true);
  std::unique_lock<std::mutex> inner(lock.mutex()->free_, std::adopt_lock);
  const bool in_time = free_.wait_for(inner, time) == std::cv_status::no_timeout;
  inner.release();
  return in_time;
}

struct Thread::State {
  std::thread free;
  int scheduled = -1;
  bool joined = false;
};

Thread::Thread(std::function<void()> program) : state_(std::make_unique<State>()) {
  if (sync::scheduled()) {
    state_->scheduled = Scheduler::current()->spawn(std::move(program));
  } else {
    state_->free = std::thread(std::move(program));
  }
}

Thread::Thread() = default;
Thread::Thread(Thread&&) noexcept = default;
Thread& Thread::operator=(Thread&&) noexcept = default;

Thread::~Thread() {
  if (joinable()) std::terminate();  // as std::thread does
}

bool Thread::joinable() const { return state_ && !state_->joined; }

void Thread::join() {
  if (state_->scheduled >= 0) {
    Scheduler::current()->block_for_end(state_->scheduled);
  } else {
    state_->free.join();
  }
  state_->joined = true;
}

uint64_t on_stuck(std::function<void()> function) {
  return scheduled() ? Scheduler::current()->add_stuck(std::move(function)) : 0;
}

void remove_stuck(uint64_t number) {
  if (scheduled()) Scheduler::current()->remove_stuck(number);
}

}  // namespace mpsforge::sync
