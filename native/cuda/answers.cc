// The functions of CUDA's that PyTorch calls without being asked for CUDA, each with the answer of a machine that has
// none. Nothing else may be called: standin.h.
#include <cxxabi.h>

#include <cstdio>
#include <cstdlib>

#include "standin.h"

namespace mpsforge {
void absent(const char* symbol) {
  int status = 0;
  char* readable = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::fprintf(stderr,
               "mpsforge: %s was called, and there is no CUDA here: this libtorch was built for CUDA and is used "
               "without it. Use device "
               "cpu or mps.\n",
               status == 0 ? readable : symbol);
  std::abort();
}
}  // namespace mpsforge

#define MPSFORGE_ANSWER extern "C" __attribute__((visibility("default")))

// torch.cuda.is_available() and device_count().
MPSFORGE_ANSWER signed char mpsforge_device_count() __asm__("_ZN3c104cuda12device_countEv");
MPSFORGE_ANSWER signed char mpsforge_device_count() { return 0; }

// The same of the runtime, for PyTorch's profiler. 100 is cudaErrorNoDevice.
MPSFORGE_ANSWER int cudaGetDeviceCount(int* count) {
  *count = 0;
  return 100;
}

// A reference to the pointer in which libtorch_python leaves a function for NCCL's watchdog when it is loaded.
MPSFORGE_ANSWER void** mpsforge_gil_checker() __asm__("_ZN4c10d15get_gil_checkerEv");
MPSFORGE_ANSWER void** mpsforge_gil_checker() {
  static void* checker = nullptr;
  return &checker;
}
