// What the host versions of Metal kernels share: the types that their names hold, and conversions between them.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include "objc/metal/host_kernel.h"

namespace mpsforge::hostmps {

using mpsforge::objc::KernelCall;
using mpsforge::objc::RegisterHostKernel;

// Calls use with a value of the type that a Metal name means.
template <class Use>
void with_type(const KernelCall& call, const std::string& name, Use use) {
  if (name == "float") return use(float());
  if (name == "half") return use(c10::Half());
  if (name == "bfloat") return use(c10::BFloat16());
  if (name == "long") return use(int64_t());
  if (name == "int") return use(int32_t());
  if (name == "short") return use(int16_t());
  if (name == "char") return use(int8_t());
  if (name == "uchar") return use(uint8_t());
  if (name == "bool") return use(bool());
  if (name == "float2") return use(c10::complex<float>());
  if (name == "half2") return use(c10::complex<c10::Half>());
  call.fail("no host version for elements of type " + name);
}

template <class To, class From>
struct Convert {
  static To value(const From& from) {
    if constexpr (std::is_same_v<To, bool>) {
      return from != From(0);
    } else {
      return static_cast<To>(from);
    }
  }
};
template <class To, class From>
struct Convert<c10::complex<To>, From> {
  static c10::complex<To> value(const From& from) {
    return c10::complex<To>(static_cast<To>(static_cast<float>(from)), To(0));
  }
};
template <class To, class From>
struct Convert<To, c10::complex<From>> {
  static To value(const c10::complex<From>& from) { return Convert<To, From>::value(from.real()); }
};
template <class To, class From>
struct Convert<c10::complex<To>, c10::complex<From>> {
  static c10::complex<To> value(const c10::complex<From>& from) {
    return c10::complex<To>(static_cast<To>(static_cast<float>(from.real())),
                            static_cast<To>(static_cast<float>(from.imag())));
  }
};

}  // namespace mpsforge::hostmps
