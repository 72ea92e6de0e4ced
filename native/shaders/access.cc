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

// Runs count threads of the threadgroup from first on; one is the kernel with its arguments.
MPSFORGE_INLINE void mpsforge_shader_loop(const Run* run, uint32_t first, uint32_t count,
                                          void (*one)(const Run*, const Thread*)) {
  Thread t = {};
  for (int d = 0; d < 3; ++d) {
    t.group_in_grid[d] = run->position[d];
    t.threads[d] = run->threads[d];
    t.group[d] = run->group[d];
    t.this_group[d] = run->this_group[d];
    t.groups[d] = run->groups[d];
  }
  const uint32_t x = t.this_group[0], y = t.this_group[1];
  t.lanes = kSimdWidth;
  t.simds = (x * y * t.this_group[2] + kSimdWidth - 1) / kSimdWidth;
  uint32_t at[3] = {first % x, first / x % y, first / x / y};
  uint32_t thread = first;
  do {
    *run->thread = thread;
    t.index = thread;
    t.lane = thread % kSimdWidth;
    t.simd = thread / kSimdWidth;
    for (int d = 0; d < 3; ++d) {
      t.in_group[d] = at[d];
      t.in_grid[d] = t.group_in_grid[d] * t.group[d] + at[d];
    }
    one(run, &t);
    const bool row = ++at[0] == x;
    at[0] = row ? 0 : at[0];
    at[1] += row;
    const bool plane = at[1] == y;
    at[1] = plane ? 0 : at[1];
    at[2] += plane;
  } while (++thread < first + count);
}

// Of 16 bits it is not that of floats: one step of the bits a, towards the other number.
MPSFORGE_INLINE uint16_t mpsforge_shader_nextafter16(float from, float to, uint16_t a, uint16_t b) {
  if (from != from) return a;
  if (!(from < to || to < from)) return b;  // equal, or no number
  const bool up = from < to;
  if ((a & 0x7fff) == 0) return up ? 1 : 0x8001;
  return up == (a < 0x8000) ? a + 1 : a - 1;
}
}
