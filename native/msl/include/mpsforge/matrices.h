// 8 x 8 matrices of a SIMD group. Every lane has the whole matrix; the first lane that takes part moves it from and to
// memory while the others wait. Apple's lanes have two elements each (thread_elements), which is not supported.
#pragma once

#include "threads.h"

namespace metal {

template <class T, int Columns, int Rows>
struct simdgroup_matrix {
  static_assert(Columns == 8 && Rows == 8, "a matrix of a SIMD group is of 8 x 8 elements");
  simdgroup_matrix() = default;
  // The value is on the diagonal.
  explicit simdgroup_matrix(T value) {
    for (uint i = 0; i < 64; ++i) data[i] = i % 9 == 0 ? value : T(0);
  }

  T data[64];  // rows, one after the other
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <class T, int Columns, int Rows>
simdgroup_matrix<T, Columns, Rows> make_filled_simdgroup_matrix(T value) {
  simdgroup_matrix<T, Columns, Rows> result;
  for (uint i = 0; i < 64; ++i) result.data[i] = value;
  return result;
}

// Where an element of a matrix is in memory with so many elements in a row.
inline ulong simdgroup_place(uint element, ulong row, ulong2 origin, bool transposed) {
  const ulong x = element % 8 + origin.x, y = element / 8 + origin.y;
  return transposed ? x * row + y : y * row + x;
}

template <class T, class P>
void simdgroup_load(simdgroup_matrix<T, 8, 8>& m, const P* from, ulong row = 8, ulong2 origin = ulong2(0),
                    bool transposed = false, MPSFORGE_PLACE) {
  if (simd_is_first(place)) {
    for (uint i = 0; i < 64; ++i) m.data[i] = from[simdgroup_place(i, row, origin, transposed)];
  }
  m = simd_broadcast_first(m, place);
}

template <class T, class P>
void simdgroup_store(const simdgroup_matrix<T, 8, 8>& m, P* to, ulong row = 8, ulong2 origin = ulong2(0),
                     bool transposed = false, MPSFORGE_PLACE) {
  if (simd_is_first(place)) {
    for (uint i = 0; i < 64; ++i) to[simdgroup_place(i, row, origin, transposed)] = m.data[i];
  }
}

template <class D, class A, class B, class C>
void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a,
                                   const simdgroup_matrix<B, 8, 8>& b, const simdgroup_matrix<C, 8, 8>& c) {
  simdgroup_matrix<D, 8, 8> result;
  for (uint i = 0; i < 64; ++i) {
    float sum = float(c.data[i]);
    for (uint k = 0; k < 8; ++k) sum += float(a.data[i / 8 * 8 + k]) * float(b.data[k * 8 + i % 8]);
    result.data[i] = D(sum);
  }
  d = result;
}

template <class D, class A, class B>
void simdgroup_multiply(simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a,
                        const simdgroup_matrix<B, 8, 8>& b) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<D, 8, 8>(D(0)));
}

}  // namespace metal
