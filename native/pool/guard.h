// The guard of an operator (docs/dev/spec/guard.md): it orders what the operator does with memory after what others
// have done with it, on other streams and on its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "announcements.h"
#include "blocking.h"
#include "fences.h"
#include "memory.h"
#include "streams.h"

struct mpsforge_pool;

namespace mpsforge::pool {

// The blocks of an operator in the order of its arguments, and whether it writes them.
using Uses = std::vector<std::pair<Block*, bool>>;

// What the guards of a pool have in common.
class Guards {
 public:
  Guards(const Announcements& announcements, Streams& streams, Fences& fences)
      : announcements_(announcements), streams_(streams), fences_(fences) {}

  // Guard rule 10: work outside every guard, by the calling thread on the stream, begins. Does nothing inside a guard
  // or on a queue.
  void fence(Stream& stream);
  // What follows on the stream comes after all that is enqueued anywhere.
  void order_after_all(Stream& stream);

  uint64_t waits() const { return waits_; }
  uint64_t overtakes() const { return overtakes_; }

 private:
  friend class Guard;

  void add_unknown(Positions& needed);
  void order(Stream& stream, Positions needed);

  const Announcements& announcements_;
  Streams& streams_;
  Fences& fences_;
  std::atomic<uint64_t> waits_{0};
  std::atomic<uint64_t> overtakes_{0};
};

// Lives on its thread's stack, inside of the guards that the thread has entered before. A guard is active from its
// beginning to its end, but for where it is suspended. On a queue it has no effect.
class Guard {
 public:
  // Lets the GIL go, decides the stream (a lease, a birth), and enters. Throws Failure if there is no stream.
  Guard(mpsforge_pool& pool, const Uses& uses);
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  Stream& stream() const { return stream_; }
  // Whether the calling thread is in an active guard.
  static bool here() { return !active_guards().empty(); }
  // Runs the function while no guard of the calling thread is active (guard rule 7).
  static void suspended(mpsforge_pool& pool, const std::function<void()>& function);

 private:
  // A block that the guard uses.
  struct Use {
    Block* block;
    bool writes;
    uint64_t ends;  // of the block, when the guard began
    bool pinned = false;
  };
  // A use that no guard further out covers.
  struct Hold {
    Use* use;
    bool writes;  // the use, or one that this covers
    bool locked;  // else a guard further out, on another stream, holds the lock: both read
  };
  // Guards of the thread that are active or suspended together, the outermost first.
  using Group = std::vector<Guard*>;

  static Group active_guards();
  static void enter(const Group& group);
  static void suspend(const Group& group) noexcept;

  static void record(Block& block, bool writes, const Stamp& stamp);

  void enter_inside();
  bool try_enter(const Group& outer);
  void plan(const Group& outer, bool together);
  Hold* holder(const Block* block);
  bool take(const Hold& hold, bool waits, Positions& needed);
  void drop_all(uint64_t position, bool last) noexcept;
  void retract() noexcept;
  void leave() noexcept;

  std::optional<Blocking> gil_;  // let go
  mpsforge_pool& pool_;
  Stream& stream_;
  Guard* const outer_;
  const bool on_queue_;
  std::vector<Use> uses_;
  std::vector<Hold> holds_;
  Group suspended_;         // by this guard, until its end
  uint64_t announced_ = 0;  // of the outermost one of a group
  bool several_ = false;    // as the outermost one of the group has seen it
  bool active_ = false;
};

}  // namespace mpsforge::pool
