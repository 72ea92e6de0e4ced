// The evaluator against libtorch asked directly: random shapes, strides and types, from a seed. Prints each failure and
// how many cases ran.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "evaluator_cases.h"

using namespace mpsforge::hostmps::tests;
using namespace mpsforge::graph;

namespace {

std::vector<int64_t> random_shape(int64_t low = 1, int64_t high = 4) {
  std::vector<int64_t> shape;
  for (int64_t rank = pick(low, high); rank > 0; --rank) shape.push_back(pick(1, 5));
  return shape;
}

at::Tensor narrow_to(const at::Tensor& wide, at::ScalarType type) { return wide.to(type); }

void pointwise() {
  using Unary = std::pair<const char*, std::function<at::Tensor(const at::Tensor&)>>;
  const Unary unary[] = {
      {"exponent", [](const at::Tensor& t) { return at::exp(t); }},
      {"negative", [](const at::Tensor& t) { return -t; }},
      {"reLU", [](const at::Tensor& t) { return at::clamp_min(t, 0); }},
      {"sigmoid", [](const at::Tensor& t) { return 1 / (1 + at::exp(-t)); }},
      {"tanh", [](const at::Tensor& t) { return at::tanh(t); }},
      {"square", [](const at::Tensor& t) { return at::pow(t, 2); }},
      {"floor", [](const at::Tensor& t) { return at::floor(t); }},
      {"rint", [](const at::Tensor& t) { return at::round(t); }},
      {"erf", [](const at::Tensor& t) { return at::erf(t); }},
      {"reciprocal", [](const at::Tensor& t) { return 1 / t; }},
      {"identity", [](const at::Tensor& t) { return t; }},
  };
  for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const auto& [name, function] : unary) {
      const at::Tensor t = random_tensor(random_shape(0), type);
      expect(name, name, {t}, {}, {narrow_to(function(wide(t)), type)});
    }
  }
  expect("round", "round", {at::tensor({0.5, 1.5, -2.5, 2.4}).to(at::kFloat)}, {},
         {at::tensor({1.0, 2.0, -3.0, 2.0}).to(at::kFloat)});
  using Binary = std::pair<const char*, std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>>;
  const Binary binary[] = {
      {"addition", [](const at::Tensor& a, const at::Tensor& b) { return a + b; }},
      {"subtraction", [](const at::Tensor& a, const at::Tensor& b) { return a - b; }},
      {"multiplication", [](const at::Tensor& a, const at::Tensor& b) { return a * b; }},
      {"maximumWithNaNPropagation", [](const at::Tensor& a, const at::Tensor& b) { return at::maximum(a, b); }},
      {"lessThan", [](const at::Tensor& a, const at::Tensor& b) { return a < b; }},
      {"equal", [](const at::Tensor& a, const at::Tensor& b) { return a == b; }},
  };
  for (const auto& [type, scalar] : kTypes) {
    if (scalar == at::kBool || scalar == at::kComplexFloat) continue;
    for (const auto& [name, function] : binary) {
      const auto shape = random_shape();
      auto other = shape;
      other[pick(0, static_cast<int64_t>(other.size()) - 1)] = 1;  // broadcast
      const at::Tensor a = random_tensor(shape, scalar), b = random_tensor(other, scalar);
      const at::Tensor direct = function(wide(a), wide(b));
      expect(name, name, {a, b}, {}, {direct.scalar_type() == at::kBool ? direct : direct.to(scalar)});
    }
    const auto shape = random_shape();
    const at::Tensor mask = random_tensor(shape, at::kBool), a = random_tensor(shape, scalar),
                     b = random_tensor(shape, scalar);
    expect("select", "select", {mask, a, b}, {}, {at::where(mask, a, b)});
    for (const auto& [to, target] : kTypes) {
      if (target == at::kComplexFloat) continue;
      expect("cast", "cast", {a}, {{"type", static_cast<int64_t>(to)}}, {a.to(target)});
    }
  }
  const at::Tensor nan = at::full({3}, NAN), one = at::ones({3});
  expect("minimum of NaN", "minimum", {nan, one}, {}, {one});
  expect("minimum propagates", "minimumWithNaNPropagation", {nan, one}, {}, {nan});
  expect("integer division", "division", {at::tensor({-7, 7}).to(at::kInt), at::tensor({2, 2}).to(at::kInt)}, {},
         {at::tensor({-3, 3}).to(at::kInt)});
  const at::Tensor z = random_tensor({2, 3}, at::kComplexFloat), y = random_tensor({2, 3}, at::kComplexFloat);
  expect("complex", "multiplication", {z, y}, {}, {z * y});
  expect("conjugate", "conjugate", {z}, {}, {at::conj_physical(z)});
  expect("absolute", "absolute", {z}, {}, {at::abs(z)});
}

