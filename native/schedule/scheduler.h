// A cooperative scheduler for tests of concurrent programs: of all threads one runs at a time, and only at scheduling
// points (each lock, wait and, for instrumented code, atomic operation) may another take over. The choices made at
// these points are enumerated depth first, or drawn from a seed. The method is that of CHESS (Musuvathi and others,
// OSDI 2008): schedules with few pre-emptions first, because few suffice for most bugs.
//
// What it explores is sequentially consistent; orders that only weak memory allows are ThreadSanitizer's job.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
  static constexpr int kUnbounded = 1 << 30;

  struct Options {
    // How often a schedule may take the processor from a thread that could go on, or wake a waiter at an odd time.
    int preemptions = kUnbounded;
    // Whether every choice but the first counts as one, also that of who goes on where a thread cannot. Programs with
    // many threads that wait for each other have too many schedules otherwise (delay bounding: Emmi and others, POPL
    // 2011).
    bool count_every_choice = false;
    // Whether waits may end without a notification, and timed ones by time, while other threads can go on. Where not,
    // time passes only when nothing else can happen.
    bool odd_wakeups = false;
  };

  explicit Scheduler(const Options& options);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Runs the programs, one a thread, under the current schedule, with all threads that they spawn. Returns false if the
  // run got stuck, every thread waiting for another, and no on_stuck function helped: its threads can only be left
  // behind, and this object with them (never destroy it then).
  bool run(const std::vector<std::function<void()>>& programs);
  // Moves on to the next schedule. False if there is none.
  bool advance();
  // From now on every run draws its choices from the seed; advance does nothing.
  void draw(uint64_t seed);
  // Whether the last run went another way than its schedule says: then the program under test is not deterministic, or
  // the schedule is another program's.
  bool diverged() const { return diverged_; }
  // Makes the current schedule the one that describe() once named. False if the text is none.
  bool replay(const std::string& description);
  // Names the current schedule: the choices that are not the default, as "index=choice,...".
  std::string describe() const;
  // The steps of the current run, for people.
  std::string trace() const;
  size_t steps() const { return steps_.size(); }
  // Calls on_failure with the message and ends the process: its threads may be stuck in the code under test.
  [[noreturn]] void fail(const std::string& message);
  std::function<void(const std::string&)> on_failure;

  // A moment in logical time, later than all before.
  uint64_t tick() { return ++clock_; }
  // When the calling thread last began to wait for a notification since clear_waited, or 0.
  uint64_t waited() const;
  void clear_waited();

  // What follows is for the types of sync.h and of the end of this file. self() is the calling thread, or -1 where
  // nothing is scheduled.
  static Scheduler* current();
  static int self();
  void point(const char* what);
  void note(const char* what) { steps_.emplace_back(self(), what); }
  void block_for_mutex(const void* mutex);
  void mutex_freed(const void* mutex);
  // Blocks until notified, or until the schedule wakes the thread for no reason or, if timed, because time is up.
  // Returns false in the last case.
  bool block_for_notification(const void* condition, bool timed);
  void notify(const void* condition, bool all);
  void condition_born(const void* condition);
  void condition_died(const void* condition);
  bool condition_alive(const void* condition) const { return conditions_.count(condition) != 0; }
  int spawn(std::function<void()> program);
  void block_for_end(int thread);
  uint64_t add_stuck(std::function<void()> function);
  void remove_stuck(uint64_t number);

 private:
  enum class State { Ready, WaitsForMutex, WaitsForNotification, WaitsForEnd, Finished };
  struct Thread {
    State state = State::Finished;
    const void* object = nullptr;  // what it waits for
    int awaited = -1;              // whose end it waits for
    bool timed = false;
    bool notified = false;
    uint64_t waited = 0;
    std::function<void()> program;
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
  void find_options(int self);
  size_t choose();
  void hand_over(int from, int to);
  bool all_finished() const;
  void give_up(int self);

  const Options limits_;
  std::vector<std::unique_ptr<Thread>> threads_;  // workers are kept from run to run
  int active_ = 0;                                // threads of this run
  int budget_ = 0;
  std::vector<Option> open_;
  std::vector<Choice> choices_;
  size_t position_ = 0;
  bool diverged_ = false;
  bool drawn_ = false;
  uint64_t random_ = 0;
  uint64_t clock_ = 0;
  std::set<const void*> conditions_;
  std::map<uint64_t, std::function<void()>> stuck_functions_;
  uint64_t stuck_number_ = 0;
  bool helped_ = false;  // the on_stuck functions were called in this run
  std::vector<std::pair<int, const char*>> steps_;

  std::mutex mutex_;  // guards turn_, quit_ and stuck_
  int turn_ = -1;     // the thread that runs; -1: the caller of run()
  bool quit_ = false;
  bool stuck_ = false;
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

  void notify_one() { notify(false); }
  void notify_all() { notify(true); }

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
  void notify(bool all) {
    auto* scheduler = schedule::Scheduler::current();
    if (schedule::Scheduler::self() >= 0) scheduler->point("notify");
    if (!scheduler->condition_alive(this)) scheduler->fail("a condition variable is notified after its end");
    scheduler->notify(this, all);
  }
  template <class Lock>
  bool block(Lock& lock, bool timed) {
    lock.unlock();  // no scheduling point, so that this and the next step are one
    const bool in_time = schedule::Scheduler::current()->block_for_notification(this, timed);
    lock.lock();
    return in_time;
  }
};

}  // namespace std
