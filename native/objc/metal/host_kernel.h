// Functions that stand in for Metal's compute kernels where those are not translated (translated.h): each does the work
// of all threads of a dispatch at once, in C++.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "../../metal/metal.h"
#include "translated.h"

namespace mpsforge::objc {

// One dispatch. Whatever the kernel reads or writes goes through these functions: that is how the checker sees it, and
// how a range outside of a buffer, an argument that is missing or one of another size ends the process with a message
// that names the kernel.
class KernelCall {
 public:
  KernelCall(const std::string& function, mpsforge_metal_call* call);

  const std::string& function() const { return function_; }
  uint64_t threads(int dimension) const { return grid_.threads[dimension]; }
  uint64_t threads() const { return grid_.threads[0] * grid_.threads[1] * grid_.threads[2]; }
  uint64_t group(int dimension) const { return grid_.group[dimension]; }
  size_t threadgroup_memory(uint32_t index) const;

  // Whether a buffer, or bytes, are bound to the index.
  bool has_buffer(uint32_t index) const { return buffer_length(index) > 0; }
  bool has_bytes(uint32_t index) const;
  // From the binding's offset to the buffer's end.
  size_t buffer_length(uint32_t index) const;

  // count elements from the element first on. The access is MPSFORGE_METAL_READ, WRITE or both.
  void* memory(uint32_t index, size_t offset, size_t length, uint32_t access) const;
  template <class T>
  const T* read(uint32_t index, size_t count, size_t first = 0) const {
    return static_cast<const T*>(memory(index, first * sizeof(T), count * sizeof(T), MPSFORGE_METAL_READ));
  }
  template <class T>
  T* write(uint32_t index, size_t count, size_t first = 0) const {
    return static_cast<T*>(memory(index, first * sizeof(T), count * sizeof(T), MPSFORGE_METAL_WRITE));
  }
  template <class T>
  T* update(uint32_t index, size_t count, size_t first = 0) const {
    return static_cast<T*>(
        memory(index, first * sizeof(T), count * sizeof(T), MPSFORGE_METAL_READ | MPSFORGE_METAL_WRITE));
  }

  // A small constant argument: of setBytes, or in a buffer; Metal's kernels cannot see the difference.
  const void* constant(uint32_t index, size_t length) const;
  template <class T>
  T value(uint32_t index) const {
    T result;
    std::memcpy(&result, constant(index, sizeof(T)), sizeof(T));
    return result;
  }
  template <class T>
  std::vector<T> values(uint32_t index, size_t count) const {
    std::vector<T> result(count);
    if (count > 0) std::memcpy(result.data(), constant(index, count * sizeof(T)), count * sizeof(T));
    return result;
  }
  // How many bytes setBytes gave; 0: none.
  size_t bytes_length(uint32_t index) const;

  // Memory at an address that is data: an argument buffer's entry, or a gpuAddress. The encoder must use the buffer.
  void* at(uint64_t address, size_t length, uint32_t access) const;

  [[noreturn]] void fail(const std::string& why) const;

 private:
  const std::string& function_;
  mpsforge_metal_call* const call_;
  mpsforge_metal_grid grid_;
};

using HostKernel = void (*)(const KernelCall& call);

// A name that ends in an asterisk means all that begin with what is before it; the longest one that fits is taken.
// One name has one kernel: the last one registered. Any thread, at any time.
void register_host_kernel(const std::string& name, HostKernel kernel);

// nullptr: none.
HostKernel find_host_kernel(const std::string& function);

// Without those that end in an asterisk.
std::vector<std::string> host_kernel_names();

// Adds the function of a library to the engine's kernels, once, and returns the name that it has there, which lives for
// ever; nullptr if it has no host kernel and is not translated. A library is known by its number.
const char* engine_kernel(uint64_t library, const std::string& function, const TranslatedKernel& translated);

// The names of the translated kernels that have run, each followed by the end of the line.
std::string translated_kernels_run();

// At namespace scope: registers before main.
class RegisterHostKernel {
 public:
  RegisterHostKernel(const char* name, HostKernel kernel) { register_host_kernel(name, kernel); }
};

}  // namespace mpsforge::objc
