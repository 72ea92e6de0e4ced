// What a thread of a kernel has to do with others: atomics, barriers, functions of SIMD groups.
#pragma once

#include "functions.h"

extern "C" {
// Of hooks.cc. place is where the call is in the program: 4096 times the line, and the column.
// memory is bits of mem_flags.
void mpsforge_msl_group_barrier(uint place, uint memory);
void mpsforge_msl_simd_barrier(uint place, uint memory);
// The check before an atomic operation: 1 reads, 2 writes.
void mpsforge_msl_atomic(const volatile void* at, ulong size, uint access);
// Gives what each lane has given, 32 of them, one after the other; returns a bit for each that takes part.
uint mpsforge_msl_lanes(uint place, const void* value, void* all, ulong size);
uint mpsforge_msl_lane();
}

#define MPSFORGE_PLACE uint place = (__builtin_LINE() << 12) + __builtin_COLUMN()

namespace metal {

enum memory_order { memory_order_relaxed };
enum class mem_flags {
  mem_none = 0,
  mem_device = 1,
  mem_threadgroup = 2,
  mem_texture = 4,
  mem_threadgroup_imageblock = 8
};
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(int(a) | int(b)); }
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };

inline void threadgroup_barrier(mem_flags memory, MPSFORGE_PLACE) { mpsforge_msl_group_barrier(place, uint(memory)); }
inline void simdgroup_barrier(mem_flags memory, MPSFORGE_PLACE) { mpsforge_msl_simd_barrier(place, uint(memory)); }
inline void atomic_thread_fence(mem_flags, memory_order, thread_scope = thread_scope_device) {}

template <class T>
struct atomic {
  T value;
};

// Each is an operation that reads and writes for the processor, as clang puts a check before plain loads and stores.
#define MPSFORGE_ATOMIC_FUNCTION __attribute__((always_inline)) inline
template <class T>
MPSFORGE_ATOMIC_FUNCTION bool atomic_swap(volatile atomic<T>* a, T* expected, T value) {
  return __atomic_compare_exchange(const_cast<T*>(&a->value), expected, &value, false, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED);
}
template <class T>
MPSFORGE_ATOMIC_FUNCTION T atomic_load_explicit(const volatile atomic<T>* a, memory_order) {
  mpsforge_msl_atomic(a, sizeof(T), 1);
  T result{};
  atomic_swap(const_cast<volatile atomic<T>*>(a), &result, T());
  return result;
}
template <class T, class U>
MPSFORGE_ATOMIC_FUNCTION T atomic_exchange_explicit(volatile atomic<T>* a, U value, memory_order) {
  mpsforge_msl_atomic(a, sizeof(T), 3);
  T stored = T(value), result;
  __atomic_exchange(const_cast<T*>(&a->value), &stored, &result, __ATOMIC_RELAXED);
  return result;
}
template <class T, class U>
MPSFORGE_ATOMIC_FUNCTION void atomic_store_explicit(volatile atomic<T>* a, U value, memory_order) {
  mpsforge_msl_atomic(a, sizeof(T), 2);
  T stored = T(value), before;
  __atomic_exchange(const_cast<T*>(&a->value), &stored, &before, __ATOMIC_RELAXED);
}
// Never fails without a reason, which Metal allows.
template <class T, class U>
MPSFORGE_ATOMIC_FUNCTION bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* a, T* expected, U value,
                                                                    memory_order, memory_order) {
  mpsforge_msl_atomic(a, sizeof(T), 3);
  return atomic_swap(a, expected, T(value));
}
#define MPSFORGE_ATOMIC(name, compute)                                                                      \
  template <class T, class U>                                                                               \
  MPSFORGE_ATOMIC_FUNCTION T atomic_fetch_##name##_explicit(volatile atomic<T>* a, U value, memory_order) { \
    mpsforge_msl_atomic(a, sizeof(T), 3);                                                                   \
    const T y = T(value);                                                                                   \
    T x{};                                                                                                  \
    while (!atomic_swap(a, &x, T(compute))) {                                                               \
    }                                                                                                       \
    return x;                                                                                               \
  }
MPSFORGE_ATOMIC(add, x + y)
MPSFORGE_ATOMIC(sub, x - y)
MPSFORGE_ATOMIC(and, x& y)
MPSFORGE_ATOMIC(or, x | y)
MPSFORGE_ATOMIC(xor, x ^ y)
MPSFORGE_ATOMIC(max, x > y ? x : y)
MPSFORGE_ATOMIC(min, x < y ? x : y)
#undef MPSFORGE_ATOMIC

// What the lanes of a SIMD group give each other.
template <class T>
struct lanes {
  lanes(T value, uint place) : active(mpsforge_msl_lanes(place, &value, all, sizeof(T))), own(mpsforge_msl_lane()) {}
  bool has(uint lane) const { return lane < 32 && (active >> lane & 1); }
  // Of a lane that does not take part, the own value.
  T of(uint lane) const { return all[has(lane) ? lane : own]; }

  T all[32];
  uint active, own;
};

#define MPSFORGE_REDUCTION(name, compute)  \
  template <class T>                       \
  T simd_##name(T value, MPSFORGE_PLACE) { \
    const lanes<T> group(value, place);    \
    T x{};                                 \
    bool first = true;                     \
    for (uint i = 0; i < 32; ++i) {        \
      if (!group.has(i)) continue;         \
      const T y = group.all[i];            \
      x = first ? y : T(compute);          \
      first = false;                       \
    }                                      \
    return x;                              \
  }
