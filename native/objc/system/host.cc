// mpsforge/host.h, but for what the Metal classes know.
#include "mpsforge/host.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <string>

#include "../engine.h"
#include "../metal/host_kernel.h"
#include "../record.h"

using mpsforge::objc::api;
using mpsforge::objc::EngineCall;

static_assert(sizeof(mpsforge_host_finding) == sizeof(mpsforge_metal_finding) &&
                  offsetof(mpsforge_host_finding, history) == offsetof(mpsforge_metal_finding, history),
              "findings have one layout");
static_assert(sizeof(mpsforge_host_statistics) == sizeof(mpsforge_metal_statistics) &&
                  offsetof(mpsforge_host_statistics, races) == offsetof(mpsforge_metal_statistics, races),
              "statistics have one layout");

namespace {

size_t give(const std::string& all, char* text, size_t capacity) {
  if (capacity > 0) {
    const size_t length = std::min(all.size(), capacity - 1);
    std::memcpy(text, all.data(), length);
    text[length] = '\0';
  }
  return all.size();
}

}  // namespace

extern "C" {

size_t mpsforge_host_findings(mpsforge_host_finding* out, size_t capacity) {
  mpsforge_metal_device* device = mpsforge::objc::device_if_made();
  if (!device) return 0;
  EngineCall call;
  return api().findings(device, reinterpret_cast<mpsforge_metal_finding*>(out), capacity);
}

size_t mpsforge_host_translated(char* text, size_t capacity) {
  return give(mpsforge::objc::translated_kernels_run(), text, capacity);
}

size_t mpsforge_host_recorded(char* text, size_t capacity) { return give(mpsforge::objc::recorded(), text, capacity); }

void mpsforge_host_get_statistics(mpsforge_host_statistics* out) {
  *out = {};
  mpsforge_metal_device* device = mpsforge::objc::device_if_made();
  if (!device) return;
  EngineCall call;
  api().statistics(device, reinterpret_cast<mpsforge_metal_statistics*>(out));
}

void mpsforge_host_close(void) { mpsforge::objc::close_device(); }

void mpsforge_host_name_thread(const char* name) {
  mpsforge_metal_device* device = mpsforge::objc::device();
  EngineCall call;
  api().name_thread(device, name);
}

void mpsforge_host_order_release(const void* object) { mpsforge::objc::order_release(object); }
void mpsforge_host_order_acquire(const void* object) { mpsforge::objc::order_acquire(object); }

// Until native/objc/metal says which buffer a pointer belongs to, there are no buffers.
__attribute__((weak)) void mpsforge_host_cpu_access(const void*, size_t, uint32_t) {}

}  // extern "C"
