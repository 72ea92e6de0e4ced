#include "scheduler.h"

#ifdef __linux__
#include <sched.h>
#endif

#include <cstdlib>
#include <sstream>

#include "random.h"

namespace schedule {

namespace {

Scheduler* only = nullptr;
thread_local int this_thread = -1;

// One thread runs at a time anyway, and on one processor it is handed over to twice as fast.
void stay_on(int processor) {
#ifdef __linux__
  if (processor < 0) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(processor), &one);
  sched_setaffinity(0, sizeof one, &one);
#else
  (void)processor;
#endif
}

int current_processor() {
#ifdef __linux__
  return sched_getcpu();
#else
  return -1;
#endif
}

}  // namespace

Scheduler::Scheduler(const Options& options) : limits_(options) { only = this; }

Scheduler::~Scheduler() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    quit_ = true;
    for (auto& thread : threads_) thread->turn.notify_one();
  }
  for (auto& thread : threads_) thread->worker.join();
  only = nullptr;
}

Scheduler* Scheduler::current() { return only; }
int Scheduler::self() { return this_thread; }

void Scheduler::work(int self) {
  std::unique_lock<std::mutex> lock(mutex_);
  Thread& own = *threads_[self];
  for (;;) {
    own.turn.wait(lock, [&] { return quit_ || turn_ == self; });
    if (quit_) return;
    lock.unlock();
    this_thread = self;
    own.program();
    own.program = nullptr;
    own.state = State::Finished;
    for (auto& thread : threads_) {
      if (thread->state == State::WaitsForEnd && thread->awaited == self) thread->state = State::Ready;
    }
    yield(self);
    this_thread = -1;
    lock.lock();
  }
}

int Scheduler::spawn(std::function<void()> program) {
  const int number = active_++;
  if (number == static_cast<int>(threads_.size())) {
    std::lock_guard<std::mutex> lock(mutex_);  // workers look themselves up
    threads_.push_back(std::make_unique<Thread>());
    const int processor = number == 0 ? current_processor() : -1;
    threads_.back()->worker = std::thread([this, number, processor] {
      stay_on(processor);  // inherited by the threads that this one spawns
      work(number);
    });
  }
  threads_[number]->program = std::move(program);
  threads_[number]->state = State::Ready;
  return number;
}

bool Scheduler::run(const std::vector<std::function<void()>>& programs) {
  active_ = 0;
  position_ = 0;
  clock_ = 0;
  helped_ = false;
  diverged_ = false;
  budget_ = limits_.preemptions;
  steps_.clear();
  if (drawn_) choices_.clear();
  for (const auto& program : programs) spawn(program);
  yield(-1);
  std::unique_lock<std::mutex> lock(mutex_);
  idle_.wait(lock, [&] { return turn_ == -1 || stuck_; });
  return !stuck_;
}

bool Scheduler::advance() {
  while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().count) choices_.pop_back();
  if (choices_.empty()) return false;
  ++choices_.back().taken;
  return true;
}

void Scheduler::draw(uint64_t seed) {
  drawn_ = true;
  random_ = seed;
}

void Scheduler::find_options(int self) {
  open_.clear();
  const bool goes_on = self >= 0 && threads_[self]->state == State::Ready;
  if (goes_on) open_.push_back({self, 0});
  for (int i = 0; i < active_; ++i) {
    if (i != self && threads_[i]->state == State::Ready) open_.push_back({i, goes_on ? 1 : 0});
  }
  // Any wait may end without a notification, but only a timed one may be counted on to end.
  const bool nobody = open_.empty();
  for (int i = 0; i < active_; ++i) {
    const Thread& thread = *threads_[i];
    if (thread.state != State::WaitsForNotification) continue;
    if (nobody && thread.timed) {
      open_.push_back({i, 0});
    } else if (!nobody && limits_.odd_wakeups) {
      open_.push_back({i, 1});
    }
  }
  size_t kept = 0;
  for (Option option : open_) {
    if (limits_.count_every_choice) option.cost = kept > 0 ? 1 : 0;
    if (option.cost <= budget_) open_[kept++] = option;
  }
  open_.resize(kept);
}

// Which of the open options, of which there is more than one, the schedule takes.
size_t Scheduler::choose() {
  if (drawn_ && position_ == choices_.size()) {
    // Every other time things go on as they are, else threads would hardly ever get two steps ahead of others.
    const uint64_t z = splitmix64(random_);
    choices_.push_back({z & 1 ? 0 : static_cast<size_t>((z >> 1) % open_.size()), open_.size()});
  } else if (position_ == choices_.size()) {
    choices_.push_back({0, 0});
  }
  Choice& choice = choices_[position_++];
  // A replayed choice comes without its count.
  if (choice.taken >= open_.size() || (choice.count != 0 && choice.count != open_.size())) {
    diverged_ = true;
    choice.taken = 0;
  }
  choice.count = open_.size();
  return choice.taken;
}

