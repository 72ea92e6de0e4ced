// Metal kernels that were translated into this processor's code: PyTorch's own, taken from its wheel for macOS
// (fork/shaders). A host build may have none; then host kernels (host_kernel.h) do their work.
#ifndef MPSFORGE_NATIVE_OBJC_METAL_TRANSLATED_H
#define MPSFORGE_NATIVE_OBJC_METAL_TRANSLATED_H

#include <string>

#include "../../metal/metal.h"
#include "../../shaders/run.h"

namespace mpsforge::objc {

// The library that PyTorch's binary has in the section; nullptr: it was not translated.
const shaders::Library* translated_library(const std::string& section);

// nullptr: the library has no such kernel.
const shaders::Kernel* translated_kernel(const shaders::Library& library, const std::string& function);

// Runs all threads of the call's dispatch. Ranges that they touched are declared to the checker, and accesses outside
// of the buffers are findings: such a read gives zeros, such a write does nothing.
void run_translated(const shaders::Kernel& kernel, mpsforge_metal_call* call);

}  // namespace mpsforge::objc

#endif
