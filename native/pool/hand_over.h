// Rule 16: a use of memory is ordered after the last write of it on another stream, and a write after the uses on other
// streams. This is docs/spec/pool.md's hand-over protocol, with two additions that its promise needs.
//
// Entry, off every queue: collect the foreign positions that the stream has not seen; close its own work; close each
// foreign stream up to its position and wait on the CPU until that has run; encode the GPU waits. Then the operator's
// own block, then the exit: stamp what was used and written with the stream's position.
//
// No deadlock: a block on a queue never waits for another queue, so a close always runs; and a GPU wait names a signal
// that is already committed, so the GPU's waits point backwards in the order of commits.
//
// Addition 1, operators in flight. Between its entry and its exit an operator has no stamp. Two operators that use one
// tensor at the same moment, one of them writing, would both find nothing to wait for, and race; the later stamp would
// hide the earlier one. Stock's single queue takes such operators one after another, so a program whose threads add to
// one counter is right there. So an entry marks its blocks, all at once, and waits on the CPU while an operator in
// flight on another stream conflicts. A waiting operator holds no mark, and one in flight waits for closes and the GPU
// alone, so it always comes to its exit. Operators that are nested in others (on a queue here) must not wait: their
// outer operator's marks cover them.
//
// Addition 2, the second stream comes to life. Until then nothing of this runs, and no block has a stamp. The flag
// rises on stream 0's queue (streams.cc), and an operator that has entered without tracking looks again in its own
// block, where that answer is exact: it either encodes before the flag rises, or leaves and enters once more, tracked.
// So all that is untracked on stream 0 has a position that is enqueued before any second stream can use it, and
// "written and used by its owner up to now", asked by that second stream, covers it; pinning that as stamps is then
// exact. Without the second look an operator in flight at the transition could be encoded after the pin and never be
// stamped: with a read of it, a foreign write later races. (An implementation that decides at entry alone, as a
// record-function callback must, may pin the write but not the use: until the first tracked write, a foreign writer has
// to wait for its owner's position at that time. A conflicting operator in flight at the transition itself stays
// uncovered there.)
//
// What takes no part: operators on a queue, and what is encoded past the pool. Such use by the owner is covered while
// the block has no stamp, and before it is reused (memory.cc); a tensor that is handed over after it needs an event.
#ifndef MPSFORGE_NATIVE_POOL_HAND_OVER_H
#define MPSFORGE_NATIVE_POOL_HAND_OVER_H

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>

#include "../schedule/sync.h"
#include "memory.h"
#include "streams.h"

namespace mpsforge::pool {

// The blocks of an operator, and whether it writes them.
using Uses = std::map<Block*, bool>;

class HandOver {
 public:
  HandOver(Streams& streams, Memory& memory) : streams_(streams), memory_(memory) {}

  // Runs encode on the stream's queue, ordered as above. The calling thread is on that queue or on none.
  void perform(Stream& stream, const Uses& uses, const std::function<void()>& encode) noexcept;

  uint64_t waits() const { return waits_; }

 private:
  Positions enter(const Stream& stream, const Uses& uses);
  void order(Stream& stream, Positions needed);
  void exit(const Stream& stream, const Uses& uses, const Positions& waited, uint64_t position);
  static bool conflicts(const Stream& stream, const Uses& uses);
  Positions collect(const Stream& stream, const Uses& uses);

  Streams& streams_;
  Memory& memory_;
  sync::Condition exited_;  // with Memory's mutex
  std::atomic<uint64_t> waits_{0};
};

}  // namespace mpsforge::pool

#endif
