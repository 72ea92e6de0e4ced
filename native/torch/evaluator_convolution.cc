// Convolutions and poolings. Each is brought to libtorch's layout: batch, channels, then space.
#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "evaluator.h"

namespace mpsforge::hostmps {
namespace {

// MPSGraphTensorNamedDataLayout.
enum Layout { kNCHW = 0, kNHWC = 1, kOIHW = 2, kHWIO = 3, kNCDHW = 7, kNDHWC = 8, kOIDHW = 9, kDHWIO = 10 };

at::Tensor channels_first(const at::Tensor& tensor, int64_t layout) {
  switch (layout) {
    case kNCHW:
    case kNCDHW:
    case kOIHW:
    case kOIDHW:
      return tensor;
    case kNHWC:
    case kNDHWC:
      return tensor.movedim(-1, 1);
    case kHWIO:
    case kDHWIO:
      return tensor.movedim({-1, -2}, {0, 1});
    default:
      throw std::runtime_error("data layout " + std::to_string(layout));
  }
}

at::Tensor from_channels_first(const at::Tensor& tensor, int64_t layout) {
  if (layout == kNHWC || layout == kNDHWC) return tensor.movedim(1, -1);
  if (layout == kHWIO || layout == kDHWIO) return tensor.movedim({0, 1}, {-1, -2});
  return tensor;
}

void require_explicit_padding(const Node& node) {
  if (node.attributes.integer("style") != 0) throw std::runtime_error("only explicit padding is implemented");
}

// Padding is given as before and after of each dimension, the outermost first; libtorch wants the innermost first.
std::vector<int64_t> padding_of(const Node& node) {
  require_explicit_padding(node);
  const auto& given = node.attributes.integers("padding");
  std::vector<int64_t> sides;
  for (size_t i = given.size(); i >= 2; i -= 2) sides.insert(sides.end(), {given[i - 2], given[i - 1]});
  return sides;
}

at::Tensor unpad(at::Tensor tensor, const std::vector<int64_t>& sides) {
  for (size_t i = 0; i < sides.size(); i += 2) {
    const int64_t dimension = tensor.dim() - 1 - static_cast<int64_t>(i / 2);
    tensor = tensor.narrow(dimension, sides[i], tensor.size(dimension) - sides[i] - sides[i + 1]);
  }
  return tensor;
}

// A convolution in libtorch's layout; its sides may be padded differently.
struct Convolution {
  std::vector<int64_t> strides, dilations, sides;
  int64_t groups;

  std::vector<int64_t> zeros() const { return std::vector<int64_t>(strides.size(), 0); }

  // The source, of which so many places read all: beyond its end are zeros, and what none reads is cut off.
  at::Tensor padded(const at::Tensor& source, at::IntArrayRef kernel, at::IntArrayRef places) const {
    std::vector<int64_t> all = sides;
    for (size_t i = 2; i < places.size(); ++i) {
      const size_t side = 2 * (places.size() - 1 - i);
      const int64_t read = (places[i] - 1) * strides[i - 2] + dilations[i - 2] * (kernel[i] - 1) + 1;
      all[side + 1] = read - source.size(static_cast<int64_t>(i)) - all[side];
    }
    return at::constant_pad_nd(widen(source), all, 0);
  }

  at::Tensor forward(const at::Tensor& source, const at::Tensor& weights) const {
    const at::Tensor padded = at::constant_pad_nd(widen(source), sides, 0);
    return at::convolution(padded, widen(weights), {}, strides, zeros(), dilations, false, zeros(), groups);
  }

  // The gradient of a source of these sizes. It may be larger than what the gradient reaches, by any output padding:
  // the rest is zero.
  at::Tensor of_source(const at::Tensor& gradient, at::IntArrayRef sizes, const at::Tensor& weights) const {
    const at::Tensor reached = at::convolution(widen(gradient).contiguous(), widen(weights), {}, strides, zeros(),
                                               dilations, true, zeros(), groups);
    std::vector<int64_t> rest;
    for (size_t i = sizes.size(); i-- > 2;) {
      const size_t side = 2 * (sizes.size() - 1 - i);
      rest.insert(rest.end(), {0, sizes[i] + sides[side] + sides[side + 1] - reached.size(static_cast<int64_t>(i))});
    }
    return unpad(at::constant_pad_nd(reached, rest, 0), sides);
  }

