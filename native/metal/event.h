// A shared event: a value that only rises, set by commands or by the CPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "device.h"
#include "handle.h"
#include "metal.h"
#include "order.h"
#include "threads.h"

namespace mpsforge::metal {

class Event {
 public:
  Event(std::shared_ptr<Device> device, const std::string& label);

  // --- without the device's mutex
  uint64_t value();
  void set(uint64_t value);
  int wait(uint64_t value, int64_t timeout_ms);
  void notify(uint64_t value, mpsforge_metal_function function, void* context);
  // The program lets go of it.
  void release();

  // --- with the device's mutex
  // Gives it the value, which a signal of the GPU must not lower. The actor is who does it, call what for reports.
  void signal(uint64_t value, Actor actor, const Call& call);
  uint64_t value_now() const { return value_; }
  // A command buffer that gives it the value has been committed.
  void promise(uint64_t value) { promised_ = std::max(promised_, value); }
  // Whether somebody has promised the value. What the CPU will set is not known beforehand.
  bool is_promised(uint64_t value) const { return set_by_cpu_ || value <= std::max(value_, promised_); }
  // A queue that waits is woken by every signal.
  void add_waiter(sync::Condition* condition) { waiters_.push_back(condition); }
  void remove_waiter(sync::Condition* condition) { waiters_.remove(condition); }
  // "event e value 9, now 4, signalled by nobody committed".
  std::string describe_wait(uint64_t value) const;

  // What came before a wait for the value ends.
  Clock reached(uint64_t value) const {
    // An event has the value 0 from the start: no signal gives it.
    return value == 0 ? Clock() : device->checker.reached(signals_, value);
  }

  const std::shared_ptr<Device> device;
  const std::string label;

 private:
  struct Listener {
    uint64_t value;
    std::function<void()> function;
    Clock added;
    Call call;
  };

  void post(const Listener& listener);
  // The CPU may set an event back; Apple's pages do not forbid it. With the device's mutex.
  void lower(uint64_t value);

  uint64_t value_ = 0;
  uint64_t promised_ = 0;
  bool set_by_cpu_ = false;
  Call signalled_;
  Signals signals_;  // guarded by the checker
  std::list<sync::Condition*> waiters_;
  std::vector<Listener> listeners_;
  sync::Condition changed_;
};

}  // namespace mpsforge::metal

struct mpsforge_metal_event : mpsforge::metal::Handle {
  explicit mpsforge_metal_event(std::shared_ptr<mpsforge::metal::Event> object)
      : Handle(mpsforge::metal::HandleKind::Event), object(std::move(object)) {}
  std::string label() const override { return object->label; }
  const std::shared_ptr<mpsforge::metal::Event> object;
};
