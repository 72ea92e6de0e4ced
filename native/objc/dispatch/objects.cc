#include "objects.h"

namespace mpsforge::objc {

void DispatchObject::retain() { references_.fetch_add(1, std::memory_order_relaxed); }

void DispatchObject::release() {
  const long before = references_.fetch_sub(1, std::memory_order_release);
  if (before <= 0)
    fail("dispatch_release: %s %p is released more often than it is retained", kind_, static_cast<void*>(this));
  if (before > 1) return;
  references_.load(std::memory_order_acquire);
  delete this;
}

}  // namespace mpsforge::objc
