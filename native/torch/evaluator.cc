#include "evaluator.h"

#include <c10/core/InferenceMode.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

// libtorch brings an OpenMP runtime; which one is not this file's to choose.
extern "C" void omp_set_num_threads(int) __attribute__((weak));

namespace mpsforge::hostmps {
namespace {

using graph::Input;
using graph::NodePointer;
using graph::Shape;
using graph::Value;

// An executor thread computes alone: a team of threads of its own would be no faster here and hides the order of
// events.
void use_one_thread() {
  static thread_local const bool done = [] {
    if (omp_set_num_threads) omp_set_num_threads(1);
    return true;
  }();
  (void)done;
}

// Between the nodes of a graph half types are kept as Float32: Apple joins neighbouring operations and does not round
// between them. No word of Apple's says so, but PyTorch's test suite does: its log_sigmoid of float16 is the graph
// log(1 + exp(-|x|)), expected not to be 0 for |x| = 9, where 1 + exp(-9) rounded to float16 is 1. A cast rounds.
at::Tensor kept(const Node& node, size_t result, const at::Tensor& tensor) {
  const at::ScalarType type = scalar_type(node.results[result].type);
  // Computed from Float32 in the place of Float16.
  if (type == at::kComplexHalf && tensor.scalar_type() == at::kComplexFloat) return tensor.to(type);
  return widen(tensor);
}

// The memory of a reinterpreted tensor is that of its own type.
bool needs_own_type(const Node& node) { return node.operation == "reinterpretCast"; }

// What the recorder promised the program must hold.
void check(const Node& node, const Tensors& results) {
  if (results.size() != node.results.size()) throw std::logic_error("a wrong number of results");
  for (size_t i = 0; i < results.size(); ++i) {
    const Value& expected = node.results[i];
    const at::ScalarType type = scalar_type(expected.type);
    const bool wide = results[i].scalar_type() == at::kFloat && (type == at::kHalf || type == at::kBFloat16);
    if (!wide && results[i].scalar_type() != type) {
      throw std::logic_error(std::string("its result is ") + c10::toString(results[i].scalar_type()) + ", not " +
                             graph::name_of(expected.type));
    }
    if (!expected.shape) continue;
    const auto sizes = results[i].sizes();
    bool fits = sizes.size() == expected.shape->size();
    for (size_t j = 0; fits && j < sizes.size(); ++j) {
      fits = (*expected.shape)[j] < 0 || (*expected.shape)[j] == sizes[j];
    }
    if (!fits) {
      throw std::logic_error("its result has the shape " + graph::text_of(sizes.vec()) + ", not " +
                             graph::text_of(*expected.shape));
    }
  }
}

// The memory that the node's result is written to, where that gives its size.
const Shape* size_given(const graph::Plan& plan, const NodePointer& node, const std::vector<graph::View>& results) {
  if (!graph::sized_by_memory(*node)) return nullptr;
  for (size_t i = 0; i < results.size(); ++i) {
    if (plan.targets[i].node == node) return &results[i].shape;
  }
  return nullptr;
}

Node sized(const Node& node, const Shape& shape) {
  Node made = node;
  made.attributes.set("shape", shape);
  made.results.at(0).shape = shape;
  return made;
}

// Of a result whose lengths were not known before it ran, which is one of windows over images, memory of fewer windows
// gets the first ones. Apple's words do not say so; PyTorch relies on it: the gradient of a transposed convolution with
// output padding is a convolution with more places than the input has (test_output_grad_match of conv_transpose2d
// passes on a Mac), and a pooling with ceil_mode has more padding than its size counts.
at::Tensor cut(at::Tensor tensor, const Value& value, at::IntArrayRef memory) {
  const bool open =
      value.shape && std::any_of(value.shape->begin(), value.shape->end(), [](int64_t n) { return n < 0; });
  if (!open || tensor.numel() <= 1 || tensor.dim() != static_cast<int64_t>(memory.size())) return tensor;
  if (tensor.numel() == c10::multiply_integers(memory)) return tensor;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    tensor = at::slice(tensor, i, 0, memory[static_cast<size_t>(i)]);
  }
  return tensor;
}

// The node's results, as the recorder promised them or as the memory has them.
Tensors compute(const Operation& operation, const Node& node, const Tensors& inputs, const Shape* size) {
  Tensors computed = operation.compute(node, inputs);
  if (size && computed.at(0).numel() != c10::multiply_integers(*size)) {
    return compute(operation, sized(node, *size), inputs, nullptr);
  }
  for (size_t i = 0; i < computed.size() && i < node.results.size(); ++i) {
    computed[i] = kept(node, i, computed[i]);
  }
  check(node, computed);
  return computed;
}

}  // namespace

