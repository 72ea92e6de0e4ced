// Who has which worker slot (rules 2, 7, 8).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "../schedule/sync.h"
#include "configuration.h"

namespace mpsforge::pool {

class Leases {
 public:
  struct Statistics {
    uint64_t live = 0, peak = 0, leases = 0, waits = 0, shares = 0;
  };

  explicit Leases(const Configuration& configuration);

  // Leases the lowest free slot; nothing: the thread is to share the default stream. Throws Failure if there is none
  // and the policy does not share. May wait, first come first served. *first_share: this is the first one that shares.
  std::optional<uint32_t> acquire(bool* first_share);
  void release(uint32_t slot);
  Statistics statistics();
  std::string share_warning();

 private:
  // A thread in the queue, on that thread's stack.
  struct Ticket {
    std::optional<uint32_t> slot;
  };

  void serve();
  void wait(sync::Lock& lock, const Ticket& ticket);
  std::string situation() const;

  const Exhausted policy_;
  const int64_t wait_ms_;
  sync::Mutex mutex_;  // guards what follows; a leaf
  sync::Condition served_;
  std::deque<Ticket*> queue_;
  std::vector<bool> leased_;
  Statistics numbers_;
};

}  // namespace mpsforge::pool
