// What takes the place of CUDA's libraries under a libtorch that was built for CUDA and is used without it. No code of
// CUDA's is loaded then, so PyTorch sees no second accelerator beside MPS.
//
// fork/hostbuild/host/cuda.go finds the symbols that the libtorch wants of those libraries, and writes a source that
// uses these macros, once for each symbol. The libraries are only loaded: a function that is called ends the process
// with a message, unless answers.cc answers it.
#pragma once

namespace mpsforge {
/// Says which function of CUDA's was called, and ends the process. `symbol` is its mangled name.
[[noreturn]] void absent(const char* symbol);
}  // namespace mpsforge

/// A function that ends the process. Weak: an answer of answers.cc is taken instead.
#define MPSFORGE_ABSENT_FUNCTION(id, symbol)                                         \
  extern "C" __attribute__((weak, visibility("default"))) void id() __asm__(symbol); \
  extern "C" void id() { mpsforge::absent(symbol); }

/// A variable: zeros, more than any of them is long.
#define MPSFORGE_ABSENT_VARIABLE(id, symbol)                                             \
  extern "C" __attribute__((weak, visibility("default"))) char id[1024] __asm__(symbol); \
  extern "C" char id[1024] = {};

/// The std::type_info of a class, which Python bindings name when they are loaded (Itanium C++ ABI, 2.9.5). `type` is
/// the class's mangled name.
#define MPSFORGE_ABSENT_TYPE(id, symbol, type)                                                     \
  extern "C" __attribute__((weak, visibility("default"))) const void* const id[2] __asm__(symbol); \
  extern "C" const void* const id[2] = {&mpsforge_class_type_info[2], type};
extern "C" const void* const mpsforge_class_type_info[] __asm__("_ZTVN10__cxxabiv117__class_type_infoE");

/// A table of virtual functions, of which each ends the process.
#define MPSFORGE_ABSENT_VTABLE(id, symbol)                                                                     \
  extern "C" void id##_function() { mpsforge::absent(symbol); }                                                \
  extern "C" __attribute__((weak, visibility("default"))) void (*const id[32])() __asm__(symbol);              \
  extern "C" void (*const id[32])() = {                                                                        \
      id##_function, id##_function, id##_function, id##_function, id##_function, id##_function, id##_function, \
      id##_function, id##_function, id##_function, id##_function, id##_function, id##_function, id##_function, \
      id##_function, id##_function, id##_function, id##_function, id##_function, id##_function, id##_function, \
      id##_function, id##_function, id##_function, id##_function, id##_function, id##_function, id##_function, \
      id##_function, id##_function, id##_function, id##_function};
