// Operators whose way to the MPS kernels is compiled into libtorch only when it is built with USE_MPS: there a branch
// inside the operator of all devices asks for the device. Here the dispatcher finds them under the MPS key.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <limits>
#include <tuple>

namespace {

// The branch in ATen/native/Convolution.cpp.
at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       at::SymIntArrayRef stride, at::SymIntArrayRef padding, at::SymIntArrayRef dilation,
                       bool transposed, at::SymIntArrayRef output_padding, c10::SymInt groups) {
  if (!transposed) return at::_mps_convolution_symint(input, weight, bias, padding, stride, dilation, groups);
  at::Tensor output =
      at::_mps_convolution_transpose_symint(input, weight, padding, output_padding, stride, dilation, groups);
  if (bias.has_value() && bias->defined()) output.add_(bias->reshape_symint({1, -1, 1, 1}));
  return output;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(const at::Tensor& gradient, const at::Tensor& input,
                                                                    const at::Tensor& weight, at::SymIntArrayRef stride,
                                                                    at::SymIntArrayRef padding,
                                                                    at::SymIntArrayRef dilation, bool transposed,
                                                                    at::SymIntArrayRef output_padding,
                                                                    c10::SymInt groups, std::array<bool, 3> mask) {
  at::Tensor input_gradient, weight_gradient, none;
  if (transposed) {
    std::tie(input_gradient, weight_gradient) = at::mps_convolution_transpose_backward_symint(
        input, gradient, weight, padding, output_padding, stride, dilation, groups, {mask[0], mask[1]});
  } else {
    std::tie(input_gradient, weight_gradient, none) = at::mps_convolution_backward_symint(
        input, gradient, weight, padding, stride, dilation, groups, {mask[0], mask[1], false});
  }
  at::Tensor bias_gradient;
  if (mask[2]) {
    std::vector<int64_t> others{0};
    for (int64_t dimension = 2; dimension < gradient.dim(); ++dimension) others.push_back(dimension);
    bias_gradient = gradient.sum(others);
  }
  return {input_gradient, weight_gradient, bias_gradient};
}

// A boolean mask says which scores stay, one of numbers is added to them. ATen makes the second of the first with
// at::where, which asks a DispatchStub.
std::optional<at::Tensor> added_mask(const std::optional<at::Tensor>& mask, const at::Tensor& query) {
  if (!mask.has_value() || mask->scalar_type() != at::kBool) return mask;
  return at::zeros(mask->sizes(), query.options())
      .masked_fill(mask->logical_not(), -std::numeric_limits<double>::infinity());
}

// The branch in ATen/native/transformers/attention.cpp. Before it, the operator asks a DispatchStub about the device,
// which a libtorch without MPS does not know.
at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const std::optional<at::Tensor>& given_mask, double dropout, bool causal,
                     std::optional<double> scale, bool grouped) {
  const std::optional<at::Tensor> mask = added_mask(given_mask, query);
  const bool gradients =
      at::GradMode::is_enabled() && (query.requires_grad() || key.requires_grad() || value.requires_grad() ||
                                     (mask.has_value() && mask->requires_grad()));
  if (dropout == 0.0 && !gradients && !grouped && query.is_contiguous() && key.is_contiguous() &&
      value.is_contiguous()) {
    return std::get<0>(
        at::_scaled_dot_product_attention_math_for_mps(query, key, value, mask, dropout, causal, {}, scale));
  }
  return std::get<0>(
      at::_scaled_dot_product_attention_math(query, key, value, mask, dropout, causal, {}, scale, grouped));
}

// As ATen/native/SoftMax.cpp has it, but for at::where, which asks a DispatchStub.
at::Tensor safe_softmax(const at::Tensor& input, int64_t dimension, std::optional<at::ScalarType> type) {
  const at::Tensor masked = input.eq(-std::numeric_limits<double>::infinity()).all(dimension, /*keepdim=*/true);
  return at::softmax(input, dimension, type).masked_fill(masked, 0);
}

// Above autograd, as the operator itself is: it is made of others.
TORCH_LIBRARY_IMPL(aten, AutogradMPS, m) { m.impl("scaled_dot_product_attention", attention); }

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("scaled_dot_product_attention", attention);
  m.impl("_safe_softmax", safe_softmax);
  m.impl("convolution_overrideable", convolution);
  m.impl("convolution_backward_overrideable", convolution_backward);
}

}  // namespace
