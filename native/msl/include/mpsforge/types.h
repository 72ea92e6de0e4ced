// Types of the Metal Shading Language in C++, for shaders that are source when a process has them
// (native/msl/rewrite.h). Nothing of C's or C++'s library is included: its names would come between Metal's.
#pragma once

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef _Float16 half;

// Not clang's __bf16, which has no conversion from and to half.
struct bfloat {
  bfloat() = default;
  template <class T, class = decltype(float(T()))>
  constexpr explicit bfloat(T value) : bits_(round(float(value))) {}
  constexpr operator float() const { return __builtin_bit_cast(float, uint(bits_) << 16); }
#define MPSFORGE_OPERATOR(op)                                                                      \
  friend constexpr bfloat operator op(bfloat a, bfloat b) { return bfloat(float(a) op float(b)); } \
  template <class T>                                                                               \
  constexpr bfloat& operator op##=(T b) {                                                          \
    return *this = bfloat(float(*this) op float(b));                                               \
  }
  MPSFORGE_OPERATOR(+)
  MPSFORGE_OPERATOR(-)
  MPSFORGE_OPERATOR(*)
  MPSFORGE_OPERATOR(/)
#undef MPSFORGE_OPERATOR
  friend constexpr bfloat operator-(bfloat a) { return bfloat(-float(a)); }

 private:
  static constexpr ushort round(float value) {
    const uint bits = __builtin_bit_cast(uint, value);
    return value != value ? 0x7fc0 : static_cast<ushort>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  ushort bits_;
};

namespace metal {

template <bool B, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  typedef T type;
};
template <bool B, class T = void>
using enable_if_t = typename enable_if<B, T>::type;
template <bool B, class T, class F>
struct conditional {
  typedef T type;
};
template <class T, class F>
struct conditional<false, T, F> {
  typedef F type;
};
template <bool B, class T, class F>
using conditional_t = typename conditional<B, T, F>::type;
template <class T, T V>
struct integral_constant {
  static constexpr T value = V;
  typedef T value_type;
  constexpr operator T() const { return V; }
};
typedef integral_constant<bool, true> true_type;
typedef integral_constant<bool, false> false_type;
template <class T, class U>
struct is_same : false_type {};
template <class T>
struct is_same<T, T> : true_type {};
template <class T, class U>
constexpr bool is_same_v = is_same<T, U>::value;
template <class T>
using remove_cv_t = __remove_cv(T);
template <class T>
using remove_reference_t = __remove_reference_t(T);
template <class T>
using remove_const_t = __remove_const(T);
template <class T>
using remove_volatile_t = __remove_volatile(T);
template <class T>
using make_unsigned_t = __make_unsigned(T);
template <class T>
using make_signed_t = __make_signed(T);
template <class T>
struct is_integral : integral_constant<bool, __is_integral(T)> {};
template <class T>
struct is_floating_point
    : integral_constant<bool, is_same_v<remove_cv_t<T>, float> || is_same_v<remove_cv_t<T>, half> ||
                                  is_same_v<remove_cv_t<T>, bfloat>> {};
template <class T>
struct is_arithmetic : integral_constant<bool, is_integral<T>::value || is_floating_point<T>::value> {};
template <class T>
struct is_scalar : integral_constant<bool, is_arithmetic<T>::value || __is_pointer(T) || __is_enum(T)> {};
template <class T>
struct is_unsigned : integral_constant<bool, __is_unsigned(T)> {};
template <class T>
struct is_signed : integral_constant<bool, is_arithmetic<T>::value && !__is_unsigned(T)> {};
template <class T>
struct is_pointer : integral_constant<bool, __is_pointer(T)> {};
template <class T, class U>
struct is_convertible : integral_constant<bool, __is_convertible(T, U)> {};
template <class T>
constexpr bool is_integral_v = is_integral<T>::value;
template <class T>
constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T>
constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
template <class T>
constexpr bool is_scalar_v = is_scalar<T>::value;
template <class T>
constexpr bool is_unsigned_v = is_unsigned<T>::value;
template <class T>
constexpr bool is_signed_v = is_signed<T>::value;
template <class T>
constexpr bool is_pointer_v = is_pointer<T>::value;
template <class T>
T declval();

