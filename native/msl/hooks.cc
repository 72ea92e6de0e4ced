// What kernels that were compiled from source call, in each library that the compiler makes of them: the check before
// each access, which clang puts there as it does for the Linux kernel's AddressSanitizer, and the way to the runtime of
// translated kernels (shaders/fibers.h). Pointers are addresses alone, without the number of a slot.
//
// A thread that reaches outside of its memory is a finding. Where it writes, or nothing is mapped, it ends there. Where
// it reads it goes on with what it finds, as on a GPU: PyTorch 2.9.1's Inductor loads before it looks whether an index
// is in range.
#include <link.h>
#include <setjmp.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../shaders/fibers.h"
#include "../shaders/races.h"
#include "../shaders/run.h"

using namespace mpsforge::shaders;

namespace {

constexpr uintptr_t kStack = 256 << 10;  // of a thread of a threadgroup, at most
constexpr uint32_t kThreads = 1024;

struct Range {
  uintptr_t first, length;
  bool shared;  // threadgroup memory
};

// Of the CPU's thread.
struct Here {
  Run* run;
  jmp_buf back[kThreads];  // where threads of the threadgroup go when they end early
  std::vector<Range> own;  // this library's constants, and its threadgroup memory for this thread
};

Here& here() {
  static thread_local Here* made = nullptr;
  static thread_local struct Owner {
    ~Owner() { delete made; }
  } owner;
  (void)owner;
  if (!made) made = new Here();
  return *made;
}

uint32_t turn(const Run* run) { return run->fibers ? *run->thread : 0; }

int add_own(dl_phdr_info* info, size_t, void* data) {
  auto& ranges = *static_cast<std::vector<Range>*>(data);
  const auto self = reinterpret_cast<uintptr_t>(&add_own);
  bool found = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    found = found || (part.p_type == PT_LOAD && self - info->dlpi_addr - part.p_vaddr < part.p_memsz);
  }
  if (!found) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type == PT_LOAD) ranges.push_back({info->dlpi_addr + part.p_vaddr, part.p_memsz, false});
    if (part.p_type == PT_TLS && info->dlpi_tls_data) {
      ranges.push_back({reinterpret_cast<uintptr_t>(info->dlpi_tls_data), part.p_memsz, true});
    }
  }
  return 1;
}

bool inside(const Run* run, uint32_t slot, uintptr_t address, uint64_t size, uint32_t access) {
  const Slot& s = run->slots[slot];
  const uint64_t offset = address - (s.base & kAddress);
  if (offset >= s.length || size > s.length - offset) return false;
  if (s.read.bits) {
    if (access & kRead) s.read.add(offset, size);
    if (access & kWrite) s.written.add(offset, size);
  }
  if (run->races) run->races->access(slot, offset, size, access);
  return true;
}

// The nearest slot, which the thread has most likely left.
uint32_t nearest(const Run* run, uintptr_t address) {
  uint32_t best = 0;
  uint64_t least = uint64_t{1} << 32;
  for (uint32_t i = 1; i < run->slot_count; ++i) {
    const uint64_t base = run->slots[i].base & kAddress, end = base + run->slots[i].length;
    const uint64_t distance = address < base ? base - address : address >= end ? address - end : 0;
    if (distance < least) {
      least = distance;
      best = i;
    }
  }
  return best;
}

// Whether memory is there at all: asked of the kernel, which copies it or refuses.
bool readable(const void* at, uint64_t size) {
  char copy[16];
  const iovec to{copy, std::min(size, uint64_t{sizeof copy})}, from{const_cast<void*>(at), to.iov_len};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == static_cast<ssize_t>(to.iov_len);
}

[[noreturn]] void end_thread(Run* run) { longjmp(here().back[turn(run)], 1); }

void refuse(Run* run, uint32_t slot, uintptr_t address, uint64_t size, uint32_t access) {
  Refused what{Problem::OutOfRange, slot, address - (run->slots[slot].base & kAddress), size, access, {}, {}, 0};
  place_in_grid(*run, *run->thread, run->position, what.thread);
  run->refuse(run->owner, what);
}

// frame is the caller's.
void check(const void* pointer, uint64_t size, uint32_t access, const void* frame) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (size == 0) return;
  // Its own stack is the thread's to use: clang knows most of those accesses to be right, and leaves them out.
  if (address - reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) < kStack) return;
  Run* run = here().run;
  if (!run) return;  // constants are made when the library is loaded
  // mpsforge/kernel.h reads what the arguments are.
  if (address - reinterpret_cast<uintptr_t>(run) < sizeof(Run) || pointer == run->thread) return;
  run->frame = static_cast<const void* const*>(frame);
  for (uint32_t i = 1; i < run->slot_count; ++i) {
    if (inside(run, i, address, size, access)) return;
  }
  for (const Range& range : here().own) {
    if (address - range.first >= range.length || size > range.length - (address - range.first)) continue;
    if (range.shared && run->races) run->races->access(kOwnMemory, address - range.first, size, access);
    return;
  }
  // A pointer that was data.
  const uint32_t found = run->resolve(run->owner, address);
  if (found && inside(run, found, address, size, access)) return;
  refuse(run, found ? found : nearest(run, address), address, size, access);
  if (access != kRead || !readable(pointer, size)) end_thread(run);
}

