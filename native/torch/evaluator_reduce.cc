// Reductions, statistics, scans and sorts. Reduced dimensions stay, with length 1.
#include <limits>
#include <stdexcept>

#include "evaluator.h"

namespace mpsforge::hostmps {
namespace {

std::vector<int64_t> axes_of(const Node& node, const at::Tensor& tensor) {
  if (node.attributes.has("axes")) return node.attributes.integers("axes");
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < tensor.dim(); ++i) axes.push_back(i);
  return axes;
}

// No axes is no reduction here, while libtorch takes it for all of them.
template <at::Tensor (*function)(const at::Tensor&, const std::vector<int64_t>&)>
Tensors reduction(const Node& node, const Tensors& inputs) {
  const std::vector<int64_t> axes = axes_of(node, inputs[0]);
  if (axes.empty()) return {inputs[0].to(scalar_type(node.results[0].type))};
  return {function(inputs[0], axes).to(scalar_type(node.results[0].type))};
}

// Of truth values, it counts.
at::Tensor sum(const at::Tensor& t, const std::vector<int64_t>& axes) {
  const at::Tensor wide = t.scalar_type() == at::kBool ? t.to(at::kInt) : widen(t);
  return at::sum(wide, axes, true, wide.scalar_type());
}

at::Tensor product(const at::Tensor& t, const std::vector<int64_t>& axes) {
  at::Tensor result = widen(t);
  for (const int64_t axis : axes) result = at::prod(result, axis, true, result.scalar_type());
  return result;
}

at::Tensor maximum_with_nan(const at::Tensor& t, const std::vector<int64_t>& axes) { return at::amax(t, axes, true); }
at::Tensor minimum_with_nan(const at::Tensor& t, const std::vector<int64_t>& axes) { return at::amin(t, axes, true); }

// A number wins over a NaN; only of NaNs alone the result is one.
at::Tensor over_numbers(const at::Tensor& t, const std::vector<int64_t>& axes, double neutral,
                        at::Tensor (*function)(const at::Tensor&, const std::vector<int64_t>&)) {
  if (!t.is_floating_point()) return function(t, axes);
  const at::Tensor nan = at::isnan(t);
  at::Tensor none = nan;
  for (const int64_t axis : axes) none = at::all(none, axis, true);
  return at::masked_fill(function(at::masked_fill(t, nan, neutral), axes), none,
                         std::numeric_limits<double>::quiet_NaN());
}

at::Tensor maximum(const at::Tensor& t, const std::vector<int64_t>& axes) {
  return over_numbers(t, axes, -std::numeric_limits<double>::infinity(), maximum_with_nan);
}

at::Tensor minimum(const at::Tensor& t, const std::vector<int64_t>& axes) {
  return over_numbers(t, axes, std::numeric_limits<double>::infinity(), minimum_with_nan);
}

at::Tensor mean(const at::Tensor& t, const std::vector<int64_t>& axes) { return at::mean(widen(t), axes, true); }

// Of the population: divided by the number of elements.
at::Tensor variance(const at::Tensor& t, const std::vector<int64_t>& axes) {
  return at::var(widen(t), axes, std::optional<at::Scalar>(0), true);
}

Tensors variance_with_mean(const Node& node, const Tensors& inputs) {
  const at::Tensor distance = at::sub(widen(inputs[0]), widen(inputs[1]));
  return {at::mean(at::mul(distance, distance), axes_of(node, inputs[0]), true).to(inputs[0].scalar_type())};
}

// Of the type of its input: unique_consecutive(dim) of PyTorch adds up the result of one of int32, without a
// conversion.
template <at::Tensor (*function)(const at::Tensor&, int64_t, bool)>
Tensors logical(const Node& node, const Tensors& inputs) {
  at::Tensor result = inputs[0].to(at::kBool);
  for (const int64_t axis : axes_of(node, result)) result = function(result, axis, true);
  return {result.to(inputs[0].scalar_type())};
}

at::Tensor all_along(const at::Tensor& t, int64_t axis, bool keep) { return at::all(t, axis, keep); }
at::Tensor any_along(const at::Tensor& t, int64_t axis, bool keep) { return at::any(t, axis, keep); }

// The first of equal elements; libtorch has no order of truth values.
Tensors index_of_extreme(const Node& node, const Tensors& inputs,
                         at::Tensor (*function)(const at::Tensor&, std::optional<int64_t>, bool)) {
  const at::Tensor tensor = inputs[0].scalar_type() == at::kBool ? inputs[0].to(at::kByte) : inputs[0];
  return {function(tensor, node.attributes.integer("axis"), true).to(at::kInt)};
}

Tensors index_of_maximum(const Node& node, const Tensors& inputs) { return index_of_extreme(node, inputs, at::argmax); }
Tensors index_of_minimum(const Node& node, const Tensors& inputs) { return index_of_extreme(node, inputs, at::argmin); }

// A scan, the other way round or without the element itself if that is asked for.
template <at::Tensor (*function)(const at::Tensor&, int64_t)>
Tensors scan(const Node& node, const Tensors& inputs) {
  if (node.attributes.integer("exclusive")) throw std::runtime_error("an exclusive scan is not implemented");
  const int64_t axis = node.attributes.integer("axis");
  const bool reverse = node.attributes.integer("reverse") != 0;
  const at::Tensor tensor = widen(reverse ? at::flip(inputs[0], {axis}) : inputs[0]);
  const at::Tensor result = function(tensor, axis).to(inputs[0].scalar_type());
  return {reverse ? at::flip(result, {axis}) : result};
}

at::Tensor running_sum(const at::Tensor& t, int64_t axis) { return at::cumsum(t, axis, t.scalar_type()); }
at::Tensor running_product(const at::Tensor& t, int64_t axis) { return at::cumprod(t, axis, t.scalar_type()); }
at::Tensor running_minimum(const at::Tensor& t, int64_t axis) { return std::get<0>(at::cummin(t, axis)); }
at::Tensor running_maximum(const at::Tensor& t, int64_t axis) { return std::get<0>(at::cummax(t, axis)); }

std::tuple<at::Tensor, at::Tensor> sorted(const Node& node, const at::Tensor& tensor, int64_t axis) {
  return at::sort(tensor, std::optional<bool>(true), axis, node.attributes.integer("descending") != 0);
}

Tensors sort(const Node& node, const Tensors& inputs) {
  return {std::get<0>(sorted(node, inputs[0], node.attributes.integer("axis")))};
}

Tensors arg_sort(const Node& node, const Tensors& inputs) {
  return {std::get<1>(sorted(node, inputs[0], node.attributes.integer("axis"))).to(at::kInt)};
}

Tensors sort_by_tensor(const Node& node, const Tensors& inputs) {
  return {std::get<0>(sorted(node, inputs[0], numbers_of(inputs[1]).at(0)))};
}

Tensors arg_sort_by_tensor(const Node& node, const Tensors& inputs) {
  return {std::get<1>(sorted(node, inputs[0], numbers_of(inputs[1]).at(0))).to(at::kInt)};
}

Tensors top(const Node& node, const Tensors& inputs) {
  const auto [values, indices] =
      at::topk(inputs[0], node.attributes.integer("k"), node.attributes.integer("axis"), true, true);
  return {values, indices.to(at::kInt)};
}

}  // namespace

