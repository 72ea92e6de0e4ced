#include "kernels.h"

#include <cstdint>

namespace mpsforge::pool {
namespace {

// Host functions run on the software Metal alone, so they ask its table for their arguments.
int32_t* argument(mpsforge_metal_call* call, uint32_t index, uint32_t access) {
  const mpsforge_metal_api& metal = *mpsforge_metal_software();
  return static_cast<int32_t*>(
      metal.argument(call, index, 0, static_cast<size_t>(metal.threads(call)) * sizeof(int32_t), access));
}

int32_t value(mpsforge_metal_call* call, uint32_t index) {
  size_t length = 0;
  const void* bytes = mpsforge_metal_software()->bytes(call, index, &length);
  return bytes && length == sizeof(int32_t) ? *static_cast<const int32_t*>(bytes) : 0;
}

// Signed overflow is undefined in C++ and wraps in Metal; unsigned arithmetic wraps in both.
int32_t sum(int32_t a, int32_t b) { return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b)); }
int32_t product(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}

void fill(mpsforge_metal_call* call) {
  int32_t* out = argument(call, 0, MPSFORGE_METAL_WRITE);
  const int32_t with = value(call, 1);
  const uint64_t count = out ? mpsforge_metal_software()->threads(call) : 0;
  for (uint64_t i = 0; i < count; ++i) out[i] = with;
}

void increment(mpsforge_metal_call* call) {
  int32_t* out = argument(call, 0, MPSFORGE_METAL_READ | MPSFORGE_METAL_WRITE);
  const int32_t by = value(call, 1);
  const uint64_t count = out ? mpsforge_metal_software()->threads(call) : 0;
  for (uint64_t i = 0; i < count; ++i) out[i] = sum(out[i], by);
}

// An argument that the device refused is NULL, and recorded as a violation there.
void scale(mpsforge_metal_call* call) {
  const int32_t* in = argument(call, 0, MPSFORGE_METAL_READ);
  int32_t* out = argument(call, 1, MPSFORGE_METAL_WRITE);
  const int32_t by = value(call, 2);
  const uint64_t count = in && out ? mpsforge_metal_software()->threads(call) : 0;
  for (uint64_t i = 0; i < count; ++i) out[i] = product(in[i], by);
}

template <int32_t (*Function)(int32_t, int32_t)>
void of_two_inputs(mpsforge_metal_call* call) {
  const int32_t* a = argument(call, 0, MPSFORGE_METAL_READ);
  const int32_t* b = argument(call, 1, MPSFORGE_METAL_READ);
  int32_t* out = argument(call, 2, MPSFORGE_METAL_WRITE);
  const uint64_t count = a && b && out ? mpsforge_metal_software()->threads(call) : 0;
  for (uint64_t i = 0; i < count; ++i) out[i] = Function(a[i], b[i]);
}

void copy(mpsforge_metal_call* call) {
  const int32_t* in = argument(call, 0, MPSFORGE_METAL_READ);
  int32_t* out = argument(call, 1, MPSFORGE_METAL_WRITE);
  const uint64_t count = in && out ? mpsforge_metal_software()->threads(call) : 0;
  for (uint64_t i = 0; i < count; ++i) out[i] = in[i];
}

// One set of arguments in Metal Shading Language for each shape of kernel.
#define ELEMENT "uint i [[thread_position_in_grid]]"
#define KERNEL "#include <metal_stdlib>\nusing namespace metal;\nkernel void "

// The names of the Metal functions have a prefix, so that a program's own kernels on the same device keep theirs.
constexpr Kernel kernels[] = {
    {"fill", "pool_fill", 0, true, false},   {"copy", "pool_copy", 1, false, false},
    {"add", "pool_add", 2, false, false},    {"multiply", "pool_multiply", 2, false, false},
    {"scale", "pool_scale", 1, true, false}, {"increment", "pool_increment", 0, true, true},
};

constexpr mpsforge_metal_kernel functions[] = {
    {"pool_fill", fill,
     KERNEL "pool_fill(device int* out [[buffer(0)]], constant int& value [[buffer(1)]], " ELEMENT
            ") { out[i] = value; }"},
    {"pool_copy", copy,
     KERNEL "pool_copy(device const int* in [[buffer(0)]], device int* out [[buffer(1)]], " ELEMENT
            ") { out[i] = in[i]; }"},
    {"pool_add", of_two_inputs<sum>,
     KERNEL "pool_add(device const uint* a [[buffer(0)]], device const uint* b [[buffer(1)]], device uint* out "
            "[[buffer(2)]], " ELEMENT ") { out[i] = a[i] + b[i]; }"},
    {"pool_multiply", of_two_inputs<product>,
     KERNEL "pool_multiply(device const uint* a [[buffer(0)]], device const uint* b [[buffer(1)]], device uint* out "
            "[[buffer(2)]], " ELEMENT ") { out[i] = a[i] * b[i]; }"},
    {"pool_scale", scale,
     KERNEL "pool_scale(device const uint* in [[buffer(0)]], device uint* out [[buffer(1)]], constant uint& value "
            "[[buffer(2)]], " ELEMENT ") { out[i] = in[i] * value; }"},
    {"pool_increment", increment,
     KERNEL "pool_increment(device uint* out [[buffer(0)]], constant uint& value [[buffer(1)]], " ELEMENT
            ") { out[i] += value; }"},
};

}  // namespace

const Kernel* find_kernel(const std::string& name) {
  for (const Kernel& kernel : kernels) {
    if (name == kernel.name) return &kernel;
  }
  return nullptr;
}

void add_kernels(const mpsforge_metal_api& metal, mpsforge_metal_device* device) {
  for (const mpsforge_metal_kernel& function : functions) metal.add_kernel(device, &function);
}

}  // namespace mpsforge::pool
