// How a kernel is called: what its parameters are comes from its type and from the attributes that
// native/msl/rewrite.cc has taken from its parameters and put into the arguments of Registered.
#pragma once

#include "../../../shaders/run.h"
#include "matrices.h"

extern "C" {
// Of hooks.cc. Calls one for count threads of the threadgroup, from first on.
void mpsforge_msl_threads(mpsforge::shaders::Run* run, uint first, uint count, void (*one)(mpsforge::shaders::Run*));
void mpsforge_msl_register(mpsforge::shaders::Kernel* kernel);
}

namespace mpsforge::msl {

using shaders::Argument;
using shaders::ArgumentKind;
using shaders::Run;

// Attributes of parameters: memory, with its index or the next one that is free, and values by their names in Metal.
template <uint I>
struct buffer {
  static constexpr ArgumentKind kind = ArgumentKind::Buffer;
  static constexpr int index = I;
};
template <uint I>
struct threadgroup {
  static constexpr ArgumentKind kind = ArgumentKind::Threadgroup;
  static constexpr int index = I;
};
typedef buffer<~0u> next_buffer;
typedef threadgroup<~0u> next_threadgroup;

inline uint in_group(const Run& run, int d) {
  const uint thread = *run.thread, x = run.this_group[0], y = run.this_group[1];
  return d == 0 ? thread % x : d == 1 ? thread / x % y : thread / (x * y);
}
inline uint all_in_group(const Run& run) { return run.this_group[0] * run.this_group[1] * run.this_group[2]; }

#define MPSFORGE_VALUE(name, compute)                            \
  struct name {                                                  \
    static constexpr ArgumentKind kind = ArgumentKind::Position; \
    static constexpr int index = 0;                              \
    static uint of(const Run& run, int d) { return compute; }    \
  };
MPSFORGE_VALUE(thread_position_in_grid, run.position[d] * run.group[d] + in_group(run, d))
MPSFORGE_VALUE(thread_position_in_threadgroup, in_group(run, d))
MPSFORGE_VALUE(threadgroup_position_in_grid, run.position[d])
MPSFORGE_VALUE(threads_per_threadgroup, run.this_group[d])
MPSFORGE_VALUE(dispatch_threads_per_threadgroup, run.group[d])
MPSFORGE_VALUE(threads_per_grid, run.threads[d])
MPSFORGE_VALUE(grid_size, run.threads[d])
MPSFORGE_VALUE(threadgroups_per_grid, run.groups[d])
MPSFORGE_VALUE(thread_index_in_threadgroup, (void(d), *run.thread))
MPSFORGE_VALUE(thread_index_in_simdgroup, (void(d), *run.thread % 32))
MPSFORGE_VALUE(simdgroup_index_in_threadgroup, (void(d), *run.thread / 32))
MPSFORGE_VALUE(threads_per_simdgroup, (void(run), void(d), 32))
MPSFORGE_VALUE(thread_execution_width, (void(run), void(d), 32))
MPSFORGE_VALUE(simdgroups_per_threadgroup, (void(d), (all_in_group(run) + 31) / 32))
MPSFORGE_VALUE(dispatch_simdgroups_per_threadgroup, (void(d), (run.group[0] * run.group[1] * run.group[2] + 31) / 32))
#undef MPSFORGE_VALUE

template <class T>
constexpr uint size_of() {
  if constexpr (__is_void(T)) {
    return 0;
  } else {
    return sizeof(T);
  }
}

// One argument, by its place in the list.
template <class P, class A>
P argument(const Run& run, int place) {
  const ulong address = run.arguments[place] & shaders::kAddress;
  (void)address;
  if constexpr (A::kind == ArgumentKind::Position) {
    static_assert(!__is_pointer(P) && !__is_reference(P), "the attribute is not one of memory");
    P value{};
    if constexpr (metal::shape<P>::size == 1) {
      value = static_cast<P>(A::of(run, 0));
    } else {
      for (int d = 0; d < metal::shape<P>::size; ++d) {
        value.data[d] = static_cast<typename metal::shape<P>::element>(A::of(run, d));
      }
    }
    return value;
  } else if constexpr (__is_reference(P)) {
    return *reinterpret_cast<metal::remove_reference_t<P>*>(address);
  } else {
    static_assert(__is_pointer(P),
                  "a kernel's parameter is a pointer, a reference, or has an attribute such as "
                  "[[thread_position_in_grid]]");
    return reinterpret_cast<P>(address);
  }
}

// Nothing, if it is neither a number nor a vector of them.
template <class T>
constexpr const char* type_name = "";
template <class T>
constexpr const char* type_name<metal::atomic<T>> = type_name<T>;
#define MPSFORGE_NAME(T)                   \
  template <>                              \
  constexpr const char* type_name<T> = #T; \
  MPSFORGE_VECTOR_NAME(T, 2) MPSFORGE_VECTOR_NAME(T, 3) MPSFORGE_VECTOR_NAME(T, 4)
#define MPSFORGE_VECTOR_NAME(T, N)                           \
  template <>                                                \
  constexpr const char* type_name<metal::vec<T, N>> = #T #N; \
  template <>                                                \
  constexpr const char* type_name<metal::packed_vec<T, N>> = "packed_" #T #N;
MPSFORGE_NAME(bool)
MPSFORGE_NAME(char)
MPSFORGE_NAME(uchar)
MPSFORGE_NAME(short)
MPSFORGE_NAME(ushort)
MPSFORGE_NAME(int)
MPSFORGE_NAME(uint)
MPSFORGE_NAME(long)
MPSFORGE_NAME(ulong)
MPSFORGE_NAME(half)
MPSFORGE_NAME(bfloat)
MPSFORGE_NAME(float)
#undef MPSFORGE_NAME
#undef MPSFORGE_VECTOR_NAME

template <class P, class A>
constexpr Argument described() {
  if constexpr (A::kind == ArgumentKind::Position) {
    return {A::kind, 0, 0, 0, "", ""};
  } else {
    using T = __remove_pointer(metal::remove_reference_t<P>);
    return {
        A::kind,      static_cast<uint>(A::index), __is_const(T) ? shaders::kRead : shaders::kRead | shaders::kWrite,
        size_of<T>(), type_name<__remove_cv(T)>,   ""};
  }
}

template <class T, T... I>
struct numbers {};

template <auto F, class... A>
class Registered {
 public:
  // names are those of the parameters, and one more.
  Registered(const char* name, bool waits, const char* const* names) : Registered(name, waits, names, F) {}

