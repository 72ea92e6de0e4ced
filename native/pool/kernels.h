// The kernels of the pool's operators: int32 arithmetic that wraps.
#pragma once

#include <cstddef>
#include <string>

#include "../metal/metal.h"

namespace mpsforge::pool {

// An operator's kernel. Its arguments are the inputs, then the output, then the value if it takes one.
struct Kernel {
  const char* name;      // of the operator
  const char* function;  // of the Metal function
  size_t inputs;         // tensors besides the output
  bool takes_value;
  bool reads_output;
};

// nullptr: there is no such operator.
const Kernel* find_kernel(const std::string& name);

void add_kernels(const mpsforge_metal_api& metal, mpsforge_metal_device* device);

}  // namespace mpsforge::pool
