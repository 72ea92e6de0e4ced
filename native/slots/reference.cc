// The reference slot allocator: the plainest code that satisfies rules 2, 7 and 8. It judges PyTorch's, so it shares no
// code with it. Here each change looks for all free slots and wakes all waiters; there a returned slot goes straight to
// the first waiter.
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "slots.h"

namespace {

// A thread in the queue, on that thread's stack.
struct Ticket {
  bool served = false;
  uint32_t slot = 0;
};

class ReferenceSlots {
 public:
  explicit ReferenceSlots(const mpsforge_slots_config& config)
      : config_(config), leased_(config.worker_slots, false), generation_(config.worker_slots, 0) {}

  mpsforge_slots_result acquire() {
    std::unique_lock<std::mutex> lock(mutex_);
    Ticket ticket;
    queue_.push_back(&ticket);
    serve();
    if (ticket.served) {
      return lease(ticket.slot);
    }
    if (config_.policy == MPSFORGE_SLOTS_SHARE) {
      leave(ticket);
      ++numbers_.shares;
      return {MPSFORGE_SLOTS_SHARED, 0, 0, numbers_.shares == 1 ? 1u : 0u};
    }
    ++numbers_.waits;
    wait(lock, ticket);
    if (!ticket.served) {
      leave(ticket);
      ++numbers_.exhausted;
      return {MPSFORGE_SLOTS_EXHAUSTED, 0, 0, 0};
    }
    return lease(ticket.slot);
  }

  bool release(uint32_t slot, uint64_t generation) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (slot >= leased_.size() || !leased_[slot] || generation_[slot] != generation) {
      ++numbers_.refused;
      return false;
    }
    leased_[slot] = false;
    ++generation_[slot];
    --numbers_.live;
    serve();
    return true;
  }

  mpsforge_slots_statistics statistics() {
    std::lock_guard<std::mutex> lock(mutex_);
    mpsforge_slots_statistics result = numbers_;
    result.waiting = queue_.size();
    return result;
  }

  std::string message(int which) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::string text = which == MPSFORGE_SLOTS_SHARE_WARNING ? "sharing the default stream: " : "no stream slot: ";
    return text + std::to_string(numbers_.live) + " live threads hold all " + std::to_string(leased_.size()) +
           " worker slots; PYTORCH_MPS_STREAM_POOL_SIZE is " + std::to_string(leased_.size() + 1);
  }

 private:
  // Gives free slots to tickets, first come first served, lowest slot first.
  void serve() {
    for (uint32_t slot = 0; slot < leased_.size() && !queue_.empty(); ++slot) {
      if (leased_[slot]) continue;
      leased_[slot] = true;
      ++generation_[slot];
      ++numbers_.leases;
      if (++numbers_.live > numbers_.peak) numbers_.peak = numbers_.live;
      queue_.front()->slot = slot;
      queue_.front()->served = true;
      queue_.pop_front();
    }
    served_.notify_all();
  }

  void wait(std::unique_lock<std::mutex>& lock, const Ticket& ticket) {
    const int64_t limit = config_.policy == MPSFORGE_SLOTS_ERROR ? 100 : config_.wait_ms;
    const int64_t year = int64_t{365} * 24 * 3600 * 1000;
    auto is_served = [&] { return ticket.served; };
    if (limit < 0 || limit > year) {
      served_.wait(lock, is_served);
    } else {
      served_.wait_for(lock, std::chrono::milliseconds(limit), is_served);
    }
  }

  void leave(const Ticket& ticket) {
    for (auto place = queue_.begin(); place != queue_.end(); ++place) {
      if (*place == &ticket) {
        queue_.erase(place);
        return;
      }
    }
  }

  mpsforge_slots_result lease(uint32_t slot) const { return {MPSFORGE_SLOTS_LEASED, slot, generation_[slot], 0}; }

  const mpsforge_slots_config config_;
  std::mutex mutex_;
  std::condition_variable served_;
  std::deque<Ticket*> queue_;
  std::vector<bool> leased_;
  std::vector<uint64_t> generation_;  // odd while leased
  mpsforge_slots_statistics numbers_{};
};

