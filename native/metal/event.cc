#include "event.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace mpsforge::metal {

Event::Event(std::shared_ptr<Device> device, const std::string& label)
    : device(std::move(device)), label(label.empty() ? std::to_string(this->device->next_object()) : label) {}

void Event::lower(uint64_t value) {
  value_ = value;
  device->checker.lower(signals_, value);
  device->progress();
}

void Event::signal(uint64_t value, Actor actor, const Call& call) {
  if (value <= value_) {
    device->findings.violation(
        Rule::EventNotRising, signalled_.text(), call.text(),
        "event " + label + " has " + std::to_string(value_) + " and is given " + std::to_string(value));
    return;
  }
  value_ = value;
  signalled_ = call;
  device->checker.signal(signals_, value, actor);
  device->released(this);
  device->progress();
  changed_.notify_all();
  for (sync::Condition* waiter : waiters_) waiter->notify_all();
  const auto reached = std::stable_partition(listeners_.begin(), listeners_.end(),
                                             [value](const Listener& listener) { return listener.value > value; });
  std::for_each(reached, listeners_.end(), [this](const Listener& listener) { post(listener); });
  listeners_.erase(reached, listeners_.end());
}

void Event::post(const Listener& listener) {
  if (device->stopping()) {
    device->used_after_close(listener.call);
    return;
  }
  Clock after = reached(listener.value);
  join(after, listener.added);
  device->listeners.post({listener.function, std::move(after), nullptr, false});
}

std::string Event::describe_wait(uint64_t value) const {
  const std::string by = device->signaller(*this, value);
  return "event " + label + " value " + std::to_string(value) + ", now " + std::to_string(value_) + ", signalled by " +
         (by.empty() ? "nobody committed" : by);
}

uint64_t Event::value() {
  const ThreadPointer thread = current_thread(*device);
  sync::Lock lock(device->mutex);
  device->checker.acquire(thread->actor, reached(value_));
  device->acquired(this);
  return value_;
}

void Event::set(uint64_t value) {
  const ThreadPointer thread = current_thread(*device);
  sync::Lock lock(device->mutex);
  set_by_cpu_ = true;
  if (value > value_) {
    signal(value, thread->actor, {"event_set", thread, 0, nullptr});
  } else {
    lower(value);
  }
}

int Event::wait(uint64_t value, int64_t timeout_ms) {
  const ThreadPointer thread = current_thread(*device);
  sync::Lock lock(device->mutex);
  const auto done = [&] { return value_ >= value; };
  if (timeout_ms < 0) {
    const auto what = [&] { return "event_wait, for " + describe_wait(value); };
    device->block(lock, changed_, thread, what, done);
  } else if (timeout_ms > 0) {
    // Longer times than a year would overflow the clock.
    changed_.wait_for(lock, std::chrono::milliseconds(std::min<int64_t>(timeout_ms, int64_t{365} * 24 * 3600 * 1000)),
                      done);
  }
  if (!done()) return 0;
  device->checker.acquire(thread->actor, reached(value));
  device->acquired(this);
  return 1;
}

void Event::notify(uint64_t value, mpsforge_metal_function function, void* context) {
  const ThreadPointer thread = current_thread(*device);
  sync::Lock lock(device->mutex);
  const Call call{"event_notify", thread, 0, nullptr};
  if (device->closed()) {
    device->used_after_close(call);
    return;
  }
  device->released(context);
  // The event itself may be gone when the listener runs; the observer only compares its address.
  const auto run = [device = device.get(), event = this, function, context] {
    device->acquired(event);
    device->acquired(context);
    function(context);
  };
  Listener listener{value, run, device->checker.release(thread->actor), call};
  if (value_ >= value) {
    post(listener);
  } else {
    listeners_.push_back(std::move(listener));
  }
}

void Event::release() {
  const ThreadPointer thread = current_thread(*device);
  sync::Lock lock(device->mutex);
  const std::string second = Call{"event_release", thread, 0, nullptr}.text();
  // A committed command buffer keeps the event alive until it has signalled it: that is no mistake.
  for (const auto& [buffer, value] : device->waiters(*this)) {
    if (!device->signaller(*this, value).empty()) continue;
    device->findings.add(MPSFORGE_METAL_LIFETIME, 0,
                         "event " + label + " destroyed while " + buffer + " waits for its value " +
                             std::to_string(value) + ", now " + std::to_string(value_),
                         "", second);
  }
  for (const Listener& listener : listeners_) {
    if (!device->signaller(*this, listener.value).empty()) continue;
    device->findings.add(MPSFORGE_METAL_LIFETIME, 0,
                         "event " + label + " destroyed while a listener waits for its value " +
                             std::to_string(listener.value) + ", now " + std::to_string(value_),
                         listener.call.text(), second);
  }
}

}  // namespace mpsforge::metal