void shapes() {
  for (const auto& [type, scalar] : kTypes) {
    const at::Tensor t = random_tensor({2, 3, 4}, scalar);
    expect("reshape", "reshape", {t}, {{"shape", std::vector<int64_t>{4, -1}}}, {t.contiguous().view({4, 6})});
    expect("transpose", "transpose", {t}, {{"dimension", int64_t{0}}, {"other", int64_t{-1}}}, {t.permute({2, 1, 0})});
    expect("permute", "permute", {t}, {{"permutation", std::vector<int64_t>{1, 2, 0}}}, {t.permute({1, 2, 0})});
    expect("slice", "slice", {t}, {{"dimension", int64_t{2}}, {"start", int64_t{1}}, {"length", int64_t{2}}},
           {at::slice(t, 2, 1, 3)});
    const at::Tensor other = random_tensor({2, 5, 4}, scalar);
    expect("concat", "concat", {t, other}, {{"dimension", int64_t{1}}, {"interleave", int64_t{0}}},
           {at::cat({t, other}, 1)});
    expect("split", "split", {t}, {{"axis", int64_t{2}}, {"count", int64_t{2}}},
           {at::slice(t, 2, 0, 2), at::slice(t, 2, 2, 4)});
    expect("tile", "tile", {t}, {{"multiplier", std::vector<int64_t>{2, 1, 3}}}, {t.repeat({2, 1, 3})});
    expect("expandDims", "expandDims", {t}, {{"axes", std::vector<int64_t>{-1, 0}}}, {t.unsqueeze(0).unsqueeze(-1)});
    expect("broadcast", "broadcast", {at::slice(t, 1, 0, 1)}, {{"shape", std::vector<int64_t>{2, 3, 4}}},
           {at::slice(t, 1, 0, 1).expand({2, 3, 4})});
    expect("reverse", "reverse", {t}, {{"axes", std::vector<int64_t>{1}}}, {at::flip(t, {1})});
  }
  const at::Tensor t = random_tensor({1, 2, 4, 5}, at::kFloat);
  const std::vector<int64_t> left = {0, 0, 1, 2}, right = {0, 0, 2, 1};
  const auto with = [&](int64_t mode) {
    return Attributes{{"mode", mode}, {"left", left}, {"right", right}, {"value", 1.5}};
  };
  expect("pad constant", "pad", {t}, with(0), {at::constant_pad_nd(t, {2, 1, 1, 2}, 1.5)});
  expect("pad reflect", "pad", {t}, with(1), {at::reflection_pad2d(t, {2, 1, 1, 2})});
  expect("pad clamp", "pad", {t}, with(3), {at::replication_pad2d(t, {2, 1, 1, 2})});
  const at::Tensor g = random_tensor({1, 2, 7, 8}, at::kFloat);
  expect("pad gradient", "padGradient", {g, t}, with(1), {at::reflection_pad2d_backward(g, t, {2, 1, 1, 2})});
  expect("coordinate", "coordinate", {}, {{"axis", int64_t{-1}}, {"shape", std::vector<int64_t>{2, 3}}},
         {at::tensor({0, 1, 2, 0, 1, 2}).to(at::kInt).view({2, 3})});
  expect("constant", "constant", {},
         {{"value", -1e30}, {"type", static_cast<int64_t>(DataType::Int32)}, {"shape", std::vector<int64_t>{2}}},
         {at::full({2}, INT32_MIN, at::TensorOptions().dtype(at::kInt))});
  expect("constant of half", "constant", {},
         {{"value", -1e30}, {"type", static_cast<int64_t>(DataType::Float16)}, {"shape", std::vector<int64_t>{2}}},
         {at::full({2}, -std::numeric_limits<double>::infinity(), at::TensorOptions().dtype(at::kHalf))});
  const at::Tensor deep = random_tensor({1, 4, 2, 3}, at::kFloat);
  expect("depthToSpace", "depthToSpace2D", {deep},
         {{"width", int64_t{3}},
          {"height", int64_t{2}},
          {"depth", int64_t{1}},
          {"block", int64_t{2}},
          {"pixel_shuffle", int64_t{1}}},
         {at::pixel_shuffle(deep, 2)});
}