template <class T, int N>
struct vec;
template <class T, int N>
struct packed_vec;

// How many components a type has, and which.
template <class T>
struct shape {
  static constexpr int size = is_arithmetic_v<T> || __is_enum(T) ? 1 : -1000;
  typedef T element;
};
template <class T, int N>
struct shape<vec<T, N>> {
  static constexpr int size = N;
  typedef T element;
};
template <class T, int N>
struct shape<packed_vec<T, N>> : shape<vec<T, N>> {};

template <class V, class T>
constexpr void put_components(V& to, int& at, const T& value) {
  if constexpr (shape<T>::size == 1) {
    to.data[at++] = static_cast<typename shape<V>::element>(value);
  } else {
    for (int i = 0; i < shape<T>::size; ++i) to.data[at++] = static_cast<typename shape<V>::element>(value.data[i]);
  }
}

// What all lengths of vectors have. A scalar becomes a vector by itself, another vector only where it is asked to.
#define MPSFORGE_VECTOR(N)                                                                             \
  vec() = default;                                                                                     \
  template <class S, class = enable_if_t<shape<S>::size == 1>>                                         \
  constexpr vec(S value) : data{} {                                                                    \
    for (int i = 0; i < N; ++i) data[i] = static_cast<T>(value);                                       \
  }                                                                                                    \
  template <class U>                                                                                   \
  constexpr explicit vec(vec<U, N> other) : data{} {                                                   \
    for (int i = 0; i < N; ++i) data[i] = static_cast<T>(other.data[i]);                               \
  }                                                                                                    \
  constexpr vec(packed_vec<T, N> other) : data{} {                                                     \
    for (int i = 0; i < N; ++i) data[i] = other.data[i];                                               \
  }                                                                                                    \
  template <class A, class B, class... More,                                                           \
            class = enable_if_t<shape<A>::size + shape<B>::size + (0 + ... + shape<More>::size) == N>> \
  constexpr vec(A a, B b, More... more) : data{} {                                                     \
    int at = 0;                                                                                        \
    put_components(*this, at, a);                                                                      \
    put_components(*this, at, b);                                                                      \
    (put_components(*this, at, more), ...);                                                            \
  }                                                                                                    \
  constexpr T& operator[](size_t i) { return data[i]; }                                                \
  constexpr const T& operator[](size_t i) const { return data[i]; }                                    \
  template <int... I>                                                                                  \
  constexpr vec<T, sizeof...(I)> pick() const {                                                        \
    return vec<T, sizeof...(I)>(data[I]...);                                                           \
  }                                                                                                    \
  template <int... I>                                                                                  \
  constexpr void place(vec<T, sizeof...(I)> value) {                                                   \
    int at = 0;                                                                                        \
    ((data[I] = value.data[at++]), ...);                                                               \
  }

template <class T>
struct alignas(2 * sizeof(T)) vec<T, 2> {
  union {
    T data[2];
    struct {
      T x, y;
    };
    struct {
      T r, g;
    };
  };
  MPSFORGE_VECTOR(2)
#define MPSFORGE_LENGTH 2
#include "swizzles.h"
#undef MPSFORGE_LENGTH
};

template <class T>
struct alignas(4 * sizeof(T)) vec<T, 3> {
  union {
    T data[3];
    struct {
      T x, y, z;
    };
    struct {
      T r, g, b;
    };
  };
  MPSFORGE_VECTOR(3)
#define MPSFORGE_LENGTH 3
#include "swizzles.h"
#undef MPSFORGE_LENGTH
};

template <class T>
struct alignas(4 * sizeof(T)) vec<T, 4> {
  union {
    T data[4];
    struct {
      T x, y, z, w;
    };
    struct {
      T r, g, b, a;
    };
  };
  MPSFORGE_VECTOR(4)
#define MPSFORGE_LENGTH 4
#include "swizzles.h"
#undef MPSFORGE_LENGTH
};
#undef MPSFORGE_VECTOR

