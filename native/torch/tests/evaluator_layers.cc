// Resizing, sampling, recurrent layers, pooling, padding, convolutions of other sizes, dropout, and arithmetic on truth
// values.
#include <cmath>

#include "evaluator_cases.h"

namespace mpsforge::hostmps::tests {
namespace {

Attributes resizing(int64_t height, int64_t center, int64_t align) {
  return {{"height", height}, {"center", center}, {"align", align}};
}

Attributes rounding(Attributes attributes, int64_t mode) {
  attributes.set("rounding", mode);
  return attributes;
}

at::Tensor row(std::vector<double> numbers) {
  return at::tensor(numbers).to(at::kFloat).reshape({1, 1, 1, static_cast<int64_t>(numbers.size())});
}

// Numbers by hand: four pixels become two, and the positions are what each rule says.
void resizing_by_hand() {
  constexpr int64_t kPreferCeil = 0, kPreferFloor = 1, kCeil = 2, kFloor = 3, kToEven = 4, kToOdd = 5;
  const at::Tensor images = row({10, 20, 30, 40}), size = at::tensor({1, 2}).to(at::kInt);
  expect("indices scaled", "resizeBilinear", {images, size}, resizing(2, 0, 0), {row({10, 30})});   // at 0, 2
  expect("centred", "resizeBilinear", {images, size}, resizing(2, 1, 0), {row({15, 35})});          // at 0.5, 2.5
  expect("aligned corners", "resizeBilinear", {images, size}, resizing(2, 1, 1), {row({10, 40})});  // at 0, 3
  const at::Tensor scale_offset = at::tensor({1.0, 0.5, 0.0, -0.625}).to(at::kFloat);
  expect("scale and offset", "resizeBilinear", {images, size, scale_offset}, resizing(2, 0, 0),
         {row({22.5, 40})});  // at 1.25, 3.25, which is beyond the last one
  const std::pair<int64_t, at::Tensor> modes[] = {{kPreferCeil, row({20, 40})}, {kPreferFloor, row({10, 30})},
                                                  {kCeil, row({20, 40})},       {kFloor, row({10, 30})},
                                                  {kToEven, row({10, 30})},     {kToOdd, row({20, 40})}};
  for (const auto& [mode, expected] : modes) {  // at 0.5, 2.5
    expect("rounding mode " + std::to_string(mode), "resizeNearest", {images, size}, rounding(resizing(2, 1, 0), mode),
           {expected});
  }
  const at::Tensor whole = images.to(at::kByte);
  expect("nearest of whole numbers", "resizeNearest", {whole, size}, rounding(resizing(2, 0, 0), kFloor),
         {row({10, 30}).to(at::kByte)});
  // An infinity is not a neighbour's affair.
  expect("nearest of infinity", "resizeNearest", {row({INFINITY, 1}), at::tensor({1, 4}).to(at::kInt)},
         rounding(resizing(2, 0, 0), kFloor), {row({INFINITY, INFINITY, 1, 1})});
  // Each gradient goes to the pixels that its value came from, by their parts.
  expect("gradient", "resizeBilinearGradient", {row({1, 4}), images}, resizing(2, 1, 0), {row({0.5, 0.5, 2, 2})});
  expect("gradient of the nearest", "resizeNearestGradient", {row({1, 2, 4, 8}), row({0, 0})},
         rounding(resizing(2, 0, 0), kFloor), {row({3, 12})});
  expect("bilinear of whole numbers", "resizeBilinear", {row({1, 2, 4, 9}).to(at::kByte), size}, resizing(2, 1, 0),
         {row({2, 6}).to(at::kByte)});  // 1.5 and 6.5 to the even ones
}

// Libtorch's own resizing and sampling, in both layouts.
void resizing_and_sampling() {
  const int64_t height = pick(1, 9), width = pick(1, 9);
  const at::Tensor size = at::tensor({height, width}).to(at::kInt);
  for (const auto type : {at::kFloat, at::kHalf}) {
    const at::Tensor x = random_tensor({2, 3, pick(1, 6), pick(1, 6)}, type);
    const at::Tensor last = x.permute({0, 2, 3, 1});
    const at::Tensor wanted = at::upsample_bilinear2d(wide(x), {height, width}, false).to(type);
    expect("bilinear", "resizeBilinear", {x, size}, resizing(2, 1, 0), {wanted});
    expect("bilinear NHWC", "resizeBilinear", {last, size}, resizing(1, 1, 0), {wanted.permute({0, 2, 3, 1})});
    expect("bilinear, corners", "resizeBilinear", {x, size}, resizing(2, 1, 1),
           {at::upsample_bilinear2d(wide(x), {height, width}, true).to(type)});
    const at::Tensor g = random_tensor({2, 3, height, width}, type);
    expect("bilinear gradient", "resizeBilinearGradient", {g, x}, resizing(2, 1, 0),
           {at::upsample_bilinear2d_backward(wide(g), {height, width}, x.sizes(), false).to(type)});
    expect("nearest", "resizeNearest", {x, size}, rounding(resizing(2, 0, 0), 3),
           {at::upsample_nearest2d(wide(x), {height, width}).to(type)});
  }
  const at::Tensor x = random_tensor({2, 3, 5, 4}, at::kFloat);
  const at::Tensor grid = random_tensor({2, 3, 2, 2}, at::kFloat);
  for (const int64_t align : {0, 1}) {
    // MPSGraphPaddingMode: zero, the edge, and Reflect or Symmetric.
    for (const auto& [mode, padding] : {std::pair<int64_t, int64_t>{4, 0}, {3, 1}, {align ? 1 : 2, 2}}) {
      for (const int64_t nearest : {0, 1}) {
        const Attributes about = {{"height", int64_t{2}}, {"align", align}, {"padding", mode}, {"nearest", nearest}};
        expect("sampleGrid", "sampleGrid", {x, grid}, about,
               {at::grid_sampler_2d(x, grid, nearest, padding, align != 0)});
      }
    }
  }
  // x before y: the pixel at the right in the upper row.
  const at::Tensor corner = at::tensor({1.0, -1.0}).to(at::kFloat).reshape({1, 1, 1, 2});
  expect("coordinates", "sampleGrid", {at::tensor({1.0, 2.0, 3.0, 4.0}).to(at::kFloat).reshape({1, 2, 2, 1}), corner},
         {{"height", int64_t{1}}, {"align", int64_t{1}}, {"padding", int64_t{4}}, {"nearest", int64_t{1}}},
         {at::full({1, 1, 1, 1}, 2.0, at::kFloat)});
}

Attributes recurrence(bool both, bool reverse, bool forget_last, bool biased) {
  return {{"bidirectional", int64_t{both}},
          {"reverse", int64_t{reverse}},
          {"forget_last", int64_t{forget_last}},
          {"cell", int64_t{1}},
          {"training", int64_t{1}},
          {"bias", int64_t{biased}}};
}

// One step of one unit by hand: all sums are 0 but that of the candidate, which is the source.
void lstm_by_hand() {
  const at::Tensor one = at::ones({1, 1, 1}), zero = at::zeros({1, 1}), cell = at::full({1, 1}, 3.0, at::kFloat);
  const at::Tensor recurrent = at::zeros({4, 1});
  const double z = std::tanh(1.0), c = 0.5 * 3 + 0.5 * z, h = 0.5 * std::tanh(c);
  for (const bool forget_last : {false, true}) {
    at::Tensor weights = at::zeros({4, 1});
    weights[forget_last ? 1 : 2] = 1;
    at::Tensor gates = at::full({1, 1, 4}, 0.5, at::kFloat);
    gates[0][0][forget_last ? 1 : 2] = z;
    expect("LSTM by hand", "LSTM", {one, recurrent, weights, zero, cell}, recurrence(false, false, forget_last, false),
           {at::full({1, 1, 1}, h, at::kFloat), at::full({1, 1, 1}, c, at::kFloat), gates});
  }
}

// Libtorch's layer, whose gates are in the same order, and its gradients by its autograd.
void lstm_against_libtorch() {
  const int64_t steps = pick(1, 4), batch = pick(1, 3), length = pick(1, 4), hidden = pick(1, 4);
  for (const bool both : {false, true}) {
    for (const bool biased : {false, true}) {
      const int64_t directions = both ? 2 : 1;
      const auto leaf = [](std::vector<int64_t> shape) { return at::randn(shape).requires_grad_(true); };
      const at::Tensor x = leaf({steps, batch, length}), h = leaf({directions, batch, hidden}),
                       c = leaf({directions, batch, hidden});
      std::vector<at::Tensor> parameters, recurrent, weights, bias;
      for (int64_t i = 0; i < directions; ++i) {
        weights.push_back(leaf({4 * hidden, length}));
        recurrent.push_back(leaf({4 * hidden, hidden}));
        parameters.insert(parameters.end(), {weights.back(), recurrent.back()});
        if (!biased) continue;
        bias.push_back(leaf({4 * hidden}));
        parameters.insert(parameters.end(), {bias.back(), at::zeros({4 * hidden})});
      }
      const auto [y, hy, cy] = at::lstm(x, {h, c}, parameters, biased, 1, 0.0, true, both, false);
      const auto flat = [&](const at::Tensor& state) {
        return state.detach().transpose(0, 1).reshape({batch, directions * hidden});
      };
      const auto plain = [](std::vector<at::Tensor> tensors, bool stacked) {
        for (at::Tensor& tensor : tensors) tensor = tensor.detach();
        return tensors.size() == 1 ? tensors[0] : stacked ? at::stack(tensors) : at::cat(tensors);
      };
      std::vector<at::Tensor> inputs = {x.detach(), plain(recurrent, true), plain(weights, false), flat(h), flat(c)};
      const Attributes about = recurrence(both, false, false, biased);
      if (biased) inputs.push_back(plain(bias, false));
      const std::string name = std::string("LSTM") + (both ? ", both directions" : "") + (biased ? ", biased" : "");
      ++cases;
      const at::Tensor states = at::zeros({steps, batch, directions * hidden});
      const auto made =
          evaluate("LSTM", inputs, about, {states, states, at::zeros({steps, batch, 4 * directions * hidden})});
      if (!at::allclose(made[0], y.detach(), 1e-4, 1e-4)) fail(name, "the states differ");
      // The last step's cell is the first direction's last one and the second one's first.
      const at::Tensor last = both ? at::stack({made[1][-1].chunk(2, -1)[0], made[1][0].chunk(2, -1)[1]})
                                   : made[1].slice(0, steps - 1, steps);
      if (!at::allclose(last, cy.detach(), 1e-4, 1e-4)) fail(name, "the cells differ");

      const at::Tensor gy = at::randn(y.sizes()), gh = at::randn(hy.sizes()), gc = at::randn(cy.sizes());
      at::add(at::add(at::sum(y * gy), at::sum(hy * gh)), at::sum(cy * gc)).backward();
      const auto gradients = [&](const std::vector<at::Tensor>& leaves, bool stacked) {
        std::vector<at::Tensor> found;
        for (const at::Tensor& tensor : leaves) found.push_back(tensor.grad());
        return plain(found, stacked);
      };
      std::vector<at::Tensor> expected = {x.grad(), gradients(recurrent, true), gradients(weights, false)};
      if (biased) expected.push_back(gradients(bias, false).reshape({1, 1, -1}));
      expected.insert(expected.end(), {flat(h.grad()), flat(c.grad())});
      inputs.resize(5);
      inputs.insert(inputs.end(), {gy, made[2], made[1], flat(gh), flat(gc)});
      expect(name + ": gradients", "LSTMGradients", inputs, about, expected);
    }
  }
  const at::Tensor x = at::ones({1, 1, 2});
  expect_error("weights that do not fit", "recurrent weight Float32[3, 1]", [&] {
    evaluate("LSTM", {x, at::ones({3, 1}), at::ones({4, 2}), at::ones({1, 1}), at::ones({1, 1})},
             recurrence(false, false, false, false), {x, x, x});
  });
}

// What is rounded up or padded counts as part of the kernel only where padding does.
void averages_by_hand() {
  const auto pool = [](int64_t ceil, int64_t include, int64_t right) {
    return pooling({1, 2}, {1, 2}, {0, 0, 0, right}, ceil, include);
  };
  const at::Tensor images = row({2, 4, 6});
  expect("rounded up", "avgPooling2D", {images}, pool(1, 0, 0), {row({3, 6})});
  expect("rounded up, padding counts", "avgPooling2D", {images}, pool(1, 1, 0), {row({3, 3})});
  expect("padded on one side", "avgPooling2D", {images}, pool(0, 0, 1), {row({3, 6})});
  expect("padded on one side, padding counts", "avgPooling2D", {images}, pool(0, 1, 1), {row({3, 3})});
  expect("two planes without a batch", "avgPooling2D", {at::arange(12, at::kFloat).reshape({2, 2, 3})}, pool(0, 0, 1),
         {at::tensor({0.5, 2.0, 3.5, 5.0, 6.5, 8.0, 9.5, 11.0}).to(at::kFloat).reshape({2, 2, 2})});
  expect("gradient of the padded", "avgPooling2DGradient", {row({2, 4}), images}, pool(0, 0, 1), {row({1, 1, 4})});
}

// As PyTorch's tril takes them.
void truth_values_by_hand() {
  const at::Tensor a = at::tensor({1, 1, 0}).to(at::kBool), b = at::tensor({1, 0, 0}).to(at::kBool);
  expect("subtraction of truth values", "subtraction", {a, b}, {}, {at::tensor({0, 1, 0}).to(at::kBool)});
}

// Padding that differs by side is what no element is below, for whole numbers too.
void maxima_by_hand() {
  const Attributes pool = pooling({1, 2}, {1, 2}, {0, 0, 0, 1});
  for (const auto type : {at::kFloat, at::kLong, at::kInt}) {
    expect("maximum beside padding", "maxPooling2D", {row({-2, -4, -6}).to(type)}, pool, {row({-2, -6}).to(type)});
  }
  const Attributes left = pooling({1, 2}, {1, 2}, {0, 0, 1, 0});
  const at::Tensor none = at::zeros({1, 1, 1, 3}, at::kByte);
  expect("a zero beside padding", "maxPooling2DReturnIndices", {none}, left,
         {none.slice(-1, 0, 2), at::tensor({0, 1}).to(at::kInt).reshape({1, 1, 1, 2})});
}

// The graph log(1 + exp(x)) in a half type: rounded between its operations, it would be 0.
void half_types_between_operations() {
  ++cases;
  const at::Tensor x = at::full({1}, -8.9375, at::kHalf), result = at::zeros({1}, at::kHalf);
  const Input feed = {make_placeholder(DataType::Float16, Shape{1}), 0};
  const Input one = {
      make_node("constant", {},
                {{"type", static_cast<int64_t>(DataType::Float16)}, {"shape", Shape{1}}, {"value", 1.0}}, 1),
      0};
  const Input exponent = {make_node("exponent", {feed}, {}, 1), 0};
  const Input sum = {make_node("addition", {one, exponent}, {}, 1), 0};
  const Input logarithm = {make_node("logarithm", {sum}, {}, 1), 0};
  aten_evaluator().run(plan({feed}, {logarithm}), {view_of(x)}, {view_of(result)});
  if (std::abs(result.item<double>() - 1.3136e-4) > 1e-6) fail("half types", "rounded between operations");
  const Input cast = {make_node("cast", {sum}, {{"type", static_cast<int64_t>(DataType::Float16)}}, 1), 0};
  const Input rounded = {make_node("logarithm", {cast}, {}, 1), 0};
  aten_evaluator().run(plan({feed}, {rounded}), {view_of(x)}, {view_of(result)});
  if (result.item<double>() != 0) fail("half types", "a cast does not round");
}

// Memory of fewer windows gets the first ones; the gradient of a source is that of as much as the memory holds.
void memory_of_other_sizes() {
  const std::vector<int64_t> strides = {1, 1}, padding = {1, 0}, dilations = {2, 1}, none = {0, 0};
  const at::Tensor x = at::randn({2, 4, 5, 6}), w = at::randn({6, 2, 3, 2}), m = at::randn({4, 1, 3, 2});
  const auto about = [&](int64_t groups) {
    return Attributes{{"strides", strides},  {"dilations", dilations}, {"padding", std::vector<int64_t>{1, 1, 0, 0}},
                      {"style", int64_t{0}}, {"layout", int64_t{0}},   {"weights_layout", int64_t{2}},
                      {"groups", groups}};
  };
  const Attributes depth = {{"strides", std::vector<int64_t>{1, 1, 1}},
                            {"dilations", std::vector<int64_t>{1, 2, 1}},
                            {"padding", std::vector<int64_t>{0, 0, 1, 1, 0, 0}},
                            {"style", int64_t{0}},
                            {"channel", int64_t{-3}}};
  const auto part = [](const at::Tensor& whole, int64_t rows, int64_t columns) {
    return at::slice(at::slice(whole, 2, 0, rows), 3, 0, columns);
  };
  const at::Tensor y = at::conv2d(x, w, {}, strides, padding, dilations, 2);  // [2, 6, 3, 5]
  const at::Tensor z = at::conv2d(x, m, {}, strides, padding, dilations, 4);
  const std::pair<int64_t, int64_t> all[] = {{2, 5}, {3, 5}, {1, 4}};
  for (const auto& [rows, columns] : all) {
    const std::string of = " of " + std::to_string(rows) + " rows";
    expect("convolution" + of, "convolution", {x, w}, about(2), {part(y, rows, columns)});
    expect("depthwise" + of, "depthwiseConvolution", {x, m.transpose(0, 1)}, depth, {part(z, rows, columns)});
    Attributes last = about(2);
    last.set("layout", int64_t{1});
    expect("convolution NHWC" + of, "convolution", {x.permute({0, 2, 3, 1}), w}, last,
           {part(y, rows, columns).permute({0, 2, 3, 1})});
  }
  expect_error("more places than there are", "its memory [2, 6, 4, 5]",
               [&] { evaluate("convolution", {x, w}, about(2), {at::zeros({2, 6, 4, 5})}); });
  const Attributes pool = pooling({2, 2}, {2, 2}, {0, 4, 0, 0});
  const auto [values, places] = at::max_pool2d_with_indices(x, {2, 2});  // of four rows, where padding adds two
  expect("fewer windows", "maxPooling2DReturnIndices", {x}, pool, {values, places.to(at::kInt)});
  const at::Tensor gv = at::randn(values.sizes());
  expect("gradient of fewer windows", "maxPooling2DGradient", {gv, x}, pool,
         {at::max_pool2d_with_indices_backward(gv, x, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false, places)});
  expect("gradient of fewer averages", "avgPooling2DGradient", {gv, x}, pool,
         {at::avg_pool2d_backward(gv, x, {2, 2}, {2, 2}, {0, 0}, false, true, std::nullopt)});
  // Recorded with the source's shape: the gradient of what the memory holds.
  const at::Tensor g = at::randn({2, 6, 3, 5}), gz = at::randn({2, 4, 3, 5});
  Attributes data = about(2), data_depth = depth;
  data.set("shape", x.sizes().vec());
  data_depth.set("shape", x.sizes().vec());
  const std::vector<int64_t> row_more = {1, 0};  // into the padding; beyond the last column is nothing
  const auto reached = [&](const at::Tensor& gradient, const at::Tensor& weights, int64_t groups) {
    const at::Tensor whole =
        at::convolution(gradient, weights, {}, strides, padding, dilations, true, row_more, groups);
    return at::constant_pad_nd(whole, {0, 1}, 0);
  };
  const std::pair<int64_t, int64_t> sizes[] = {{4, 5}, {5, 6}, {6, 7}};
  for (const auto& [rows, columns] : sizes) {
    const std::string of = " of " + std::to_string(rows) + " rows";
    expect("data gradient" + of, "convolutionDataGradient", {g, w}, data, {part(reached(g, w, 2), rows, columns)});
    expect("depthwise data gradient" + of, "depthwiseConvolutionDataGradient", {gz, m.transpose(0, 1)}, data_depth,
           {part(reached(gz, m, 4), rows, columns)});
  }
  // Of the weights there is one size; the gradient may have fewer places than the source gives.
  const at::Tensor few = part(g, 2, 4);
  Attributes weights = about(2);
  weights.set("shape", w.sizes().vec());
  const at::Tensor expected =
      std::get<1>(at::convolution_backward(at::constant_pad_nd(few, {0, 1, 0, 1}, 0), x, w, std::nullopt, strides,
                                           padding, dilations, false, none, 2, {false, true, false}));
  expect("weights gradient of fewer places", "convolutionWeightsGradient", {few, x}, weights, {expected});
}

// As PyTorch asks for it: 0 for a negative side, and the result is the gradient of what the forward pass read.
void padding_gradients() {
  const at::Tensor t = at::randn({1, 2, 5, 6});
  const std::vector<int64_t> left = {0, 0, 0, 2}, right = {0, 0, 1, 0};  // -1 and 1, 2 and -3
  const at::Tensor g = at::randn({1, 2, 5, 5});
  const auto read = [](const at::Tensor& whole) { return at::slice(at::slice(whole, 2, 1), 3, 0, 3); };
  const auto with = [&](int64_t mode) { return Attributes{{"mode", mode}, {"left", left}, {"right", right}}; };
  expect("reflected, one side negative", "padGradient", {g, t}, with(1),
         {read(at::reflection_pad2d_backward(g, t, {2, -3, -1, 1}))});
  expect("clamped, one side negative", "padGradient", {g, t}, with(3),
         {read(at::replication_pad2d_backward(g, t, {2, -3, -1, 1}))});
  const at::Tensor narrow = at::randn({1, 2, 5, 2});
  expect_error("no element to reflect", "padding of 2 and 0 in dimension 3 of Float32[1, 2, 5, 2]",
               [&] { evaluate("padGradient", {narrow, t}, with(1), {t}); });
}

void dropouts() {
  const at::Tensor ones = at::ones({10001});
  const at::Tensor left = evaluate("dropout", {ones}, {{"rate", 0.25}}, {ones})[0];
  ++cases;
  const double gone = at::sum(left == 0).item<double>() / 10001;
  if (std::abs(gone - 0.25) > 0.02) fail("dropout", "the rate is " + std::to_string(gone));
  if (!at::all(at::logical_or(left == 0, at::isclose(left, at::full({}, 4.0 / 3)))).item<bool>()) {
    fail("dropout", "what stays is not scaled by 1 / (1 - rate)");
  }
  if (at::equal(left, evaluate("dropout", {ones}, {{"rate", 0.25}}, {ones})[0])) fail("dropout", "the same again");
}

}  // namespace

void layers_by_hand() {
  resizing_by_hand();
  lstm_by_hand();
  averages_by_hand();
  truth_values_by_hand();
  maxima_by_hand();
  half_types_between_operations();
  memory_of_other_sizes();
  padding_gradients();
  dropouts();
}

void random_layers() {
  resizing_and_sampling();
  lstm_against_libtorch();
}

}  // namespace mpsforge::hostmps::tests
