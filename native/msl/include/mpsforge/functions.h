// Metal's functions of numbers. Those of half and bfloat are computed as float, as translated kernels do
// (translate/air.cc).
#pragma once

#include "types.h"

#define MAXFLOAT __FLT_MAX__
#define HUGE_VALF __builtin_huge_valf()
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define HALF_MAX half(65504.0f)
#define INT_MAX __INT_MAX__
#define INT_MIN (-__INT_MAX__ - 1)
#define UINT_MAX (~0u)
#define M_E_F 2.71828182845904523536f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LOG10E_F 0.434294481903251827651f
#define M_LN2_F 0.693147180559945309417f
#define M_LN10_F 2.30258509299404568402f
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_PI_4_F 0.785398163397448309616f
#define M_1_PI_F 0.318309886183790671538f
#define M_2_PI_F 0.636619772367581343076f
#define M_2_SQRTPI_F 1.12837916709551257390f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.707106781186547524401f

namespace metal {

template <class T>
using if_integral = enable_if_t<is_integral_v<T>>;

// Of whole numbers. They come first: functions of vectors, below, call them for each component.
#define MPSFORGE_WHOLE1(name, compute)       \
  template <class T, class = if_integral<T>> \
  constexpr T name(T x) {                    \
    return static_cast<T>(compute);          \
  }
#define MPSFORGE_WHOLE2(name, compute)       \
  template <class T, class = if_integral<T>> \
  constexpr T name(T x, T y) {               \
    return static_cast<T>(compute);          \
  }
template <class T>
constexpr int bits_of() {
  return int(8 * sizeof(T));
}
MPSFORGE_WHOLE1(abs, x < T(0) ? make_unsigned_t<T>(0) - make_unsigned_t<T>(x) : x)
MPSFORGE_WHOLE1(popcount, __builtin_popcountll(make_unsigned_t<T>(x)))
MPSFORGE_WHOLE1(clz, x == 0 ? bits_of<T>() : __builtin_clzll(make_unsigned_t<T>(x)) - (64 - bits_of<T>()))
MPSFORGE_WHOLE1(ctz, x == 0 ? bits_of<T>() : __builtin_ctzll(make_unsigned_t<T>(x)))
MPSFORGE_WHOLE1(reverse_bits, __builtin_bitreverse64(make_unsigned_t<T>(x)) >> (64 - bits_of<T>()))
MPSFORGE_WHOLE2(max, x > y ? x : y)
MPSFORGE_WHOLE2(min, x < y ? x : y)
MPSFORGE_WHOLE2(mulhi, (static_cast<__int128>(x) * y) >> bits_of<T>())
MPSFORGE_WHOLE2(mul24, (x << 8 >> 8) * (y << 8 >> 8))
MPSFORGE_WHOLE2(hadd, (static_cast<__int128>(x) + y) >> 1)
MPSFORGE_WHOLE2(rhadd, (static_cast<__int128>(x) + y + 1) >> 1)
MPSFORGE_WHOLE2(absdiff,
                x > y ? make_unsigned_t<T>(x) - make_unsigned_t<T>(y) : make_unsigned_t<T>(y) - make_unsigned_t<T>(x))
MPSFORGE_WHOLE2(rotate, y % bits_of<T>() == 0
                            ? x
                            : make_unsigned_t<T>(x) << (make_unsigned_t<T>(y) % bits_of<T>()) |
                                  make_unsigned_t<T>(x) >> (bits_of<T>() - make_unsigned_t<T>(y) % bits_of<T>()))
#undef MPSFORGE_WHOLE1
#undef MPSFORGE_WHOLE2
template <class T, class = if_integral<T>>
constexpr T addsat(T x, T y) {
  T sum{};
  if (!__builtin_add_overflow(x, y, &sum)) return sum;
  return x < T(0) ? numeric_limits<T>::min() : numeric_limits<T>::max();
}
template <class T, class = if_integral<T>>
constexpr T subsat(T x, T y) {
  T difference{};
  if (!__builtin_sub_overflow(x, y, &difference)) return difference;
  return x < y ? numeric_limits<T>::min() : numeric_limits<T>::max();
}
template <class T, class = if_integral<T>>
constexpr T clamp(T x, T low, T high) {
  return min(max(x, low), high);
}
template <class T, class = if_integral<T>>
constexpr T max3(T x, T y, T z) {
  return max(x, max(y, z));
}
template <class T, class = if_integral<T>>
constexpr T min3(T x, T y, T z) {
  return min(x, min(y, z));
}
template <class T, class = if_integral<T>>
constexpr T mad24(T x, T y, T z) {
  return mul24(x, y) + z;
}
template <class T, class = if_integral<T>>
constexpr T extract_bits(T x, uint offset, uint bits) {
  if (bits == 0) return 0;
  const int up = bits_of<T>() - int(offset) - int(bits);
  return T(T(x << up) >> (bits_of<T>() - int(bits)));
}
template <class T, class = if_integral<T>>
constexpr T insert_bits(T base, T insert, uint offset, uint bits) {
  const ulong mask = (bits >= 64 ? ~0ul : (1ul << bits) - 1) << offset;
  return T((ulong(base) & ~mask) | ((ulong(insert) << offset) & mask));
}
// Of one, two and three numbers: compute is an expression of floats x, y and z.
#define MPSFORGE_REAL1(name, compute)                                      \
  namespace precise {                                                      \
  inline float name(float x) { return compute; }                           \
  template <int N>                                                         \
  vec<float, N> name(vec<float, N> x) {                                    \
    for (int i = 0; i < N; ++i) x.data[i] = name(x.data[i]);               \
    return x;                                                              \
  }                                                                        \
  }                                                                        \
  namespace fast {                                                         \
  using precise::name;                                                     \
  }                                                                        \
  inline float name(float x) { return precise::name(x); }                  \
  inline half name(half x) { return half(precise::name(float(x))); }       \
  inline bfloat name(bfloat x) { return bfloat(precise::name(float(x))); } \
  template <class T, int N>                                                \
  vec<T, N> name(vec<T, N> x) {                                            \
    for (int i = 0; i < N; ++i) x.data[i] = name(x.data[i]);               \
    return x;                                                              \
  }
// These take whole numbers, too, as floats.
#define MPSFORGE_REAL1_OF_ANY(name, compute) \
  MPSFORGE_REAL1(name, compute)              \
  template <class T, class = if_integral<T>> \
  float name(T x) {                          \
    return precise::name(float(x));          \
  }
#define MPSFORGE_REAL2(name, compute)                                                          \
  namespace precise {                                                                          \
  inline float name(float x, float y) { return compute; }                                      \
  template <int N>                                                                             \
  vec<float, N> name(vec<float, N> x, vec<float, N> y) {                                       \
    for (int i = 0; i < N; ++i) x.data[i] = name(x.data[i], y.data[i]);                        \
    return x;                                                                                  \
  }                                                                                            \
  }                                                                                            \
  namespace fast {                                                                             \
  using precise::name;                                                                         \
  }                                                                                            \
  inline float name(float x, float y) { return precise::name(x, y); }                          \
  inline half name(half x, half y) { return half(precise::name(float(x), float(y))); }         \
  inline bfloat name(bfloat x, bfloat y) { return bfloat(precise::name(float(x), float(y))); } \
  template <class T, int N>                                                                    \
  vec<T, N> name(vec<T, N> x, vec<T, N> y) {                                                   \
    for (int i = 0; i < N; ++i) x.data[i] = name(x.data[i], y.data[i]);                        \
    return x;                                                                                  \
  }                                                                                            \
  template <class T, int N, class S, class = enable_if_t<shape<S>::size == 1>>                 \
  vec<T, N> name(vec<T, N> x, S y) {                                                           \
    return name(x, vec<T, N>(y));                                                              \
  }
#define MPSFORGE_REAL3(name, compute)                                                                              \
  namespace precise {                                                                                              \
  inline float name(float x, float y, float z) { return compute; }                                                 \
  }                                                                                                                \
  namespace fast {                                                                                                 \
  using precise::name;                                                                                             \
  }                                                                                                                \
  inline float name(float x, float y, float z) { return precise::name(x, y, z); }                                  \
  inline half name(half x, half y, half z) { return half(precise::name(float(x), float(y), float(z))); }           \
  inline bfloat name(bfloat x, bfloat y, bfloat z) { return bfloat(precise::name(float(x), float(y), float(z))); } \
  template <class T, int N>                                                                                        \
  vec<T, N> name(vec<T, N> x, vec<T, N> y, vec<T, N> z) {                                                          \
    for (int i = 0; i < N; ++i) x.data[i] = name(x.data[i], y.data[i], z.data[i]);                                 \
    return x;                                                                                                      \
  }                                                                                                                \
  template <class T, int N, class A, class B, class = enable_if_t<shape<A>::size == 1 && shape<B>::size == 1>>     \
  vec<T, N> name(vec<T, N> x, A y, B z) {                                                                          \
    return name(x, vec<T, N>(y), vec<T, N>(z));                                                                    \
  }

// The sine of pi times x, which is from -1 to 1: 0 at both ends.
inline float sine_of_turn(float x) {
  return __builtin_sinf(M_PI_F * (__builtin_fabsf(x) > 0.5f ? __builtin_copysignf(1.0f, x) - x : x));
}
MPSFORGE_REAL1_OF_ANY(acos, __builtin_acosf(x))
MPSFORGE_REAL1_OF_ANY(acosh, __builtin_acoshf(x))
MPSFORGE_REAL1_OF_ANY(asin, __builtin_asinf(x))
MPSFORGE_REAL1_OF_ANY(asinh, __builtin_asinhf(x))
MPSFORGE_REAL1_OF_ANY(atan, __builtin_atanf(x))
MPSFORGE_REAL1_OF_ANY(atanh, __builtin_atanhf(x))
MPSFORGE_REAL1_OF_ANY(ceil, __builtin_ceilf(x))
MPSFORGE_REAL1_OF_ANY(cos, __builtin_cosf(x))
MPSFORGE_REAL1_OF_ANY(cosh, __builtin_coshf(x))
MPSFORGE_REAL1_OF_ANY(cospi, sine_of_turn(0.5f - __builtin_fabsf(__builtin_remainderf(x, 2.0f))))
MPSFORGE_REAL1_OF_ANY(exp, __builtin_expf(x))
MPSFORGE_REAL1_OF_ANY(exp2, __builtin_exp2f(x))
MPSFORGE_REAL1_OF_ANY(exp10, __builtin_exp10f(x))
MPSFORGE_REAL1_OF_ANY(fabs, __builtin_fabsf(x))
MPSFORGE_REAL1_OF_ANY(floor, __builtin_floorf(x))
MPSFORGE_REAL1_OF_ANY(fract, __builtin_fminf(x - __builtin_floorf(x), 0x1.fffffep-1f))
MPSFORGE_REAL1_OF_ANY(log, __builtin_logf(x))
MPSFORGE_REAL1_OF_ANY(log2, __builtin_log2f(x))
MPSFORGE_REAL1_OF_ANY(log10, __builtin_log10f(x))
MPSFORGE_REAL1_OF_ANY(rint, __builtin_rintf(x))
MPSFORGE_REAL1_OF_ANY(round, __builtin_roundf(x))
MPSFORGE_REAL1_OF_ANY(rsqrt, 1.0f / __builtin_sqrtf(x))
MPSFORGE_REAL1_OF_ANY(saturate, __builtin_fminf(__builtin_fmaxf(x, 0.0f), 1.0f))
MPSFORGE_REAL1_OF_ANY(sin, __builtin_sinf(x))
MPSFORGE_REAL1_OF_ANY(sinh, __builtin_sinhf(x))
MPSFORGE_REAL1_OF_ANY(sinpi, sine_of_turn(__builtin_remainderf(x, 2.0f)))
MPSFORGE_REAL1_OF_ANY(sqrt, __builtin_sqrtf(x))
MPSFORGE_REAL1_OF_ANY(tan, __builtin_tanf(x))
MPSFORGE_REAL1_OF_ANY(tanh, __builtin_tanhf(x))
MPSFORGE_REAL1_OF_ANY(tanpi, sinpi(x) / cospi(x))
MPSFORGE_REAL1_OF_ANY(trunc, __builtin_truncf(x))
MPSFORGE_REAL1(abs, __builtin_fabsf(x))
MPSFORGE_REAL1(sign, x > 0 ? 1.0f : x < 0 ? -1.0f : x == 0 ? x : 0.0f)
MPSFORGE_REAL2(atan2, __builtin_atan2f(x, y))
MPSFORGE_REAL2(copysign, __builtin_copysignf(x, y))
MPSFORGE_REAL2(fdim, __builtin_fdimf(x, y))
MPSFORGE_REAL2(fmax, __builtin_fmaxf(x, y))
MPSFORGE_REAL2(fmin, __builtin_fminf(x, y))
MPSFORGE_REAL2(fmod, __builtin_fmodf(x, y))
MPSFORGE_REAL2(max, __builtin_fmaxf(x, y))
MPSFORGE_REAL2(min, __builtin_fminf(x, y))
MPSFORGE_REAL2(pow, __builtin_powf(x, y))
MPSFORGE_REAL2(powr, __builtin_powf(x, y))
MPSFORGE_REAL2(step, y < x ? 0.0f : 1.0f)
MPSFORGE_REAL3(clamp, __builtin_fminf(__builtin_fmaxf(x, y), z))
MPSFORGE_REAL3(fma, __builtin_fmaf(x, y, z))
MPSFORGE_REAL3(mix, x + (y - x) * z)
MPSFORGE_REAL3(max3, __builtin_fmaxf(x, __builtin_fmaxf(y, z)))
MPSFORGE_REAL3(min3, __builtin_fminf(x, __builtin_fminf(y, z)))
MPSFORGE_REAL3(fmax3, __builtin_fmaxf(x, __builtin_fmaxf(y, z)))
MPSFORGE_REAL3(fmin3, __builtin_fminf(x, __builtin_fminf(y, z)))
MPSFORGE_REAL3(median3, __builtin_fmaxf(__builtin_fminf(x, y), __builtin_fminf(__builtin_fmaxf(x, y), z)))
MPSFORGE_REAL3(fmedian3, __builtin_fmaxf(__builtin_fminf(x, y), __builtin_fminf(__builtin_fmaxf(x, y), z)))
inline float smoothstep(float low, float high, float x) {
  const float t = saturate((x - low) / (high - low));
  return t * t * (3 - 2 * t);
}
#undef MPSFORGE_REAL1_OF_ANY
#undef MPSFORGE_REAL1
#undef MPSFORGE_REAL2
#undef MPSFORGE_REAL3

// The next number of the same type towards y.
inline float nextafter(float x, float y) { return __builtin_nextafterf(x, y); }
inline float ldexp(float x, int exponent) { return __builtin_ldexpf(x, exponent); }
inline float frexp(float x, int& exponent) { return __builtin_frexpf(x, &exponent); }
inline float modf(float x, float& whole) { return __builtin_modff(x, &whole); }
inline int ilogb(float x) { return __builtin_ilogbf(x); }
inline float sincos(float x, float& cosine) {
  cosine = cos(x);
  return sin(x);
}

// Of truth.
#define MPSFORGE_TEST(name, compute)                              \
  inline bool name(float x) { return compute; }                   \
  inline bool name(half value) {                                  \
    const float x = float(value);                                 \
    return compute;                                               \
  }                                                               \
  inline bool name(bfloat value) {                                \
    const float x = float(value);                                 \
    return compute;                                               \
  }                                                               \
  template <class T, class = if_integral<T>>                      \
  bool name(T value) {                                            \
    const float x = float(value);                                 \
    return compute;                                               \
  }                                                               \
  template <class T, int N>                                       \
  vec<bool, N> name(vec<T, N> x) {                                \
    vec<bool, N> result{};                                        \
    for (int i = 0; i < N; ++i) result.data[i] = name(x.data[i]); \
    return result;                                                \
  }                                                               \
  namespace precise {                                             \
  using metal::name;                                              \
  }
MPSFORGE_TEST(isfinite, __builtin_isfinite(x))
MPSFORGE_TEST(isinf, __builtin_isinf(x))
MPSFORGE_TEST(isnan, __builtin_isnan(x))
MPSFORGE_TEST(isnormal, __builtin_isnormal(x))
MPSFORGE_TEST(signbit, __builtin_signbit(x))
#undef MPSFORGE_TEST
inline bool isordered(float x, float y) { return !__builtin_isunordered(x, y); }
inline bool isunordered(float x, float y) { return __builtin_isunordered(x, y); }
template <class T, int N>
vec<bool, N> isunordered(vec<T, N> x, vec<T, N> y) {
  vec<bool, N> result{};
  for (int i = 0; i < N; ++i) result.data[i] = isunordered(x.data[i], y.data[i]);
  return result;
}
template <class T, int N>
vec<bool, N> isordered(vec<T, N> x, vec<T, N> y) {
  vec<bool, N> result{};
  for (int i = 0; i < N; ++i) result.data[i] = isordered(x.data[i], y.data[i]);
  return result;
}
template <int N>
bool any(vec<bool, N> x) {
  bool found = false;
  for (int i = 0; i < N; ++i) found = found || x.data[i];
  return found;
}
template <int N>
bool all(vec<bool, N> x) {
  bool holds = true;
  for (int i = 0; i < N; ++i) holds = holds && x.data[i];
  return holds;
}
inline bool any(bool x) { return x; }
inline bool all(bool x) { return x; }
template <class T>
T select(T otherwise, T chosen, bool which) {
  return which ? chosen : otherwise;
}
template <class T, int N>
vec<T, N> select(vec<T, N> otherwise, vec<T, N> chosen, vec<bool, N> which) {
  for (int i = 0; i < N; ++i) otherwise.data[i] = which.data[i] ? chosen.data[i] : otherwise.data[i];
  return otherwise;
}

// Of vectors as a whole.
template <class T, int N>
T dot(vec<T, N> a, vec<T, N> b) {
  T sum = a.data[0] * b.data[0];
  for (int i = 1; i < N; ++i) sum += a.data[i] * b.data[i];
  return sum;
}
template <class T>
vec<T, 3> cross(vec<T, 3> a, vec<T, 3> b) {
  return vec<T, 3>(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
template <class T, int N>
T length_squared(vec<T, N> a) {
  return dot(a, a);
}
template <class T, int N>
T length(vec<T, N> a) {
  return sqrt(dot(a, a));
}
template <class T, int N>
T distance(vec<T, N> a, vec<T, N> b) {
  return length(a - b);
}
template <class T, int N>
vec<T, N> normalize(vec<T, N> a) {
  return a * rsqrt(dot(a, a));
}
}  // namespace metal

template <class T, class U>
constexpr T as_type(U value) {
  return __builtin_bit_cast(T, value);
}