void reductions() {
  const std::vector<int64_t> axes = {0, 2};
  for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16, at::kInt, at::kLong}) {
    const at::Tensor t = random_tensor({3, 4, 5}, type);
    expect("sum", "reductionSum", {t}, {{"axes", axes}}, {at::sum(wide(t), axes, true).to(type)});
    expect("maximum", "reductionMaximum", {t}, {{"axes", axes}}, {at::amax(t, axes, true)});
    expect("minimum", "reductionMinimumPropagateNaN", {t}, {{"axes", axes}}, {at::amin(t, axes, true)});
    expect("argmax", "reductionArgMaximum", {t}, {{"axis", int64_t{1}}}, {at::argmax(t, 1, true).to(at::kInt)});
    const at::Tensor truth = at::gt(t, 0);
    expect("count", "reductionSum", {truth}, {{"axes", axes}}, {at::sum(truth, axes, true).to(at::kInt)});
    expect("no axes", "reductionSum", {t}, {{"axes", std::vector<int64_t>{}}}, {t});
    expect("cumulative", "cumulativeSum", {t},
           {{"axis", int64_t{1}}, {"exclusive", int64_t{0}}, {"reverse", int64_t{0}}},
           {at::cumsum(wide(t), 1).to(type)});
    if (!c10::isFloatingType(type)) continue;
    expect("mean", "mean", {t}, {{"axes", axes}}, {at::mean(wide(t), axes, true).to(type)});
    const at::Tensor distance = wide(t) - at::mean(wide(t), axes, true);
    expect("variance", "variance", {t}, {{"axes", axes}}, {at::mean(distance * distance, axes, true).to(type)});
    expect("softmax", "softMax", {t}, {{"axis", int64_t{-1}}}, {at::softmax(wide(t), -1).to(type)});
    const auto [values, indices] = at::sort(t, std::optional<bool>(true), -1, true);
    const Attributes order = {{"axis", int64_t{2}}, {"descending", int64_t{1}}};
    expect("sort", "sort", {t}, order, {values});
    expect("argSort", "argSort", {t}, order, {indices.to(at::kInt)});
  }
  const at::Tensor t = random_tensor({3, 4}, at::kBool);
  expect("or of integers", "reductionOr", {t.to(at::kInt)}, {{"axes", std::vector<int64_t>{1}}},
         {at::any(t, 1, true).to(at::kInt)});
  expect("and", "reductionAnd", {t}, {{"axes", std::vector<int64_t>{1}}}, {at::all(t, 1, true)});
  expect("maximum of NaN", "reductionMaximum", {at::tensor({1.0, NAN, 2.0}).to(at::kFloat)},
         {{"axes", std::vector<int64_t>{0}}}, {at::tensor({2.0}).to(at::kFloat)});
}

