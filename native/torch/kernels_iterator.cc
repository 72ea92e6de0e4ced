// Host versions of the kernels that go over a TensorIterator: NAME_LAYOUT_OUTPUT_INPUT, or NAME_LAYOUT_cast_OUTPUT for
// two inputs of different types, with _SCALAR where an operation of two inputs has one. Names and argument positions
// are those of c10/metal/indexing.h and of exec_unary_kernel and exec_binary_kernel in OperationUtils.mm, from
// PyTorch 2.7 on.
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels.h"

namespace mpsforge::hostmps {
namespace {

// Floating point is computed as float, everything else as whole numbers.
struct Unary {
  const char* name;
  float (*real)(float);
  int64_t (*whole)(int64_t);  // nullptr: the operation is not defined for them
};

// The last argument is the kernel's scalar, where it has one.
struct Binary {
  const char* name;
  float (*real)(float, float, float);
  int64_t (*whole)(int64_t, int64_t, int64_t);
};

const Unary kUnary[] = {
    {"exp", [](float x) { return std::exp(x); }, nullptr},
    {"sin", [](float x) { return std::sin(x); }, nullptr},
    {"cos", [](float x) { return std::cos(x); }, nullptr},
    {"tanh", [](float x) { return std::tanh(x); }, nullptr},
    {"sqrt", [](float x) { return std::sqrt(x); }, nullptr},
    {"sigmoid", [](float x) { return 1 / (1 + std::exp(-x)); }, nullptr},
    {"abs", [](float x) { return std::abs(x); }, [](int64_t x) { return x < 0 ? -x : x; }},
    {"neg", [](float x) { return -x; }, [](int64_t x) { return -x; }},
};

const Binary kBinary[] = {
    {"add", [](float a, float b, float) { return a + b; }, [](int64_t a, int64_t b, int64_t) { return a + b; }},
    {"sub", [](float a, float b, float) { return a - b; }, [](int64_t a, int64_t b, int64_t) { return a - b; }},
    {"mul", [](float a, float b, float) { return a * b; }, [](int64_t a, int64_t b, int64_t) { return a * b; }},
    {"add_alpha", [](float a, float b, float c) { return a + c * b; },
     [](int64_t a, int64_t b, int64_t c) { return a + c * b; }},
    {"div_true", [](float a, float b, float) { return a / b; }, nullptr},
};

// A kernel's name, taken apart.
struct Name {
  std::string operation;
  bool dense;
  bool cast = false;
  std::vector<std::string> types;  // of the output, of the input unless it is a cast, of the scalar
};

Name name_of(const KernelCall& call) {
  const std::string& text = call.function();
  const std::string dense = "_dense_", strided = "_strided_";
  size_t end = text.find(dense);
  Name name;
  name.dense = end != std::string::npos;
  if (!name.dense) end = text.find(strided);
  name.operation = text.substr(0, end);
  size_t at = end + (name.dense ? dense : strided).size();
  while (at < text.size()) {
    const size_t next = std::min(text.find('_', at), text.size());
    const std::string type = text.substr(at, next - at);
    if (type == "cast") {
      name.cast = true;
    } else {
      name.types.push_back(type);
    }
    at = next + 1;
  }
  if (name.types.size() < (name.cast ? 1 : 2)) call.fail("its name does not say the types");
  return name;
}

template <class Operation, size_t count>
const Operation& operation_of(const KernelCall& call, const Name& name, const Operation (&all)[count]) {
  for (const Operation& operation : all) {
    if (operation.name == name.operation) return operation;
  }
  call.fail("no host version");
}

bool is_real(const std::string& type) { return type == "float" || type == "half" || type == "bfloat"; }

size_t size_of(const KernelCall& call, const std::string& type) {
  size_t size = 0;
  with_type(call, type, [&](auto value) { size = sizeof value; });
  return size;
}

// Metal's name for a type of at::ScalarType.
std::string type_of(const KernelCall& call, uint32_t number) {
  switch (static_cast<c10::ScalarType>(number)) {
    case c10::ScalarType::Bool:
      return "bool";
    case c10::ScalarType::Byte:
      return "uchar";
    case c10::ScalarType::Char:
      return "char";
    case c10::ScalarType::Short:
      return "short";
    case c10::ScalarType::Int:
      return "int";
    case c10::ScalarType::Long:
      return "long";
    case c10::ScalarType::Float:
      return "float";
    case c10::ScalarType::Half:
      return "half";
    case c10::ScalarType::BFloat16:
      return "bfloat";
    default:
      call.fail("no host version for elements of scalar type " + std::to_string(number));
  }
}

// Where the elements of one argument are.
struct Operand {
  uint32_t index;
  std::string type;
  size_t size;
  std::vector<int64_t> strides;  // in bytes
};

template <class Value>
Value load(const KernelCall& call, const Operand& from, size_t offset) {
  Value value{};
  with_type(call, from.type, [&](auto element) {
    using T = decltype(element);
    if (call.has_bytes(from.index)) {
      element = call.value<T>(from.index);  // a number of the CPU: all strides are 0
    } else {
      std::memcpy(&element, call.memory(from.index, offset, sizeof(T), MPSFORGE_METAL_READ), sizeof(T));
    }
    value = Convert<Value, T>::value(element);
  });
  return value;
}

template <class Value>
void store(const KernelCall& call, const Operand& to, size_t offset, Value value) {
  with_type(call, to.type, [&](auto element) {
    using T = decltype(element);
    element = Convert<T, Value>::value(value);
    std::memcpy(call.memory(to.index, offset, sizeof(T), MPSFORGE_METAL_WRITE), &element, sizeof(T));
  });
}

// Calls compute with the offsets of each element's output and inputs.
template <class Compute>
void each_element(const KernelCall& call, const std::vector<int64_t>& sizes, const std::vector<Operand>& operands,
                  Compute compute) {
  std::vector<size_t> offsets(operands.size());
  for (uint64_t i = 0; i < call.threads(); ++i) {
    for (size_t k = 0; k < operands.size(); ++k) {
      uint64_t rest = i;
      int64_t offset = 0;
      for (size_t dimension = 0; dimension < sizes.size(); ++dimension) {
        offset += static_cast<int64_t>(rest % static_cast<uint64_t>(sizes[dimension])) * operands[k].strides[dimension];
        rest /= static_cast<uint64_t>(sizes[dimension]);
      }
      offsets[k] = static_cast<size_t>(offset);
    }
    compute(offsets);
  }
}

template <class Value, class Function>
void run_unary(const KernelCall& call, Function function, const std::vector<int64_t>& sizes,
               const std::vector<Operand>& operands) {
  if (!function) call.fail("no host version for elements of type " + operands[0].type);
  each_element(call, sizes, operands, [&](const std::vector<size_t>& at) {
    store(call, operands[0], at[0], function(load<Value>(call, operands[1], at[1])));
  });
}

template <class Value, class Function>
void run_binary(const KernelCall& call, Function function, const std::vector<int64_t>& sizes,
                const std::vector<Operand>& operands, const Operand* scalar) {
  if (!function) call.fail("no host version for elements of type " + operands[0].type);
  const Value alpha = scalar ? load<Value>(call, *scalar, 0) : Value{};
  each_element(call, sizes, operands, [&](const std::vector<size_t>& at) {
    store(call, operands[0], at[0],
          function(load<Value>(call, operands[1], at[1]), load<Value>(call, operands[2], at[2]), alpha));
  });
}

void unary(const KernelCall& call) {
  const Name name = name_of(call);
  const Unary& operation = operation_of(call, name, kUnary);
  const size_t out_size = size_of(call, name.types[0]), in_size = size_of(call, name.types[1]);
  std::vector<int64_t> sizes = {static_cast<int64_t>(call.threads())};
  std::vector<Operand> operands = {{0, name.types[0], out_size, {static_cast<int64_t>(out_size)}},
                                   {1, name.types[1], in_size, {static_cast<int64_t>(in_size)}}};
  if (!name.dense) {
    const size_t dimensions = call.value<uint32_t>(5);
    sizes = call.values<int64_t>(2, dimensions);
    operands[1].strides = call.values<int64_t>(3, dimensions);
    operands[0].strides = call.values<int64_t>(4, dimensions);
    for (Operand& operand : operands) {
      for (int64_t& stride : operand.strides) stride *= static_cast<int64_t>(operand.size);
    }
  }
  if (is_real(name.types[0])) {
    run_unary<float>(call, operation.real, sizes, operands);
  } else {
    run_unary<int64_t>(call, operation.whole, sizes, operands);
  }
}

void binary(const KernelCall& call) {
  const Name name = name_of(call);
  const Binary& operation = operation_of(call, name, kBinary);
  const bool has_scalar = name.types.size() > (name.cast ? 1 : 2);
  const uint32_t first = has_scalar ? 4 : 3;  // argument after the scalar
  const std::string& result = name.types[0];
  std::vector<Operand> operands = {{0, result, 0, {}}, {1, "", 0, {}}, {2, "", 0, {}}};
  for (size_t k = 1; !name.cast && k < 3; ++k) operands[k].type = name.types[1];
  std::vector<int64_t> sizes = {static_cast<int64_t>(call.threads())};
  if (name.dense) {
    if (name.cast) {
      const auto about = call.values<uint32_t>(first, 4);  // sizes, then types
      for (size_t k = 1; k < 3; ++k) operands[k].type = type_of(call, about[k + 1]);
    }
    for (Operand& operand : operands) operand.strides = {static_cast<int64_t>(size_of(call, operand.type))};
  } else {
    const auto about = call.values<uint32_t>(first + 4, 4);  // dimensions, then types
    sizes = call.values<int64_t>(first, about[0]);
    for (uint32_t k = 0; k < 3; ++k) operands[k].strides = call.values<int64_t>(first + 1 + k, about[0]);
    for (size_t k = 1; name.cast && k < 3; ++k) operands[k].type = type_of(call, about[k]);
  }
  const Operand scalar{3, has_scalar ? name.types.back() : "", 0, {}};
  const Operand* given = has_scalar ? &scalar : nullptr;
  if (is_real(result)) {
    run_binary<float>(call, operation.real, sizes, operands, given);
  } else {
    run_binary<int64_t>(call, operation.whole, sizes, operands, given);
  }
}

const bool registered = [] {
  for (const char* layout : {"_dense_*", "_strided_*"}) {
    for (const Unary& operation : kUnary)
      mpsforge::objc::register_host_kernel(std::string(operation.name) + layout, unary);
    for (const Binary& operation : kBinary) {
      mpsforge::objc::register_host_kernel(std::string(operation.name) + layout, binary);
    }
  }
  return true;
}();

}  // namespace
}  // namespace mpsforge::hostmps
