#include "serial_queue.h"

#include <utility>

namespace mpsforge::metal {

SerialQueue::SerialQueue(std::shared_ptr<Device> device, const std::string& label)
    : device(std::move(device)), label(label.empty() ? std::to_string(this->device->next_object()) : label) {}

bool SerialQueue::is_current() const { return owner() == current_thread(*device).get(); }

void SerialQueue::dispatch_sync(mpsforge_metal_function function, void* context) {
  const ThreadPointer thread = current_thread(*device);
  if (owner() == thread.get()) {
    device->findings.violation(Rule::SyncOnOwnQueue, "a block of serial queue " + label + " on the same thread",
                               Call{"serial_sync", thread, 0, nullptr}.text() + " on serial queue " + label);
    return;
  }
  sync::Lock lock(device->mutex);
  const uint64_t ticket = next_++;
  const auto what = [&] {
    return "serial_sync on serial queue " + label +
           (owner_kept_ ? ", held by thread " + owner_kept_->name() : ", whose next block cannot begin");
  };
  if (!device->block(lock, turn_of(ticket), thread, what, [&] { return serving_ == ticket; }, this)) {
    skipped_.insert(ticket);
    return;
  }
  run_block(lock, thread, function, context);
}

void SerialQueue::run_block(sync::Lock& lock, const ThreadPointer& thread, mpsforge_metal_function function,
                            void* context) {
  owner_kept_ = thread;
  owner_.store(thread.get(), std::memory_order_relaxed);
  device->checker.acquire(thread->actor, last_);
  lock.unlock();
  function(context);
  lock.lock();
  last_ = device->checker.release(thread->actor);
  owner_.store(nullptr, std::memory_order_relaxed);
  owner_kept_.reset();
  ++serving_;
  while (skipped_.erase(serving_) > 0) ++serving_;
  device->progress();
  turn_of(serving_).notify_all();
  turn_.notify_all();
  device->quiet.notify_all();
}

void SerialQueue::dispatch_async(mpsforge_metal_function function, void* context) {
  const ThreadPointer thread = current_thread(*device);
  sync::Lock lock(device->mutex);
  if (device->closed()) {
    device->used_after_close({"serial_async", thread, 0, nullptr});
    return;
  }
  items_.push_back({next_++, function, context, device->checker.release(thread->actor)});
  device->progress();
  if (!thread_.joinable()) {
    thread_ = sync::Thread([this] { run(); });
  } else {
    turn_.notify_all();
  }
}

void SerialQueue::run() {
  device->thread_begins();
  const ThreadPointer self = current_thread(*device);
  const std::string name = "of serial queue " + label;
  self->rename(name, device->checker.intern(name));
  sync::Lock lock(device->mutex);
  for (;;) {
    turn_.wait(lock,
               [this] { return items_.empty() ? released_ || device->stopping() : items_.front().ticket == serving_; });
    if (items_.empty()) return;
    const Item item = std::move(items_.front());
    items_.pop_front();
    device->checker.begin(self->actor, item.put);
    run_block(lock, self, item.function, item.context);
  }
}

void SerialQueue::release() {
  const ThreadPointer thread = current_thread(*device);
  sync::Lock lock(device->mutex);
  released_ = true;
  wake();
  // A block that releases its own queue cannot wait for it; the device joins the thread then.
  if (owner() == thread.get()) {
    device->keep(shared_from_this());
    return;
  }
  const auto what = [&] { return "serial_release of serial queue " + label + ", for the blocks in it"; };
  if (!device->block(lock, turn_, thread, what, [this] { return idle(); })) {
    device->keep(shared_from_this());
    return;
  }
  sync::Thread ended = take();
  lock.unlock();
  if (ended.joinable()) ended.join();
}

}  // namespace mpsforge::metal
