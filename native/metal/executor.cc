// The executor thread of a queue.
#include <utility>

#include "command_buffer.h"
#include "queue.h"

namespace mpsforge::metal {
namespace {

// What Metal says of a buffer that the GPU gave up is longer and differs by cause; ours says that it was made up.
constexpr char kInjected[] = "Discarded (victim of GPU error/recovery) (injected)";
constexpr char kDeadlock[] = "Discarded (the GPU waits for ever, see the deadlock finding)";

bool has(const CommandBuffer& buffer, uint32_t kind) { return buffer.injected & (1u << kind); }

}  // namespace

void Queue::run() {
  device->thread_begins();
  sync::Lock lock(device->mutex);
  for (;;) {
    schedule();
    if (!order_.empty() && order_.front()->is_committed()) {
      execute(lock, order_.front());
      continue;
    }
    // Buffers that are not committed yet can still come when the program has released the queue.
    if (device->stopping() || (released_ && uncompleted_ == 0)) break;
    wake_.wait(lock);
  }
  device->checker.remove(actor_);
  finished_ = true;
}

// Buffers become scheduled in order, ahead of the one that runs.
void Queue::schedule() {
  for (size_t i = 0; i < order_.size() && order_[i]->is_committed(); ++i) {
    if (order_[i]->is_scheduled()) continue;
    order_[i]->schedule();
  }
}

// Returns why the buffer is not to be executed, or an empty text.
std::string Queue::hold(sync::Lock& lock, CommandBuffer& buffer) {
  const auto what = [&] { return "the GPU, in " + buffer.describe() + ", which hangs (injected)"; };
  const auto done = [&] {
    schedule();
    return !has(buffer, MPSFORGE_METAL_INJECT_HANG);
  };
  if (!device->block(lock, wake_, nullptr, what, done)) return kDeadlock;
  return has(buffer, MPSFORGE_METAL_INJECT_ERROR) ? kInjected : "";
}

bool Queue::wait_for_event(sync::Lock& lock, const CommandBuffer& buffer, Event& event, uint64_t value,
                           uint32_t command) {
  const auto what = [&] {
    return "the GPU, in " + buffer.describe() + ", whose command " + std::to_string(command) + " waits for " +
           event.describe_wait(value);
  };
  const auto done = [&] {
    schedule();
    return event.value_now() >= value;
  };
  event.add_waiter(&wake_);
  const bool reached = device->block(lock, wake_, nullptr, what, done);
  event.remove_waiter(&wake_);
  if (reached) {
    device->checker.acquire(actor_, event.reached(value));
    device->acquired(&event);
  }
  return reached;
}

// The mutex is let go of for the work itself and for delays alone.
void Queue::execute(sync::Lock& lock, const std::shared_ptr<CommandBuffer>& front) {
  // end() takes it from the queue
  const std::shared_ptr<CommandBuffer> buffer = front;  // NOLINT(performance-unnecessary-copy-initialization)
  std::string error = hold(lock, *buffer);
  if (!error.empty()) {
    end(buffer, error);
    return;
  }
  device->checker.acquire(actor_, buffer->after());
  buffer->begin();
  ++device->executing;
  uint32_t number = 0;
  for (const Command& command : buffer->commands()) {
    buffer->begun = ++number;
    if (device->config.max_delay_us > 0) {
      if (lock.owns_lock()) lock.unlock();
      device->delay(sequence, delays_++);
    }
    if (const auto* signal = std::get_if<Signal>(&command.what)) {
      if (!lock.owns_lock()) lock.lock();
      signal->event->signal(signal->value, actor_, buffer->call("encode_signal", command.thread));
    } else if (const auto* wait = std::get_if<Wait>(&command.what)) {
      if (!lock.owns_lock()) lock.lock();
      --device->executing;
      if (!wait_for_event(lock, *buffer, *wait->event, wait->value, number)) error = kDeadlock;
      ++device->executing;
    } else if (error.empty()) {
      // After a deadlock only signals are sent, so that others can end.
      if (lock.owns_lock()) lock.unlock();
      perform(command, *buffer, number, actor_);
    }
    device->progress();
    device->commands.fetch_add(1, std::memory_order_relaxed);
  }
  if (!lock.owns_lock()) lock.lock();
  --device->executing;
  end(buffer, error);
}

void Queue::end(const std::shared_ptr<CommandBuffer>& buffer, const std::string& error) {
  order_.pop_front();
  --uncompleted_;
  --in_flight_;
  buffer->end(error, device->checker.release(actor_));
  device->progress();
  changed.notify_all();
  device->quiet.notify_all();
}

}  // namespace mpsforge::metal
