#include "queue.h"

#include <algorithm>
#include <utility>

#include "command_buffer.h"

namespace mpsforge::metal {
namespace {

// Metal's default (metal rule 16).
constexpr uint32_t kMaxUncompleted = 64;

}  // namespace

Queue::Queue(std::shared_ptr<Device> device, const std::string& label)
    : device(std::move(device)),
      sequence(this->device->next_object()),
      name(std::make_shared<const std::string>(label.empty() ? std::to_string(sequence) : label)),
      interned(this->device->checker.intern(*name)) {}

std::shared_ptr<CommandBuffer> Queue::create(sync::Lock& lock, const ThreadPointer& thread, const char* call) {
  if (device->closed()) {
    device->used_after_close({call, thread, 0, nullptr});
    return nullptr;
  }
  const size_t limit = device->config.max_uncompleted ? device->config.max_uncompleted : kMaxUncompleted;
  const auto what = [&] {
    return std::string(call) + " of queue " + *name + ", for one of " + std::to_string(uncompleted_) +
           " uncompleted command buffers, of which " + std::to_string(uncommitted_) + " never committed";
  };
  if (!device->block(lock, changed, thread, what, [&] { return uncompleted_ < limit; })) return nullptr;
  ++uncompleted_;
  ++uncommitted_;
  device->progress();
  return std::make_shared<CommandBuffer>(shared_from_this(), device->next_buffer());
}

void Queue::enqueue(std::shared_ptr<CommandBuffer> buffer) { order_.push_back(std::move(buffer)); }

void Queue::commit(CommandBuffer& buffer) {
  --uncommitted_;
  ++in_flight_;
  const auto injection = injections_.find(++commits_);
  if (injection != injections_.end()) {
    buffer.injected = injection->second;
    injections_.erase(injection);
  }
  device->committed.fetch_add(1, std::memory_order_relaxed);
  device->progress();
  if (!started_) {
    started_ = true;
    actor_ = device->checker.add();
    device->add_executor(shared_from_this());
  }
  wake();
}

void Queue::abandon(CommandBuffer& buffer) {
  --uncompleted_;
  --uncommitted_;
  // The caller's handle still owns the buffer.
  const auto place =
      std::find_if(order_.begin(), order_.end(), [&](const auto& other) { return other.get() == &buffer; });
  if (place != order_.end()) order_.erase(place);
  device->progress();
  changed.notify_all();
  wake();
}

void Queue::inject(uint32_t kind, uint32_t n) {
  if (n == 0 || (kind != MPSFORGE_METAL_INJECT_ERROR && kind != MPSFORGE_METAL_INJECT_HANG)) return;
  injections_[commits_ + n] |= 1u << kind;
}

void Queue::resume() {
  for (const auto& buffer : order_) {
    if (buffer->is_committed()) buffer->injected &= ~(1u << MPSFORGE_METAL_INJECT_HANG);
  }
  device->progress();
  wake();
}

void Queue::release() {
  released_ = true;
  wake();
}

void Queue::give_up() {
  const auto left = std::move(order_);
  order_.clear();
  for (const auto& buffer : left) {
    if (!buffer->is_committed()) continue;
    buffer->end("The device was closed before this command buffer could run", {});
    --uncompleted_;
    --in_flight_;
  }
  changed.notify_all();
}

bool Queue::will_signal(const Event& event, uint64_t value, std::string* by) const {
  for (const auto& buffer : order_) {
    if (!buffer->is_committed() || !buffer->will_signal(event, value)) continue;
    *by = buffer->describe();
    return true;
  }
  return false;
}

void Queue::add_waiters(const Event& event, std::vector<std::pair<std::string, uint64_t>>* to) const {
  for (const auto& buffer : order_) {
    const uint64_t value = buffer->is_committed() ? buffer->will_wait(event) : 0;
    if (value > 0) to->emplace_back(buffer->describe(), value);
  }
}

std::string Queue::describe_ahead(const CommandBuffer& buffer) const {
  if (order_.empty() || order_.front().get() == &buffer) return "";
  const CommandBuffer& ahead = *order_.front();
  return ahead.describe() + (ahead.is_committed() ? ", at command " + std::to_string(ahead.begun)
                                                  : ", which was enqueued and never committed");
}

}  // namespace mpsforge::metal