MPSFORGE_REDUCTION(sum, x + y)
MPSFORGE_REDUCTION(product, x* y)
MPSFORGE_REDUCTION(max, max(x, y))
MPSFORGE_REDUCTION(min, min(x, y))
MPSFORGE_REDUCTION(and, x& y)
MPSFORGE_REDUCTION(or, x | y)
MPSFORGE_REDUCTION(xor, x ^ y)
#undef MPSFORGE_REDUCTION

// start is of the lane's type; up_to says whether the own value belongs to the result.
#define MPSFORGE_PREFIX(name, start, compute, last) \
  template <class T>                                \
  T simd_prefix_##name(T value, MPSFORGE_PLACE) {   \
    const lanes<T> group(value, place);             \
    T x = T(start);                                 \
    for (uint i = 0; i < group.own + last; ++i) {   \
      const T y = group.all[i];                     \
      if (group.has(i)) x = T(compute);             \
    }                                               \
    return x;                                       \
  }
MPSFORGE_PREFIX(inclusive_sum, 0, x + y, 1)
MPSFORGE_PREFIX(exclusive_sum, 0, x + y, 0)
MPSFORGE_PREFIX(inclusive_product, 1, x* y, 1)
MPSFORGE_PREFIX(exclusive_product, 1, x* y, 0)
#undef MPSFORGE_PREFIX

template <class T>
T simd_shuffle(T value, ushort lane, MPSFORGE_PLACE) {
  return lanes<T>(value, place).of(lane);
}
template <class T>
T simd_broadcast(T value, ushort lane, MPSFORGE_PLACE) {
  return lanes<T>(value, place).of(lane);
}
template <class T>
T simd_broadcast_first(T value, MPSFORGE_PLACE) {
  const lanes<T> group(value, place);
  return group.of(uint(__builtin_ctz(group.active)));
}
template <class T>
T simd_shuffle_down(T value, ushort delta, MPSFORGE_PLACE) {
  const lanes<T> group(value, place);
  return group.of(group.own + delta);
}
template <class T>
T simd_shuffle_up(T value, ushort delta, MPSFORGE_PLACE) {
  const lanes<T> group(value, place);
  return group.of(group.own - delta);
}
template <class T>
T simd_shuffle_xor(T value, ushort mask, MPSFORGE_PLACE) {
  const lanes<T> group(value, place);
  return group.of(group.own ^ mask);
}
template <class T>
T simd_shuffle_rotate_down(T value, ushort delta, MPSFORGE_PLACE) {
  const lanes<T> group(value, place);
  return group.of((group.own + delta) % 32);
}
// Lanes that would come from beyond the SIMD group, or the part of it that modulo lanes make, come from filling. So do
// those of lanes that do not take part: c10/metal/reduction_utils.h of v2.9.1 says that GPUs do so, and relies on it.
template <class T>
T filled(T value, T filling, uint from, bool beyond, uint place) {
  const lanes<T> values(value, place), fillings(filling, place);
  return (beyond || !values.has(from) ? fillings : values).of(from);
}
template <class T>
T simd_shuffle_and_fill_down(T value, T filling, ushort delta, ushort modulo = 32, MPSFORGE_PLACE) {
  const uint own = mpsforge_msl_lane(), lane = own % modulo + delta;
  return filled(value, filling, own / modulo * modulo + lane % modulo, lane >= modulo, place);
}
template <class T>
T simd_shuffle_and_fill_up(T value, T filling, ushort delta, ushort modulo = 32, MPSFORGE_PLACE) {
  const uint own = mpsforge_msl_lane(), lane = own % modulo;
  return filled(value, filling, own / modulo * modulo + (lane + modulo - delta) % modulo, lane < delta, place);
}
inline bool simd_all(bool value, MPSFORGE_PLACE) { return simd_and(uint(value), place) != 0; }
inline bool simd_any(bool value, MPSFORGE_PLACE) { return simd_or(uint(value), place) != 0; }
inline bool simd_is_first(MPSFORGE_PLACE) {
  const lanes<uint> group(0u, place);
  return uint(__builtin_ctz(group.active)) == group.own;
}
struct simd_vote {
  typedef ulong vote_t;
  vote_t bits;
  explicit simd_vote(vote_t bits) : bits(bits) {}
  explicit operator vote_t() const { return bits; }
  bool all() const { return uint(bits) == ~0u; }
  bool any() const { return bits != 0; }
};
inline simd_vote simd_ballot(bool value, MPSFORGE_PLACE) {
  const lanes<uint> group(uint(value), place);
  ulong bits = 0;
  for (uint i = 0; i < 32; ++i) {
    if (group.has(i) && group.all[i]) bits |= 1ul << i;
  }
  return simd_vote(bits);
}
inline simd_vote simd_active_threads_mask(MPSFORGE_PLACE) { return simd_vote(lanes<uint>(0u, place).active); }

}  // namespace metal

typedef metal::atomic<int> atomic_int;
typedef metal::atomic<uint> atomic_uint;
typedef metal::atomic<ulong> atomic_ulong;
typedef metal::atomic<float> atomic_float;
typedef metal::atomic<bool> atomic_bool;
