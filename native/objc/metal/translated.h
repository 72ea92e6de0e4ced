// Metal kernels that were translated into this processor's code: PyTorch's own, taken from its wheel for macOS
// (fork/hostbuild/shaders), and those that are source at run time (source_library.h). A host build may have none of the
// first; then host kernels (host_kernel.h) do their work.
#pragma once

#include <string>

#include "../../metal/metal.h"
#include "../../shaders/run.h"

namespace mpsforge::objc {

// A library, and what runs its kernels; nothing, if it was not translated.
struct Translated {
  const shaders::Library* library = nullptr;
  decltype(&mpsforge_shaders_run) run = nullptr;
};

struct TranslatedKernel {
  const shaders::Kernel* kernel = nullptr;
  decltype(&mpsforge_shaders_run) run = nullptr;
};

// The library that PyTorch's binary has in the section.
Translated translated_library(const std::string& section);

// Nothing, if the library has no such kernel.
TranslatedKernel translated_kernel(const Translated& library, const std::string& function);

// Runs all threads of the call's dispatch. Ranges that they touched are declared to the checker, and accesses outside
// of the buffers are findings: such a read gives zeros, such a write does nothing; of a kernel from source, the thread
// ends.
void run_translated(const TranslatedKernel& translated, mpsforge_metal_call* call);

}  // namespace mpsforge::objc