template <class T>
struct packed_vec<T, 2> {
  union {
    T data[2];
    struct {
      T x, y;
    };
  };
  packed_vec() = default;
  constexpr packed_vec(vec<T, 2> v) : data{v.x, v.y} {}
  constexpr packed_vec(T a, T b) : data{a, b} {}
  constexpr T& operator[](size_t i) { return data[i]; }
  constexpr const T& operator[](size_t i) const { return data[i]; }
};
template <class T>
struct packed_vec<T, 3> {
  union {
    T data[3];
    struct {
      T x, y, z;
    };
  };
  packed_vec() = default;
  constexpr packed_vec(vec<T, 3> v) : data{v.x, v.y, v.z} {}
  constexpr packed_vec(T a, T b, T c) : data{a, b, c} {}
  constexpr T& operator[](size_t i) { return data[i]; }
  constexpr const T& operator[](size_t i) const { return data[i]; }
};
template <class T>
struct packed_vec<T, 4> {
  union {
    T data[4];
    struct {
      T x, y, z, w;
    };
  };
  packed_vec() = default;
  constexpr packed_vec(vec<T, 4> v) : data{v.x, v.y, v.z, v.w} {}
  constexpr packed_vec(T a, T b, T c, T d) : data{a, b, c, d} {}
  constexpr T& operator[](size_t i) { return data[i]; }
  constexpr const T& operator[](size_t i) const { return data[i]; }
};

// Operators take vectors, packed or not, of one type, or a vector and a scalar, which becomes a vector.
template <class A, class B>
struct operands {
  static constexpr int size = shape<A>::size > 1 ? shape<A>::size : shape<B>::size;
  typedef typename conditional_t<(shape<A>::size > 1), shape<A>, shape<B>>::element element;
  static constexpr bool fit = size > 1 && (shape<A>::size == shape<B>::size
                                               ? is_same_v<typename shape<A>::element, typename shape<B>::element>
                                               : shape<A>::size == 1 || shape<B>::size == 1);
  template <class V>
  static constexpr element component(const V& value, int i) {
    if constexpr (shape<V>::size == 1) {
      return static_cast<element>(value);
    } else {
      return value.data[i];
    }
  }
};
#define MPSFORGE_BINARY(op, R)                                                       \
  template <class A, class B, class O = operands<A, B>, class = enable_if_t<O::fit>> \
  constexpr auto operator op(const A& a, const B& b) {                               \
    typedef typename O::element T;                                                   \
    vec<R, O::size> result{};                                                        \
    for (int i = 0; i < O::size; ++i) {                                              \
      result.data[i] = static_cast<R>(O::component(a, i) op O::component(b, i));     \
    }                                                                                \
    return result;                                                                   \
  }
#define MPSFORGE_ARITHMETIC(op)                                                                                   \
  MPSFORGE_BINARY(op, T)                                                                                          \
  template <class A, class B, class O = operands<A, B>, class = enable_if_t<O::fit && shape<A>::size == O::size>> \
  constexpr A& operator op##=(A & a, const B & b) {                                                               \
    return a = a op b;                                                                                            \
  }
MPSFORGE_ARITHMETIC(+)
MPSFORGE_ARITHMETIC(-)
MPSFORGE_ARITHMETIC(*)
MPSFORGE_ARITHMETIC(/)
MPSFORGE_ARITHMETIC(%)
MPSFORGE_ARITHMETIC(&)
MPSFORGE_ARITHMETIC(|)
MPSFORGE_ARITHMETIC(^)
MPSFORGE_ARITHMETIC(<<)
MPSFORGE_ARITHMETIC(>>)
MPSFORGE_BINARY(==, bool)
MPSFORGE_BINARY(!=, bool)
MPSFORGE_BINARY(<, bool)
MPSFORGE_BINARY(>, bool)
MPSFORGE_BINARY(<=, bool)
MPSFORGE_BINARY(>=, bool)
MPSFORGE_BINARY(&&, bool)
MPSFORGE_BINARY(||, bool)
#undef MPSFORGE_ARITHMETIC
#undef MPSFORGE_BINARY
#define MPSFORGE_UNARY(op, R)                                                  \
  template <class T, int N>                                                    \
  constexpr vec<R, N> operator op(vec<T, N> a) {                               \
    vec<R, N> result{};                                                        \
    for (int i = 0; i < N; ++i) result.data[i] = static_cast<R>(op a.data[i]); \
    return result;                                                             \
  }
