// Operations on one element at a time. MPSGraph promotes no types: the recorder has made sure that operands agree.
#include <stdexcept>

#include "evaluator.h"

namespace mpsforge::hostmps {
namespace {

template <at::Tensor (*function)(const at::Tensor&)>
Tensors unary(const Node&, const Tensors& inputs) {
  return {function(widen(inputs[0])).to(inputs[0].scalar_type())};
}

// The result is a truth value, or of another type.
template <at::Tensor (*function)(const at::Tensor&)>
Tensors predicate(const Node&, const Tensors& inputs) {
  return {function(inputs[0])};
}

template <at::Tensor (*function)(const at::Tensor&, const at::Tensor&)>
Tensors binary(const Node&, const Tensors& inputs) {
  return {function(inputs[0], inputs[1]).to(inputs[0].scalar_type())};
}

template <at::Tensor (*function)(const at::Tensor&, const at::Tensor&)>
Tensors comparison(const Node&, const Tensors& inputs) {
  return {function(inputs[0], inputs[1]).to(at::kBool)};
}

bool floating(const at::Tensor& tensor) { return tensor.is_floating_point() || tensor.is_complex(); }

at::Tensor identity(const at::Tensor& t) { return t; }
at::Tensor exponent10(const at::Tensor& t) { return at::pow(10.0, t); }
at::Tensor square(const at::Tensor& t) { return at::mul(t, t); }
at::Tensor whole(at::Tensor (*function)(const at::Tensor&), const at::Tensor& t) {
  return floating(t) ? function(t) : t;
}
at::Tensor ceil(const at::Tensor& t) { return whole(at::ceil, t); }
at::Tensor floor(const at::Tensor& t) { return whole(at::floor, t); }
at::Tensor truncate(const at::Tensor& t) { return whole(at::trunc, t); }
at::Tensor round_even(const at::Tensor& t) { return whole(at::round, t); }
// Halves go away from zero.
at::Tensor round_away(const at::Tensor& t) {
  return whole([](const at::Tensor& x) { return at::mul(at::sign(x), at::floor(at::add(at::abs(x), 0.5))); }, t);
}
at::Tensor absolute(const at::Tensor& t) { return t.scalar_type() == at::kBool ? t : at::abs(t); }
at::Tensor conjugate(const at::Tensor& t) { return at::conj(t).resolve_conj(); }
at::Tensor real_part(const at::Tensor& t) { return t.is_complex() ? at::real(t).clone() : t; }
at::Tensor imaginary_part(const at::Tensor& t) { return t.is_complex() ? at::imag(t).clone() : at::zeros_like(t); }

at::Tensor add(const at::Tensor& a, const at::Tensor& b) { return at::add(a, b); }
// Of truth values it is of one bit: PyTorch's tril takes a band from a mask.
at::Tensor subtract(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == at::kBool ? at::logical_xor(a, b) : at::sub(a, b);
}
at::Tensor quotient(const at::Tensor& a, const at::Tensor& b) {
  return floating(a) ? at::div(a, b) : at::div(a, b, "trunc");
}
at::Tensor divide_no_nan(const at::Tensor& a, const at::Tensor& b) {
  return at::where(b == 0, at::zeros_like(b), quotient(a, b));
}
at::Tensor modulo(const at::Tensor& a, const at::Tensor& b) { return at::fmod(a, b); }
at::Tensor floor_modulo(const at::Tensor& a, const at::Tensor& b) { return at::remainder(a, b); }
at::Tensor power(const at::Tensor& a, const at::Tensor& b) { return at::pow(widen(a), widen(b)); }
// A number wins over a NaN.
at::Tensor minimum(const at::Tensor& a, const at::Tensor& b) {
  return floating(a) ? at::fmin(a, b) : at::minimum(a, b);
}
at::Tensor maximum(const at::Tensor& a, const at::Tensor& b) {
  return floating(a) ? at::fmax(a, b) : at::maximum(a, b);
}
at::Tensor logical_nand(const at::Tensor& a, const at::Tensor& b) { return at::logical_not(at::logical_and(a, b)); }
at::Tensor logical_nor(const at::Tensor& a, const at::Tensor& b) { return at::logical_not(at::logical_or(a, b)); }
at::Tensor logical_xnor(const at::Tensor& a, const at::Tensor& b) { return at::logical_not(at::logical_xor(a, b)); }

Tensors select(const Node&, const Tensors& inputs) {
  return {at::where(inputs[0].to(at::kBool), inputs[1], inputs[2])};
}

Tensors clamp(const Node&, const Tensors& inputs) {
  // As separate steps: at::clamp wants the limits in the shape of the input.
  return {at::minimum(at::maximum(inputs[0], inputs[1]), inputs[2])};
}

Tensors complex(const Node&, const Tensors& inputs) { return {at::complex(inputs[0], inputs[1])}; }

Tensors cast(const Node& node, const Tensors& inputs) {
  const auto type = scalar_type(static_cast<DataType>(node.attributes.integer("type")));
  const bool drops_imaginary = inputs[0].is_complex() && !c10::isComplexType(type);
  return {(drops_imaginary ? real_part(inputs[0]) : inputs[0]).to(type)};
}

Tensors reinterpret(const Node& node, const Tensors& inputs) {
  return {inputs[0].contiguous().view(scalar_type(static_cast<DataType>(node.attributes.integer("type"))))};
}

Tensors leaky_relu(const Node& node, const Tensors& inputs) {
  return {at::leaky_relu(inputs[0], node.attributes.real("alpha"))};
}

Tensors leaky_relu_with_alpha(const Node&, const Tensors& inputs) {
  return {at::where(inputs[0] > 0, inputs[0], at::mul(inputs[0], inputs[1]))};
}

Tensors relu_gradient(const Node&, const Tensors& inputs) {
  return {at::where(inputs[1] > 0, inputs[0], at::zeros_like(inputs[0]))};
}

Tensors sigmoid_gradient(const Node&, const Tensors& inputs) {
  const at::Tensor value = at::sigmoid(widen(inputs[1]));
  return {at::mul(widen(inputs[0]), at::mul(value, at::rsub(value, 1))).to(inputs[0].scalar_type())};
}

Tensors soft_max(const Node& node, const Tensors& inputs) {
  return {at::softmax(widen(inputs[0]), node.attributes.integer("axis")).to(inputs[0].scalar_type())};
}

}  // namespace

void add_pointwise_operations(Operations& operations) {
  const Operations more = {
      {"identity", {unary<identity>, rules::same}},
      {"exponent", {unary<at::exp>, rules::same}},
      {"exponentBase2", {unary<at::exp2>, rules::same}},
      {"exponentBase10", {unary<exponent10>, rules::same}},
      {"logarithm", {unary<at::log>, rules::same}},
      {"logarithmBase2", {unary<at::log2>, rules::same}},
      {"logarithmBase10", {unary<at::log10>, rules::same}},
      {"square", {unary<square>, rules::same}},
      {"squareRoot", {unary<at::sqrt>, rules::same}},
      {"reciprocalSquareRoot", {unary<at::rsqrt>, rules::same}},
      {"reciprocal", {unary<at::reciprocal>, rules::same}},
      {"absolute", {predicate<absolute>, rules::real_part}},
      {"negative", {unary<at::neg>, rules::same}},
      {"sign", {unary<at::sgn>, rules::same}},
      {"signbit", {predicate<at::signbit>, rules::truth}},
      {"ceil", {unary<ceil>, rules::same}},
      {"floor", {unary<floor>, rules::same}},
      {"round", {unary<round_away>, rules::same}},
      {"rint", {unary<round_even>, rules::same}},
      {"truncate", {unary<truncate>, rules::same}},
      {"sin", {unary<at::sin>, rules::same}},
      {"cos", {unary<at::cos>, rules::same}},
      {"tan", {unary<at::tan>, rules::same}},
      {"sinh", {unary<at::sinh>, rules::same}},
      {"cosh", {unary<at::cosh>, rules::same}},
      {"tanh", {unary<at::tanh>, rules::same}},
      {"asin", {unary<at::asin>, rules::same}},
      {"acos", {unary<at::acos>, rules::same}},
      {"atan", {unary<at::atan>, rules::same}},
      {"asinh", {unary<at::asinh>, rules::same}},
      {"acosh", {unary<at::acosh>, rules::same}},
      {"atanh", {unary<at::atanh>, rules::same}},
      {"erf", {unary<at::erf>, rules::same}},
      {"reLU", {unary<at::relu>, rules::same}},
      {"sigmoid", {unary<at::sigmoid>, rules::same}},
      {"bitwiseNOT", {unary<at::bitwise_not>, rules::same}},
      {"conjugate", {unary<conjugate>, rules::same}},
      {"not", {predicate<at::logical_not>, rules::truth}},
      {"isInfinite", {predicate<at::isinf>, rules::truth}},
      {"isFinite", {predicate<at::isfinite>, rules::truth}},
      {"isNaN", {predicate<at::isnan>, rules::truth}},
      {"realPart", {predicate<real_part>, rules::real_part}},
      {"imaginaryPart", {predicate<imaginary_part>, rules::real_part}},
      {"addition", {binary<add>, rules::binary}},
      {"subtraction", {binary<subtract>, rules::binary}},
      {"multiplication", {binary<at::mul>, rules::binary}},
      {"division", {binary<quotient>, rules::binary}},
      {"divisionNoNaN", {binary<divide_no_nan>, rules::binary}},
      {"modulo", {binary<modulo>, rules::binary}},
      {"floorModulo", {binary<floor_modulo>, rules::binary}},
      {"power", {binary<power>, rules::binary}},
      {"minimum", {binary<minimum>, rules::binary}},
      {"maximum", {binary<maximum>, rules::binary}},
      {"minimumWithNaNPropagation", {binary<at::minimum>, rules::binary}},
      {"maximumWithNaNPropagation", {binary<at::maximum>, rules::binary}},
      {"atan2", {binary<at::atan2>, rules::binary}},
      {"bitwiseAND", {binary<at::bitwise_and>, rules::binary}},
      {"bitwiseOR", {binary<at::bitwise_or>, rules::binary}},
      {"bitwiseXOR", {binary<at::bitwise_xor>, rules::binary}},
      {"bitwiseLeftShift", {binary<at::bitwise_left_shift>, rules::binary}},
      {"bitwiseRightShift", {binary<at::bitwise_right_shift>, rules::binary}},
      {"equal", {comparison<at::eq>, rules::comparison}},
      {"notEqual", {comparison<at::ne>, rules::comparison}},
      {"lessThan", {comparison<at::lt>, rules::comparison}},
      {"lessThanOrEqualTo", {comparison<at::le>, rules::comparison}},
      {"greaterThan", {comparison<at::gt>, rules::comparison}},
      {"greaterThanOrEqualTo", {comparison<at::ge>, rules::comparison}},
      {"logicalAND", {comparison<at::logical_and>, rules::logical}},
      {"logicalOR", {comparison<at::logical_or>, rules::logical}},
      {"logicalXOR", {comparison<at::logical_xor>, rules::logical}},
      {"logicalNAND", {comparison<logical_nand>, rules::logical}},
      {"logicalNOR", {comparison<logical_nor>, rules::logical}},
      {"logicalXNOR", {comparison<logical_xnor>, rules::logical}},
      {"select", {select, rules::select}},
      {"clamp", {clamp, rules::clamp}},
      {"complex", {complex, rules::complex}},
      {"cast", {cast, rules::cast}},
      {"reinterpretCast", {reinterpret, rules::cast}},
      {"leakyReLU", {leaky_relu, rules::same}},
      {"leakyReLUWithAlpha", {leaky_relu_with_alpha, rules::same}},
      {"reLUGradient", {relu_gradient, rules::binary}},
      {"sigmoidGradient", {sigmoid_gradient, rules::binary}},
      {"softMax", {soft_max, rules::same}},
  };
  operations.insert(more.begin(), more.end());
}

}  // namespace mpsforge::hostmps
