#include "leases.h"

#include <algorithm>
#include <chrono>

#include "failure.h"

namespace mpsforge::pool {

Leases::Leases(const Configuration& configuration)
    : policy_(configuration.exhausted), wait_ms_(configuration.wait_ms), leased_(configuration.worker_streams, false) {}

std::optional<uint32_t> Leases::acquire(bool* first_share) {
  *first_share = false;
  sync::Lock lock(mutex_);
  Ticket ticket;
  queue_.push_back(&ticket);
  serve();
  if (!ticket.slot && policy_ != Exhausted::Share) {
    ++numbers_.waits;
    wait(lock, ticket);
  }
  if (ticket.slot) return ticket.slot;
  queue_.erase(std::find(queue_.begin(), queue_.end(), &ticket));
  if (policy_ != Exhausted::Share) throw Failure("no stream slot: " + situation());
  *first_share = ++numbers_.shares == 1;
  return std::nullopt;
}

void Leases::release(uint32_t slot) {
  sync::Lock lock(mutex_);
  leased_[slot] = false;
  --numbers_.live;
  serve();
}

Leases::Statistics Leases::statistics() {
  sync::Lock lock(mutex_);
  return numbers_;
}

std::string Leases::share_warning() {
  sync::Lock lock(mutex_);
  return "sharing the default stream: " + situation();
}

// Gives free slots to tickets, first come first served, lowest slot first.
void Leases::serve() {
  bool any = false;
  for (uint32_t slot = 0; slot < leased_.size() && !queue_.empty(); ++slot) {
    if (leased_[slot]) continue;
    leased_[slot] = true;
    ++numbers_.leases;
    numbers_.peak = std::max(numbers_.peak, ++numbers_.live);
    queue_.front()->slot = slot;
    queue_.pop_front();
    any = true;
  }
  if (any) served_.notify_all();
}

void Leases::wait(sync::Lock& lock, const Ticket& ticket) {
  // Rule 8: `error` still waits so long for a slot on its way back from a finished thread.
  const int64_t limit = policy_ == Exhausted::Error ? 100 : wait_ms_;
  // Longer than any process runs; larger numbers would overflow in the clock's arithmetic.
  const int64_t year = int64_t{365} * 24 * 3600 * 1000;
  auto served = [&] { return ticket.slot.has_value(); };
  if (limit < 0 || limit > year) {
    served_.wait(lock, served);
  } else {
    served_.wait_for(lock, std::chrono::milliseconds(limit), served);
  }
}

std::string Leases::situation() const {
  return std::to_string(numbers_.live) + " live threads hold all " + std::to_string(leased_.size()) +
         " worker slots; PYTORCH_MPS_STREAM_POOL_SIZE is " + std::to_string(leased_.size() + 1);
}

}  // namespace mpsforge::pool