  // The gradient may have fewer places than the source gives, as that of a transposed convolution with output padding.
  at::Tensor of_weights(const at::Tensor& gradient, const at::Tensor& source, const at::Tensor& weights) const {
    return std::get<1>(at::convolution_backward(
        widen(gradient).contiguous(), padded(source, weights.sizes(), gradient.sizes()), widen(weights), std::nullopt,
        strides, zeros(), dilations, false, zeros(), groups, std::array<bool, 3>{false, true, false}));
  }
};

Convolution convolution_of(const Node& node) {
  return {node.attributes.integers("strides"), node.attributes.integers("dilations"), padding_of(node),
          node.attributes.integer("groups")};
}

Tensors convolution(const Node& node, const Tensors& inputs) {
  const int64_t layout = node.attributes.integer("layout");
  const at::Tensor result = convolution_of(node).forward(
      channels_first(inputs[0], layout), channels_first(inputs[1], node.attributes.integer("weights_layout")));
  return {from_channels_first(result, layout).to(inputs[0].scalar_type())};
}

Tensors convolution_data_gradient(const Node& node, const Tensors& inputs) {
  const int64_t layout = node.attributes.integer("layout");
  const at::Tensor source = channels_first(at::zeros(node.attributes.integers("shape"), inputs[0].options()), layout);
  const at::Tensor result =
      convolution_of(node).of_source(channels_first(inputs[0], layout), source.sizes(),
                                     channels_first(inputs[1], node.attributes.integer("weights_layout")));
  return {from_channels_first(result, layout).to(inputs[0].scalar_type())};
}

Tensors convolution_weights_gradient(const Node& node, const Tensors& inputs) {
  const int64_t layout = node.attributes.integer("layout");
  const int64_t weights_layout = node.attributes.integer("weights_layout");
  const at::Tensor weights =
      channels_first(at::zeros(node.attributes.integers("shape"), inputs[0].options()), weights_layout);
  const at::Tensor result =
      convolution_of(node).of_weights(channels_first(inputs[0], layout), channels_first(inputs[1], layout), weights);
  return {from_channels_first(result, weights_layout).to(inputs[0].scalar_type())};
}

// A depthwise convolution over the channel dimension and the two or three after it, of a source [N, C, H, W] and
// weights [M, C, kH, kW], where M results come of each channel; PyTorch has them as [1, M * C, kH, kW], too. Depth is
// the channel dimension itself: PyTorch passes 1 for its stride and dilation and no padding.
Convolution depthwise_of(const Node& node, int64_t channels, const at::Tensor& weights) {
  if (node.attributes.integer("channel") != -3 || weights.dim() != 4) {
    throw std::runtime_error("only with channelDimensionIndex -3 of four dimensions");
  }
  const auto& strides = node.attributes.integers("strides");
  const auto& dilations = node.attributes.integers("dilations");
  std::vector<int64_t> sides = padding_of(node);
  if (strides.size() != 3 || dilations.size() != 3 || sides.size() != 6 || strides[0] != 1 || dilations[0] != 1 ||
      sides[4] != 0 || sides[5] != 0) {
    throw std::runtime_error("strides, dilations or padding along the channels");
  }
  const bool folded = weights.size(0) == 1 && weights.size(1) % channels == 0;
  if (weights.size(1) != channels && !folded)
    throw std::runtime_error("the weights are for another number of channels");
  sides.resize(4);
  return {{strides[1], strides[2]}, {dilations[1], dilations[2]}, sides, channels};
}

// Libtorch has the weights of a group of one channel: [C * M, 1, kH, kW], the results of a channel adjacent.
at::Tensor grouped(const at::Tensor& weights) {
  return weights.transpose(0, 1).reshape({weights.size(0) * weights.size(1), 1, weights.size(2), weights.size(3)});
}

Tensors depthwise(const Node& node, const Tensors& inputs) {
  return {depthwise_of(node, inputs[0].size(1), inputs[1])
              .forward(inputs[0], grouped(inputs[1]))
              .to(inputs[0].scalar_type())};
}

Tensors depthwise_data_gradient(const Node& node, const Tensors& inputs) {
  const at::Tensor source = at::zeros(node.attributes.integers("shape"), inputs[0].options());
  const at::Tensor result =
      depthwise_of(node, source.size(1), inputs[1]).of_source(inputs[0], source.sizes(), grouped(inputs[1]));
  return {result.to(inputs[0].scalar_type())};
}

Tensors depthwise_weights_gradient(const Node& node, const Tensors& inputs) {
  const at::Tensor weights = at::zeros(node.attributes.integers("shape"), inputs[0].options());
  const at::Tensor result =
      depthwise_of(node, inputs[1].size(1), weights).of_weights(inputs[0], inputs[1], grouped(weights));
  return {result.reshape({weights.size(1), weights.size(0), weights.size(2), weights.size(3)})
              .transpose(0, 1)
              .to(inputs[0].scalar_type())};
}

// A pooling in libtorch's layout, its sides padded beforehand where libtorch can't.
struct Pooling {
  explicit Pooling(const Node& node)
      : kernel(node.attributes.integers("kernel")),
        strides(node.attributes.integers("strides")),
        dilations(node.attributes.integers("dilations")),
        sides(padding_of(node)),
        layout(node.attributes.integer("layout")),
        ceil(node.attributes.integer("ceil") != 0),
        include_padding(node.attributes.integer("include_padding") != 0) {}