void matrices() {
  for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const at::Tensor a = random_tensor({2, 1, 3, 5}, type), b = random_tensor({4, 5, 2}, type);
    expect("matmul", "matrixMultiplication", {a, b}, {}, {at::matmul(wide(a), wide(b)).to(type)});
    const at::Tensor c = random_tensor({2}, type);
    expect("array matmul", "arrayMatrixMultiplication", {a, b, c}, {{"alpha", 1.0}, {"beta", 1.0}},
           {(at::matmul(wide(a), wide(b)) + wide(c)).to(type)});
    const at::Tensor q = random_tensor({2, 3, 4, 8}, type), k = random_tensor({2, 3, 6, 8}, type),
                     v = random_tensor({2, 3, 6, 8}, type);
    expect("attention", "scaledDotProductAttention", {q, k, v}, {{"scale", 1 / std::sqrt(8.0)}},
           {at::scaled_dot_product_attention(wide(q), wide(k), wide(v)).to(type)});
    const at::Tensor x = random_tensor({2, 3, 4, 4}, type), mean = at::zeros({1, 3, 1, 1}, x.options()) + 0.5,
                     variance = at::ones({1, 3, 1, 1}, x.options()) * 2, gamma = random_tensor({1, 3, 1, 1}, type),
                     beta = random_tensor({1, 3, 1, 1}, type);
    expect("normalization", "normalization", {x, mean, variance, gamma, beta},
           {{"epsilon", 1e-5}, {"gamma", int64_t{1}}, {"beta", int64_t{1}}},
           {at::batch_norm(wide(x), wide(gamma).flatten(), wide(beta).flatten(), wide(mean).flatten(),
                           wide(variance).flatten(), false, 0, 1e-5, false)
                .to(type)});
  }
  // The gradients of a normalization by the input's own statistics.
  const at::Tensor x = random_tensor({3, 4, 5}, at::kFloat).contiguous(), g = random_tensor({3, 4, 5}, at::kFloat);
  const at::Tensor gamma = random_tensor({1, 4, 1}, at::kFloat);
  const std::vector<int64_t> axes = {0, 2};
  const at::Tensor mean = at::mean(x, axes, true), variance = at::mean(at::pow(x - mean, 2), axes, true);
  const auto [dx, dgamma, dbeta] =
      at::native_batch_norm_backward(g.contiguous(), x, gamma.flatten(), {}, {}, mean.flatten(),
                                     at::rsqrt(variance + 1e-5).flatten(), true, 1e-5, {true, true, true});
  const Attributes about = {{"axes", axes}, {"epsilon", 1e-5}};
  expect("gamma gradient", "normalizationGammaGradient", {g, x, mean, variance}, about, {dgamma.view({1, 4, 1})});
  expect("beta gradient", "normalizationBetaGradient", {g, x}, {{"axes", axes}}, {dbeta.view({1, 4, 1})});
  expect("normalization gradient", "normalizationGradient",
         {g, x, mean, variance, gamma, dgamma.view({1, 4, 1}), dbeta.view({1, 4, 1})},
         {{"axes", axes},
          {"epsilon", 1e-5},
          {"gamma", int64_t{1}},
          {"gammaGradient", int64_t{1}},
          {"betaGradient", int64_t{1}}},
         {dx});
  const at::Tensor square = at::randn({4, 4}) + 4 * at::eye(4);
  expect("inverse", "inverse", {square}, {}, {at::inverse(square)});
  expect("band", "bandPart", {square}, {{"lower", int64_t{1}}, {"upper", int64_t{0}}},
         {at::triu(at::tril(square), -1)});
  const at::Tensor sides = at::randn({4, 2});
  expect(
      "triangular", "matrixSolveTriangular", {square, sides},
      {{"right", int64_t{0}}, {"upper", int64_t{1}}, {"transpose", int64_t{1}}, {"unit", int64_t{0}}, {"alpha", 2.0}},
      {at::matmul(at::inverse(at::triu(square).t()), 2 * sides)});
  const auto [factors, pivots] = at::linalg_lu_factor(square);
  expect("solution by LU", "matrixSolveLU", {factors, sides, at::sub(pivots, 1).to(at::kUInt32).unsqueeze(0)},
         {{"transpose", int64_t{0}}}, {at::matmul(at::inverse(square), sides)});
}