MPSFORGE_UNARY(-, T)
MPSFORGE_UNARY(~, T)
MPSFORGE_UNARY(!, bool)
#undef MPSFORGE_UNARY

template <class T>
struct numeric_limits;
#define MPSFORGE_LIMITS(T, least, most, digits_)                    \
  template <>                                                       \
  struct numeric_limits<T> {                                        \
    static constexpr bool is_integer = true, is_specialized = true; \
    static constexpr bool is_signed = !__is_unsigned(T);            \
    static constexpr int digits = digits_;                          \
    static constexpr T min() { return least; }                      \
    static constexpr T max() { return most; }                       \
    static constexpr T lowest() { return least; }                   \
  };
MPSFORGE_LIMITS(bool, false, true, 1)
MPSFORGE_LIMITS(char, -128, 127, 7)
MPSFORGE_LIMITS(int8_t, -128, 127, 7)
MPSFORGE_LIMITS(uchar, 0, 255, 8)
MPSFORGE_LIMITS(short, -32768, 32767, 15)
MPSFORGE_LIMITS(ushort, 0, 65535, 16)
MPSFORGE_LIMITS(int, -__INT_MAX__ - 1, __INT_MAX__, 31)
MPSFORGE_LIMITS(uint, 0, ~0u, 32)
MPSFORGE_LIMITS(long, -__LONG_MAX__ - 1, __LONG_MAX__, 63)
MPSFORGE_LIMITS(ulong, 0, ~0ul, 64)
#undef MPSFORGE_LIMITS
#define MPSFORGE_LIMITS(T, bits, least, most, step, digits_)                           \
  template <>                                                                          \
  struct numeric_limits<T> {                                                           \
    static constexpr bool is_integer = false, is_specialized = true, is_signed = true; \
    static constexpr bool has_infinity = true, has_quiet_NaN = true;                   \
    static constexpr int digits = digits_;                                             \
    static constexpr T min() { return T(least); }                                      \
    static constexpr T max() { return T(most); }                                       \
    static constexpr T lowest() { return T(-most); }                                   \
    static constexpr T epsilon() { return T(step); }                                   \
    static constexpr T infinity() { return T(__builtin_inff()); }                      \
    static constexpr T quiet_NaN() { return T(__builtin_nanf("")); }                   \
  };
MPSFORGE_LIMITS(float, 32, __FLT_MIN__, __FLT_MAX__, __FLT_EPSILON__, 24)
MPSFORGE_LIMITS(half, 16, 6.103515625e-05f, 65504.0f, 9.765625e-04f, 11)
MPSFORGE_LIMITS(bfloat, 16, __FLT_MIN__, 3.38953139e38f, 7.8125e-03f, 8)
#undef MPSFORGE_LIMITS

template <class T, size_t N>
struct array {
  T elements[N];
  constexpr T& operator[](size_t i) { return elements[i]; }
  constexpr const T& operator[](size_t i) const { return elements[i]; }
  constexpr size_t size() const { return N; }
};

}  // namespace metal

#define MPSFORGE_NAMES(name, T)                     \
  typedef metal::vec<T, 2> name##2;                 \
  typedef metal::vec<T, 3> name##3;                 \
  typedef metal::vec<T, 4> name##4;                 \
  typedef metal::packed_vec<T, 2> packed_##name##2; \
  typedef metal::packed_vec<T, 3> packed_##name##3; \
  typedef metal::packed_vec<T, 4> packed_##name##4;
MPSFORGE_NAMES(bool, bool)
MPSFORGE_NAMES(char, char)
MPSFORGE_NAMES(uchar, uchar)
MPSFORGE_NAMES(short, short)
MPSFORGE_NAMES(ushort, ushort)
MPSFORGE_NAMES(int, int)
MPSFORGE_NAMES(uint, uint)
MPSFORGE_NAMES(long, long)
MPSFORGE_NAMES(ulong, ulong)
MPSFORGE_NAMES(half, half)
MPSFORGE_NAMES(float, float)
MPSFORGE_NAMES(bfloat, bfloat)
#undef MPSFORGE_NAMES
