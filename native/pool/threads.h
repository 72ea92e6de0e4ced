// What each thread has of a pool: its lease and the stream that is set for it (rules 1 to 3, 5, 29), and what all
// threads have compiled (rule 19).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "caches.h"
#include "configuration.h"
#include "leases.h"
#include "streams.h"
#include "warnings.h"

namespace mpsforge::pool {

// The stream that is set for a thread, and whether the program chose it (rule 29).
struct Choice {
  uint32_t stream = 0;  // plus 1; 0: none
  bool by_program = false;
};

// Touched by its thread alone, but for the pool's end.
struct ThreadState {
  bool main = false;
  bool ended = false;
  bool shares = false;           // rule 8: it found no slot, and keeps to stream 0 until it gives up its place
  std::optional<uint32_t> slot;  // leased
  Choice choice;                 // overrides the thread's own stream
};

class Threads {
 public:
  // The calling thread is the main one (rule 1).
  Threads(const Backend& backend, const Configuration& configuration, Streams& streams, Leases& leases,
          Warnings& warnings);
  ~Threads();  // no thread may be inside a function, nor end
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // Of the calling thread; nullptr when its thread-local objects are gone.
  ThreadState* mine();
  // Rule 5: the override, else the stream on whose queue the thread is, else its lease, else 0. Leases nothing.
  uint32_t current();
  // The same, but leases if the thread has no stream yet. Throws Failure by rule 8. May wait.
  uint32_t working();
  // Whether the thread has a stream: else it leases one when it works.
  bool has_stream();
  // Rule 29. Returns the token of what was set before.
  uint32_t set(uint32_t stream, bool by_program);
  void restore(uint32_t token);  // 0: nothing is set
  // Rule 29: whether the thread orders its copies and events by itself. On a queue it must (rule 11).
  bool orders_itself();
  void release_slot();
  void end_thread();

  ObjectCache graphs;   // rule 19
  ObjectCache kernels;  // rule 20

 private:
  friend class ThreadLocal;

  void end(const std::shared_ptr<ThreadState>& state);
  void give_up(ThreadState& state);
  std::optional<uint32_t> own_stream(const ThreadState& state) const;

  const Configuration configuration_;
  Streams& streams_;
  Leases& leases_;
  Warnings& warnings_;
  const uint64_t number_;  // of the pool, never used again: a thread's state cannot be taken for that of a later pool
};

}  // namespace mpsforge::pool
