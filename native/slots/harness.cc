#include "harness.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../schedule/random.h"

namespace {

using Clock = std::chrono::steady_clock;

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() { return schedule::splitmix64(state_); }
  uint64_t below(uint64_t bound) { return bound == 0 ? 0 : next() % bound; }

 private:
  uint64_t state_;
};

// The stand-in for a slot's stream. The holder writes owner as plain memory: if the allocator hands a slot over
// without ordering the holders, ThreadSanitizer sees it. holders is relaxed so that it orders nothing by itself.
struct alignas(64) Stream {
  uint64_t owner = 0;
  std::atomic<uint32_t> holders{0};
};

struct Held {
  uint32_t slot;
  uint64_t generation;
};

struct alignas(64) Worker {
  std::vector<mpsforge_history_record> records;
  std::atomic<size_t> done{0};      // records that may be read by others
  std::atomic<uint32_t> inside{0};  // kind + 1 of the operation under way, 0 for none
  std::atomic<bool> ended{false};
};

// Shared by the runner and its threads, so that it outlives whichever ends last.
class History {
 public:
  History(const mpsforge_slots_api* api, const mpsforge_history_options& options, mpsforge_slots* slots)
      : api_(api),
        options_(options),
        slots_(slots),
        streams_(options.config.worker_slots),
        workers_(options.threads),
        base_(Clock::now()) {
    for (auto& worker : workers_) worker.records.resize(options.operations + options.max_held);
  }

  void work(uint32_t thread) {
    Random random(options_.seed * 1000003 + thread);
    std::vector<Held> held;
    std::vector<Held> ended;  // own leases of the past, for stale releases
    ready_.fetch_add(1, std::memory_order_relaxed);
    while (ready_.load(std::memory_order_relaxed) < options_.threads) std::this_thread::yield();
    // Leases outweigh returns, so that threads hold nearly what they may. Half way all of them lease what they may and
    // wait for each other: the pool gets full however few processors there are. Only where a full pool answers at once:
    // the others would wait for leases of those that have arrived.
    const bool meets = options_.config.policy == MPSFORGE_SLOTS_SHARE && options_.operations >= 2 * options_.max_held;
    for (uint32_t i = 0; i < options_.operations; ++i) {
      if (meets && i == options_.operations / 2) {
        for (uint32_t n = 0; n < options_.max_held && held.size() < options_.max_held; ++n, ++i)
          acquire(thread, random, held);
        // Relaxed, as above: no order between threads that the allocator does not make itself.
        full_.fetch_add(1, std::memory_order_relaxed);
        while (full_.load(std::memory_order_relaxed) < options_.threads && !abandoned_) std::this_thread::yield();
        if (i >= options_.operations) break;
      }
      if (random.below(100) < options_.stale_percent) {
        release(thread, stale(random, ended), false);
      } else if (held.empty() || (held.size() < options_.max_held && random.below(4) != 0)) {
        acquire(thread, random, held);
      } else {
        const size_t which = random.below(held.size());
        leave(thread, held[which]);
        release(thread, held[which], true);
        ended.push_back(held[which]);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
      }
    }
    for (const Held& lease : held) {
      leave(thread, lease);
      release(thread, lease, true);
    }
    workers_[thread].ended.store(true);
  }

