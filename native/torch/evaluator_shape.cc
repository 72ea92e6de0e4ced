// Operations that move elements, and constants.
#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "evaluator.h"

namespace mpsforge::hostmps {
namespace {

// A constant is given as a double; of an integer type it saturates, where a plain conversion would be undefined.
at::Tensor full(const std::vector<int64_t>& shape, double value, at::ScalarType type) {
  const auto options = at::TensorOptions().dtype(type);
  // PyTorch masks by the least float32, of whatever type: beyond half's numbers it is the infinite one.
  if (!c10::isIntegralType(type, false)) return at::full(shape, value, options.dtype(at::kDouble)).to(type);
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  int64_t integer = std::numeric_limits<int64_t>::max();
  if (value < kLimit) integer = value <= -kLimit ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(value);
  const auto clamp = [&integer](int64_t low, int64_t high) { integer = std::clamp(integer, low, high); };
  if (type == at::kInt) clamp(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
  if (type == at::kShort) clamp(std::numeric_limits<int16_t>::min(), std::numeric_limits<int16_t>::max());
  if (type == at::kChar) clamp(std::numeric_limits<int8_t>::min(), std::numeric_limits<int8_t>::max());
  if (type == at::kByte) clamp(0, std::numeric_limits<uint8_t>::max());
  return at::full(shape, integer, options);
}

at::ScalarType type_attribute(const Node& node) {
  return scalar_type(static_cast<DataType>(node.attributes.integer("type")));
}

Tensors constant(const Node& node, const Tensors&) {
  return {full(node.attributes.integers("shape"), node.attributes.real("value"), type_attribute(node))};
}

Tensors constant_complex(const Node& node, const Tensors&) {
  const c10::complex<double> value(node.attributes.real("value"), node.attributes.real("imaginary"));
  return {at::full(node.attributes.integers("shape"), value, at::TensorOptions().dtype(type_attribute(node)))};
}

Tensors constant_data(const Node& node, const Tensors&) {
  const std::string& data = node.attributes.bytes("data");
  at::Tensor tensor = at::empty(node.attributes.integers("shape"), at::TensorOptions().dtype(type_attribute(node)));
  if (!data.empty()) std::memcpy(tensor.mutable_data_ptr(), data.data(), data.size());
  return {tensor};
}

Tensors reshape(const Node& node, const Tensors& inputs) {
  return {inputs[0].reshape(node.attributes.integers("shape"))};
}

Tensors reshape_by_tensor(const Node&, const Tensors& inputs) { return {inputs[0].reshape(numbers_of(inputs[1]))}; }

Tensors transpose(const Node& node, const Tensors& inputs) {
  return {inputs[0].transpose(node.attributes.integer("dimension"), node.attributes.integer("other"))};
}

Tensors permute(const Node& node, const Tensors& inputs) {
  return {inputs[0].permute(node.attributes.integers("permutation"))};
}

Tensors slice(const Node& node, const Tensors& inputs) {
  return {inputs[0].narrow(node.attributes.integer("dimension"), node.attributes.integer("start"),
                           node.attributes.integer("length"))};
}

// A strided slice as TensorFlow defines it: bit i of a mask is about dimension i. Returns the view without squeezing.
at::Tensor strided(const Node& node, at::Tensor tensor) {
  const auto& starts = node.attributes.integers("starts");
  const auto& ends = node.attributes.integers("ends");
  const auto& strides = node.attributes.integers("strides");
  if (starts.size() != static_cast<size_t>(tensor.dim()) || ends.size() != starts.size() ||
      strides.size() != starts.size()) {
    throw std::runtime_error("starts, ends and strides of another rank than the tensor");
  }
  for (size_t i = 0; i < starts.size(); ++i) {
    const auto dimension = static_cast<int64_t>(i);
    const int64_t length = tensor.size(dimension);
    if (strides[i] <= 0) throw std::runtime_error("a stride that is not positive is not implemented");
    const auto masked = [&](const char* mask) { return ((node.attributes.integer(mask) >> i) & 1) != 0; };
    const int64_t start = masked("start_mask") ? 0 : starts[i];
    const int64_t end = masked("end_mask") ? length : ends[i];
    tensor = at::slice(tensor, dimension, start, end, strides[i]);
  }
  return tensor;
}

Tensors slice_strided(const Node& node, const Tensors& inputs) {
  at::Tensor tensor = strided(node, inputs[0]);
  for (int64_t i = tensor.dim(); i-- > 0;) {
    if ((node.attributes.integer("squeeze_mask") >> i) & 1) tensor = tensor.squeeze(i);
  }
  return {tensor};
}

Tensors slice_gradient(const Node& node, const Tensors& inputs) {
  at::Tensor gradient = at::zeros(numbers_of(inputs[1]), inputs[0].options());
  at::Tensor part = strided(node, gradient);
  part.copy_(inputs[0].reshape(part.sizes()));
  return {gradient};
}

Tensors concat(const Node& node, const Tensors& inputs) {
  const int64_t dimension = node.attributes.integer("dimension");
  if (!node.attributes.integer("interleave")) return {at::cat(inputs, dimension)};
  const int64_t index = dimension < 0 ? dimension + inputs[0].dim() : dimension;
  return {at::stack(inputs, index + 1).flatten(index, index + 1)};
}

Tensors stack(const Node& node, const Tensors& inputs) { return {at::stack(inputs, node.attributes.integer("axis"))}; }

Tensors split(const Node& node, const Tensors& inputs) {
  const int64_t axis = node.attributes.integer("axis"), count = node.attributes.integer("count");
  if (inputs[0].size(axis) % count != 0) throw std::runtime_error("parts of different lengths");
  return inputs[0].split(inputs[0].size(axis) / count, axis);
}

Tensors tile(const Node& node, const Tensors& inputs) {
  return {at::tile(inputs[0], node.attributes.integers("multiplier"))};
}

// MPSGraphPaddingMode.
enum PaddingMode { kConstant = 0, kReflect = 1, kSymmetric = 2, kClampToEdge = 3, kZero = 4 };

// The source of each element along one padded dimension.
at::Tensor padding_sources(int64_t mode, int64_t length, int64_t left, int64_t right) {
  std::vector<int64_t> sources;
  for (int64_t i = -left; i < length + right; ++i) {
    int64_t source = i;
    if (mode == kClampToEdge) source = std::clamp<int64_t>(i, 0, length - 1);
    if (mode == kReflect && i < 0) source = -i;
    if (mode == kReflect && i >= length) source = 2 * (length - 1) - i;
    if (mode == kSymmetric && i < 0) source = -i - 1;
    if (mode == kSymmetric && i >= length) source = 2 * length - 1 - i;
    if (source < 0 || source >= length) throw std::runtime_error("padding wider than the dimension");
    sources.push_back(source);
  }
  return at::tensor(sources, at::TensorOptions().dtype(at::kLong));
}

bool is_constant(int64_t mode) { return mode == kConstant || mode == kZero; }

void check_padding(const Node& node, const at::Tensor& tensor) {
  const int64_t mode = node.attributes.integer("mode");
  if (mode < kConstant || mode > kZero) throw std::runtime_error("padding mode " + std::to_string(mode));
  if (node.attributes.integers("left").size() != static_cast<size_t>(tensor.dim()) ||
      node.attributes.integers("right").size() != static_cast<size_t>(tensor.dim())) {
    throw std::runtime_error("padding of another rank than the tensor");
  }
}

Tensors pad(const Node& node, const Tensors& inputs) {
  check_padding(node, inputs[0]);
  const int64_t mode = node.attributes.integer("mode");
  const auto& left = node.attributes.integers("left");
  const auto& right = node.attributes.integers("right");
  at::Tensor tensor = inputs[0];
  if (is_constant(mode)) {
    std::vector<int64_t> sides;  // from the last dimension
    for (size_t i = left.size(); i-- > 0;) sides.insert(sides.end(), {left[i], right[i]});
    return {at::constant_pad_nd(tensor, sides, mode == kZero ? 0.0 : node.attributes.real("value"))};
  }
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    if (left[i] == 0 && right[i] == 0) continue;
    tensor = at::index_select(tensor, i, padding_sources(mode, tensor.size(i), left[i], right[i]));
  }
  return {tensor};
}

// The gradient of a tensor that this padding made as large as the gradient is. That need not be the source: for the
// gradient of a negative padding PyTorch passes 0 and the whole source, and puts the result, which is as large as what
// the forward pass read, into a slice of zeros (pad_out_template; its tests of reflect and replicate pass on a Mac).
Tensors pad_gradient(const Node& node, const Tensors& inputs) {
  check_padding(node, inputs[0]);
  const int64_t mode = node.attributes.integer("mode");
  const auto& left = node.attributes.integers("left");
  const auto& right = node.attributes.integers("right");
  at::Tensor gradient = inputs[0];
  for (int64_t i = gradient.dim(); i-- > 0;) {
    const int64_t length = gradient.size(i) - left[i] - right[i];
    if (is_constant(mode)) {
      gradient = gradient.narrow(i, left[i], length);
    } else if (left[i] != 0 || right[i] != 0) {
      auto shape = gradient.sizes().vec();
      shape[i] = length;
      gradient =
          at::zeros(shape, gradient.options()).index_add(i, padding_sources(mode, length, left[i], right[i]), gradient);
    }
  }
  return {gradient};
}

void check_blocks(const Node& node, const at::Tensor& tensor) {
  const int64_t rank = tensor.dim();
  if (node.attributes.integer("width") != rank - 1 || node.attributes.integer("height") != rank - 2 ||
      node.attributes.integer("depth") != rank - 3 || !node.attributes.integer("pixel_shuffle")) {
    throw std::runtime_error("only depth, height, width as the last axes in the order of a pixel shuffle");
  }
}

Tensors depth_to_space(const Node& node, const Tensors& inputs) {
  check_blocks(node, inputs[0]);
  return {at::pixel_shuffle(inputs[0], node.attributes.integer("block"))};
}

Tensors space_to_depth(const Node& node, const Tensors& inputs) {
  check_blocks(node, inputs[0]);
  return {at::pixel_unshuffle(inputs[0], node.attributes.integer("block"))};
}

std::vector<int64_t> all_axes(const at::Tensor& tensor) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < tensor.dim(); ++i) axes.push_back(i);
  return axes;
}

