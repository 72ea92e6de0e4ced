// Images resized to a size, and sampled at coordinates.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "evaluator.h"

namespace mpsforge::hostmps {
namespace {

// MPSGraphResizeNearestRoundingMode.
enum Rounding { kPreferCeil = 0, kPreferFloor = 1, kCeil = 2, kFloor = 3, kToEven = 4, kToOdd = 5 };

float rounded(float position, int64_t mode) {
  switch (mode) {
    case kPreferCeil:
      return std::floor(position + 0.5f);
    case kPreferFloor:
      return std::ceil(position - 0.5f);
    case kCeil:
      return std::ceil(position);
    case kFloor:
      return std::floor(position);
    case kToEven:
      return std::nearbyint(position);
    case kToOdd: {
      const float below = std::floor(position);
      if (position - below != 0.5f) return std::floor(position + 0.5f);
      return std::fmod(below, 2.0f) == 0 ? below + 1 : below;
    }
    default:
      throw std::runtime_error("rounding mode " + std::to_string(mode));
  }
}

// Which pixels of an axis each pixel of the resized axis is made of: a part of one and the rest of another. Without a
// share, it is the low one alone.
struct Axis {
  Axis(const Node& node, const Tensors& inputs, int64_t which, int64_t length, int64_t resized)
      : dimension(node.attributes.integer("height") + which),
        low(at::empty({resized}, at::TensorOptions().dtype(at::kLong))),
        high(at::empty_like(low)) {
    // Apple: an index of the result is an index of the images, scaled, with an offset added.
    double scale = static_cast<double>(resized) / static_cast<double>(length), offset = 0;
    if (inputs.size() > 2) {
      const at::Tensor given = inputs[2].to(at::kDouble);
      scale = given[which].item<double>();
      offset = given[which + 2].item<double>();
    } else if (node.attributes.integer("align")) {
      scale = length > 1 ? static_cast<double>(resized - 1) / static_cast<double>(length - 1) : 0;
    } else if (node.attributes.integer("center")) {
      offset = (scale - 1) / 2;
    }
    const bool nearest = node.attributes.has("rounding");
    at::Tensor shares = at::empty({resized}, at::TensorOptions().dtype(at::kFloat));
    auto* const lows = low.mutable_data_ptr<int64_t>();
    auto* const highs = high.mutable_data_ptr<int64_t>();
    auto* const parts = shares.mutable_data_ptr<float>();
    const auto last = static_cast<float>(length - 1);
    for (int64_t i = 0; i < resized; ++i) {
      // Rounded to Float32 last, so that a position that is a whole number comes out as one.
      const auto at = static_cast<float>(scale == 0 ? 0 : (static_cast<double>(i) - offset) / scale);
      const float position = std::clamp(nearest ? rounded(at, node.attributes.integer("rounding")) : at, 0.0f, last);
      lows[i] = static_cast<int64_t>(position);
      highs[i] = std::min(lows[i] + 1, length - 1);
      parts[i] = position - static_cast<float>(lows[i]);
    }
    if (!nearest) share = shares;
  }

  at::Tensor resize(const at::Tensor& images) const {
    const at::Tensor one = at::index_select(images, dimension, low);
    if (!share.defined()) return one;
    return at::lerp(one, at::index_select(images, dimension, high), shares_like(images));
  }

  at::Tensor gradient(const at::Tensor& resized, int64_t length) const {
    auto shape = resized.sizes().vec();
    shape[static_cast<size_t>(dimension)] = length;
    const at::Tensor zeros = at::zeros(shape, resized.options());
    if (!share.defined()) return at::index_add(zeros, dimension, low, resized);
    const at::Tensor upper = at::mul(resized, shares_like(resized));
    return at::index_add(at::index_add(zeros, dimension, low, at::sub(resized, upper)), dimension, high, upper);
  }

 private:
  at::Tensor shares_like(const at::Tensor& images) const {
    std::vector<int64_t> shape(static_cast<size_t>(images.dim()), 1);
    shape[static_cast<size_t>(dimension)] = -1;
    return share.reshape(shape);
  }

  int64_t dimension;
  at::Tensor low, high, share;
};

Tensors resize(const Node& node, const Tensors& inputs) {
  const auto size = numbers_of(inputs[1]);
  if (size.size() != 2) throw std::runtime_error("a size of " + std::to_string(size.size()) + " numbers");
  // Whole numbers are interpolated as real ones and rounded at the end: PyTorch's test expects the CPU's numbers of
  // uint8.
  const bool rounds = !node.attributes.has("rounding") && !inputs[0].is_floating_point();
  at::Tensor images = rounds ? inputs[0].to(at::kFloat) : widen(inputs[0]);
  const int64_t height = node.attributes.integer("height");
  for (const int64_t which : {0, 1}) {
    images = Axis(node, inputs, which, images.size(height + which), size[static_cast<size_t>(which)]).resize(images);
  }
  return {(rounds ? at::round(images) : images).to(inputs[0].scalar_type())};
}

Tensors resize_gradient(const Node& node, const Tensors& inputs) {
  // In Float64: the sums are long where images grow much.
  at::Tensor gradient = inputs[0].to(at::kDouble);
  const int64_t height = node.attributes.integer("height");
  for (const int64_t which : {0, 1}) {
    const int64_t length = inputs[1].size(height + which);
    gradient = Axis(node, inputs, which, length, gradient.size(height + which)).gradient(gradient, length);
  }
  return {gradient.to(inputs[0].scalar_type())};
}

// Coordinates are x and y, as PyTorch passes them: Apple's words give no order.
Tensors sample_grid(const Node& node, const Tensors& inputs) {
  // MPSGraphPaddingMode, and libtorch's numbers for padding and interpolation.
  constexpr int64_t kClampToEdge = 3, kZero = 4;
  constexpr int64_t kZeros = 0, kBorder = 1, kReflection = 2, kBilinear = 0, kNearest = 1;
  const int64_t mode = node.attributes.integer("padding");
  const int64_t padding = mode == kZero ? kZeros : mode == kClampToEdge ? kBorder : kReflection;
  const bool last = node.attributes.integer("height") == 1;  // channels
  const at::Tensor images = widen(last ? inputs[0].movedim(-1, 1) : inputs[0]);
  const at::Tensor result =
      at::grid_sampler_2d(images, widen(inputs[1]), node.attributes.integer("nearest") ? kNearest : kBilinear, padding,
                          node.attributes.integer("align") != 0)
          .to(inputs[0].scalar_type());
  return {last ? result.movedim(1, -1) : result};
}

}  // namespace

void add_resizing(Operations& operations) {
  const Operations more = {
      {"resizeNearest", {resize, rules::resize}},
      {"resizeBilinear", {resize, rules::resize}},
      {"resizeNearestGradient", {resize_gradient, rules::resize_gradient}},
      {"resizeBilinearGradient", {resize_gradient, rules::resize_gradient}},
      {"sampleGrid", {sample_grid, rules::sample}},
  };
  operations.insert(more.begin(), more.end());
}

}  // namespace mpsforge::hostmps
