// The functions that are inlined into every translated kernel: its place in the grid, and the check before each access.
// Compiled to LLVM code, never linked by itself.
#include "run.h"

using namespace mpsforge::shaders;

extern "C" {

// Not inlined: what is rare.
void* mpsforge_shader_refuse(const Run* run, uint64_t address, uint64_t size, uint32_t access);
void mpsforge_shader_mark(uint64_t* bits, uint64_t offset, uint64_t size);
uint64_t mpsforge_shader_adopt(const Run* run, uint64_t address);

#define MPSFORGE_INLINE __attribute__((always_inline, used)) inline

static inline __attribute__((always_inline)) void mark(uint64_t* bits, uint64_t offset, uint64_t size) {
  if (size <= 32 && (offset & 63) + size <= 64) {
    bits[offset >> 6] |= ((uint64_t{1} << size) - 1) << (offset & 63);
  } else {
    mpsforge_shader_mark(bits, offset, size);
  }
}

// Returns where the bytes are; of what is not there, some bytes that are of no matter.
static inline __attribute__((always_inline)) void* reach(const Run* run, uint64_t address, uint64_t size,
                                                         uint32_t access) {
  const Slot& slot = run->slots[(address >> kTagShift) % kSlots];
  const uint64_t offset = address - slot.base;
  if (__builtin_expect(offset >= slot.length || offset + size > slot.length, 0)) {
    return mpsforge_shader_refuse(run, address, size, access);
  }
  if (slot.read) {
    if (access & kRead) mark(slot.read, offset, size);
    if (access & kWrite) mark(slot.written, offset, size);
  }
  return reinterpret_cast<void*>(address & kAddress);
}

MPSFORGE_INLINE void* mpsforge_shader_read(const Run* run, uint64_t address, uint64_t size) {
  return reach(run, address, size, kRead);
}
MPSFORGE_INLINE void* mpsforge_shader_write(const Run* run, uint64_t address, uint64_t size) {
  return reach(run, address, size, kWrite);
}
MPSFORGE_INLINE void* mpsforge_shader_update(const Run* run, uint64_t address, uint64_t size) {
  return reach(run, address, size, kRead | kWrite);
}

MPSFORGE_INLINE uint64_t mpsforge_shader_argument(const Run* run, uint32_t place) { return run->arguments[place]; }
MPSFORGE_INLINE void mpsforge_shader_thread(const Run* run, uint32_t thread) { *run->thread = thread; }

#define MPSFORGE_TRIPLE(name) \
  MPSFORGE_INLINE uint32_t mpsforge_shader_##name(const Run* run, uint32_t dimension) { return run->name[dimension]; }
MPSFORGE_TRIPLE(threads)
MPSFORGE_TRIPLE(group)
MPSFORGE_TRIPLE(this_group)
MPSFORGE_TRIPLE(groups)
MPSFORGE_TRIPLE(position)
}
