// Access to atomic properties. Here, because ThreadSanitizer must not see it: on macOS libobjc is not instrumented, so
// an atomic property is no access and orders nothing.
#include <sched.h>

#include <cstring>

#include "runtime.h"

extern "C" mpsforge_imp objc_msg_lookup(mpsforge::objc::Object* receiver, mpsforge::objc::Selector* selector);

namespace mpsforge::objc {
namespace {

// A few locks for all atomic properties, chosen by address.
std::atomic<bool> locks[64];

class PropertyLock {
 public:
  explicit PropertyLock(const void* address) : flag_(locks[(reinterpret_cast<uintptr_t>(address) >> 4) % 64]) {
    while (flag_.exchange(true, std::memory_order_acquire)) sched_yield();
  }
  ~PropertyLock() { flag_.store(false, std::memory_order_release); }
  PropertyLock(const PropertyLock&) = delete;
  PropertyLock& operator=(const PropertyLock&) = delete;

 private:
  std::atomic<bool>& flag_;
};

}  // namespace

Object* atomic_get(Object** at) {
  static Selector retain{{intern("retain")}, nullptr};
  PropertyLock lock(at);
  return reinterpret_cast<Object* (*)(Object*, Selector*)>(objc_msg_lookup(*at, &retain))(*at, &retain);
}

Object* atomic_exchange(Object** at, Object* value) {
  PropertyLock lock(at);
  Object* old = *at;
  *at = value;
  return old;
}

void atomic_copy(void* to, const void* from, size_t size, const void* property) {
  PropertyLock lock(property);
  std::memcpy(to, from, size);
}

}  // namespace mpsforge::objc