 private:
  template <class... P>
  Registered(const char* name, bool waits, const char* const* names, void (*)(P...))
      : arguments_{described<P, A>()...}, kernel_{name, threads<P...>, waits, sizeof...(P), arguments_} {
    static_assert(sizeof...(P) == sizeof...(A));
    for (uint i = 0; i < sizeof...(P); ++i) {
      Argument& a = arguments_[i];
      a.name = names[i];
      if (a.index != ~0u) continue;
      a.index = 0;
      for (uint other = 0; other < sizeof...(P);) {
        const Argument& b = arguments_[other];
        const bool taken = other != i && b.kind == a.kind && b.index == a.index;
        a.index += taken;
        other = taken ? 0 : other + 1;
      }
    }
    mpsforge_msl_register(&kernel_);
  }

  template <class... P>
  static void threads(Run* run, uint first, uint count) {
    mpsforge_msl_threads(run, first, count, one<P...>);
  }
  template <class... P>
  static void one(Run* run) {
    call<P...>(*run, __make_integer_seq<numbers, int, sizeof...(P)>());
  }
  template <class... P, int... I>
  static void call(const Run& run, numbers<int, I...>) {
    F(argument<P, A>(run, I)...);
  }

  Argument arguments_[sizeof...(A) + 1];
  shaders::Kernel kernel_;
};

}  // namespace mpsforge::msl

// Words of Metal, from here on: in the shader itself.
#define device
#define thread
#define constant const
