// The fair lock of a buffer: many readers or one writer, in the order of arrival (guard rule 3).
#pragma once

#include <cstdint>
#include <iterator>
#include <set>

namespace mpsforge::pool {

// Guarded by the mutex of the buffer's shard, on whose condition waits who may not enter yet.
class BufferLock {
 public:
  uint32_t arrive(bool writes) {
    if (writes) waiting_writers_.insert(next_);
    return next_++;
  }
  bool may_enter(uint32_t ticket, bool writes) const {
    return ticket == serving_ && !writing_ && (!writes || readers_ == 0);
  }
  // Returns how many writers that arrived earlier are still waiting: they have been overtaken.
  uint64_t enter(uint32_t ticket, bool writes) {
    ++serving_;
    writing_ = writes;
    if (!writes) ++readers_;
    waiting_writers_.erase(ticket);
    const auto later = waiting_writers_.lower_bound(ticket);
    return static_cast<uint64_t>(std::distance(waiting_writers_.begin(), later));
  }
  // Enters if that needs no waiting, behind nobody either.
  bool try_enter(bool writes) {
    if (!may_enter(next_, writes)) return false;
    enter(arrive(writes), writes);
    return true;
  }
  void leave() {
    if (!writing_) --readers_;
    writing_ = false;
  }

 private:
  // An implementation has these four alone, in 8 bytes.
  uint32_t next_ = 0;
  uint32_t serving_ = 0;  // the ticket that is the next to enter
  uint32_t readers_ = 0;
  bool writing_ = false;
  // To count who is overtaken. It decides nothing.
  std::set<uint32_t> waiting_writers_;
};

}  // namespace mpsforge::pool
