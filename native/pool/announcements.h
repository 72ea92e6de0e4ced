// Who is in a guard, and the birth of the second stream (guard rules 2 and 9).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>

#include "../schedule/sync.h"

namespace mpsforge::pool {

// An implementation has a slot a thread; here a set is for all slots, and its changes for their stores.
class Announcements {
 public:
  // A guard begins, or goes on after it was suspended: a store, then a load, in this order for everybody. Returns the
  // number to end it by.
  uint64_t announce();
  // It ends, or is suspended. Neither waits nor throws.
  void retract(uint64_t number) noexcept;
  // Whether a second stream has come to life; it stays so.
  bool several() const { return several_; }
  // Returns when every guard that may not have seen the second stream has ended or is suspended. Holds nothing that a
  // guard needs, so the caller must neither be in a guard nor on a queue.
  void birth();

 private:
  std::set<uint64_t> in_flight();

  std::mutex slots_mutex_;  // nothing of sync.h is called under it: a change of the set is one step, as a store is
  std::set<uint64_t> slots_;
  uint64_t last_ = 0;
  std::atomic<bool> several_{false};
  std::atomic<bool> awaited_{false};  // a birth is under way: who ends wakes it
  sync::Mutex births_;
  sync::Mutex ended_mutex_;
  sync::Condition ended_;
};

}  // namespace mpsforge::pool
