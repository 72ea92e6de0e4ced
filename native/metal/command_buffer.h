// An MTLCommandBuffer: its state machine (docs/dev/spec/metal.md), its commands and its handlers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "../schedule/sync.h"
#include "command.h"
#include "device.h"
#include "handle.h"
#include "metal.h"
#include "order.h"
#include "threads.h"

namespace mpsforge::metal {

class Queue;

// All functions are called with the device's mutex held, unless they say otherwise.
class CommandBuffer : public std::enable_shared_from_this<CommandBuffer> {
 public:
  // By Queue::create alone.
  CommandBuffer(std::shared_ptr<Queue> queue, uint64_t number);
  ~CommandBuffer();
  Device& device() const;  // without the mutex

  // What the program calls. Those that return bool return whether the call was allowed.
  bool enqueue(const ThreadPointer& thread);
  bool commit(const ThreadPointer& thread, const char* call = "commit");
  void add_handler(bool completed, const ThreadPointer& thread, mpsforge_metal_handler handler, void* context);
  void signal(const ThreadPointer& thread, const std::shared_ptr<Event>& event, uint64_t value);
  void wait(const ThreadPointer& thread, const std::shared_ptr<Event>& event, uint64_t value);
  void wait_until_scheduled(sync::Lock& lock, const ThreadPointer& thread);
  void wait_until_completed(sync::Lock& lock, const ThreadPointer& thread);
  uint32_t status(const CpuThread& thread);
  const char* error(const CpuThread& thread);
  mpsforge_metal_times times(const CpuThread& thread);
  bool keep(void* object, mpsforge_metal_function give_back, bool after_handlers);

  // For encoders. The pointer is only an identity.
  bool open(const void* encoder, bool compute, const ThreadPointer& thread, const char* call);
  void close() { open_ = nullptr; }
  // Whether an object is of this device, whose mutex and checker are no others'; a finding if not.
  template <class Object>
  bool accepts(const Object& object, const ThreadPointer& thread, const char* call) const {
    if (object.device == queue_device()) return true;
    refuse_foreign(object.label, thread, call);
    return false;
  }
  const void* open_encoder() const { return open_; }
  const Call& opened() const { return opened_; }
  void add(Command command);

  // Handles and encoders hold it. When the last one lets go before commit, it is gone.
  void hold() { ++holders_; }
  void let_go();

  // For its queue.
  bool is_committed() const { return status_ >= MPSFORGE_METAL_COMMITTED; }
  bool is_enqueued() const { return status_ >= MPSFORGE_METAL_ENQUEUED; }
  bool is_scheduled() const { return status_ >= MPSFORGE_METAL_SCHEDULED; }
  bool is_ended() const { return status_ >= MPSFORGE_METAL_COMPLETED; }
  void schedule();
  void begin();
  // What knows of the end knows the clock.
  void end(const std::string& error, Clock clock);
  void handler_ran(const CpuThread& handler_thread);
  const std::vector<Command>& commands() const { return commands_; }
  const Clock& after() const { return committed_clock_; }
  // Whether a command that has yet to run gives the event the value.
  bool will_signal(const Event& event, uint64_t value) const;
  // The highest value that it has yet to wait for and that the event does not have, or 0.
  uint64_t will_wait(const Event& event) const;
  Call call(const char* what, const ThreadPointer& thread) const;
  std::string describe() const;
  // Where it waits, for reports of deadlocks.
  std::string describe_state() const;

  const std::shared_ptr<Queue> queue;
  const uint64_t number;           // on the device
  uint32_t injected = 0;           // bits 1 << MPSFORGE_METAL_INJECT_...
  std::atomic<uint32_t> begun{0};  // commands; for reports

 private:
  struct Handler {
    mpsforge_metal_handler function;
    void* context;
    Clock added;
  };

  // What it owns, by object, so that a buffer used by many commands is owned once.
  using Kept = std::unordered_map<void*, mpsforge_metal_function>;

  bool may_encode(Rule after_commit, Rule while_encoding, const ThreadPointer& thread, const char* call);
  void refuse_foreign(const std::string& label, const ThreadPointer& thread, const char* call) const;
  const std::shared_ptr<Device>& queue_device() const;  // the queue's class is not known here
  void encoded(const ThreadPointer& thread);
  void check_waits();
  void saw_end(const CpuThread& thread);  // if it has ended
  void post(const std::vector<Handler>& handlers, const Clock& clock, bool completed);
  void post(Kept& kept);
  bool wait_covers_handlers() const;
  size_t first_left() const { return begun > 0 ? begun - 1 : 0; }  // index of the command that runs or comes next

  uint32_t status_ = MPSFORGE_METAL_NOT_ENQUEUED;
  sync::Condition changed_;  // status_ or handlers_left_
  size_t holders_ = 0;
  const void* open_ = nullptr;  // encoder
  Call opened_, enqueued_, committed_;
  std::vector<Command> commands_;
  std::vector<Handler> scheduled_, completed_;
  Kept kept_for_work_, kept_for_handlers_;
  mpsforge_metal_times times_{};
  size_t handlers_left_ = 0;  // completed ones, of an ended buffer
  std::string error_;

  // Of the checker: what encoding threads knew, the last of them apart (it need not be copied for each command of one
  // thread that commits itself), what execution comes after, and what the end of it carries.
  Clock encoded_clock_, last_clock_, committed_clock_, end_clock_;
  ThreadPointer last_thread_;
};

}  // namespace mpsforge::metal

// An MTLCommandBuffer, or an MPSCommandBuffer: then the root changes, under the device's mutex.
struct mpsforge_metal_command_buffer : mpsforge::metal::Handle {
  mpsforge_metal_command_buffer(std::shared_ptr<mpsforge::metal::CommandBuffer> root, bool mps, bool borrowed = false);
  std::string label() const override;
  // With the mutex held. Commits the root and goes on with a new one, or with none after a deadlock.
  void commit_and_continue(mpsforge::sync::Lock& lock, const mpsforge::metal::ThreadPointer& thread, const char* call);

  const std::shared_ptr<mpsforge::metal::Device> device;
  const bool mps;
  const bool borrowed;  // a handler's argument
  std::shared_ptr<mpsforge::metal::CommandBuffer> root;
  std::shared_ptr<mpsforge::metal::CommandBuffer> told;  // whose error the program has a pointer to
};
