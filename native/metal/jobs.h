// A thread of the device's own that calls the program's functions one at a time: completion handlers, event listeners.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "../schedule/sync.h"
#include "order.h"
#include "threads.h"

namespace mpsforge::metal {

class CommandBuffer;
class Device;

struct Job {
  std::function<void()> function;
  Clock after;                            // what it comes after, and nothing else
  std::shared_ptr<CommandBuffer> buffer;  // of a handler
  bool completed = false;                 // a completed handler of it
  bool internal = false;                  // not the program's, so not counted
};

// All with the device's mutex held.
class Jobs {
 public:
  // The sequence is that of its delays.
  Jobs(Device& device, uint64_t sequence, const char* name);
  void post(Job job);  // starts the thread on its first use
  bool idle() const { return waiting_.empty() && !running_; }
  // Whether the thread is inside a handler of the buffer.
  bool runs(const CpuThread& thread, const CommandBuffer& buffer) const;
  void wake() { wake_.notify_all(); }
  // For the device to join; not joinable if it never began.
  sync::Thread take() { return std::move(thread_); }

 private:
  void run();

  Device& device_;
  const char* const name_;
  const uint64_t sequence_;
  std::deque<Job> waiting_;
  const Job* running_ = nullptr;
  ThreadPointer self_;
  sync::Condition wake_;
  sync::Thread thread_;
};

}  // namespace mpsforge::metal
