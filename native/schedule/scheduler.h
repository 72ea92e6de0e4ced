// A cooperative scheduler for exhaustive tests of small concurrent programs: of all threads one runs at a time, and
// only at scheduling points (each atomic operation, lock and wait) may another take over. The choices made at these
// points are enumerated depth first. The method is that of CHESS (Musuvathi and others, OSDI 2008): schedules with few
// pre-emptions first, because few suffice for most bugs.
//
// What it explores is sequentially consistent; orders that only weak memory allows are ThreadSanitizer's job.
#ifndef MPSFORGE_NATIVE_SCHEDULE_SCHEDULER_H
#define MPSFORGE_NATIVE_SCHEDULE_SCHEDULER_H

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace schedule {

// One run of some thread programs under one schedule after another. Only one Scheduler may exist at a time.
class Scheduler {
 public:
  // preemptions: how often a schedule may take the processor from a thread that could go on, or wake a waiter without
  // a notification.
  Scheduler(size_t threads, int preemptions);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Runs the programs, one a thread, under the current schedule.
  void run(const std::vector<std::function<void()>>& programs);
  // Moves on to the next schedule. False if there is none.
  bool advance();
  // Makes the current schedule the one that describe() once named.
  void replay(const std::string& description);
  // Names the current schedule: the choices that are not the default, as "index=choice,...".
  std::string describe() const;
  // The steps of the current run, for people.
  std::string trace() const;
  // Ends the process with a report about the current schedule.
  [[noreturn]] void fail(const std::string& message);
  // Called by fail with the message; set by the program.
  std::function<void(const std::string&)> on_failure;

  // A moment in logical time, later than all before.
  uint64_t tick() { return ++clock_; }
  // When the calling thread last began to wait for a notification since clear_waited, or 0.
  uint64_t waited() const;
  void clear_waited();

  // For the instrumented types below. self() is the calling thread, or -1 outside run(), where nothing is scheduled.
  static Scheduler* current();
  static int self();
  void point(const char* what);
  void block_for_mutex(const void* mutex);
  // Blocks until notified, or until the schedule wakes the thread for no reason or, if timed, because time is up.
  // Returns false in the last case.
  bool block_for_notification(const void* condition, bool timed);
  void mutex_freed(const void* mutex);
  void notify(const void* condition, bool all);
  void condition_born(const void* condition);
  void condition_died(const void* condition);

 private:
  enum class State { Ready, WaitsForMutex, WaitsForNotification, Finished };
  struct Thread {
    State state = State::Finished;
    const void* object = nullptr;  // what it waits for
    bool timed = false;
    bool notified = false;
    uint64_t waited = 0;
    std::condition_variable turn;
    std::thread worker;
  };
  struct Choice {
    size_t taken;
    size_t count;
  };
  struct Option {
    int thread;
    int cost;
  };

  void work(int self);
  // Picks who runs next and hands over to it. The caller's own state is already set.
  void yield(int self);
  std::vector<Option> options(int self) const;
  void hand_over(int from, int to);

  std::vector<Thread> threads_;
  const int preemptions_;
  int budget_ = 0;
  std::vector<Choice> choices_;
  size_t position_ = 0;
  uint64_t clock_ = 0;
  std::set<const void*> conditions_;
  std::vector<std::pair<int, const char*>> steps_;
  const std::vector<std::function<void()>>* programs_ = nullptr;

  std::mutex mutex_;  // guards turn_ and quit_
  int turn_ = -1;     // the thread that runs; -1: the caller of run()
  bool quit_ = false;
  std::condition_variable idle_;
};

}  // namespace schedule

// Stand-ins for the standard types, for the code under test alone. The macros in instrument.h put them in place, which
// is why they live in std: the code under test says std::mutex. Every operation is sequentially consistent.
namespace std {

template <class T>
class mpsforge_atomic {
 public:
  mpsforge_atomic() = default;
  mpsforge_atomic(T value) : value_(value) {}
  mpsforge_atomic(const mpsforge_atomic&) = delete;
  mpsforge_atomic& operator=(const mpsforge_atomic&) = delete;

