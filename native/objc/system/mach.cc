// Time, page size, images and unfair locks as macOS has them.
#include <mach-o/dyld.h>
#include <mach-o/getsect.h>
#include <mach/mach.h>
#include <os/lock.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "../engine.h"
#include "mpsforge/host.h"

namespace {

struct Section {
  const void* bytes;
  unsigned long size;
};

struct Image {
  mach_header_64 header{MH_MAGIC_64};
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, Section> sections;
};

Image& image() {
  static auto& made = *new Image;
  return made;
}

uint32_t this_thread() {
  static thread_local uint32_t number = 0;
  if (number == 0) number = static_cast<uint32_t>(syscall(SYS_gettid));
  return number;
}

std::atomic<uint32_t>* owner(os_unfair_lock_t lock) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "a lock is used as an atomic");
  return reinterpret_cast<std::atomic<uint32_t>*>(&lock->_os_unfair_lock_opaque);
}

}  // namespace

extern "C" {

vm_size_t vm_page_size = 16384;
vm_size_t vm_page_mask = 16383;
int vm_page_shift = 14;

uint64_t mach_absolute_time(void) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t mach_continuous_time(void) { return mach_absolute_time(); }

int mach_timebase_info(mach_timebase_info_t info) {
  *info = {1, 1};
  return KERN_SUCCESS;
}

uint32_t _dyld_image_count(void) { return 1; }

const struct mach_header* _dyld_get_image_header(uint32_t index) {
  return index == 0 ? reinterpret_cast<const struct mach_header*>(&image().header) : nullptr;
}

const char* _dyld_get_image_name(uint32_t index) { return index == 0 ? "/mpsforge/libtorch_cpu.dylib" : nullptr; }

intptr_t _dyld_get_image_vmaddr_slide(uint32_t) { return 0; }

uint8_t* getsectiondata(const struct mach_header_64* header, const char* segment, const char* section,
                        unsigned long* size) {
  Image& known = image();
  if (header != &known.header) mpsforge::objc::fail("getsectiondata of an image that is not loaded");
  std::lock_guard<std::mutex> lock(known.mutex);
  const auto found = known.sections.find({segment, section});
  if (found == known.sections.end()) return nullptr;
  *size = found->second.size;
  return static_cast<uint8_t*>(const_cast<void*>(found->second.bytes));
}

void mpsforge_host_add_section(const char* segment, const char* section, const void* bytes, size_t size) {
  Image& known = image();
  std::lock_guard<std::mutex> lock(known.mutex);
  known.sections[{segment, section}] = {bytes, size};
}

bool os_unfair_lock_trylock(os_unfair_lock_t lock) {
  uint32_t nobody = 0;
  if (!owner(lock)->compare_exchange_strong(nobody, this_thread(), std::memory_order_acquire)) return false;
  mpsforge::objc::order_acquire(lock);
  return true;
}

void os_unfair_lock_lock(os_unfair_lock_t lock) {
  if (owner(lock)->load(std::memory_order_relaxed) == this_thread()) {
    mpsforge::objc::fail("os_unfair_lock %p is locked again by its owner", static_cast<void*>(lock));
  }
  while (!os_unfair_lock_trylock(lock)) sched_yield();
}

void os_unfair_lock_unlock(os_unfair_lock_t lock) {
  os_unfair_lock_assert_owner(lock);
  mpsforge::objc::order_release(lock);
  owner(lock)->store(0, std::memory_order_release);
}

void os_unfair_lock_assert_owner(const os_unfair_lock* lock) {
  if (owner(const_cast<os_unfair_lock_t>(lock))->load(std::memory_order_relaxed) != this_thread()) {
    mpsforge::objc::fail("os_unfair_lock %p is not owned by this thread", static_cast<const void*>(lock));
  }
}

void os_unfair_lock_assert_not_owner(const os_unfair_lock* lock) {
  if (owner(const_cast<os_unfair_lock_t>(lock))->load(std::memory_order_relaxed) == this_thread()) {
    mpsforge::objc::fail("os_unfair_lock %p is owned by this thread", static_cast<const void*>(lock));
  }
}

}  // extern "C"
