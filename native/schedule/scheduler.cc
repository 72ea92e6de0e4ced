#include "scheduler.h"

#include <cstdlib>
#include <sstream>

namespace schedule {

namespace {
Scheduler* only = nullptr;
thread_local int this_thread = -1;
}  // namespace

Scheduler::Scheduler(size_t threads, int preemptions) : threads_(threads), preemptions_(preemptions) {
  only = this;
  for (size_t i = 0; i < threads; ++i) {
    threads_[i].worker = std::thread([this, i] { work(static_cast<int>(i)); });
  }
}

Scheduler::~Scheduler() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    quit_ = true;
    for (auto& thread : threads_) thread.turn.notify_one();
  }
  for (auto& thread : threads_) thread.worker.join();
  only = nullptr;
}

Scheduler* Scheduler::current() { return only; }
int Scheduler::self() { return this_thread; }

void Scheduler::work(int self) {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    threads_[self].turn.wait(lock, [&] { return quit_ || turn_ == self; });
    if (quit_) return;
    lock.unlock();
    this_thread = self;
    (*programs_)[self]();
    threads_[self].state = State::Finished;
    yield(self);
    this_thread = -1;
    lock.lock();
  }
}

void Scheduler::run(const std::vector<std::function<void()>>& programs) {
  programs_ = &programs;
  position_ = 0;
  clock_ = 0;
  budget_ = preemptions_;
  steps_.clear();
  for (auto& thread : threads_) thread.state = State::Ready;
  yield(-1);
  std::unique_lock<std::mutex> lock(mutex_);
  idle_.wait(lock, [&] { return turn_ == -1; });
}

bool Scheduler::advance() {
  while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().count) choices_.pop_back();
  if (choices_.empty()) return false;
  ++choices_.back().taken;
  return true;
}

std::vector<Scheduler::Option> Scheduler::options(int self) const {
  std::vector<Option> result;
  const bool goes_on = self >= 0 && threads_[self].state == State::Ready;
  if (goes_on) result.push_back({self, 0});
  for (int i = 0; i < static_cast<int>(threads_.size()); ++i) {
    if (i != self && threads_[i].state == State::Ready) result.push_back({i, goes_on ? 1 : 0});
  }
  // A wait may end without a notification at any time, but only a timed one may be counted on to end.
  const bool stuck = result.empty();
  for (int i = 0; i < static_cast<int>(threads_.size()); ++i) {
    const Thread& thread = threads_[i];
    if (thread.state != State::WaitsForNotification) continue;
    if (!stuck) {
      result.push_back({i, 1});
    } else if (thread.timed) {
      result.push_back({i, 0});
    }
  }
  size_t kept = 0;
  for (const Option& option : result) {
    if (option.cost <= budget_) result[kept++] = option;
  }
  result.resize(kept);
  return result;
}

void Scheduler::yield(int self) {
  const std::vector<Option> open = options(self);
  if (open.empty()) {
    for (const auto& thread : threads_) {
      if (thread.state != State::Finished) fail("deadlock: a thread waits and nobody can wake it (lost wake-up)");
    }
    hand_over(self, -1);
    return;
  }
  size_t taken = 0;
  if (open.size() > 1) {
    if (position_ == choices_.size()) choices_.push_back({0, 0});
    Choice& choice = choices_[position_++];
    // A replayed choice comes without its count.
    if (choice.taken >= open.size() || (choice.count != 0 && choice.count != open.size())) {
      fail("the program under test is not deterministic: a schedule could not be repeated");
    }
    choice.count = open.size();
    taken = choice.taken;
  }
  budget_ -= open[taken].cost;
  const int next = open[taken].thread;
  threads_[next].state = State::Ready;
  if (next != self) hand_over(self, next);
}

void Scheduler::hand_over(int from, int to) {
  std::unique_lock<std::mutex> lock(mutex_);
  turn_ = to;
  if (to < 0) {
    idle_.notify_one();
  } else {
    threads_[to].turn.notify_one();
  }
  // A finished thread waits for its next program in work(), the caller of run() there.
  if (from < 0 || threads_[from].state == State::Finished) return;
  threads_[from].turn.wait(lock, [&] { return turn_ == from; });
}

void Scheduler::point(const char* what) {
  yield(this_thread);
  steps_.emplace_back(this_thread, what);
}

void Scheduler::block_for_mutex(const void* mutex) {
  Thread& thread = threads_[this_thread];
  thread.state = State::WaitsForMutex;
  thread.object = mutex;
  yield(this_thread);
}

bool Scheduler::block_for_notification(const void* condition, bool timed) {
  Thread& thread = threads_[this_thread];
  thread.state = State::WaitsForNotification;
  thread.object = condition;
  thread.timed = timed;
  thread.notified = false;
  if (thread.waited == 0) thread.waited = tick();
  steps_.emplace_back(this_thread, "wait");
  yield(this_thread);
  steps_.emplace_back(this_thread, thread.notified ? "notified" : "woken");
  return thread.notified || !timed;
}

void Scheduler::mutex_freed(const void* mutex) {
  for (auto& thread : threads_) {
    if (thread.state == State::WaitsForMutex && thread.object == mutex) thread.state = State::Ready;
  }
}

void Scheduler::notify(const void* condition, bool all) {
  if (this_thread >= 0) point("notify");
  if (conditions_.count(condition) == 0) fail("a condition variable is notified after its end");
  for (auto& thread : threads_) {
    if (thread.state == State::WaitsForNotification && thread.object == condition) {
      thread.state = State::Ready;
      thread.notified = true;
      if (!all) return;
    }
  }
}

void Scheduler::condition_born(const void* condition) { conditions_.insert(condition); }

void Scheduler::condition_died(const void* condition) { conditions_.erase(condition); }

uint64_t Scheduler::waited() const { return threads_[this_thread].waited; }

void Scheduler::clear_waited() { threads_[this_thread].waited = 0; }

std::string Scheduler::describe() const {
  std::string text;
  for (size_t i = 0; i < position_; ++i) {
    if (choices_[i].taken == 0) continue;
    text += (text.empty() ? "" : ",") + std::to_string(i) + "=" + std::to_string(choices_[i].taken);
  }
  return text;
}

void Scheduler::replay(const std::string& description) {
  choices_.clear();
  std::istringstream input(description);
  std::string part;
  while (std::getline(input, part, ',')) {
    const size_t index = std::strtoul(part.c_str(), nullptr, 10);
    const size_t equals = part.find('=');
    if (equals == std::string::npos || index < choices_.size() || index > 100000) fail("not a schedule: " + part);
    choices_.resize(index + 1, {0, 0});
    choices_[index].taken = std::strtoul(part.c_str() + equals + 1, nullptr, 10);
  }
}

std::string Scheduler::trace() const {
  std::string text;
  int last = -1;
  for (const auto& [thread, what] : steps_) {
    text += thread == last ? std::string(" ") : (text.empty() ? "" : "; ") + std::to_string(thread) + ": ";
    text += what;
    last = thread;
  }
  return text;
}

void Scheduler::fail(const std::string& message) {
  on_failure(message);
  std::_Exit(1);  // threads may be stuck in the code under test, so nothing can be taken down
}

}  // namespace schedule
