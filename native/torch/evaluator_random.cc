// Random numbers: Philox 4x32 with ten rounds, counted from the state that the graph is fed. The state is seven words;
// words 1 to 4 are the counter, words 5 and 6 the key. The numbers are not Apple's: how Apple maps the state and the
// words of a block to elements is not public.
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "evaluator.h"

namespace mpsforge::hostmps {
namespace {

constexpr int64_t kStateWords = 7;
using Block = std::array<uint32_t, 4>;

// Salmon and others, "Parallel random numbers: as easy as 1, 2, 3": the constants are theirs.
Block philox(Block counter, uint32_t key0, uint32_t key1) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
  constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = static_cast<uint64_t>(kMultiplier0) * counter[0];
    const uint64_t product1 = static_cast<uint64_t>(kMultiplier1) * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

class State {
 public:
  explicit State(const at::Tensor& tensor) {
    if (tensor.scalar_type() != at::kInt || tensor.numel() != kStateWords) {
      throw std::runtime_error("a state that is not seven words of Int32");
    }
    const at::Tensor packed = tensor.contiguous();
    const int32_t* const from = static_cast<const int32_t*>(packed.const_data_ptr());
    for (size_t i = 0; i < words_.size(); ++i) words_[i] = static_cast<uint32_t>(from[i]);
  }

  Block block(uint64_t index) const { return philox(counter(index), words_[5], words_[6]); }

  at::Tensor after(uint64_t blocks) const {
    at::Tensor tensor = at::empty({kStateWords}, at::TensorOptions().dtype(at::kInt));
    int32_t* const to = tensor.mutable_data_ptr<int32_t>();
    const Block next = counter(blocks);
    for (size_t i = 0; i < words_.size(); ++i) {
      to[i] = static_cast<int32_t>(i >= 1 && i <= 4 ? next[i - 1] : words_[i]);
    }
    return tensor;
  }

 private:
  // The 128-bit counter of a later block.
  Block counter(uint64_t blocks) const {
    const uint64_t low = (static_cast<uint64_t>(words_[2]) << 32 | words_[1]) + blocks;
    uint64_t high = static_cast<uint64_t>(words_[4]) << 32 | words_[3];
    if (low < blocks) ++high;
    return {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high),
            static_cast<uint32_t>(high >> 32)};
  }

  std::array<uint32_t, kStateWords> words_;
};

// In [0, 1), with 24 bits.
float unit(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

// MPSGraphRandomDistribution.
enum Distribution { kUniform = 0, kNormal = 1 };

// Four words a block: the elements are Int32 in [min_integer, max_integer].
void fill_integers(const Node& node, const State& state, int32_t* to, int64_t count) {
  const auto clamp = [](int64_t value) {
    return std::max<int64_t>(std::numeric_limits<int32_t>::min(),
                             std::min<int64_t>(std::numeric_limits<int32_t>::max(), value));
  };
  const int64_t low = clamp(node.attributes.integer("min_integer"));
  const int64_t high = clamp(node.attributes.integer("max_integer"));
  if (low > high) throw std::runtime_error("an empty range of integers");
  const uint64_t span = static_cast<uint64_t>(high - low) + 1;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t word = state.block(static_cast<uint64_t>(i / 4))[static_cast<size_t>(i % 4)];
    // The upper half of a product: less biased than a remainder.
    to[i] = static_cast<int32_t>(low + static_cast<int64_t>((word * span) >> 32));
  }
}

void fill_uniform(const Node& node, const State& state, float* to, int64_t count) {
  const auto low = static_cast<float>(node.attributes.real("min"));
  const auto high = static_cast<float>(node.attributes.real("max"));
  for (int64_t i = 0; i < count; ++i) {
    const float number = unit(state.block(static_cast<uint64_t>(i / 4))[static_cast<size_t>(i % 4)]);
    to[i] = low + (high - low) * number;
    // Rounding must not reach the excluded bound.
    if (to[i] >= high && high > low) to[i] = std::nextafter(high, low);
  }
}

// Box and Muller: two words make two numbers.
void fill_normal(const Node& node, const State& state, float* to, int64_t count) {
  constexpr double kTwoPi = 6.283185307179586;
  const double mean = node.attributes.real("mean"), deviation = node.attributes.real("deviation");
  for (int64_t i = 0; i < count; ++i) {
    const Block block = state.block(static_cast<uint64_t>(i / 4));
    const size_t pair = static_cast<size_t>(i % 4) & ~size_t{1};
    const double radius = std::sqrt(-2.0 * std::log(1.0 - static_cast<double>(unit(block[pair]))));
    const double angle = kTwoPi * static_cast<double>(unit(block[pair + 1]));
    to[i] = static_cast<float>(mean + deviation * radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle)));
  }
}

Tensors random(const Node& node, const Tensors& inputs) {
  const State state(inputs[0]);
  const auto type = scalar_type(static_cast<DataType>(node.attributes.integer("type")));
  const int64_t distribution = node.attributes.integer("distribution");
  at::Tensor result;
  if (type == at::kInt && distribution == kUniform) {
    result = at::empty(node.attributes.integers("shape"), at::TensorOptions().dtype(at::kInt));
    fill_integers(node, state, result.mutable_data_ptr<int32_t>(), result.numel());
  } else if (c10::isFloatingType(type) && (distribution == kUniform || distribution == kNormal)) {
    at::Tensor wide = at::empty(node.attributes.integers("shape"), at::TensorOptions().dtype(at::kFloat));
    (distribution == kUniform ? fill_uniform : fill_normal)(node, state, wide.mutable_data_ptr<float>(), wide.numel());
    result = wide.to(type);
    // Rounding to fewer bits must not reach the excluded bound either.
    const double low = node.attributes.real("min"), high = node.attributes.real("max");
    if (distribution == kUniform && high > low) result = at::masked_fill(result, result >= high, low);
  } else {
    throw std::runtime_error("distribution " + std::to_string(distribution) + " of " + c10::toString(type) +
                             " is not implemented");
  }
  return {result, state.after(static_cast<uint64_t>((result.numel() + 3) / 4)).reshape(inputs[0].sizes())};
}

// Has no state to count from: each run of a process draws other numbers. What stays is scaled, so that the mean does,
// too.
Tensors dropout(const Node& node, const Tensors& inputs) {
  static std::atomic<uint32_t> runs{0};
  const uint32_t run = runs.fetch_add(1, std::memory_order_relaxed);
  const double rate = node.attributes.real("rate");
  at::Tensor factors = at::empty(inputs[0].sizes(), at::TensorOptions().dtype(at::kFloat));
  auto* const to = factors.mutable_data_ptr<float>();
  for (int64_t i = 0; i < factors.numel(); ++i) {
    const auto block = static_cast<uint64_t>(i / 4);
    const Block words = philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), run, 0}, 0, 0);
    const bool stays = unit(words[static_cast<size_t>(i % 4)]) >= rate;
    to[i] = stays ? static_cast<float>(1 / (1 - rate)) : 0.0f;
  }
  return {at::mul(widen(inputs[0]), factors).to(inputs[0].scalar_type())};
}

}  // namespace

void add_random_operations(Operations& operations) {
  operations.insert({{"random", {random, rules::random}}, {"dropout", {dropout, rules::same}}});
}

}  // namespace mpsforge::hostmps