void add_reductions(Operations& operations) {
  const Operations more = {
      {"reductionSum", {reduction<sum>, rules::reduce_sum}},
      {"reductionProduct", {reduction<product>, rules::reduce}},
      {"reductionMaximum", {reduction<maximum>, rules::reduce}},
      {"reductionMinimum", {reduction<minimum>, rules::reduce}},
      {"reductionMaximumPropagateNaN", {reduction<maximum_with_nan>, rules::reduce}},
      {"reductionMinimumPropagateNaN", {reduction<minimum_with_nan>, rules::reduce}},
      {"reductionAnd", {logical<all_along>, rules::reduce}},
      {"reductionOr", {logical<any_along>, rules::reduce}},
      {"reductionArgMaximum", {index_of_maximum, rules::reduce_index}},
      {"reductionArgMinimum", {index_of_minimum, rules::reduce_index}},
      {"mean", {reduction<mean>, rules::reduce}},
      {"variance", {reduction<variance>, rules::reduce}},
      {"varianceWithMean", {variance_with_mean, rules::reduce}},
      {"cumulativeSum", {scan<running_sum>, rules::same}},
      {"cumulativeProduct", {scan<running_product>, rules::same}},
      {"cumulativeMinimum", {scan<running_minimum>, rules::same}},
      {"cumulativeMaximum", {scan<running_maximum>, rules::same}},
      {"sort", {sort, rules::same}},
      {"argSort", {arg_sort, rules::index_like}},
      {"sortByTensor", {sort_by_tensor, rules::same}},
      {"argSortByTensor", {arg_sort_by_tensor, rules::index_like}},
      {"topK", {top, rules::top}},
  };
  operations.insert(more.begin(), more.end());
}

}  // namespace mpsforge::hostmps