std::vector<Kernel>& kernels() {
  static std::vector<Kernel> all;
  return all;
}

// One thread. Not inlined, as a function with setjmp must be left the way that it was entered.
__attribute__((noinline)) void run_one(Run* run, void (*one)(Run*)) {
  if (_setjmp(here().back[turn(run)]) == 0) one(run);
}

}  // namespace

extern "C" {

#define MPSFORGE_CHECK(at, size, access) check(at, size, access, __builtin_frame_address(0))
#define MPSFORGE_ACCESS(size)                                                           \
  void __asan_load##size##_noabort(const void* at) { MPSFORGE_CHECK(at, size, kRead); } \
  void __asan_store##size##_noabort(const void* at) { MPSFORGE_CHECK(at, size, kWrite); }
MPSFORGE_ACCESS(1)
MPSFORGE_ACCESS(2)
MPSFORGE_ACCESS(4)
MPSFORGE_ACCESS(8)
MPSFORGE_ACCESS(16)
void __asan_loadN_noabort(const void* at, uintptr_t size) { MPSFORGE_CHECK(at, size, kRead); }
void __asan_storeN_noabort(const void* at, uintptr_t size) { MPSFORGE_CHECK(at, size, kWrite); }
void mpsforge_msl_atomic(const volatile void* at, uint64_t size, uint32_t access) {
  MPSFORGE_CHECK(const_cast<const void*>(at), size, access | kAtomic);
}
void* __asan_memcpy(void* to, const void* from, uintptr_t size) {
  MPSFORGE_CHECK(from, size, kRead);
  MPSFORGE_CHECK(to, size, kWrite);
  return std::memcpy(to, from, size);
}
void* __asan_memmove(void* to, const void* from, uintptr_t size) {
  MPSFORGE_CHECK(from, size, kRead);
  MPSFORGE_CHECK(to, size, kWrite);
  return std::memmove(to, from, size);
}
void* __asan_memset(void* to, int value, uintptr_t size) {
  MPSFORGE_CHECK(to, size, kWrite);
  return std::memset(to, value, size);
}
void __asan_handle_no_return() {}

// An index that is not in an array of a length that the compiler knows.
void __ubsan_handle_out_of_bounds(void*, uintptr_t) {
  Run* run = here().run;
  if (!run) return;
  run->frame = static_cast<const void* const*>(__builtin_frame_address(0));
  refuse(run, 0, 0, 0, kRead);
  end_thread(run);
}

// memory is bits of Metal's mem_flags.
void mpsforge_msl_group_barrier(uint32_t place, uint32_t memory) { here().run->fibers->wait_for_group(place, memory); }
void mpsforge_msl_simd_barrier(uint32_t place, uint32_t memory) {
  here().run->fibers->wait_for_lanes(place, nullptr, nullptr, memory);
}
uint32_t mpsforge_msl_lane() { return *here().run->thread % kSimdWidth; }

uint32_t mpsforge_msl_lanes(uint32_t place, const void* value, void* all, uint64_t size) {
  struct Given {
    const void* value;
    char* all;
    uint64_t size;
    uint32_t active;
  } given{value, static_cast<char*>(all), size, 0};
  const auto exchange = [](const Run*, void* const(&data)[kSimdWidth]) {
    for (void* to : data) {
      auto* lane = static_cast<Given*>(to);
      for (uint32_t i = 0; lane && i < kSimdWidth; ++i) {
        const auto* from = static_cast<const Given*>(data[i]);
        if (!from) continue;
        std::memcpy(lane->all + i * lane->size, from->value, lane->size);
        lane->active |= 1u << i;
      }
    }
  };
  here().run->fibers->wait_for_lanes(place, exchange, &given);
  return given.active;
}

void mpsforge_msl_threads(Run* run, uint32_t first, uint32_t count, void (*one)(Run*)) {
  Here& h = here();
  h.run = run;
  if (h.own.empty()) dl_iterate_phdr(add_own, &h.own);
  for (const Range& range : h.own) {
    if (range.shared) run->slots[kOwnMemory] = {range.first, range.length, {}, {}, true};
  }
  for (uint32_t i = first; i < first + count; ++i) {
    *run->thread = i;
    run_one(run, one);
  }
}

void mpsforge_msl_register(Kernel* kernel) { kernels().push_back(*kernel); }

__attribute__((visibility("default"))) const Table* mpsforge_shaders() {
  static const Library library{"source", static_cast<uint32_t>(kernels().size()), kernels().data()};
  static const Table table{kFormat, 1, &library};
  return &table;
}
}