Tensors reverse(const Node& node, const Tensors& inputs) {
  return {at::flip(inputs[0], node.attributes.has("axes") ? node.attributes.integers("axes") : all_axes(inputs[0]))};
}

Tensors flatten_2d(const Node& node, const Tensors& inputs) {
  int64_t axis = node.attributes.integer("axis"), rows = 1, columns = 1;
  if (axis < 0) axis += inputs[0].dim();
  for (int64_t i = 0; i < inputs[0].dim(); ++i) (i < axis ? rows : columns) *= inputs[0].size(i);
  return {inputs[0].reshape({rows, columns})};
}

Tensors broadcast(const Node& node, const Tensors& inputs) {
  return {inputs[0].expand(node.attributes.integers("shape"))};
}

Tensors broadcast_by_tensor(const Node&, const Tensors& inputs) { return {inputs[0].expand(numbers_of(inputs[1]))}; }

Tensors shape_of(const Node&, const Tensors& inputs) {
  return {at::tensor(inputs[0].sizes().vec(), at::TensorOptions().dtype(at::kLong)).to(at::kInt)};
}

Tensors expand_dims(const Node& node, const Tensors& inputs) {
  std::vector<int64_t> axes = node.attributes.integers("axes");
  const int64_t rank = inputs[0].dim() + static_cast<int64_t>(axes.size());
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::sort(axes.begin(), axes.end());
  at::Tensor tensor = inputs[0];
  for (const int64_t axis : axes) tensor = tensor.unsqueeze(axis);
  return {tensor};
}

