// Work that no guard knows (guard rule 10): raw encoders, blocks on a queue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "streams.h"

namespace mpsforge::pool {

class Fences {
 public:
  // A stream with such work: all of it up to the position and, while a thread may enqueue more, up to now.
  struct Work {
    uint32_t stream;
    uint64_t position;
    bool open;
  };

  explicit Fences(const Streams& streams) : streams_(streams) {}

  // The calling thread may enqueue such work on the stream from now on.
  void open(uint32_t stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    unknown_[stream].threads.insert(thread());
  }
  // No more: it enters a guard, or ends.
  void settle() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& [id, unknown] : unknown_) {
      if (unknown.threads.erase(thread()) == 0) continue;
      unknown.position = std::max(unknown.position, streams_.enqueued(id));
    }
  }
  std::vector<Work> all() {
    std::vector<Work> result;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [id, unknown] : unknown_) {
      const bool open = !unknown.threads.empty();
      result.push_back({id, open ? streams_.enqueued(id) : unknown.position, open});
    }
    return result;
  }

 private:
  struct Unknown {
    uint64_t position = 0;
    std::set<const void*> threads = {};
  };

  // Its address names the thread.
  static const void* thread() {
    static thread_local char here = 0;
    return &here;
  }

  const Streams& streams_;
  std::mutex mutex_;  // guards unknown_; nothing of sync.h is called under it
  std::map<uint32_t, Unknown> unknown_;
};

}  // namespace mpsforge::pool