  // Reads the numbers and a text while the workers change them, until they have ended or are given up.
  void read() {
    char text[256];
    for (size_t ended = 0; ended < workers_.size() && !abandoned_;) {
      ended = 0;
      for (const auto& worker : workers_) ended += worker.ended.load(std::memory_order_relaxed);
      mpsforge_slots_statistics seen;
      api_->statistics(slots_, &seen);
      torn_.fetch_add(!possible(seen), std::memory_order_relaxed);
      api_->message(slots_, MPSFORGE_SLOTS_SHARE_WARNING, text, sizeof text);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  // Returns false if nothing moved for the time given.
  bool wait_for_end() {
    size_t seen = 0;
    auto moved = Clock::now();
    for (;;) {
      size_t done = 0;
      size_t ended = 0;
      for (const auto& worker : workers_) {
        done += worker.done.load();
        ended += worker.ended.load();
      }
      if (ended == workers_.size()) return true;
      const auto now = Clock::now();
      if (done != seen) {
        seen = done;
        moved = now;
      } else if (now - moved > std::chrono::milliseconds(options_.stall_ms)) {
        abandoned_ = true;
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  void report(mpsforge_history_record* records, bool stalled, mpsforge_history_result* result) {
    std::string stuck;
    for (size_t thread = 0; thread < workers_.size(); ++thread) {
      const Worker& worker = workers_[thread];
      const size_t done = worker.done.load();
      std::memcpy(records + result->records, worker.records.data(), done * sizeof *records);
      result->records += done;
      const uint32_t inside = worker.inside.load();
      if (inside != 0) {
        stuck += (stuck.empty() ? "thread " : ", thread ") + std::to_string(thread) +
                 (inside == MPSFORGE_HISTORY_ACQUIRE + 1 ? " in acquire" : " in release") + " (operation " +
                 std::to_string(done) + ")";
      }
    }
    result->overlaps = overlaps_.load();
    result->torn = torn_.load();
    result->stalled = stalled;
    if (stalled) {
      std::strncpy(result->stuck, stuck.c_str(), sizeof result->stuck - 1);
    } else {
      api_->statistics(slots_, &result->statistics);
    }
  }

 private:
  int64_t now() const { return std::chrono::nanoseconds(Clock::now() - base_).count(); }

  // Whether an allocator can have had these numbers at one moment.
  bool possible(const mpsforge_slots_statistics& seen) const {
    return seen.live <= seen.peak && seen.peak <= seen.leases && seen.peak <= options_.config.worker_slots &&
           seen.exhausted + seen.waiting <= seen.waits &&
           (seen.waiting == 0 || seen.live == options_.config.worker_slots);
  }

  void finish(uint32_t thread, const mpsforge_history_record& record) {
    Worker& worker = workers_[thread];
    const size_t done = worker.done.load(std::memory_order_relaxed);
    worker.records[done] = record;
    worker.inside.store(0, std::memory_order_relaxed);
    // Read by the runner alone, so this orders nothing between workers.
    worker.done.store(done + 1, std::memory_order_release);
  }

  void acquire(uint32_t thread, Random& random, std::vector<Held>& held) {
    mpsforge_slots_result result{};
    workers_[thread].inside.store(MPSFORGE_HISTORY_ACQUIRE + 1, std::memory_order_relaxed);
    const int64_t start = now();
    api_->acquire(slots_, &result);
    finish(thread, {start, now(), result.generation, result.slot, thread, MPSFORGE_HISTORY_ACQUIRE, result.outcome,
                    result.first_share, 0});
    if (result.outcome != MPSFORGE_SLOTS_LEASED) {
      std::this_thread::yield();
      return;
    }
    held.push_back({result.slot, result.generation});
    if (result.slot >= streams_.size()) return;  // wrong, and seen so in the record
    Stream& stream = streams_[result.slot];
    if (stream.holders.fetch_add(1, std::memory_order_relaxed) != 0) {
      overlaps_.fetch_add(1, std::memory_order_relaxed);
    }
    stream.owner = mark(thread, held.back());
    for (uint64_t n = random.below(options_.hold_yields + 1); n > 0; --n) std::this_thread::yield();
  }

  void leave(uint32_t thread, const Held& lease) {
    if (lease.slot >= streams_.size()) return;
    Stream& stream = streams_[lease.slot];
    if (stream.owner != mark(thread, lease)) overlaps_.fetch_add(1, std::memory_order_relaxed);
    stream.holders.fetch_sub(1, std::memory_order_relaxed);
  }

  void release(uint32_t thread, const Held& lease, bool valid) {
    workers_[thread].inside.store(MPSFORGE_HISTORY_RELEASE + 1, std::memory_order_relaxed);
    const int64_t start = now();
    const int accepted = api_->release(slots_, lease.slot, lease.generation);
    finish(thread, {start, now(), lease.generation, lease.slot, thread, MPSFORGE_HISTORY_RELEASE, accepted ? 1u : 0u, 0,
                    valid ? 1u : 0u});
  }

  // A lease that is not live: an own one of the past, or one that never was.
  Held stale(Random& random, const std::vector<Held>& ended) const {
    const auto slots = options_.config.worker_slots;
    switch (random.below(4)) {
      case 0:
        return {static_cast<uint32_t>(random.below(slots)), random.below(1000) * 2};  // no lease is even
      case 1:
        return {slots + static_cast<uint32_t>(random.below(100)), 1};  // no such slot
      default:
        if (ended.empty()) return {0, uint64_t{1} << 63 | 1};
        // Mostly the latest: its slot has the best chance to be leased again right now.
        return ended[ended.size() - 1 - random.below(ended.size() < 4 ? ended.size() : 4)];
    }
  }

  static uint64_t mark(uint32_t thread, const Held& lease) { return uint64_t{thread} << 48 ^ lease.generation; }

  const mpsforge_slots_api* api_;
  const mpsforge_history_options options_;
  mpsforge_slots* slots_;
  std::vector<Stream> streams_;
  std::vector<Worker> workers_;
  const Clock::time_point base_;
  std::atomic<uint32_t> ready_{0};
  std::atomic<uint32_t> full_{0};  // threads that have leased what they may, half way
  std::atomic<bool> abandoned_{false};
  std::atomic<uint64_t> overlaps_{0};
  std::atomic<uint64_t> torn_{0};
};

int run(const mpsforge_slots_api* api, const mpsforge_history_options& options, mpsforge_history_record* records,
        mpsforge_history_result* result) {
  mpsforge_slots* slots = api->create(&options.config);
  if (!slots) return -1;
  auto history = std::make_shared<History>(api, options, slots);
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < options.threads; ++thread) {
    threads.emplace_back([history, thread] { history->work(thread); });
  }
  threads.emplace_back([history] { history->read(); });
  const bool ended = history->wait_for_end();
  for (auto& thread : threads) ended ? thread.join() : thread.detach();
  history->report(records, !ended, result);
  if (ended) api->destroy(slots);
  return 0;
}

}  // namespace

extern "C" size_t mpsforge_history_capacity(const mpsforge_history_options* options) {
  return size_t{options->threads} * (size_t{options->operations} + options->max_held);
}

extern "C" int mpsforge_history_run(const mpsforge_slots_api* api, const mpsforge_history_options* options,
                                    mpsforge_history_record* records, size_t capacity,
                                    mpsforge_history_result* result) {
  *result = {};
  if (options->threads < 1 || options->max_held < 1 || capacity < mpsforge_history_capacity(options)) return -1;
  try {
    return run(api, *options, records, result);
  } catch (const std::exception&) {  // no memory or no thread
    return -1;
  }
}