Tensors squeeze(const Node& node, const Tensors& inputs) {
  return {node.attributes.has("axes") ? at::squeeze(inputs[0], node.attributes.integers("axes"))
                                      : at::squeeze(inputs[0])};
}

// Each element is its own index along the axis.
at::Tensor coordinates(int64_t axis, const std::vector<int64_t>& shape) {
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) throw std::runtime_error("axis " + std::to_string(axis));
  std::vector<int64_t> line(shape.size(), 1);
  line[static_cast<size_t>(axis)] = shape[static_cast<size_t>(axis)];
  return at::arange(shape[static_cast<size_t>(axis)], at::TensorOptions().dtype(at::kInt)).reshape(line).expand(shape);
}

Tensors coordinate(const Node& node, const Tensors&) {
  return {coordinates(node.attributes.integer("axis"), node.attributes.integers("shape"))};
}

Tensors coordinate_by_tensor(const Node& node, const Tensors& inputs) {
  return {coordinates(node.attributes.integer("axis"), numbers_of(inputs[0]))};
}

Tensors coordinate_by_axis_tensor(const Node& node, const Tensors& inputs) {
  return {coordinates(numbers_of(inputs[0]).at(0), node.attributes.integers("shape"))};
}

Tensors coordinate_by_tensors(const Node&, const Tensors& inputs) {
  return {coordinates(numbers_of(inputs[0]).at(0), numbers_of(inputs[1]))};
}

}  // namespace