  T load(memory_order = memory_order_seq_cst) const { return at("load"), value_; }
  void store(T value, memory_order = memory_order_seq_cst) { at("store"), value_ = value; }
  T exchange(T value, memory_order = memory_order_seq_cst) { return at("exchange"), std::exchange(value_, value); }
  T fetch_add(T n, memory_order = memory_order_seq_cst) { return at("add"), std::exchange(value_, value_ + n); }
  T fetch_sub(T n, memory_order = memory_order_seq_cst) { return at("subtract"), std::exchange(value_, value_ - n); }
  T fetch_and(T n, memory_order = memory_order_seq_cst) { return at("and"), std::exchange(value_, value_ & n); }
  T fetch_or(T n, memory_order = memory_order_seq_cst) { return at("or"), std::exchange(value_, value_ | n); }
  bool compare_exchange_strong(T& expected, T desired, memory_order = memory_order_seq_cst,
                               memory_order = memory_order_seq_cst) {
    at("compare-exchange");
    if (value_ != expected) {
      expected = value_;
      return false;
    }
    value_ = desired;
    return true;
  }
  bool compare_exchange_weak(T& expected, T desired, memory_order success = memory_order_seq_cst,
                             memory_order failure = memory_order_seq_cst) {
    return compare_exchange_strong(expected, desired, success, failure);
  }
  operator T() const { return load(); }
  T operator=(T value) { return store(value), value; }
  T operator++() { return fetch_add(1) + 1; }
  T operator++(int) { return fetch_add(1); }
  T operator--() { return fetch_sub(1) - 1; }
  T operator--(int) { return fetch_sub(1); }

 private:
  static void at(const char* what) {
    if (schedule::Scheduler::self() >= 0) schedule::Scheduler::current()->point(what);
  }
  T value_{};
};

class mpsforge_mutex {
 public:
  void lock() {
    if (schedule::Scheduler::self() < 0) return;
    schedule::Scheduler::current()->point("lock");
    while (held_) schedule::Scheduler::current()->block_for_mutex(this);
    held_ = true;
  }
  bool try_lock() {
    if (schedule::Scheduler::self() < 0) return true;
    schedule::Scheduler::current()->point("try-lock");
    return !std::exchange(held_, true);
  }
  void unlock() {
    if (schedule::Scheduler::self() < 0) return;
    held_ = false;
    schedule::Scheduler::current()->mutex_freed(this);
  }

 private:
  bool held_ = false;
};

class mpsforge_condition_variable {
 public:
  mpsforge_condition_variable() { schedule::Scheduler::current()->condition_born(this); }
  ~mpsforge_condition_variable() { schedule::Scheduler::current()->condition_died(this); }
  mpsforge_condition_variable(const mpsforge_condition_variable&) = delete;
  mpsforge_condition_variable& operator=(const mpsforge_condition_variable&) = delete;

  void notify_one() { schedule::Scheduler::current()->notify(this, false); }
  void notify_all() { schedule::Scheduler::current()->notify(this, true); }

  template <class Lock>
  void wait(Lock& lock) {
    block(lock, false);
  }
  template <class Lock, class Done>
  void wait(Lock& lock, Done done) {
    while (!done()) block(lock, false);
  }
  template <class Lock, class Time>
  cv_status wait_until(Lock& lock, const Time&) {
    return block(lock, true) ? cv_status::no_timeout : cv_status::timeout;
  }
  template <class Lock, class Time, class Done>
  bool wait_until(Lock& lock, const Time& time, Done done) {
    while (!done()) {
      if (wait_until(lock, time) == cv_status::timeout) return done();
    }
    return true;
  }
  template <class Lock, class Time>
  cv_status wait_for(Lock& lock, const Time& time) {
    return wait_until(lock, time);
  }
  template <class Lock, class Time, class Done>
  bool wait_for(Lock& lock, const Time& time, Done done) {
    return wait_until(lock, time, done);
  }

 private:
  template <class Lock>
  bool block(Lock& lock, bool timed) {
    lock.unlock();  // no scheduling point, so that this and the next step are one
    const bool in_time = schedule::Scheduler::current()->block_for_notification(this, timed);
    lock.lock();
    return in_time;
  }
};

}  // namespace std

#endif