at::ScalarType scalar_type(DataType type) {
  switch (type) {
    case DataType::Float32:
      return at::kFloat;
    case DataType::Float16:
      return at::kHalf;
    case DataType::BFloat16:
      return at::kBFloat16;
    case DataType::ComplexFloat32:
      return at::kComplexFloat;
    case DataType::ComplexFloat16:
      return at::kComplexHalf;
    case DataType::Int8:
      return at::kChar;
    case DataType::Int16:
      return at::kShort;
    case DataType::Int32:
      return at::kInt;
    case DataType::Int64:
      return at::kLong;
    case DataType::UInt8:
      return at::kByte;
    case DataType::UInt16:
      return at::kUInt16;
    case DataType::UInt32:
      return at::kUInt32;
    case DataType::UInt64:
      return at::kUInt64;
    case DataType::Bool:
      return at::kBool;
    case DataType::Invalid:
      break;
  }
  throw std::runtime_error("no scalar type for MPSDataType " + std::to_string(static_cast<uint32_t>(type)));
}

at::Tensor tensor_of(const graph::View& view) {
  const auto options = at::TensorOptions().dtype(scalar_type(view.type)).device(at::kCPU);
  if (!view.data) return at::empty(view.shape, options);
  return at::from_blob(view.data, view.shape, view.strides, options);
}

bool narrow(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
}

at::Tensor widen(const at::Tensor& tensor) { return narrow(tensor) ? tensor.to(at::kFloat) : tensor; }

std::vector<int64_t> numbers_of(const at::Tensor& tensor) {
  const at::Tensor numbers = tensor.to(at::kLong).contiguous();
  // Not the typed form: its mangled name differs between the compilers of libtorch and of this file.
  const auto* const first = static_cast<const int64_t*>(numbers.const_data_ptr());
  return {first, first + numbers.numel()};
}

AtenEvaluator::AtenEvaluator() {
  add_pointwise_operations(operations_);
  add_shape_operations(operations_);
  add_reductions(operations_);
  add_matrix_operations(operations_);
  add_convolutions(operations_);
  add_index_operations(operations_);
  add_random_operations(operations_);
  add_resizing(operations_);
  add_recurrent_operations(operations_);
}

graph::Rule* AtenEvaluator::rule(const std::string& operation) const {
  const auto found = operations_.find(operation);
  return found == operations_.end() ? nullptr : found->second.results;
}

void AtenEvaluator::run(const graph::Plan& plan, const std::vector<graph::View>& feeds,
                        const std::vector<graph::View>& results) const {
  use_one_thread();
  const c10::InferenceMode inference;
  std::map<const Node*, Tensors> values;
  for (size_t i = 0; i < plan.feeds.size(); ++i) {
    const Input& feed = plan.feeds[i];
    Tensors& tensors = values[feed.node.get()];
    if (tensors.size() <= feed.result) tensors.resize(feed.result + 1);
    at::Tensor tensor = tensor_of(feeds[i]);
    const Value& expected = feed.node->results[feed.result];
    // One element has any number of dimensions.
    if (expected.shape && tensor.numel() == 1) tensor = tensor.reshape(std::vector<int64_t>(expected.shape->size(), 1));
    tensors[feed.result] = widen(tensor);
  }
  for (const NodePointer& node : plan.nodes) {
    Tensors inputs;
    for (const Input& input : node->inputs) {
      const at::Tensor& value = values.at(input.node.get()).at(input.result);
      inputs.push_back(needs_own_type(*node) ? value.to(scalar_type(input.node->results.at(input.result).type))
                                             : value);
    }
    const auto found = operations_.find(node->operation);
    if (found == operations_.end()) throw std::runtime_error(node->operation + " is not implemented");
    try {
      values[node.get()] = compute(found->second, *node, inputs, size_given(plan, node, results));
    } catch (const std::exception& error) {
      throw std::runtime_error("MPSGraph operation " + node->operation + ": " + error.what());
    }
  }
  // Before any result is written: a result's memory may be a feed's, too.
  Tensors computed;
  for (size_t i = 0; i < plan.targets.size(); ++i) {
    const Input& target = plan.targets[i];
    at::Tensor memory = tensor_of(results[i]);
    const at::Tensor tensor =
        cut(values.at(target.node.get()).at(target.result), target.node->results.at(target.result), memory.sizes());
    // As many elements in another shape, or one that fills the memory.
    if (tensor.numel() != memory.numel() && tensor.numel() != 1) {
      throw std::runtime_error("the result of " + target.node->operation + " has the shape " +
                               graph::text_of(tensor.sizes().vec()) + ", its memory " +
                               graph::text_of(memory.sizes().vec()));
    }
    computed.push_back(tensor.numel() == memory.numel() ? tensor.reshape(memory.sizes()).clone() : tensor.reshape({}));
  }
  for (size_t i = 0; i < computed.size(); ++i) tensor_of(results[i]).copy_(computed[i]);
}

const AtenEvaluator& aten_evaluator() {
  static const AtenEvaluator* const made = new AtenEvaluator;
  return *made;
}

}  // namespace mpsforge::hostmps