void add_shape_operations(Operations& operations) {
  const Operations more = {
      {"constant", {constant, rules::constant}},
      {"constantComplex", {constant_complex, rules::constant}},
      {"constantData", {constant_data, rules::constant}},
      {"reshape", {reshape, rules::reshape}},
      {"reshapeByTensor", {reshape_by_tensor, rules::unknown_shape}},
      {"transpose", {transpose, rules::transpose}},
      {"permute", {permute, rules::permute}},
      {"slice", {slice, rules::slice}},
      {"sliceStrided", {slice_strided, rules::unknown_shape}},
      {"sliceGradient", {slice_gradient, rules::unknown_shape}},
      {"concat", {concat, rules::concat}},
      {"stack", {stack, rules::unknown_shape}},
      {"split", {split, rules::split}},
      {"tile", {tile, rules::tile}},
      {"pad", {pad, rules::pad}},
      {"padGradient", {pad_gradient, rules::pad}},
      {"depthToSpace2D", {depth_to_space, rules::unknown_shape}},
      {"spaceToDepth2D", {space_to_depth, rules::unknown_shape}},
      {"reverse", {reverse, rules::same}},
      {"flatten2D", {flatten_2d, rules::flatten}},
      {"broadcast", {broadcast, rules::broadcast_to}},
      {"broadcastByTensor", {broadcast_by_tensor, rules::unknown_shape}},
      {"shapeOf", {shape_of, rules::shape_of}},
      {"expandDims", {expand_dims, rules::expand}},
      {"squeeze", {squeeze, rules::squeeze}},
      {"coordinate", {coordinate, rules::coordinate}},
      {"coordinateByTensor", {coordinate_by_tensor, rules::integers_of_unknown_shape}},
      {"coordinateByAxisTensor", {coordinate_by_axis_tensor, rules::integers_of_unknown_shape}},
      {"coordinateByTensors", {coordinate_by_tensors, rules::integers_of_unknown_shape}},
  };
  operations.insert(more.begin(), more.end());
}

}  // namespace mpsforge::hostmps
