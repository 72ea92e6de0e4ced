// Matrix products, attention, decompositions, normalization and Fourier transforms.
#include <stdexcept>

#include "evaluator.h"

namespace mpsforge::hostmps {
namespace {

// A vector is a row on the left and a column on the right.
at::Tensor product(const at::Tensor& left, const at::Tensor& right) {
  return at::matmul(widen(left.dim() == 1 ? left.unsqueeze(0) : left),
                    widen(right.dim() == 1 ? right.unsqueeze(1) : right));
}

Tensors matrix_multiplication(const Node&, const Tensors& inputs) {
  return {product(inputs[0], inputs[1]).to(inputs[0].scalar_type())};
}

// alpha * (first x second) + beta * third, of MPSNDArrayMatrixMultiplication.
Tensors array_matrix_multiplication(const Node& node, const Tensors& inputs) {
  at::Tensor result = product(inputs[0], inputs[1]);
  if (node.attributes.real("alpha") != 1) result = at::mul(result, node.attributes.real("alpha"));
  if (inputs.size() > 2) result = at::add(result, widen(inputs[2]), node.attributes.real("beta"));
  return {result.to(inputs[0].scalar_type())};
}

// The mask is added to the products before the softmax.
Tensors attention(const Node& node, const Tensors& inputs) {
  const at::Tensor query = widen(inputs[0]), key = widen(inputs[1]), value = widen(inputs[2]);
  at::Tensor weights = at::mul(at::matmul(query, key.transpose(-1, -2)), node.attributes.real("scale"));
  if (inputs.size() > 3) {
    if (!inputs[3].is_floating_point()) throw std::runtime_error("a mask that is not of a floating point type");
    weights = at::add(weights, widen(inputs[3]));
  }
  return {at::matmul(at::softmax(weights, -1), value).to(inputs[0].scalar_type())};
}

// Below 0 keeps all diagonals of that side.
at::Tensor band(at::Tensor tensor, int64_t lower, int64_t upper) {
  if (upper >= 0) tensor = at::tril(tensor, upper);
  if (lower >= 0) tensor = at::triu(tensor, -lower);
  return tensor;
}

Tensors band_part(const Node& node, const Tensors& inputs) {
  return {band(inputs[0], node.attributes.integer("lower"), node.attributes.integer("upper"))};
}

Tensors band_part_by_tensors(const Node&, const Tensors& inputs) {
  return {band(inputs[0], numbers_of(inputs[1]).at(0), numbers_of(inputs[2]).at(0))};
}

Tensors inverse(const Node&, const Tensors& inputs) {
  return {std::get<0>(at::linalg_inv_ex(widen(inputs[0]))).to(inputs[0].scalar_type())};
}

// MPSMatrixDecompositionLU counts pivots from 0, LAPACK from 1. The status: 0, or -2 of a singular matrix.
Tensors decompose_lu(const Node& node, const Tensors& inputs) {
  const auto [factors, pivots, info] = at::linalg_lu_factor_ex(inputs[0]);
  Tensors results = {factors, at::sub(pivots, 1).to(at::kUInt32).unsqueeze(0)};
  if (node.results.size() > 2) results.push_back(at::mul(info > 0, -2).to(at::kInt).reshape({1}));
  return results;
}

// Factors, right-hand sides and pivots, which count from 0.
Tensors solve_lu(const Node& node, const Tensors& inputs) {
  const at::Tensor pivots = at::add(inputs[2].flatten().to(at::kInt), 1);
  return {at::linalg_lu_solve(inputs[0], pivots, inputs[1], true, node.attributes.integer("transpose") != 0)};
}

Tensors solve_triangular(const Node& node, const Tensors& inputs) {
  const bool transpose = node.attributes.integer("transpose") != 0;
  const bool upper = (node.attributes.integer("upper") != 0) != transpose;
  const bool left = !node.attributes.integer("right");
  const at::Tensor source = transpose ? inputs[0].transpose(-1, -2) : inputs[0];
  const at::Tensor sides = at::mul(inputs[1], node.attributes.real("alpha"));
  return {at::linalg_solve_triangular(source, sides, upper, left, node.attributes.integer("unit") != 0)};
}

// gamma * (x - mean) / sqrt(variance + epsilon) + beta
Tensors normalization(const Node& node, const Tensors& inputs) {
  const at::Tensor scale = at::rsqrt(at::add(widen(inputs[2]), node.attributes.real("epsilon")));
  at::Tensor result = at::mul(at::sub(widen(inputs[0]), widen(inputs[1])), scale);
  size_t next = 3;
  if (node.attributes.integer("gamma")) result = at::mul(result, widen(inputs[next++]));
  if (node.attributes.integer("beta")) result = at::add(result, widen(inputs[next++]));
  return {result.to(inputs[0].scalar_type())};
}

at::Tensor gamma_gradient(const Node& node, const at::Tensor& gradient, const at::Tensor& normal) {
  return at::sum(at::mul(gradient, normal), node.attributes.integers("axes"), true);
}

at::Tensor beta_gradient(const Node& node, const at::Tensor& gradient) {
  return at::sum(gradient, node.attributes.integers("axes"), true);
}

// Inputs: gradient, source, mean, variance.
at::Tensor normal_of(const Node& node, const Tensors& inputs) {
  const at::Tensor scale = at::rsqrt(at::add(widen(inputs[3]), node.attributes.real("epsilon")));
  return at::mul(at::sub(widen(inputs[1]), widen(inputs[2])), scale);
}

Tensors normalization_gamma_gradient(const Node& node, const Tensors& inputs) {
  return {gamma_gradient(node, widen(inputs[0]), normal_of(node, inputs)).to(inputs[1].scalar_type())};
}

Tensors normalization_beta_gradient(const Node& node, const Tensors& inputs) {
  return {beta_gradient(node, widen(inputs[0])).to(inputs[1].scalar_type())};
}

Tensors normalization_gradient(const Node& node, const Tensors& inputs) {
  const at::Tensor gradient = widen(inputs[0]), normal = normal_of(node, inputs);
  at::Tensor scale = at::rsqrt(at::add(widen(inputs[3]), node.attributes.real("epsilon")));
  size_t next = 4;
  if (node.attributes.integer("gamma")) scale = at::mul(scale, widen(inputs[next++]));
  const at::Tensor gamma =
      node.attributes.integer("gammaGradient") ? widen(inputs[next++]) : gamma_gradient(node, gradient, normal);
  const at::Tensor beta =
      node.attributes.integer("betaGradient") ? widen(inputs[next++]) : beta_gradient(node, gradient);
  int64_t count = 1;
  for (const int64_t axis : node.attributes.integers("axes")) count *= inputs[1].size(axis);
  const at::Tensor common = at::div(at::add(beta, at::mul(normal, gamma)), static_cast<double>(count));
  return {at::mul(scale, at::sub(gradient, common)).to(inputs[1].scalar_type())};
}

// Whole numbers of libtorch's: 0 does not scale, 1 by the root of the length, 2 by the length.
int64_t scaling(const Node& node) {
  switch (node.attributes.integer("scaling")) {
    case 0:
      return 0;
    case 1:
      return 2;
    case 2:
      return 1;
    default:
      throw std::runtime_error("scaling mode");
  }
}

std::vector<int64_t> axes_of(const Node& node, const at::Tensor& tensor) {
  std::vector<int64_t> axes = node.attributes.integers("axes");
  for (int64_t& axis : axes) axis += axis < 0 ? tensor.dim() : 0;
  return axes;
}

Tensors fourier(const Node& node, const Tensors& inputs) {
  if (!inputs[0].is_complex()) throw std::runtime_error("an input that is not complex");
  return {at::_fft_c2c(inputs[0], axes_of(node, inputs[0]), scaling(node), !node.attributes.integer("inverse"))};
}

Tensors fourier_of_real(const Node& node, const Tensors& inputs) {
  if (node.attributes.integer("inverse")) throw std::runtime_error("an inverse transform is not implemented");
  return {at::_fft_r2c(inputs[0], axes_of(node, inputs[0]), scaling(node), true)};
}

// An even length unless the descriptor says odd. The inverse's sign is that of a forward transform's conjugate.
Tensors fourier_to_real(const Node& node, const Tensors& inputs) {
  if (!node.attributes.integer("inverse")) throw std::runtime_error("a forward transform is not implemented");
  const std::vector<int64_t> axes = axes_of(node, inputs[0]);
  const int64_t half = inputs[0].size(axes.back());
  const int64_t length = node.attributes.integer("odd") ? 2 * half - 1 : 2 * (half - 1);
  return {at::_fft_c2r(inputs[0], axes, scaling(node), length)};
}

}  // namespace

void add_matrix_operations(Operations& operations) {
  const Operations more = {
      {"matrixMultiplication", {matrix_multiplication, rules::matrix_multiplication}},
      {"arrayMatrixMultiplication", {array_matrix_multiplication, rules::array_matrix_multiplication}},
      {"scaledDotProductAttention", {attention, rules::attention}},
      {"bandPart", {band_part, rules::same}},
      {"bandPartByTensors", {band_part_by_tensors, rules::same}},
      {"inverse", {inverse, rules::same}},
      {"matrixDecompositionLU", {decompose_lu, rules::decomposition}},
      {"matrixSolveLU", {solve_lu, rules::matrix_solution}},
      {"matrixSolveTriangular", {solve_triangular, rules::matrix_solution}},
      {"normalization", {normalization, rules::normalization}},
      {"normalizationGammaGradient", {normalization_gamma_gradient, rules::gamma_gradient}},
      {"normalizationBetaGradient", {normalization_beta_gradient, rules::gamma_gradient}},
      {"normalizationGradient", {normalization_gradient, rules::gradient_of_second}},
      {"fastFourierTransform", {fourier, rules::same}},
      {"realToHermiteanFFT", {fourier_of_real, rules::to_complex}},
      {"HermiteanToRealFFT", {fourier_to_real, rules::to_real}},
  };
  operations.insert(more.begin(), more.end());
}

}  // namespace mpsforge::hostmps
