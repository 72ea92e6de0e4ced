// For sources that register kernels in DispatchStub, which has no place for MPS in a libtorch built without it: they
// compile, and the rest of what they define is there. Operators that need the stub say that it has no kernel.
#pragma once

#include <ATen/native/DispatchStub.h>

#undef REGISTER_DISPATCH
#define REGISTER_DISPATCH(name, kernel) [[maybe_unused]] static const auto without_place_##name = kernel;