void convolutions() {
  for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const at::Tensor x = random_tensor({2, 4, 7, 6}, type), w = random_tensor({6, 2, 3, 2}, type);
    const std::vector<int64_t> strides = {2, 1}, padding = {1, 1}, dilations = {1, 2};
    const Attributes about = {
        {"strides", strides},  {"dilations", dilations}, {"padding", std::vector<int64_t>{1, 1, 1, 1}},
        {"style", int64_t{0}}, {"layout", int64_t{0}},   {"weights_layout", int64_t{2}},
        {"groups", int64_t{2}}};
    const at::Tensor y = at::conv2d(wide(x), wide(w), {}, strides, padding, dilations, 2);
    expect("convolution", "convolution", {x, w}, about, {y.to(type)});
    Attributes last = about;
    last.set("layout", int64_t{1});
    expect("convolution NHWC", "convolution", {x.permute({0, 2, 3, 1}), w}, last, {y.permute({0, 2, 3, 1}).to(type)});
    const at::Tensor g = random_tensor(y.sizes().vec(), type);
    const auto [dx, dw, db] = at::convolution_backward(wide(g), wide(x), wide(w), std::nullopt, strides, padding,
                                                       dilations, false, {0, 0}, 2, {true, true, false});
    Attributes data = about, weights = about;
    data.set("shape", x.sizes().vec());
    weights.set("shape", w.sizes().vec());
    expect("data gradient", "convolutionDataGradient", {g, w}, data, {dx.to(type)});
    // A source that no gradient reaches the end of, as ConvTranspose makes with output padding.
    const at::Tensor reached =
        std::get<0>(at::convolution_backward(wide(g), at::zeros({2, 4, 8, 6}, at::kDouble), wide(w), std::nullopt,
                                             strides, padding, dilations, false, {0, 0}, 2, {true, false, false}));
    data.set("shape", std::vector<int64_t>{2, 4, 12, 6});
    expect("data gradient of a larger source", "convolutionDataGradient", {g, w}, data,
           {at::constant_pad_nd(reached, {0, 0, 0, 4}, 0).to(type)});
    if (type == at::kFloat) expect("weights gradient", "convolutionWeightsGradient", {g, x}, weights, {dw.to(type)});
    const at::Tensor d = random_tensor({8, 1, 3, 3}, type);  // two results of each channel
    const at::Tensor m = d.view({4, 2, 3, 3}).transpose(0, 1);
    const Attributes depth = {{"strides", std::vector<int64_t>{1, 1, 2}},
                              {"dilations", std::vector<int64_t>{1, 1, 1}},
                              {"padding", std::vector<int64_t>{0, 0, 1, 1, 0, 0}},
                              {"style", int64_t{0}},
                              {"channel", int64_t{-3}}};
    expect("depthwise", "depthwiseConvolution", {x, m}, depth,
           {at::conv2d(wide(x), wide(d), {}, {1, 2}, std::vector<int64_t>{1, 0}, {1, 1}, 4).to(type)});
    expect("depthwise, as PyTorch passes the weights", "depthwiseConvolution", {x, d.transpose(0, 1)}, depth,
           {at::conv2d(wide(x), wide(d), {}, {1, 2}, std::vector<int64_t>{1, 0}, {1, 1}, 4).to(type)});
    const Attributes pool = pooling({3, 2}, {2, 2}, {1, 1, 0, 0});
    const auto [values, indices] = at::max_pool2d_with_indices(wide(x), {3, 2}, {2, 2}, {1, 0});
    expect("max pooling", "maxPooling2DReturnIndices", {x}, pool, {values.to(type), indices.to(at::kInt)});
    expect("average pooling", "avgPooling2D", {x}, pool,
           {at::avg_pool2d(wide(x), {3, 2}, {2, 2}, {1, 0}, false, false).to(type)});
    const at::Tensor pg = random_tensor(values.sizes().vec(), type);
    if (type == at::kFloat) {
      expect("max pooling gradient", "maxPooling2DGradient", {pg, x}, pool,
             {at::max_pool2d_with_indices_backward(
                 pg.contiguous(), x.contiguous(), {3, 2}, {2, 2}, {1, 0}, {1, 1}, false,
                 std::get<1>(at::max_pool2d_with_indices(x.contiguous(), {3, 2}, {2, 2}, {1, 0})))});
    }
  }
}

