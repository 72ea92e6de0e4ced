// Each operation against the CPU, over random shapes, strides and types.
#include "scenarios.h"

namespace mpsforge::hostmps {
namespace {

// Random choices of one test: all from one seed.
class Chance {
 public:
  explicit Chance(Run& run) : generator_(run.generator(0)) {}

  int64_t number(int64_t low, int64_t high) {  // both may come
    return at::randint(low, high + 1, {}, generator_, at::kLong).item<int64_t>();
  }
  bool toss() { return number(0, 1) == 1; }
  template <class Value>
  Value one_of(const std::vector<Value>& values) {
    return values[static_cast<size_t>(number(0, static_cast<int64_t>(values.size()) - 1))];
  }
  std::vector<int64_t> sizes(int64_t least_dimensions, int64_t most_dimensions) {
    std::vector<int64_t> sizes(static_cast<size_t>(number(least_dimensions, most_dimensions)));
    for (int64_t& size : sizes) size = number(1, 7);
    return sizes;
  }
  // Values are small, so that no integer overflows, and away from zero where the operation divides.
  at::Tensor values(at::IntArrayRef sizes, at::ScalarType type) {
    if (type == at::kBool) return at::randint(0, 2, sizes, generator_, at::kLong).to(type);
    if (!at::isFloatingType(type)) return at::randint(1, 20, sizes, generator_, at::kLong).to(type);
    return at::randn(sizes, generator_).to(type);
  }
  at::Tensor values(at::IntArrayRef sizes) { return values(sizes, at::kFloat); }
  // The same tensor seen through other strides: transposed, sliced with a step, or expanded.
  std::pair<at::Tensor, at::Tensor> views(const at::Tensor& here, const at::Tensor& there) {
    if (here.dim() == 0) return {here, there};
    const int64_t dimension = number(0, here.dim() - 1);
    switch (number(0, 4)) {
      case 1:
        return {here.transpose(0, dimension), there.transpose(0, dimension)};
      case 2:
        return {here.slice(dimension, 0, here.size(dimension), 2), there.slice(dimension, 0, there.size(dimension), 2)};
      case 3:
        if (here.size(dimension) > 1) {
          return {here.slice(dimension, 1, here.size(dimension)), there.slice(dimension, 1, there.size(dimension))};
        }
        return {here, there};
      case 4: {
        auto sizes = here.sizes().vec();
        sizes.insert(sizes.begin(), 3);
        return {here.unsqueeze(0).expand(sizes), there.unsqueeze(0).expand(sizes)};
      }
      default:
        return {here, there};
    }
  }
  at::Generator& generator() { return generator_; }

