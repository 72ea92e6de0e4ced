// The profiler's state (rule 23): shared by all threads, its records counted references.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "../schedule/sync.h"
#include "streams.h"

namespace mpsforge::pool {

class Profiler {
 public:
  void start() { on_ = true; }
  // Off every queue it completes all work and returns when the records up to now are finished: a handler may run later
  // than the wait for its command buffer ends. On a queue it only stops. Throws as Streams::synchronize_device.
  void stop(Streams& streams);
  bool on() const { return on_; }
  // Begins a record that ends when the stream's enqueued work is complete. On the stream's queue, with work enqueued.
  void profile(Stream& stream, const std::string& name);
  uint64_t finished() const;

 private:
  // Shared with the handlers, one of which may run after the pool is gone.
  struct Counts {
    sync::Mutex mutex;  // a leaf
    sync::Condition changed;
    uint64_t begun = 0, finished = 0;
  };
  struct Record {
    std::string name;
    uint32_t stream;
    uint64_t begin, end;  // nanoseconds
  };

  std::atomic<bool> on_{false};
  const std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

}  // namespace mpsforge::pool