void indices() {
  for (const auto& [type, scalar] : kTypes) {
    const at::Tensor data = random_tensor({5, 3, 4}, scalar);
    const at::Tensor index = at::randint(0, 3, {2, 6}).to(at::kInt);
    expect("gather", "gather", {data, index}, {{"axis", int64_t{1}}, {"batch", int64_t{0}}},
           {at::index_select(data, 1, index.flatten()).view({5, 2, 6, 4})});
    const at::Tensor along = at::randint(0, 5, {2, 3, 4});
    expect("gatherAlongAxis", "gatherAlongAxis", {data, along}, {{"axis", int64_t{0}}}, {at::gather(data, 0, along)});
    const at::Tensor places = at::tensor({4, 0, 2}).to(at::kInt), updates = random_tensor({3, 3, 4}, scalar);
    expect("scatter set", "scatterInto", {data, updates, places}, {{"axis", int64_t{0}}, {"mode", int64_t{6}}},
           {at::index_copy(data, 0, places.to(at::kLong), updates)});
    if (scalar == at::kBool) continue;
    expect("scatter add", "scatterInto", {data, updates, places}, {{"axis", int64_t{0}}, {"mode", int64_t{0}}},
           {at::index_add(data, 0, places, updates)});
  }
  const at::Tensor data = at::randn({4, 3});
  const at::Tensor outside = at::tensor({-100, 1, 7}).to(at::kInt);
  at::Tensor read = at::zeros({3, 3});
  read[1] = data[1];
  expect("gather outside", "gather", {data, outside}, {{"axis", int64_t{0}}, {"batch", int64_t{0}}}, {read});
  // The class of each row, as nll_loss reads it.
  const at::Tensor classes = at::tensor({2, 0, 1, 2}).to(at::kLong);
  expect("gather by batch", "gather", {data, classes}, {{"axis", int64_t{1}}, {"batch", int64_t{1}}},
         {at::gather(data, 1, classes.view({4, 1})).flatten()});
  const at::Tensor updates = at::randn({3, 3});
  at::Tensor written = at::zeros({4, 3});
  written[1] = updates[1];
  expect("scatter outside", "scatter", {updates, outside},
         {{"shape", std::vector<int64_t>{4, 3}}, {"axis", int64_t{0}}, {"mode", int64_t{0}}}, {written});
  const at::Tensor nd = at::tensor({1, 1, 3}).to(at::kInt).view({3, 1});
  expect("scatterND", "scatterND", {updates, nd},
         {{"shape", std::vector<int64_t>{4, 3}}, {"batch", int64_t{0}}, {"mode", int64_t{0}}},
         {at::index_add(at::zeros({4, 3}), 0, nd.flatten(), updates)});
  expect("oneHot", "oneHot", {classes},
         {{"depth", int64_t{3}},
          {"axis", int64_t{-1}},
          {"type", static_cast<int64_t>(DataType::Float32)},
          {"on", 1.0},
          {"off", 0.0}},
         {at::one_hot(classes, 3).to(at::kFloat)});
}

