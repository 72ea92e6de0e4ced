// Threads, mutexes and conditions that run freely, or under the deterministic scheduler where the calling thread is one
// of the scheduler's. The software Metal, the reference pool and the script interpreter use these and no others, so
// that one seed, or one schedule, decides every step of a run.
//
// Under the scheduler every lock() and every point() is a place where another thread may take over; what lies between
// two such places is one step. Time does not pass there: a timed wait ends by time only when nothing else can go on.
// A std::mutex may be used beside these where nothing in this file is called while it is held.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace mpsforge::sync {

// Whether the calling thread is run by the scheduler.
bool scheduled();

// A place where another thread may take over. Does nothing on a thread that runs freely.
void point(const char* what);

// Names what the calling thread is about to wait for, in the trace of a run. No place where another may take over.
void note(const char* what);

// Waits for so long on a thread that runs freely; a point() otherwise.
void sleep(std::chrono::microseconds time);

// Nanoseconds of a clock that only rises: real, or one tick a call under the scheduler.
uint64_t now();

class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void lock();
  bool try_lock();
  void unlock();

 private:
  friend class Condition;
  void take();
  std::mutex free_;
  bool held_ = false;  // under the scheduler
};

using Lock = std::unique_lock<Mutex>;

class Condition {
 public:
  Condition() = default;
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;
  void notify_one();
  void notify_all();
  // May return for no reason: wait in a loop.
  void wait(Lock& lock);
  // Returns false when the time is up.
  bool wait_for(Lock& lock, std::chrono::microseconds time);
  template <class Done>
  void wait(Lock& lock, Done done) {
    while (!done()) wait(lock);
  }
  // Returns done() at the end. The time is that of the whole wait.
  template <class Done>
  bool wait_for(Lock& lock, std::chrono::microseconds time, Done done) {
    const bool real = !scheduled();
    const auto end = std::chrono::steady_clock::now() + time;
    while (!done()) {
      if (real) time = std::chrono::duration_cast<std::chrono::microseconds>(end - std::chrono::steady_clock::now());
      if (time.count() <= 0 || !wait_for(lock, time)) return done();
    }
    return true;
  }

 private:
  bool block(Lock& lock, bool timed);
  std::condition_variable free_;
};

// A thread; scheduled if its creator is. Its program must not throw. It must be joined, by a thread of the same kind,
// before it is destroyed.
class Thread {
 public:
  Thread();
  explicit Thread(std::function<void()> program);
  Thread(Thread&&) noexcept;
  Thread& operator=(Thread&&) noexcept;
  ~Thread();
  bool joinable() const;
  void join();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Calls the function when a scheduled run can go no further because every thread waits: the software Metal then names
// the deadlock and makes its waits fail. Returns a number for remove_stuck. For threads that run freely it is never
// called: a watchdog does that work.
uint64_t on_stuck(std::function<void()> function);
void remove_stuck(uint64_t number);

}  // namespace mpsforge::sync
