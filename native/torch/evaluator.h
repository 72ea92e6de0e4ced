// Computes recorded MPSGraphs with libtorch's operators on the CPU: plain, correct, slow.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "../objc/graph/evaluator_hook.h"
#include "../objc/graph/infer_rules.h"

namespace mpsforge::hostmps {

using graph::DataType;
using graph::Node;
using Tensors = std::vector<at::Tensor>;
namespace rules = graph::rules;

struct Operation {
  // Gives the node's results. It may throw; the caller names the operation.
  Tensors (*compute)(const Node& node, const Tensors& inputs);
  graph::Rule* results;  // their types and shapes, before there are values
};
using Operations = std::unordered_map<std::string, Operation>;

at::ScalarType scalar_type(DataType type);
at::Tensor tensor_of(const graph::View& view);

// Half types are computed in Float32, as a GPU with wider accumulators does. Operations get them so, and may give
// results in either type.
bool narrow(const at::Tensor& tensor);
at::Tensor widen(const at::Tensor& tensor);

// The numbers of a small integer tensor, for operations that take a shape or an axis as a tensor.
std::vector<int64_t> numbers_of(const at::Tensor& tensor);

// Each of them is one file.
void add_pointwise_operations(Operations& operations);
void add_shape_operations(Operations& operations);
void add_reductions(Operations& operations);
void add_matrix_operations(Operations& operations);
void add_convolutions(Operations& operations);
void add_index_operations(Operations& operations);
void add_random_operations(Operations& operations);
void add_resizing(Operations& operations);
void add_recurrent_operations(Operations& operations);

class AtenEvaluator : public graph::Evaluator {
 public:
  AtenEvaluator();
  graph::Rule* rule(const std::string& operation) const override;
  void run(const graph::Plan& plan, const std::vector<graph::View>& feeds,
           const std::vector<graph::View>& results) const override;

 private:
  Operations operations_;
};

// The process's one, made at first use, never destroyed: executor threads may outlive static objects.
const AtenEvaluator& aten_evaluator();

}  // namespace mpsforge::hostmps