Attributes random_attributes(int64_t distribution, DataType type, std::vector<int64_t> shape) {
  return {{"shape", shape},  {"type", static_cast<int64_t>(type)}, {"distribution", distribution}, {"min", -1.0},
          {"max", 3.0},      {"min_integer", int64_t{-5}},         {"max_integer", int64_t{5}},    {"mean", 2.0},
          {"deviation", 0.5}};
}

void random_numbers() {
  const at::Tensor state = at::tensor({1, 2, 3, 4, 5, 6, 7}).to(at::kInt);
  const auto draw = [&](int64_t distribution, DataType type, const at::Tensor& from) {
    return evaluate("random", {from}, random_attributes(distribution, type, {10001}),
                    {at::zeros({10001}, mpsforge::hostmps::scalar_type(type)), at::zeros({7}, at::kInt)});
  };
  const auto require = [](const char* name, bool holds) {
    ++cases;
    if (!holds) fail("random", name);
  };
  const auto uniform = draw(0, DataType::Float32, state);
  require("mean of a uniform distribution", std::abs(uniform[0].mean().item<double>() - 1) < 0.05);
  require("range of a uniform distribution",
          uniform[0].min().item<double>() >= -1 && uniform[0].max().item<double>() < 3);
  require("the same again", at::equal(uniform[0], draw(0, DataType::Float32, state)[0]));
  require("others from the state after", !at::equal(uniform[0], draw(0, DataType::Float32, uniform[1])[0]));
  require("counter after", uniform[1][1].item<int>() == 2 + 2501 && uniform[1][5].item<int>() == 6);
  const auto normal = draw(1, DataType::Float32, state)[0];
  require("mean and deviation of a normal distribution",
          std::abs(normal.mean().item<double>() - 2) < 0.03 && std::abs(normal.std().item<double>() - 0.5) < 0.02);
  for (const auto type : {DataType::Float16, DataType::BFloat16}) {
    require("bound of a narrow type", draw(0, type, state)[0].to(at::kFloat).max().item<double>() < 3);
  }
  const auto whole = draw(0, DataType::Int32, state)[0];
  require("range of integers", whole.min().item<int>() == -5 && whole.max().item<int>() == 5);
}

void errors() {
  const at::Tensor f = at::ones({2, 3}), i = at::ones({2, 3}, at::kInt);
  expect_error("no promotion", "addition: operands of different types, Float32[2, 3] and Int32[2, 3]",
               [&] { evaluate("addition", {f, i}, {}, {f}); });
  expect_error("unknown", "noSuchOperation is not implemented", [&] { evaluate("noSuchOperation", {f}, {}, {f}); });
  expect_error("shape", "do not broadcast", [&] { evaluate("addition", {f, at::ones({2, 4})}, {}, {f}); });
  expect_error("reshape", "cannot have the shape",
               [&] { evaluate("reshape", {f}, {{"shape", std::vector<int64_t>{4}}}, {f}); });
  expect_error("result shape", "its memory", [&] { evaluate("identity", {f}, {}, {at::ones({4, 2})}); });
  expect_error("not fed", "is not fed", [&] {
    const Input placeholder = {make_placeholder(DataType::Float32, Shape{2}), 0};
    plan({}, {{make_node("identity", {placeholder}, {}, 1), 0}});
  });
  expect_error("mode", "is not implemented", [&] {
    evaluate("scatterInto", {f, f, at::zeros({2}, at::kInt)}, {{"axis", int64_t{0}}, {"mode", int64_t{3}}}, {f});
  });
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  generator.seed(seed);
  at::manual_seed(seed);
  set_evaluator(&mpsforge::hostmps::aten_evaluator());
  for (int i = 0; i < 5; ++i) {
    pointwise();
    shapes();
    reductions();
    matrices();
    convolutions();
    indices();
    random_layers();
  }
  layers_by_hand();
  random_numbers();
  errors();
  std::printf("seed %llu: %d cases, %d failures\n", static_cast<unsigned long long>(seed), cases, failures);
  return failures == 0 ? 0 : 1;
}
