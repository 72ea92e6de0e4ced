#include "evaluator_cases.h"

#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace mpsforge::hostmps::tests {

int cases = 0, failures = 0;
std::mt19937_64 generator;

int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(generator); }

void fail(const std::string& name, const std::string& why) {
  std::printf("FAIL %s: %s\n", name.c_str(), why.c_str());
  ++failures;
}

const std::vector<std::pair<DataType, at::ScalarType>> kTypes = {
    {DataType::Float32, at::kFloat},     {DataType::Float16, at::kHalf},
    {DataType::BFloat16, at::kBFloat16}, {DataType::Int64, at::kLong},
    {DataType::Int32, at::kInt},         {DataType::Int16, at::kShort},
    {DataType::Int8, at::kChar},         {DataType::UInt8, at::kByte},
    {DataType::Bool, at::kBool},         {DataType::ComplexFloat32, at::kComplexFloat}};

DataType type_of(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kUInt32) return DataType::UInt32;  // of pivots; the CPU computes little with it
  for (const auto& [type, scalar] : kTypes) {
    if (scalar == tensor.scalar_type()) return type;
  }
  throw std::logic_error("no type");
}

at::Tensor random_tensor(std::vector<int64_t> shape, at::ScalarType type) {
  const int64_t rank = static_cast<int64_t>(shape.size());
  std::vector<int64_t> stored = shape;
  const int64_t way = rank > 0 ? pick(0, 2) : 0;
  const int64_t axis = rank > 0 ? pick(0, rank - 1) : 0;
  if (way == 1) std::swap(stored.front(), stored[axis]);
  if (way == 2) stored[axis] = stored[axis] * 2 + 1;
  at::Tensor tensor = type == at::kBool                  ? at::randint(0, 2, stored).to(type)
                      : c10::isIntegralType(type, false) ? at::randint(1, 12, stored).to(type)
                      : c10::isComplexType(type)         ? at::randn(stored, at::TensorOptions().dtype(type))
                                                         : at::randn(stored).to(type);
  if (way == 1) tensor = tensor.transpose(0, axis);
  if (way == 2) tensor = at::slice(tensor, axis, 1, std::nullopt, 2);
  return tensor;
}

View view_of(const at::Tensor& tensor) {
  return {tensor.numel() ? tensor.data_ptr() : nullptr, type_of(tensor), tensor.sizes().vec(), tensor.strides().vec()};
}

std::vector<at::Tensor> evaluate(const std::string& operation, const std::vector<at::Tensor>& inputs,
                                 Attributes attributes, const std::vector<at::Tensor>& expected) {
  std::vector<Input> feeds;
  std::vector<View> read, written;
  for (const at::Tensor& input : inputs) {
    feeds.push_back({make_placeholder(type_of(input), input.sizes().vec()), 0});
    read.push_back(view_of(input));
  }
  const NodePointer node = make_node(operation, feeds, std::move(attributes), expected.size());
  std::vector<Input> targets;
  std::vector<at::Tensor> stores, results;
  for (size_t i = 0; i < expected.size(); ++i) {
    targets.push_back({node, i});
    auto shape = expected[i].sizes().vec();
    shape.push_back(2);
    stores.push_back(at::full(shape, 1, expected[i].options()));
    results.push_back(stores.back().select(-1, 0));
    written.push_back(view_of(results.back()));
  }
  aten_evaluator().run(plan(feeds, targets), read, written);
  for (const at::Tensor& store : stores) {
    if (!at::all(store.select(-1, 1) == 1).item<bool>()) throw std::runtime_error("wrote beside its result");
  }
  return results;
}

double tolerance(at::ScalarType type) {
  if (type == at::kHalf) return 4e-3;
  return type == at::kBFloat16 ? 3e-2 : 1e-4;
}

void expect(const std::string& name, const std::string& operation, const std::vector<at::Tensor>& inputs,
            Attributes attributes, const std::vector<at::Tensor>& expected) {
  ++cases;
  try {
    const auto results = evaluate(operation, inputs, std::move(attributes), expected);
    for (size_t i = 0; i < results.size(); ++i) {
      const double bound = tolerance(expected[i].scalar_type());
      if (!at::allclose(results[i], expected[i], bound, bound, true)) {
        fail(name, "result " + std::to_string(i) + " of " + c10::toString(expected[i].scalar_type()) + " differs");
      }
    }
  } catch (const std::exception& error) {
    fail(name, error.what());
  }
}

void expect_error(const std::string& name, const std::string& text, const std::function<void()>& function) {
  ++cases;
  try {
    function();
    fail(name, "no error");
  } catch (const std::exception& error) {
    if (!std::strstr(error.what(), text.c_str())) fail(name, std::string("the error is: ") + error.what());
  }
}

Attributes pooling(std::vector<int64_t> kernel, std::vector<int64_t> strides, std::vector<int64_t> padding,
                   int64_t ceil, int64_t include_padding) {
  return {{"kernel", std::move(kernel)},
          {"strides", std::move(strides)},
          {"dilations", std::vector<int64_t>{1, 1}},
          {"padding", std::move(padding)},
          {"style", int64_t{0}},
          {"layout", int64_t{0}},
          {"indices_mode", int64_t{2}},
          {"indices", static_cast<int64_t>(DataType::Int32)},
          {"ceil", ceil},
          {"include_padding", include_padding}};
}

at::Tensor wide(const at::Tensor& tensor) { return tensor.is_floating_point() ? tensor.to(at::kDouble) : tensor; }

}  // namespace mpsforge::hostmps::tests
