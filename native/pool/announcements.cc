#include "announcements.h"

#include <algorithm>

namespace mpsforge::pool {

// Both stores and both loads of this file are sequentially consistent: of a guard and a birth that meet, at least one
// sees the other.
uint64_t Announcements::announce() {
  uint64_t number = 0;
  {
    const std::lock_guard<std::mutex> lock(slots_mutex_);
    number = ++last_;
    slots_.insert(number);
  }
  sync::point("announced");
  return number;
}

void Announcements::retract(uint64_t number) noexcept {
  {
    const std::lock_guard<std::mutex> lock(slots_mutex_);
    slots_.erase(number);
  }
  if (!awaited_) return;
  const sync::Lock lock(ended_mutex_);
  ended_.notify_all();
}

std::set<uint64_t> Announcements::in_flight() {
  const std::lock_guard<std::mutex> lock(slots_mutex_);
  return slots_;
}

void Announcements::birth() {
  const sync::Lock one(births_);
  if (several_) return;
  awaited_ = true;
  several_ = true;
  sync::point("several streams");
  const std::set<uint64_t> before = in_flight();
  sync::Lock lock(ended_mutex_);
  for (;;) {
    const std::set<uint64_t> now = in_flight();
    if (std::none_of(before.begin(), before.end(), [&](uint64_t number) { return now.count(number) != 0; })) break;
    sync::note("birth");
    ended_.wait(lock);
  }
  awaited_ = false;
}

}  // namespace mpsforge::pool
