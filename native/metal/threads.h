// The CPU threads that call a device: their names, and their actors of the happens-before checker.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "order.h"

namespace mpsforge::metal {

class Device;

class CpuThread {
 public:
  explicit CpuThread(uint64_t number, Actor actor);
  // The name, or the number in the order of first calls.
  std::string name() const;
  // Takes the name's interned copy too; see Site.
  void rename(const std::string& name, const char* interned);
  const char* interned() const { return interned_.load(std::memory_order_relaxed); }

  const Actor actor;

 private:
  mutable std::mutex mutex_;
  std::string name_;
  std::atomic<const char*> interned_{""};
};

using ThreadPointer = std::shared_ptr<CpuThread>;

// The calling thread as the device knows it; made known on its first call.
ThreadPointer current_thread(Device& device);

// A call that was made, for reports: which, by whom, and on which command buffer, 0 for none.
struct Call {
  const char* what = "";
  ThreadPointer thread;
  uint64_t buffer = 0;
  std::shared_ptr<const std::string> queue;

  // Empty if there was no call.
  std::string text() const;
};

std::string describe_buffer(uint64_t number, const std::string& queue);

}  // namespace mpsforge::metal
