// A serial dispatch queue: blocks one after another, on the callers' threads or on its own.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>

#include "../schedule/sync.h"
#include "device.h"
#include "handle.h"
#include "metal.h"
#include "order.h"
#include "threads.h"

namespace mpsforge::metal {

class SerialQueue : public std::enable_shared_from_this<SerialQueue> {
 public:
  SerialQueue(std::shared_ptr<Device> device, const std::string& label);

  // --- without the device's mutex. After a deadlock among serial queues dispatch_sync returns without having run its
  // function.
  void dispatch_sync(mpsforge_metal_function function, void* context);
  void dispatch_async(mpsforge_metal_function function, void* context);
  bool is_current() const;
  void release();

  // --- with the device's mutex
  bool idle() const { return serving_ == next_; }
  void wake() { turn_.notify_all(); }
  sync::Thread take() { return std::move(thread_); }
  // The thread that runs a block, or nullptr.
  const CpuThread* owner() const { return owner_.load(std::memory_order_relaxed); }

  const std::shared_ptr<Device> device;
  const std::string label;

 private:
  struct Item {
    uint64_t ticket;
    mpsforge_metal_function function;
    void* context;
    Clock put;
  };

  void run_block(sync::Lock& lock, const ThreadPointer& thread, mpsforge_metal_function function, void* context);
  void run();
  sync::Condition& turn_of(uint64_t ticket) { return turns_[ticket % turns_.size()]; }

  uint64_t next_ = 0;           // ticket
  uint64_t serving_ = 0;        // ticket
  std::set<uint64_t> skipped_;  // by a deadlock
  std::deque<Item> items_;
  // Written under the mutex. A thread may ask without it whether it is the one: only it can make that so.
  std::atomic<const CpuThread*> owner_{nullptr};
  ThreadPointer owner_kept_;
  Clock last_;  // what the last block's end carries
  bool released_ = false;
  // Of the callers of dispatch_sync by ticket: with one for all, each block of a queue would wake all who wait for it.
  std::array<sync::Condition, 64> turns_;
  sync::Condition turn_;  // of the queue's own thread, and of whoever waits for its end
  sync::Thread thread_;
};

}  // namespace mpsforge::metal

struct mpsforge_metal_serial_queue : mpsforge::metal::Handle {
  explicit mpsforge_metal_serial_queue(std::shared_ptr<mpsforge::metal::SerialQueue> object)
      : Handle(mpsforge::metal::HandleKind::SerialQueue), object(std::move(object)) {}
  std::string label() const override { return object->label; }
  const std::shared_ptr<mpsforge::metal::SerialQueue> object;
};
