// The functions that are inlined into every translated kernel: its place in the grid, and the check before each access.
// Compiled to LLVM code, never linked by itself.
#include "run.h"

using namespace mpsforge::shaders;

extern "C" {

// Not inlined: what is rare. For the compiler they read what run is, and neither keep nor change it: else a loop over
// threads could not keep in registers what the slots are. What they change, no kernel sees.
#ifdef __clang__
#define MPSFORGE_RUN __attribute__((noescape)) const Run* run
#else
#define MPSFORGE_RUN const Run* run  // only in tests
#endif
__attribute__((pure)) void* mpsforge_shader_refuse(MPSFORGE_RUN, uint32_t slot, uint64_t offset, uint64_t size,
                                                   uint32_t access);
__attribute__((pure)) void* mpsforge_shader_order(MPSFORGE_RUN, uint32_t slot, uint64_t offset, uint64_t size,
                                                  uint32_t access);
uint64_t mpsforge_shader_adopt(MPSFORGE_RUN, uint64_t address);

#define MPSFORGE_INLINE __attribute__((always_inline, used)) inline

// Returns where the bytes are; of what is not there, some bytes that are of no matter. root is the pointer that the
// address was made from, in the same buffer: that it is, often, the same one for all threads is what makes this cheap.
// Of size bytes it is known that they are read; the touched ones, at most an element more, are padding that may be read
// with them.
static inline __attribute__((always_inline)) void* reach(const Run* run, uint64_t root, uint64_t address, uint64_t size,
                                                         uint64_t touched, uint32_t access) {
  const uint32_t number = (root >> kTagShift) % kSlots;
  const Slot& slot = run->slots[number];
  const uint64_t offset = address - slot.base;
  const uint64_t allowed = slot.length < size ? 0 : slot.length - size + 1;
  if (__builtin_expect(offset >= allowed, 0)) return mpsforge_shader_refuse(run, number, offset, size, access);
  if (slot.read.bits) {
    if (access & kRead) slot.read.add(offset, touched);
    if (access & kWrite) slot.written.add(offset, size);
  }
  if (run->races) return mpsforge_shader_order(run, number, offset, size, access);
  return reinterpret_cast<void*>(address & kAddress);
}

MPSFORGE_INLINE void* mpsforge_shader_read(const Run* run, uint64_t root, uint64_t address, uint64_t size,
                                           uint64_t touched) {
  return reach(run, root, address, size, touched, kRead);
}
MPSFORGE_INLINE void* mpsforge_shader_write(const Run* run, uint64_t root, uint64_t address, uint64_t size) {
  return reach(run, root, address, size, size, kWrite);
}
MPSFORGE_INLINE void* mpsforge_shader_atomic(const Run* run, uint64_t address, uint64_t size, uint32_t access) {
  return reach(run, address, address, size, size, access | kAtomic);
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