 private:
  at::Generator generator_;
};

using Function = std::function<at::Tensor(Inputs)>;

const std::vector<at::ScalarType> kFloats = {at::kFloat, at::kHalf};
const std::vector<at::ScalarType> kNumbers = {at::kFloat, at::kHalf, at::kInt, at::kLong, at::kShort};
const std::vector<at::ScalarType> kAll = {at::kFloat, at::kHalf, at::kInt, at::kLong, at::kShort, at::kByte, at::kBool};

// Halves are computed in full on the CPU: its own halves round in other places.
at::Tensor on_cpu(const Function& function, Inputs inputs) {
  std::vector<at::Tensor> full;
  bool half = false;
  for (const at::Tensor& input : inputs) {
    half = half || input.scalar_type() == at::kHalf;
    full.push_back(input.scalar_type() == at::kHalf ? input.to(at::kFloat) : input);
  }
  const at::Tensor result = function(full);
  return half && result.scalar_type() == at::kFloat ? result.to(at::kHalf) : result;
}

// Runs the function on views of the inputs, on mps and here.
void compare(Run& run, Chance& chance, const char* what, Inputs inputs, const Function& function, bool with_views) {
  std::vector<at::Tensor> here, there;
  for (const at::Tensor& input : inputs) {
    auto [a, b] = with_views ? chance.views(input, input.to(at::kMPS)) : std::pair{input, input.to(at::kMPS)};
    here.push_back(a);
    there.push_back(b);
  }
  run.expect_close(what, function(there), on_cpu(function, here));
}

void repeat(Run& run, const std::function<void(Chance&)>& body) {
  Chance chance(run);
  for (int i = 0; i < run.iterations; ++i) body(chance);
}

// full, zeros and fill_, views included.
OPERATION(op_fill) {
  repeat(run, [&](Chance& chance) {
    const auto sizes = chance.sizes(0, 4);
    const auto type = chance.one_of(kAll);
    const int64_t value = type == at::kBool ? chance.number(0, 1) : chance.number(0, 100);
    const auto here = at::TensorOptions().dtype(type);
    run.expect_close("full", at::full(sizes, value, here.device(at::kMPS)), at::full(sizes, value, here));
    run.expect_close("zeros", at::zeros(sizes, here.device(at::kMPS)), at::zeros(sizes, here));
    at::Tensor filled = at::zeros(sizes, here.device(at::kMPS)), expected = at::zeros(sizes, here);
    auto [a, b] = chance.views(expected, filled);
    if (a.dim() == expected.dim()) {  // not expanded: nobody may write to that
      a.fill_(value);
      b.fill_(value);
    }
    run.expect_close("fill_ of a view", filled, expected);
  });
}

// Copies both ways, views included.
OPERATION(op_copy) {
  repeat(run, [&](Chance& chance) {
    const auto type = chance.one_of(kAll);
    const at::Tensor here = chance.values(chance.sizes(0, 4), type);
    const at::Tensor there = here.to(at::kMPS);
    run.expect_close("there and back", there, here);
    auto [view, view_there] = chance.views(here, there);
    run.expect_close("a view back", view_there, view);
    run.expect_close("a view there", view.to(at::kMPS), view);
    run.expect_close("contiguous", view_there.contiguous(), view.contiguous());
    at::Tensor target = at::zeros(here.sizes(), here.options()), target_there = target.to(at::kMPS);
    const int64_t dimension = here.dim() > 0 ? chance.number(0, here.dim() - 1) : 0;
    if (here.dim() > 0 && here.size(dimension) > 1) {
      target.slice(dimension, 0, here.size(dimension), 2).copy_(here.slice(dimension, 0, here.size(dimension), 2));
      target_there.slice(dimension, 0, here.size(dimension), 2)
          .copy_(there.slice(dimension, 0, here.size(dimension), 2));
      run.expect_close("into a view", target_there, target);
    }
  });
}

// Casts between types, on mps and on the way.
OPERATION(op_cast) {
  repeat(run, [&](Chance& chance) {
    const auto from = chance.one_of(kAll), to = chance.one_of(kAll);
    at::Tensor here = chance.values(chance.sizes(0, 3), from);
    if (at::isFloatingType(from)) here = here.abs();  // a negative number as an unsigned one is not defined
    const at::Tensor there = here.to(at::kMPS);
    run.expect_close("cast on mps", there.to(to), here.to(to));
    run.expect_close("cast on the way back", there.to(at::TensorOptions().device(at::kCPU).dtype(to)), here.to(to));
    run.expect_close("cast on the way there", here.to(at::TensorOptions().device(at::kMPS).dtype(to)), here.to(to));
  });
}

// Pointwise operations of two tensors.
OPERATION(op_binary) {
  struct Operation {
    const char* name;
    Function function;
    bool numbers;  // for integers, too
  };
  static const std::vector<Operation> operations = {
      {"add", [](Inputs in) { return at::add(in[0], in[1]); }, true},
      {"add with alpha", [](Inputs in) { return at::add(in[0], in[1], 3); }, true},
      {"sub", [](Inputs in) { return at::sub(in[0], in[1]); }, true},
      {"mul", [](Inputs in) { return at::mul(in[0], in[1]); }, true},
      {"div", [](Inputs in) { return at::div(in[0], in[1]); }, false},
      {"add a number", [](Inputs in) { return at::add(in[0], 2); }, true},
      {"maximum", [](Inputs in) { return at::maximum(in[0], in[1]); }, true},
      {"eq", [](Inputs in) { return at::eq(in[0], in[1]); }, true},
      {"lt", [](Inputs in) { return at::lt(in[0], in[1]); }, true},
  };
  repeat(run, [&](Chance& chance) {
    const Operation& operation =
        operations[static_cast<size_t>(chance.number(0, static_cast<int64_t>(operations.size()) - 1))];
    const auto type = chance.one_of(operation.numbers ? kNumbers : kFloats);
    auto sizes = chance.sizes(1, 4);
    const at::Tensor a = chance.values(sizes, type);
    if (chance.toss())
      sizes[static_cast<size_t>(chance.number(0, static_cast<int64_t>(sizes.size()) - 1))] = 1;  // broadcast
    at::Tensor b = chance.values(sizes, type);
    if (operation.name == std::string("div")) b = b.abs() + 1;
    if (chance.toss()) {
      const std::vector<at::Tensor> pair = {a, b};
      compare(run, chance, operation.name, pair, operation.function, false);
    } else {
      const at::Tensor there_a = a.to(at::kMPS), there_b = b.to(at::kMPS);
      run.expect_close(operation.name,
                       operation.function({there_a.transpose(0, -1).contiguous().transpose(0, -1), there_b}),
                       on_cpu(operation.function, {a, b}));
    }
  });
}

// Pointwise operations of one tensor.
OPERATION(op_unary) {
  static const std::vector<std::pair<const char*, Function>> operations = {
      {"relu", [](Inputs in) { return at::relu(in[0]); }},
      {"neg", [](Inputs in) { return at::neg(in[0]); }},
      {"exp", [](Inputs in) { return at::exp(in[0]); }},
      {"sqrt", [](Inputs in) { return at::sqrt(at::abs(in[0])); }},
      {"tanh", [](Inputs in) { return at::tanh(in[0]); }},
      {"sigmoid", [](Inputs in) { return at::sigmoid(in[0]); }},
      {"gelu", [](Inputs in) { return at::gelu(in[0]); }},
      {"silu", [](Inputs in) { return at::silu(in[0]); }},
      {"abs", [](Inputs in) { return at::abs(in[0]); }},
      {"reciprocal", [](Inputs in) { return at::reciprocal(at::add(at::abs(in[0]), 1)); }},
  };
  repeat(run, [&](Chance& chance) {
    const auto& [name, function] =
        operations[static_cast<size_t>(chance.number(0, static_cast<int64_t>(operations.size()) - 1))];
    compare(run, chance, name, {chance.values(chance.sizes(1, 4), chance.one_of(kFloats))}, function, true);
  });
}

// Sums, means and maxima.
OPERATION(op_reduction) {
  repeat(run, [&](Chance& chance) {
    const at::Tensor input = chance.values(chance.sizes(1, 4));
    const int64_t dimension = chance.number(0, input.dim() - 1);
    const bool keep = chance.toss();
    compare(run, chance, "sum", {input}, [&](Inputs in) { return at::sum(in[0], {dimension}, keep); }, false);
    compare(run, chance, "mean", {input}, [&](Inputs in) { return at::mean(in[0], {dimension}, keep); }, false);
    compare(run, chance, "sum of all", {input}, [](Inputs in) { return at::sum(in[0]); }, true);
    compare(run, chance, "amax", {input}, [&](Inputs in) { return at::amax(in[0], {dimension}, keep); }, false);
  });
}

OPERATION(op_product) {
  repeat(run, [&](Chance& chance) {
    const int64_t b = chance.number(1, 4), n = chance.number(1, 9), k = chance.number(1, 9), m = chance.number(1, 9);
    const auto type = chance.one_of(kFloats);
    const bool left = chance.toss(), right = chance.toss();
    const auto matrix = [&](std::vector<int64_t> sizes, bool turned) {
      if (turned) std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
      return chance.values(sizes, type);
    };
    const auto seen = [](const at::Tensor& tensor, bool turned) { return turned ? tensor.transpose(-1, -2) : tensor; };
    compare(
        run, chance, "mm", {matrix({n, k}, left), matrix({k, m}, right)},
        [&](Inputs in) { return at::mm(seen(in[0], left), seen(in[1], right)); }, false);
    compare(
        run, chance, "bmm", {matrix({b, n, k}, left), matrix({b, k, m}, right)},
        [&](Inputs in) { return at::bmm(seen(in[0], left), seen(in[1], right)); }, false);
    compare(
        run, chance, "addmm", {chance.values({m}, type), matrix({n, k}, left), matrix({k, m}, right)},
        [&](Inputs in) { return at::addmm(in[0], seen(in[1], left), seen(in[2], right), 0.5, 2.0); }, false);
  });
}

// Linear, with and without bias, in both paths.
OPERATION(op_linear) {
  repeat(run, [&](Chance& chance) {
    auto sizes = chance.sizes(1, 3);
    const int64_t inputs = sizes.back(), outputs = chance.number(1, 9);
    const auto type = chance.one_of(kFloats);
    const at::Tensor input = chance.values(sizes, type), weight = chance.values({outputs, inputs}, type);
    if (chance.toss()) {
      compare(
          run, chance, "linear", {input, weight, chance.values({outputs}, type)},
          [](Inputs in) { return at::linear(in[0], in[1], in[2]); }, false);
    } else {
      compare(
          run, chance, "linear without bias", {input, weight}, [](Inputs in) { return at::linear(in[0], in[1]); },
          false);
    }
    // A weight that is no contiguous matrix takes the other path.
    compare(
        run, chance, "linear, turned weight", {input, chance.values({inputs, outputs}, type)},
        [](Inputs in) { return at::linear(in[0], in[1].t()); }, false);
  });
}

OPERATION(op_softmax) {
  repeat(run, [&](Chance& chance) {
    const at::Tensor input = chance.values(chance.sizes(1, 4));
    const int64_t dimension = chance.number(-1, input.dim() - 1);
    compare(run, chance, "softmax", {input}, [&](Inputs in) { return at::softmax(in[0], dimension); }, false);
    compare(run, chance, "log_softmax", {input}, [&](Inputs in) { return at::log_softmax(in[0], dimension); }, false);
  });
}

// Neighbours in a row are at least 2 apart. Of nearly equal values PyTorch 2.9.1's kernel gives little but rounding, on
// a Mac, too: its variance is the mean of the squares less the square of the mean, and below 1e-6 it counts as 0
// (layer_norm_single_row; the same steps in NumPy give the same bits, in 20,000 rows each of 1 to 4 normal numbers, up
// to 1.3e-2 from the exact result).
OPERATION(op_layer_norm) {
  repeat(run, [&](Chance& chance) {
    const auto sizes = chance.sizes(2, 4);
    const std::vector<int64_t> normal(sizes.end() - chance.number(1, 2), sizes.end());
    const at::Tensor apart =
        at::arange(c10::multiply_integers(normal)).remainder(2).mul(4).sub(2).to(at::kFloat).reshape(normal);
    const at::Tensor input = at::add(at::tanh(chance.values(sizes)), apart);
    if (chance.toss()) {
      compare(
          run, chance, "layer_norm", {input, chance.values(normal), chance.values(normal)},
          [&](Inputs in) { return at::layer_norm(in[0], normal, in[1], in[2]); }, false);
    } else {
      compare(
          run, chance, "layer_norm without weights", {input}, [&](Inputs in) { return at::layer_norm(in[0], normal); },
          false);
    }
  });
}

OPERATION(op_conv1d) {
  repeat(run, [&](Chance& chance) {
    const int64_t groups = chance.number(1, 2), inputs = groups * chance.number(1, 3),
                  outputs = groups * chance.number(1, 3);
    const int64_t kernel = chance.number(1, 3), stride = chance.number(1, 2), padding = chance.number(0, 2),
                  dilation = chance.number(1, 2);
    compare(
        run, chance, "conv1d",
        {chance.values({chance.number(1, 3), inputs, chance.number(6, 12)}),
         chance.values({outputs, inputs / groups, kernel}), chance.values({outputs})},
        [&](Inputs in) { return at::conv1d(in[0], in[1], in[2], stride, padding, dilation, groups); }, false);
  });
}

// No other device has the same numbers: the seed gives the same ones again, they differ from call to call, and their
// mean and deviation are those of the distribution.
OPERATION(op_random) {
  const auto options = at::TensorOptions().device(at::kMPS).dtype(at::kFloat);
  at::Generator generator = hooks().getDefaultGenerator(0);
  repeat(run, [&](Chance& chance) {
    const uint64_t seed = static_cast<uint64_t>(chance.number(0, 1 << 30));
    generator.set_current_seed(seed);
    const at::Tensor first = at::randn({40, 50}, options).cpu(), second = at::randn({40, 50}, options).cpu();
    generator.set_current_seed(seed);
    run.expect(at::equal(at::randn({40, 50}, options).cpu(), first), "randn: the same seed gives other numbers");
    run.expect(!at::equal(first, second), "randn: the next numbers are the same ones");
    run.expect(std::abs(first.mean().item<float>()) < 0.15, "randn: the mean is not 0");
    run.expect(std::abs(first.std().item<float>() - 1) < 0.15, "randn: the deviation is not 1");
    const at::Tensor uniform = at::rand({40, 50}, options).cpu();
    run.expect(uniform.min().item<float>() >= 0 && uniform.max().item<float>() < 1, "rand: a number out of its range");
    run.expect(std::abs(uniform.mean().item<float>() - 0.5) < 0.1, "rand: the mean is not 0.5");
  });
}

OPERATION(op_attention) {
  repeat(run, [&](Chance& chance) {
    const int64_t b = chance.number(1, 2), heads = chance.number(1, 3), n = chance.number(1, 6),
                  m = chance.number(1, 6), e = chance.number(1, 8);
    const bool causal = chance.toss();
    const std::vector<at::Tensor> inputs = {chance.values({b, heads, n, e}), chance.values({b, heads, m, e}),
                                            chance.values({b, heads, m, e})};
    compare(
        run, chance, "scaled_dot_product_attention", inputs,
        [&](Inputs in) { return at::scaled_dot_product_attention(in[0], in[1], in[2], {}, 0.0, causal); }, false);
    const at::Tensor mask = at::logical_or(chance.values({n, m}) > 0, at::arange(m) == 0);  // in each row one at least
    compare(
        run, chance, "scaled_dot_product_attention, a boolean mask", inputs,
        [&](Inputs in) {
          return at::scaled_dot_product_attention(in[0], in[1], in[2], mask.to(in[0].device()), 0.0, false);
        },
        false);
    const at::Tensor expected = at::scaled_dot_product_attention(inputs[0], inputs[1], inputs[2], {}, 0.0, causal);
    run.expect_close("the kernel for mps",
                     std::get<0>(at::_scaled_dot_product_attention_math_for_mps(
                         inputs[0].to(at::kMPS), inputs[1].to(at::kMPS), inputs[2].to(at::kMPS), {}, 0.0, causal)),
                     expected);
  });
}

// The function's gradients on mps and here, for weights that differ from element to element.
void compare_gradients(Run& run, const char* what, Inputs inputs, const Function& function) {
  const auto gradients = [&](at::Device device) {
    std::vector<at::Tensor> leaves, found;
    for (const at::Tensor& input : inputs) leaves.push_back(input.to(device).detach().requires_grad_());
    const at::Tensor result = function(leaves);
    at::sum(result * at::linspace(0.5, 1.5, result.numel()).reshape(result.sizes()).to(device)).backward();
    for (const at::Tensor& leaf : leaves) found.push_back(leaf.grad());
    return found;
  };
  const auto there = gradients(at::kMPS), here = gradients(at::kCPU);
  for (size_t i = 0; i < here.size(); ++i) run.expect_close(what, there[i], here[i]);
}

// Gradients of linear, conv_transpose2d and padding.
OPERATION(op_gradient) {
  repeat(run, [&](Chance& chance) {
    const int64_t n = chance.number(1, 5), inputs = chance.number(1, 6), outputs = chance.number(1, 6);
    // Of a small network, as a training step has them.
    compare_gradients(run, "gradient of linear and relu",
                      {chance.values({n, inputs}), chance.values({outputs, inputs}), chance.values({outputs})},
                      [](Inputs in) { return at::relu(at::linear(in[0], in[1], in[2])).pow(2); });
    // PyTorch has one graph for both output paddings. With stride 1 the gradient has more places than the input.
    const std::vector<int64_t> stride = {chance.number(1, 2), chance.number(1, 2)}, padding = {1, 0}, dilation = {2, 2};
    const at::Tensor image = chance.values({n, inputs, 4, 5}), weight = chance.values({inputs, outputs, 3, 2});
    for (const int64_t more : {0, 1}) {
      const std::vector<int64_t> output_padding = {more, more};
      const Function transposed = [&](Inputs in) {
        return at::conv_transpose2d(in[0], in[1], {}, stride, padding, output_padding, 1, dilation);
      };
      compare(run, chance, "conv_transpose2d", {image, weight}, transposed, false);
      compare_gradients(run, "gradient of conv_transpose2d", {image, weight}, transposed);
    }
    std::vector<int64_t> sides(4);
    for (int64_t& side : sides) side = chance.number(-2, 1);
    compare_gradients(run, "gradient of reflection_pad2d", {image},
                      [&](Inputs in) { return at::reflection_pad2d(in[0], sides); });
    compare_gradients(run, "gradient of replication_pad2d", {image},
                      [&](Inputs in) { return at::replication_pad2d(in[0], sides); });
  });
}

}  // namespace
}  // namespace mpsforge::hostmps
