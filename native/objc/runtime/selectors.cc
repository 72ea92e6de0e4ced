// Names of selectors, each held once so that comparing is comparing pointers; and the runtime's lock.
#include <pthread.h>
#include <sched.h>

#include <cstring>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "../engine.h"
#include "runtime.h"

namespace mpsforge::objc {
namespace {

std::atomic<const void*> lock_owner{nullptr};
unsigned lock_depth = 0;
thread_local char this_thread;

// Never destroyed: messages are sent until the process's very end.
std::unordered_set<std::string>& names() {
  static auto& made = *new std::unordered_set<std::string>;
  return made;
}

void acquire() {
  if (lock_owner.load(std::memory_order_relaxed) == &this_thread) {
    ++lock_depth;
    return;
  }
  const void* nobody = nullptr;
  while (!lock_owner.compare_exchange_weak(nobody, &this_thread, std::memory_order_acquire)) {
    nobody = nullptr;
    sched_yield();
  }
  lock_depth = 1;
}

void release() {
  if (--lock_depth == 0) lock_owner.store(nullptr, std::memory_order_release);
}

// A child has the thread that forked and no other: at the fork the lock is that thread's, as nobody else could release
// it there.
[[maybe_unused]] const int at_fork = pthread_atfork(acquire, release, release);

}  // namespace

RuntimeLock::RuntimeLock() { acquire(); }
RuntimeLock::~RuntimeLock() { release(); }

const char* intern(const char* name) {
  // The sanitizer sees memcmp and its like wherever they are called, and does not see the lock.
  EngineCall unseen;
  RuntimeLock lock;
  return names().insert(name).first->c_str();
}

}  // namespace mpsforge::objc

using mpsforge::objc::Selector;

extern "C" {

const char* sel_getName(const Selector* selector) {
  return selector ? selector->name.load(std::memory_order_relaxed) : "<null selector>";
}

// Selectors made while the program runs are kept for ever, one a name.
Selector* sel_registerName(const char* name) {
  if (!name) return nullptr;
  mpsforge::objc::RuntimeLock lock;
  static auto& made = *new std::unordered_map<const char*, Selector*>;
  Selector*& selector = made[mpsforge::objc::intern(name)];
  if (!selector) selector = new Selector{{mpsforge::objc::intern(name)}, nullptr};
  return selector;
}

bool sel_isEqual(const Selector* first, const Selector* second) {
  if (first == second || !first || !second) return first == second;
  return std::strcmp(first->name.load(std::memory_order_relaxed), second->name.load(std::memory_order_relaxed)) == 0;
}

}  // extern "C"