  bool even() const { return sides[0] == sides[1] && sides[2] == sides[3]; }
  // Of the height and the width, as libtorch's pooling takes it: at most half of the kernel.
  bool native() const { return even() && 2 * sides[0] <= kernel[1] && 2 * sides[2] <= kernel[0]; }
  std::vector<int64_t> amounts() const { return {sides[2], sides[0]}; }

  std::vector<int64_t> kernel, strides, dilations, sides;
  int64_t layout;
  bool ceil, include_padding;
};

int64_t lowest_of(int64_t bytes) { return std::numeric_limits<int64_t>::min() >> (64 - 8 * bytes); }

std::pair<at::Tensor, at::Tensor> max_pool(const Pooling& pool, const at::Tensor& source) {
  const at::Tensor wide = source.scalar_type() == at::kByte ? source.to(at::kShort) : widen(source);
  if (pool.native()) {
    auto [values, indices] =
        at::max_pool2d_with_indices(wide, pool.kernel, pool.strides, pool.amounts(), pool.dilations, pool.ceil);
    return {values, indices};
  }
  // What each element is above: that of a wider type for bytes, whose lowest an element can be.
  const at::Scalar lowest = wide.is_floating_point() ? at::Scalar(-std::numeric_limits<double>::infinity())
                                                     : at::Scalar(lowest_of(wide.element_size()));
  const at::Tensor padded = at::constant_pad_nd(wide, pool.sides, lowest);
  const std::vector<int64_t> none = {0, 0};
  auto [values, places] =
      at::max_pool2d_with_indices(padded, pool.kernel, pool.strides, none, pool.dilations, pool.ceil);
  // From places in the padded plane to places in the plane.
  const at::Tensor row = at::sub(at::div(places, padded.size(-1), "trunc"), pool.sides[2]);
  const at::Tensor column = at::sub(at::remainder(places, padded.size(-1)), pool.sides[0]);
  return {values, at::add(at::mul(row, wide.size(-1)), column)};
}

Tensors max_pooling(const Node& node, const Tensors& inputs) {
  const Pooling pool(node);
  const at::Tensor result = max_pool(pool, channels_first(inputs[0], pool.layout)).first;
  return {from_channels_first(result, pool.layout).to(inputs[0].scalar_type())};
}

Tensors max_pooling_with_indices(const Node& node, const Tensors& inputs) {
  constexpr int64_t kGlobalFlatten2D = 2;
  if (node.attributes.integer("indices_mode") != kGlobalFlatten2D) {
    throw std::runtime_error("only MPSGraphPoolingReturnIndicesGlobalFlatten2D is implemented");
  }
  const Pooling pool(node);
  const auto [values, indices] = max_pool(pool, channels_first(inputs[0], pool.layout));
  return {from_channels_first(values, pool.layout).to(inputs[0].scalar_type()),
          from_channels_first(indices, pool.layout)
              .to(scalar_type(static_cast<DataType>(node.attributes.integer("indices"))))};
}

// The first windows, as many as there are gradients: memory of the pooling's result may have had fewer (see cut in
// evaluator.cc).
at::Tensor first_windows(const at::Tensor& windows, const at::Tensor& gradient) {
  return windows.slice(-2, 0, gradient.size(-2)).slice(-1, 0, gradient.size(-1));
}

Tensors max_pooling_gradient(const Node& node, const Tensors& inputs) {
  const Pooling pool(node);
  const at::Tensor source = channels_first(inputs[1], pool.layout).contiguous();
  const at::Tensor gradient = widen(channels_first(inputs[0], pool.layout)).contiguous();
  const at::Tensor indices = first_windows(max_pool(pool, source).second, gradient);
  const at::Tensor planes = at::zeros(source.sizes(), gradient.options()).flatten(-2);
  const at::Tensor result = planes.scatter_add(-1, indices.flatten(-2), gradient.flatten(-2)).reshape(source.sizes());
  return {from_channels_first(result, pool.layout).to(inputs[1].scalar_type())};
}

// The average is over the whole kernel where padding counts, what a rounded-up size adds included (PyTorch pads by
// itself "when both ceilMode and includeZeroPadToAverage are True", because its own does not count that); else over the
// pixels that there are.
struct Average {
  Average(const Pooling& pooling, const at::Tensor& source) : pool(pooling) {
    if (pool.dilations != std::vector<int64_t>{1, 1}) throw std::runtime_error("a dilation is not implemented");
    // One plane: there may be no batch.
    const at::Tensor ones = at::ones({1, source.size(-2), source.size(-1)}, source.options());
    divisor = pool.include_padding ? at::full({}, pool.kernel[0] * pool.kernel[1], source.options()) : sum(ones);
  }