ReferenceSlots* implementation(mpsforge_slots* self) { return reinterpret_cast<ReferenceSlots*>(self); }

void copy_text(const std::string& text, char* buffer, size_t size) {
  if (size == 0) return;
  const size_t length = text.size() < size ? text.size() : size - 1;
  std::memcpy(buffer, text.data(), length);
  buffer[length] = '\0';
}

// Whether text is a whole number in low..high: digits, with one '-' before them if negative, and nothing else.
bool whole_number(const std::string& text, int64_t low, int64_t high, int64_t* value) {
  const size_t digits = text.rfind('-', 0) == 0 ? 1 : 0;
  if (text.size() == digits || text.find_first_not_of("0123456789", digits) != std::string::npos) return false;
  errno = 0;
  const long long number = std::strtoll(text.c_str(), nullptr, 10);
  if (errno != 0 || number < low || number > high) return false;
  *value = number;
  return true;
}

int parse(const char* pool_size, const char* exhausted, mpsforge_slots_config* config, char* buffer,
          size_t size) noexcept {
  std::string warnings;
  int count = 0;
  auto warn = [&](const char* name, const std::string& text, const char* rule) {
    warnings += std::string(count++ > 0 ? "\n" : "") + name + "=" + text + " " + rule;
  };
  *config = {31, MPSFORGE_SLOTS_SHARE, -1};
  int64_t streams = 32;
  if (pool_size && !whole_number(pool_size, 2, MPSFORGE_SLOTS_MAX + 1, &streams)) {
    warn("PYTORCH_MPS_STREAM_POOL_SIZE", pool_size, "is not in 2..1024; using 32");
  }
  config->worker_slots = static_cast<uint32_t>(streams - 1);
  const std::string word = exhausted ? exhausted : "share";
  if (word == "wait" ||
      (word.compare(0, 5, "wait:") == 0 && whole_number(word.c_str() + 5, 0, INT64_MAX, &config->wait_ms))) {
    config->policy = MPSFORGE_SLOTS_WAIT;
  } else if (word == "error") {
    config->policy = MPSFORGE_SLOTS_ERROR;
  } else if (word != "share") {
    warn("PYTORCH_MPS_STREAM_POOL_EXHAUSTED", word, "is none of share, wait, wait:500, error; using share");
  }
  copy_text(warnings, buffer, size);
  return count;
}

mpsforge_slots* create(const mpsforge_slots_config* config) noexcept {
  if (config->worker_slots < 1 || config->worker_slots > MPSFORGE_SLOTS_MAX || config->policy > MPSFORGE_SLOTS_ERROR) {
    return nullptr;
  }
  try {
    return reinterpret_cast<mpsforge_slots*>(new ReferenceSlots(*config));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

const mpsforge_slots_api reference = {
    MPSFORGE_SLOTS_ABI,
    []() noexcept { return "mpsforge reference slots"; },
    create,
    [](mpsforge_slots* self) noexcept { delete implementation(self); },
    [](mpsforge_slots* self, mpsforge_slots_result* result) noexcept { *result = implementation(self)->acquire(); },
    [](mpsforge_slots* self, uint32_t slot, uint64_t generation) noexcept -> int {
      return implementation(self)->release(slot, generation);
    },
    [](mpsforge_slots* self, mpsforge_slots_statistics* result) noexcept {
      *result = implementation(self)->statistics();
    },
    [](mpsforge_slots* self, int which, char* buffer, size_t size) noexcept {
      const std::string text = implementation(self)->message(which);
      copy_text(text, buffer, size);
      return text.size();
    },
    parse,
};

}  // namespace

extern "C" const mpsforge_slots_api* mpsforge_slots_reference(void) { return &reference; }
