// LSTM layers by Apple's words (MPSGraphRNNOps.h): the gates of a step are i, f, z and o, each a block of rows of the
// weights, and
//   c[t] = f[t] c[t-1] + i[t] z[t]    h[t] = o[t] tanh(c[t])
// Both directions of a bidirectional layer are adjacent in the last dimension, of the gates too.
#include <tuple>

#include "evaluator.h"

namespace mpsforge::hostmps {
namespace {

// One direction of a layer. Its weights are those of all four gates.
class Direction {
 public:
  Direction(const Node& node, const Tensors& inputs, int64_t index, int64_t directions)
      : index_(index),
        directions_(directions),
        forget_last_(node.attributes.integer("forget_last") != 0),
        backwards_(directions == 2 ? index == 1 : node.attributes.integer("reverse") != 0),
        source_(widen(inputs[0])),
        recurrent_(directions == 2 ? widen(inputs[1])[index] : widen(inputs[1])),
        weights_(part(inputs[2], 0)),
        state_(initial(inputs[3])),
        cell_(initial(inputs[4])) {}

  // This direction's part of a tensor that holds both.
  at::Tensor part(const at::Tensor& tensor, int64_t dimension) const {
    return widen(tensor).chunk(directions_, dimension)[static_cast<size_t>(index_)];
  }

  // PyTorch passes states as [1, N, H] where there is one direction, else as [N, 2H].
  at::Tensor initial(const at::Tensor& state) const {
    return part(state.reshape({source_.size(1), directions_ * recurrent_.size(1)}), 1);
  }

  // States, cells and gates of all steps. The bias may be undefined.
  Tensors run(const at::Tensor& bias) const {
    Tensors states(steps()), cells(steps()), gates(steps());
    at::Tensor state = state_, cell = cell_;
    for (size_t i = 0; i < steps(); ++i) {
      const size_t t = step(i);
      at::Tensor sum = source_[static_cast<int64_t>(t)].matmul(weights_.t()) + state.matmul(recurrent_.t());
      if (bias.defined()) sum = sum + bias;
      Tensors gate = sum.chunk(4, -1);
      for (size_t j = 0; j < gate.size(); ++j) gate[j] = j == candidate() ? at::tanh(gate[j]) : at::sigmoid(gate[j]);
      cell = gate[forget()] * cell + gate[0] * gate[candidate()];
      state = gate[3] * at::tanh(cell);
      states[t] = state, cells[t] = cell, gates[t] = at::cat(gate, -1);
    }
    return {at::stack(states), at::stack(cells), at::stack(gates)};
  }

  // Of the source, the recurrent weight, the input weight, the bias, the first state and the first cell. Given are the
  // gradients of the states of all steps and of the last state and cell, and the forward pass's gates and cells.
  Tensors gradients(const at::Tensor& of_states, at::Tensor of_state, at::Tensor of_cell, const at::Tensor& gates,
                    const at::Tensor& cells) const {
    at::Tensor of_source = at::empty_like(source_), of_recurrent = at::zeros_like(recurrent_);
    at::Tensor of_weights = at::zeros_like(weights_), of_bias = at::zeros({weights_.size(0)}, weights_.options());
    for (size_t i = steps(); i-- > 0;) {
      const auto t = static_cast<int64_t>(step(i));
      const Tensors gate = gates[t].chunk(4, -1);
      const at::Tensor squashed = at::tanh(cells[t]);
      of_state = of_state + of_states[t];
      of_cell = of_cell + of_state * gate[3] * (1 - squashed * squashed);
      at::Tensor cell_before = cell_, state_before = state_;
      if (i > 0) {
        const auto before = static_cast<int64_t>(step(i - 1));
        cell_before = cells[before];
        state_before = gates[before].chunk(4, -1)[3] * at::tanh(cell_before);
      }
      Tensors of_gate(4);
      of_gate[0] = of_cell * gate[candidate()];
      of_gate[forget()] = of_cell * cell_before;
      of_gate[candidate()] = of_cell * gate[0];
      of_gate[3] = of_state * squashed;
      for (size_t j = 0; j < of_gate.size(); ++j) {
        of_gate[j] = of_gate[j] * (j == candidate() ? 1 - gate[j] * gate[j] : gate[j] * (1 - gate[j]));
      }
      const at::Tensor of_sum = at::cat(of_gate, -1);
      of_source[t].copy_(of_sum.matmul(weights_));
      of_weights = of_weights + of_sum.t().matmul(source_[t]);
      of_recurrent = of_recurrent + of_sum.t().matmul(state_before);
      of_bias = of_bias + of_sum.sum(0);
      of_state = of_sum.matmul(recurrent_);
      of_cell = of_cell * gate[forget()];
    }
    return {of_source, of_recurrent, of_weights, of_bias, of_state, of_cell};
  }

 private:
  size_t steps() const { return static_cast<size_t>(source_.size(0)); }
  size_t step(size_t i) const { return backwards_ ? steps() - 1 - i : i; }
  size_t forget() const { return forget_last_ ? 2 : 1; }
  size_t candidate() const { return forget_last_ ? 1 : 2; }

  int64_t index_, directions_;
  bool forget_last_, backwards_;
  at::Tensor source_, recurrent_, weights_, state_, cell_;
};

int64_t directions_of(const Node& node) { return node.attributes.integer("bidirectional") ? 2 : 1; }

Tensors lstm(const Node& node, const Tensors& inputs) {
  const int64_t directions = directions_of(node);
  Tensors states, cells, gates;
  for (int64_t index = 0; index < directions; ++index) {
    const Direction direction(node, inputs, index, directions);
    const Tensors found = direction.run(node.attributes.integer("bias") ? direction.part(inputs[5], 0) : at::Tensor());
    states.push_back(found[0]), cells.push_back(found[1]), gates.push_back(found[2]);
  }
  Tensors results = {at::cat(states, -1)};
  if (node.attributes.integer("cell")) results.push_back(at::cat(cells, -1));
  if (node.attributes.integer("training")) results.push_back(at::cat(gates, -1));
  for (at::Tensor& result : results) result = result.to(inputs[0].scalar_type());
  return results;
}

Tensors lstm_gradients(const Node& node, const Tensors& inputs) {
  const int64_t directions = directions_of(node);
  std::vector<Tensors> found;
  for (int64_t index = 0; index < directions; ++index) {
    const Direction direction(node, inputs, index, directions);
    found.push_back(direction.gradients(direction.part(inputs[5], -1), direction.initial(inputs[8]),
                                        direction.initial(inputs[9]), direction.part(inputs[6], -1),
                                        direction.part(inputs[7], -1)));
  }
  const bool both = directions == 2;
  const auto joined = [&](size_t result, int64_t dimension) {
    return both ? at::cat({found[0][result], found[1][result]}, dimension) : found[0][result];
  };
  Tensors results = {both ? found[0][0] + found[1][0] : found[0][0],
                     both ? at::stack({found[0][1], found[1][1]}) : found[0][1], joined(2, 0)};
  if (node.attributes.integer("bias")) results.push_back(joined(3, 0).reshape({1, 1, -1}));
  results.push_back(joined(4, -1));
  results.push_back(joined(5, -1));
  for (at::Tensor& result : results) result = result.to(inputs[0].scalar_type());
  return results;
}

}  // namespace

void add_recurrent_operations(Operations& operations) {
  operations.insert({{"LSTM", {lstm, rules::lstm}}, {"LSTMGradients", {lstm_gradients, rules::lstm_gradients}}});
}

}  // namespace mpsforge::hostmps