  at::Tensor padded(const at::Tensor& source) const { return at::constant_pad_nd(source, pool.sides, 0); }

  at::Tensor sum(const at::Tensor& source) const {
    return at::avg_pool2d(padded(source), pool.kernel, pool.strides, none, pool.ceil, true, int64_t{1});
  }

  const Pooling& pool;
  const std::vector<int64_t> none = {0, 0};
  at::Tensor divisor;
};

Tensors average_pooling(const Node& node, const Tensors& inputs) {
  const Pooling pool(node);
  const at::Tensor source = widen(channels_first(inputs[0], pool.layout));
  const Average average(pool, source);
  const at::Tensor sum = average.sum(source);
  const at::Tensor result =
      sum.is_floating_point() ? at::div(sum, average.divisor) : at::div(sum, average.divisor, "trunc");
  return {from_channels_first(result, pool.layout).to(inputs[0].scalar_type())};
}

Tensors average_pooling_gradient(const Node& node, const Tensors& inputs) {
  const Pooling pool(node);
  const at::Tensor source = widen(channels_first(inputs[1], pool.layout)).contiguous();
  const Average average(pool, source);
  const at::Tensor gradient = widen(channels_first(inputs[0], pool.layout)), all = average.sum(source);
  at::Tensor shares = at::zeros_like(all, at::MemoryFormat::Contiguous);
  const at::Tensor divisor = average.divisor.dim() ? first_windows(average.divisor, gradient) : average.divisor;
  first_windows(shares, gradient).copy_(at::div(gradient, divisor));
  const at::Tensor result = at::avg_pool2d_backward(shares, average.padded(source), pool.kernel, pool.strides,
                                                    average.none, pool.ceil, true, int64_t{1});
  return {from_channels_first(unpad(result, pool.sides), pool.layout).to(inputs[1].scalar_type())};
}

}  // namespace

void add_convolutions(Operations& operations) {
  const Operations more = {
      {"convolution", {convolution, rules::convolution}},
      {"convolutionDataGradient", {convolution_data_gradient, rules::with_given_shape}},
      {"convolutionWeightsGradient", {convolution_weights_gradient, rules::with_given_shape}},
      {"depthwiseConvolution", {depthwise, rules::convolution}},
      {"depthwiseConvolutionDataGradient", {depthwise_data_gradient, rules::with_given_shape}},
      {"depthwiseConvolutionWeightsGradient", {depthwise_weights_gradient, rules::with_given_shape}},
      {"maxPooling2D", {max_pooling, rules::pooling}},
      {"maxPooling2DReturnIndices", {max_pooling_with_indices, rules::pooling_indices}},
      {"maxPooling2DGradient", {max_pooling_gradient, rules::gradient_of_second}},
      {"avgPooling2D", {average_pooling, rules::pooling}},
      {"avgPooling2DGradient", {average_pooling_gradient, rules::gradient_of_second}},
  };
  operations.insert(more.begin(), more.end());
}

}  // namespace mpsforge::hostmps
