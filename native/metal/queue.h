// A command queue: its command buffers in the order of enqueue, and the executor thread that runs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../schedule/sync.h"
#include "device.h"
#include "handle.h"
#include "metal.h"
#include "order.h"
#include "threads.h"

namespace mpsforge::metal {

class CommandBuffer;

// All functions are called with the device's mutex held.
class Queue : public std::enable_shared_from_this<Queue> {
 public:
  Queue(std::shared_ptr<Device> device, const std::string& label);

  // A command buffer; blocks while there are too many that have not completed. nullptr after a deadlock, and of a
  // closed device.
  std::shared_ptr<CommandBuffer> create(sync::Lock& lock, const ThreadPointer& thread, const char* call);
  void enqueue(std::shared_ptr<CommandBuffer> buffer);
  void commit(CommandBuffer& buffer);   // after it was enqueued
  void abandon(CommandBuffer& buffer);  // released without commit
  void inject(uint32_t kind, uint32_t n);
  void resume();
  void release();  // by the program
  void wake() { wake_.notify_all(); }

  // Committed buffers that have not ended.
  size_t in_flight() const { return in_flight_; }
  // Ends those that the executor did not get to.
  void give_up();
  bool will_signal(const Event& event, uint64_t value, std::string* by) const;
  void add_waiters(const Event& event, std::vector<std::pair<std::string, uint64_t>>* to) const;
  // The first buffer before this one and why it has not ended; empty if there is none.
  std::string describe_ahead(const CommandBuffer& buffer) const;
  bool finished() const { return finished_; }
  void run();  // the executor's program

  const std::shared_ptr<Device> device;
  const uint64_t sequence;  // of its draws from the seed
  const std::shared_ptr<const std::string> name;
  const char* const interned;
  sync::Condition changed;  // the number of buffers

 private:
  // executor.cc
  void schedule();
  void execute(sync::Lock& lock, const std::shared_ptr<CommandBuffer>& buffer);
  std::string hold(sync::Lock& lock, CommandBuffer& buffer);
  bool wait_for_event(sync::Lock& lock, const CommandBuffer& buffer, Event& event, uint64_t value, uint32_t command);
  void end(const std::shared_ptr<CommandBuffer>& buffer, const std::string& error);

  std::deque<std::shared_ptr<CommandBuffer>> order_;  // enqueued and not ended
  size_t uncompleted_ = 0;                            // created and neither ended nor abandoned
  size_t uncommitted_ = 0;                            // of these
  size_t in_flight_ = 0;                              // and of these
  uint64_t commits_ = 0;
  std::map<uint64_t, uint32_t> injections_;  // by the number of the commit, bits as in CommandBuffer
  bool released_ = false;
  bool started_ = false;
  bool finished_ = false;
  uint64_t delays_ = 0;  // of the executor alone
  Actor actor_ = 0;
  sync::Condition wake_;  // the executor
};

}  // namespace mpsforge::metal

struct mpsforge_metal_queue : mpsforge::metal::Handle {
  explicit mpsforge_metal_queue(std::shared_ptr<mpsforge::metal::Queue> object)
      : Handle(mpsforge::metal::HandleKind::Queue), object(std::move(object)) {}
  std::string label() const override { return *object->name; }
  const std::shared_ptr<mpsforge::metal::Queue> object;
};
