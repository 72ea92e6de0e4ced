#include "threads.h"

#include <pthread.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "device.h"

namespace mpsforge::metal {
namespace {

struct Known {
  const Device* device;  // compared only while the next one is alive
  std::weak_ptr<Device> alive;
  ThreadPointer thread;
};

// The devices that know a thread, the last one used last.
struct Memory {
  std::vector<Known> known;
  bool exiting = false;
};

// Not a thread_local with a destructor: thread-local objects of the program may call Metal from their own destructors,
// and those of a pthread key run after them.
thread_local Memory* memory = nullptr;

void end_thread(void* argument);

pthread_key_t key() {
  static const pthread_key_t made = [] {
    pthread_key_t key;
    pthread_key_create(&key, end_thread);
    return key;
  }();
  return made;
}

// The first time round it only asks to be called again, after the destructors of other keys.
void end_thread(void* argument) {
  auto* ended = static_cast<Memory*>(argument);
  if (!ended->exiting) {
    ended->exiting = true;
    pthread_setspecific(key(), ended);
    return;
  }
  for (const Known& known : ended->known) {
    if (const auto device = known.alive.lock()) device->checker.remove(known.thread->actor);
  }
  memory = nullptr;
  delete ended;
}

}  // namespace

CpuThread::CpuThread(uint64_t number, Actor actor) : actor(actor), name_(std::to_string(number)) {}

std::string CpuThread::name() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return name_;
}

void CpuThread::rename(const std::string& name, const char* interned) {
  std::lock_guard<std::mutex> lock(mutex_);
  name_ = name;
  interned_.store(interned, std::memory_order_relaxed);
}

ThreadPointer current_thread(Device& device) {
  if (memory && !memory->known.empty() && memory->known.back().device == &device &&
      !memory->known.back().alive.expired()) {
    return memory->known.back().thread;
  }
  if (!memory) {
    memory = new Memory();
    pthread_setspecific(key(), memory);
  }
  auto& known = memory->known;
  known.erase(std::remove_if(known.begin(), known.end(), [](const Known& one) { return one.alive.expired(); }),
              known.end());
  const auto found =
      std::find_if(known.begin(), known.end(), [&device](const Known& one) { return one.device == &device; });
  if (found != known.end()) {
    std::rotate(found, found + 1, known.end());
    return known.back().thread;
  }
  auto thread = std::make_shared<CpuThread>(device.next_thread(), device.checker.add());
  const std::string name = thread->name();
  thread->rename(name, device.checker.intern(name));
  known.push_back({&device, device.weak_from_this(), thread});
  return thread;
}

std::string describe_buffer(uint64_t number, const std::string& queue) {
  return "command buffer " + std::to_string(number) + " of queue " + queue;
}

std::string Call::text() const {
  if (!thread) return "";
  std::string text = what;
  if (buffer != 0) text += " of " + describe_buffer(buffer, *queue);
  return text + " by thread " + thread->name();
}

}  // namespace mpsforge::metal
