// Deadlocks: finding them, naming them, and letting the run go on to its end. For threads that run freely a thread
// watches for them; under the scheduler the scheduler knows.
#include <algorithm>
#include <chrono>

#include "device.h"
#include "serial_queue.h"

namespace mpsforge::metal {
namespace {

// Looks per watchdog time: a deadlock is found at most an eighth late.
constexpr uint32_t kLooks = 8;

}  // namespace

void Device::watch() {
  const std::chrono::microseconds look(std::max<uint64_t>(1, uint64_t{config.watchdog_ms} * 1000 / kLooks));
  const uint64_t limit = uint64_t{config.watchdog_ms} * 1000000;
  uint64_t seen = progress_;
  uint64_t since = sync::now();
  sync::Lock lock(mutex);
  while (!stopping_) {
    const auto is_call = [](const Blocked* blocked) { return blocked->thread != nullptr; };
    const bool called = std::any_of(blocked_.begin(), blocked_.end(), is_call);
    if (progress_ != seen || executing > 0 || !called) {
      seen = progress_;
      since = sync::now();
    } else if (sync::now() - since >= limit) {
      stuck();
      since = sync::now();
    }
    // With nobody blocked there is nothing to watch until somebody is.
    if (called) {
      watch_.wait_for(lock, look);
    } else {
      watch_.wait(lock);
      since = sync::now();
    }
  }
}

// Whether what is let go of anyway makes it that thread's turn on the serial queue.
bool Device::gets_its_turn(const Blocked& blocked) const {
  const Blocked* one = &blocked;
  for (size_t steps = 0; steps <= blocked_.size(); ++steps) {
    const CpuThread* owner = one->serial->owner();
    const auto held_up = std::find_if(blocked_.begin(), blocked_.end(),
                                      [owner](const Blocked* other) { return owner && other->thread.get() == owner; });
    if (held_up == blocked_.end()) return false;
    one = *held_up;
    if (!one->serial) return true;
  }
  return false;
}

// With the mutex held.
void Device::stuck() {
  if (blocked_.empty()) return;
  std::vector<std::string> texts;
  for (const bool calls : {true, false}) {
    for (const Blocked* blocked : blocked_) {
      if ((blocked->thread != nullptr) != calls) continue;
      const std::string who = calls ? "thread " + blocked->thread->name() + " is in " : "";
      texts.push_back(who + blocked->what());
    }
  }
  std::string message = "deadlock: " + texts[0];
  for (size_t i = 1; i < texts.size(); ++i) message += "; " + texts[i];
  findings.add(MPSFORGE_METAL_DEADLOCK, 0, message, texts[0], texts.size() > 1 ? texts[1] : "");
  failed_ = true;
  std::vector<Blocked*> released;
  for (Blocked* blocked : blocked_) {
    if (!blocked->serial || !gets_its_turn(*blocked)) released.push_back(blocked);
  }
  for (Blocked* blocked : released) {
    blocked->released = true;
    blocked->condition->notify_all();
  }
}

}  // namespace mpsforge::metal