void Scheduler::yield(int self) {
  find_options(self);
  if (open_.empty() && all_finished()) {
    hand_over(self, -1);
    return;
  }
  if (open_.empty() && !helped_ && !stuck_functions_.empty()) {
    helped_ = true;
    spawn([functions = stuck_functions_] {
      for (const auto& [number, function] : functions) function();
    });
    find_options(self);
  }
  if (open_.empty()) {
    give_up(self);
    return;
  }
  const Option taken = open_[open_.size() > 1 ? choose() : 0];
  budget_ -= taken.cost;
  threads_[taken.thread]->state = State::Ready;
  if (taken.thread != self) hand_over(self, taken.thread);
}

bool Scheduler::all_finished() const {
  for (int i = 0; i < active_; ++i) {
    if (threads_[i]->state != State::Finished) return false;
  }
  return true;
}

// Lets run() return and keeps the calling thread here for ever.
void Scheduler::give_up(int self) {
  std::unique_lock<std::mutex> lock(mutex_);
  stuck_ = true;
  idle_.notify_one();
  if (self >= 0) threads_[self]->turn.wait(lock, [] { return false; });
}

void Scheduler::hand_over(int from, int to) {
  std::unique_lock<std::mutex> lock(mutex_);
  turn_ = to;
  if (to < 0) {
    idle_.notify_one();
  } else {
    threads_[to]->turn.notify_one();
  }
  // A finished thread waits for its next program in work(), the caller of run() there.
  if (from < 0 || threads_[from]->state == State::Finished) return;
  threads_[from]->turn.wait(lock, [&] { return turn_ == from; });
}

void Scheduler::point(const char* what) {
  yield(this_thread);
  steps_.emplace_back(this_thread, what);
}

void Scheduler::block_for_mutex(const void* mutex) {
  Thread& thread = *threads_[this_thread];
  thread.state = State::WaitsForMutex;
  thread.object = mutex;
  yield(this_thread);
}

void Scheduler::mutex_freed(const void* mutex) {
  for (auto& thread : threads_) {
    if (thread->state == State::WaitsForMutex && thread->object == mutex) thread->state = State::Ready;
  }
}

bool Scheduler::block_for_notification(const void* condition, bool timed) {
  Thread& thread = *threads_[this_thread];
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

void Scheduler::notify(const void* condition, bool all) {
  for (auto& thread : threads_) {
    if (thread->state == State::WaitsForNotification && thread->object == condition) {
      thread->state = State::Ready;
      thread->notified = true;
      if (!all) return;
    }
  }
}

void Scheduler::condition_born(const void* condition) { conditions_.insert(condition); }

void Scheduler::condition_died(const void* condition) { conditions_.erase(condition); }

void Scheduler::block_for_end(int awaited) {
  if (threads_[awaited]->state == State::Finished) return;
  Thread& thread = *threads_[this_thread];
  thread.state = State::WaitsForEnd;
  thread.awaited = awaited;
  yield(this_thread);
}

uint64_t Scheduler::add_stuck(std::function<void()> function) {
  stuck_functions_.emplace(++stuck_number_, std::move(function));
  return stuck_number_;
}

void Scheduler::remove_stuck(uint64_t number) { stuck_functions_.erase(number); }

uint64_t Scheduler::waited() const { return threads_[this_thread]->waited; }

void Scheduler::clear_waited() { threads_[this_thread]->waited = 0; }

std::string Scheduler::describe() const {
  std::string text;
  for (size_t i = 0; i < position_; ++i) {
    if (choices_[i].taken == 0) continue;
    text += (text.empty() ? "" : ",") + std::to_string(i) + "=" + std::to_string(choices_[i].taken);
  }
  return text;
}

bool Scheduler::replay(const std::string& description) {
  choices_.clear();
  drawn_ = false;
  std::istringstream input(description);
  std::string part;
  while (std::getline(input, part, ',')) {
    const size_t index = std::strtoul(part.c_str(), nullptr, 10);
    const size_t equals = part.find('=');
    if (equals == std::string::npos || index < choices_.size() || index > 1000000) return false;
    choices_.resize(index + 1, {0, 0});
    choices_[index].taken = std::strtoul(part.c_str() + equals + 1, nullptr, 10);
  }
  return true;
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
  if (on_failure) on_failure(message);
  std::_Exit(1);
}

}  // namespace schedule
