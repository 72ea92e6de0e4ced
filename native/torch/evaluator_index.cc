// Gathers and scatters. An index outside of the dimension reads zero and writes nothing, as on a GPU; PyTorch's
// nll_loss and unique rely on it.
#include <stdexcept>

#include "evaluator.h"

namespace mpsforge::hostmps {
namespace {

// Indices as libtorch takes them, and where they are inside of the dimension.
struct Indices {
  Indices(const at::Tensor& given, int64_t length) : valid(at::logical_and(given >= 0, given < length)) {
    index = at::where(valid, given.to(at::kLong), at::zeros({}, at::TensorOptions().dtype(at::kLong)));
  }
  at::Tensor valid, index;
};

int64_t wrap(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

at::Tensor gather_along(const at::Tensor& data, const at::Tensor& indices, int64_t axis) {
  const Indices checked(indices, data.size(axis));
  return at::gather(data, axis, checked.index).masked_fill(at::logical_not(checked.valid), 0);
}

// result[b.., outer.., i.., inner..] = data[b.., outer.., indices[b.., i..], inner..]
Tensors gather(const Node& node, const Tensors& inputs) {
  const int64_t batch = node.attributes.integer("batch");
  const int64_t axis = wrap(node.attributes.integer("axis"), inputs[0].dim());
  const at::Tensor& data = inputs[0];
  const at::Tensor& indices = inputs[1];
  std::vector<int64_t> shape(data.sizes().begin(), data.sizes().begin() + axis);
  shape.insert(shape.end(), indices.sizes().begin() + batch, indices.sizes().end());
  shape.insert(shape.end(), data.sizes().begin() + axis + 1, data.sizes().end());
  int64_t batches = 1, outer = 1, inner = 1, count = 1;
  for (int64_t i = 0; i < batch; ++i) batches *= data.size(i);
  for (int64_t i = batch; i < axis; ++i) outer *= data.size(i);
  for (int64_t i = axis + 1; i < data.dim(); ++i) inner *= data.size(i);
  for (int64_t i = batch; i < indices.dim(); ++i) count *= indices.size(i);
  const at::Tensor blocks = data.reshape({batches, outer, data.size(axis), inner});
  const at::Tensor places = indices.reshape({batches, 1, count, 1}).expand({batches, outer, count, inner});
  return {gather_along(blocks, places, 2).reshape(shape)};
}

Tensors gather_along_axis(const Node& node, const Tensors& inputs) {
  return {gather_along(inputs[0], inputs[1], wrap(node.attributes.integer("axis"), inputs[0].dim()))};
}

// For each vector of indices, which of the first dimensions' elements it means, and whether there is one.
struct Places {
  Places(const at::Tensor& indices, at::IntArrayRef sizes) {
    const int64_t depth = indices.size(-1);
    if (depth > static_cast<int64_t>(sizes.size())) throw std::runtime_error("more indices than dimensions");
    flat = at::zeros(indices.sizes().slice(0, indices.dim() - 1), at::TensorOptions().dtype(at::kLong));
    valid = at::ones_like(flat, at::TensorOptions().dtype(at::kBool));
    for (int64_t i = 0; i < depth; ++i) {
      const Indices checked(indices.select(-1, i), sizes[i]);
      flat = at::add(at::mul(flat, sizes[i]), checked.index);
      valid = at::logical_and(valid, checked.valid);
    }
    rest = sizes.slice(depth).vec();
  }
  at::Tensor flat, valid;
  std::vector<int64_t> rest;
};

void require_no_batch(const Node& node) {
  if (node.attributes.integer("batch") != 0) throw std::runtime_error("batch dimensions are not implemented");
}

Tensors gather_nd(const Node& node, const Tensors& inputs) {
  require_no_batch(node);
  const Places places(inputs[1], inputs[0].sizes());
  std::vector<int64_t> block = {-1}, shape = places.flat.sizes().vec();
  block.insert(block.end(), places.rest.begin(), places.rest.end());
  shape.insert(shape.end(), places.rest.begin(), places.rest.end());
  at::Tensor rows = inputs[0].reshape(block).index_select(0, places.flat.flatten());
  rows.index_put_({at::logical_not(places.valid.flatten())}, at::zeros({}, rows.options()));
  return {rows.reshape(shape)};
}

Tensors one_hot(const Node& node, const Tensors& inputs) {
  const int64_t axis = wrap(node.attributes.integer("axis"), inputs[0].dim() + 1);
  const int64_t depth = node.attributes.integer("depth");
  std::vector<int64_t> line(static_cast<size_t>(inputs[0].dim()) + 1, 1);
  line[static_cast<size_t>(axis)] = depth;
  const at::Tensor steps = at::arange(depth, at::TensorOptions().dtype(at::kLong)).reshape(line);
  const auto options = at::TensorOptions().dtype(scalar_type(static_cast<DataType>(node.attributes.integer("type"))));
  return {at::where(inputs[0].unsqueeze(axis) == steps, at::full({}, node.attributes.real("on"), options),
                    at::full({}, node.attributes.real("off"), options))};
}

Tensors non_zero(const Node&, const Tensors& inputs) { return {at::nonzero(inputs[0]).to(at::kInt)}; }

// MPSGraphScatterMode.
enum Mode { kAdd = 0, kSub = 1, kMul = 2, kDiv = 3, kMin = 4, kMax = 5, kSet = 6 };

// Along dimension 0 of [elements, ...] tensors; indices have the updates' shape.
at::Tensor scatter_elements(const at::Tensor& data, int64_t axis, const at::Tensor& indices, at::Tensor updates,
                            int64_t mode) {
  // A row more takes what falls outside.
  const int64_t length = data.size(axis);
  auto spare = data.sizes().vec();
  spare[static_cast<size_t>(axis)] = 1;
  const at::Tensor room = at::cat({data, at::zeros(spare, data.options())}, axis);
  const Indices checked(indices, length);
  const at::Tensor index = at::masked_fill(checked.index, at::logical_not(checked.valid), length);
  at::Tensor result;
  switch (mode) {
    case kSub:
      updates = at::neg(updates);
      [[fallthrough]];
    case kAdd:
      result = room.scatter_add(axis, index, updates);
      break;
    case kMul:
      result = room.scatter_reduce(axis, index, updates, "prod", true);
      break;
    case kMin:
      result = room.scatter_reduce(axis, index, updates, "amin", true);
      break;
    case kMax:
      result = room.scatter_reduce(axis, index, updates, "amax", true);
      break;
    case kSet:
      result = room.scatter(axis, index, updates);
      break;
    default:
      throw std::runtime_error("scatter mode " + std::to_string(mode) + " is not implemented");
  }
  return result.narrow(axis, 0, length);
}

at::Tensor scatter_rows(const at::Tensor& data, int64_t axis, const at::Tensor& indices, const at::Tensor& updates,
                        int64_t mode) {
  std::vector<int64_t> line(static_cast<size_t>(updates.dim()), 1);
  line[static_cast<size_t>(axis)] = indices.numel();
  return scatter_elements(data, axis, indices.reshape(line).expand(updates.sizes()), updates, mode);
}

void require_line(const at::Tensor& indices) {
  if (indices.dim() > 1) throw std::runtime_error("indices of more than one dimension are not implemented");
}

// What is not given starts with zeros.
at::Tensor start(const Node& node, const at::Tensor& updates) {
  const int64_t mode = node.attributes.integer("mode");
  if (mode != kAdd && mode != kSub && mode != kSet) throw std::runtime_error("mode without data is not implemented");
  return at::zeros(node.attributes.integers("shape"), updates.options());
}

Tensors scatter(const Node& node, const Tensors& inputs) {
  require_line(inputs[1]);
  const at::Tensor data = start(node, inputs[0]);
  return {scatter_rows(data, wrap(node.attributes.integer("axis"), data.dim()), inputs[1], inputs[0],
                       node.attributes.integer("mode"))};
}

Tensors scatter_into(const Node& node, const Tensors& inputs) {
  require_line(inputs[2]);
  return {scatter_rows(inputs[0], wrap(node.attributes.integer("axis"), inputs[0].dim()), inputs[2], inputs[1],
                       node.attributes.integer("mode"))};
}

at::Tensor scatter_nd_into(const Node& node, const at::Tensor& data, const at::Tensor& updates,
                           const at::Tensor& indices) {
  require_no_batch(node);
  const Places places(indices, data.sizes());
  int64_t inner = 1;
  for (const int64_t length : places.rest) inner *= length;
  const at::Tensor rows = data.reshape({data.numel() / std::max<int64_t>(inner, 1), inner});
  const at::Tensor index = at::masked_fill(places.flat, at::logical_not(places.valid), -1).flatten();
  return scatter_rows(rows, 0, index, updates.reshape({index.numel(), inner}), node.attributes.integer("mode"))
      .reshape(data.sizes());
}

Tensors scatter_nd(const Node& node, const Tensors& inputs) {
  return {scatter_nd_into(node, start(node, inputs[0]), inputs[0], inputs[1])};
}

Tensors scatter_nd_with_data(const Node& node, const Tensors& inputs) {
  return {scatter_nd_into(node, inputs[0], inputs[1], inputs[2])};
}

Tensors scatter_along_axis(const Node& node, const Tensors& inputs) {
  const at::Tensor data = start(node, inputs[0]);
  return {scatter_elements(data, wrap(node.attributes.integer("axis"), data.dim()), inputs[1], inputs[0],
                           node.attributes.integer("mode"))};
}

Tensors scatter_along_axis_into(const Node& node, const Tensors& inputs) {
  return {scatter_elements(inputs[0], wrap(node.attributes.integer("axis"), inputs[0].dim()), inputs[2], inputs[1],
                           node.attributes.integer("mode"))};
}

}  // namespace

void add_index_operations(Operations& operations) {
  const Operations more = {
      {"gather", {gather, rules::gather}},
      {"gatherAlongAxis", {gather_along_axis, rules::gather_along}},
      {"gatherND", {gather_nd, rules::unknown_shape}},
      {"oneHot", {one_hot, rules::one_hot}},
      {"nonZeroIndices", {non_zero, rules::integers_of_unknown_shape}},
      {"scatter", {scatter, rules::scatter_new}},
      {"scatterInto", {scatter_into, rules::scatter_into}},
      {"scatterND", {scatter_nd, rules::scatter_new}},
      {"scatterNDInto", {scatter_nd_with_data, rules::scatter_into}},
      {"scatterAlongAxis", {scatter_along_axis, rules::scatter_new}},
      {"scatterAlongAxisInto", {scatter_along_axis_into, rules::scatter_into}},
  };
  operations.insert(more.begin(), more.end());
}

}  // namespace mpsforge::hostmps
