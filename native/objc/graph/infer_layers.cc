// What results convolutions, padding, resizing, sampling and recurrent layers have.
#include <algorithm>

#include "infer_rules.h"

namespace mpsforge::graph {
namespace {

const Shape& known_shape(const Node& node, size_t index) {
  const Value& value = node.input(index);
  if (!value.shape) reject(node, "input " + std::to_string(index) + " has no shape");
  return *value.shape;
}

// As many dimensions as the images; PyTorch asks for their number.
std::optional<Shape> unknown_lengths(const Value& images) {
  if (!images.shape) return std::nullopt;
  return Shape(images.shape->size(), -1);
}

// Whether so much padding can be made of so many elements. MPSGraphPaddingMode: 1 is Reflect, 2 Symmetric, 3
// ClampToEdge.
bool has_sources(int64_t mode, int64_t length, int64_t padding) {
  if (mode == 1) return padding < length;
  if (mode == 2) return padding <= length;
  return length > 0 || (mode != 3 && length == 0);
}

void require_floating(const Node& node) {
  if (is_floating(node.input(0).type)) return;
  reject(node, std::string("interpolated values of ") + name_of(node.input(0).type) + " are not implemented");
}

size_t height_of(const Node& node, const Shape& shape) {
  const auto height = static_cast<size_t>(node.attributes.integer("height"));
  if (height + 2 > shape.size()) reject(node, "images of the shape " + text_of(shape) + " in this data layout");
  return height;
}

// Weights that do not fit would be found when the graph runs; then it would be the process's end.
int64_t hidden_length(const Node& node) {
  const Shape& source = known_shape(node, 0);
  const Shape& recurrent = known_shape(node, 1);
  const Shape& weights = known_shape(node, 2);
  const int64_t directions = node.attributes.integer("bidirectional") ? 2 : 1;
  const int64_t hidden = recurrent.empty() ? 0 : recurrent.back();
  Shape expected = {4 * hidden, hidden};
  if (directions == 2) expected.insert(expected.begin(), 2);
  if (source.size() != 3 || recurrent != expected || weights != Shape{directions * 4 * hidden, source[2]}) {
    reject(node, "source " + describe(node.input(0)) + ", recurrent weight " + describe(node.input(1)) +
                     " and input weight " + describe(node.input(2)));
  }
  for (size_t i = 1; i < node.inputs.size(); ++i) require_same_type(node, 0, i);
  return directions * hidden;
}

}  // namespace

namespace rules {

Values with_given_shape(const Node& node, size_t) {
  require_same_type(node, 0, 1);
  return {{node.input(0).type, node.attributes.integers("shape")}};
}

Values convolution(const Node& node, size_t) {
  require_same_type(node, 0, 1);
  return {{node.input(0).type, unknown_lengths(node.input(0))}};
}

Values pooling(const Node& node, size_t) { return {{node.input(0).type, unknown_lengths(node.input(0))}}; }

Values pooling_indices(const Node& node, size_t) {
  const auto shape = unknown_lengths(node.input(0));
  return {{node.input(0).type, shape}, {static_cast<DataType>(node.attributes.integer("indices")), shape}};
}

// Checked here, as an error when the graph runs is the process's end.
Values pad(const Node& node, size_t) {
  const bool gradient = node.operation == "padGradient";
  if (gradient) require_same_type(node, 0, 1);
  Value value = node.input(0);
  if (!fixed(value)) return {{value.type, std::nullopt}};
  const Shape& left = node.attributes.integers("left");
  const Shape& right = node.attributes.integers("right");
  if (left.size() != value.shape->size() || right.size() != left.size()) reject(node, "padding of another rank");
  for (size_t i = 0; i < left.size(); ++i) {
    const int64_t given = (*value.shape)[i];
    const int64_t source = gradient ? given - left[i] - right[i] : given;
    if (left[i] == 0 && right[i] == 0) continue;
    (*value.shape)[i] = gradient ? source : given + left[i] + right[i];
    if ((*value.shape)[i] < 0 || !has_sources(node.attributes.integer("mode"), source, std::max(left[i], right[i]))) {
      reject(node, "padding of " + std::to_string(left[i]) + " and " + std::to_string(right[i]) + " in dimension " +
                       std::to_string(i) + " of " + describe(node.input(0)));
    }
  }
  return {value};
}

// The size is a tensor, known when the graph runs.
Values resize(const Node& node, size_t) {
  Value value = node.input(0);
  if (!value.shape) return {value};
  const size_t height = height_of(node, *value.shape);
  (*value.shape)[height] = (*value.shape)[height + 1] = -1;
  return {value};
}

Values resize_gradient(const Node& node, size_t) {
  require_floating(node);
  require_same_type(node, 0, 1);
  height_of(node, known_shape(node, 1));
  return {node.input(1)};
}

// The coordinates are [N, H, W, 2].
Values sample(const Node& node, size_t) {
  require_floating(node);
  require_same_type(node, 0, 1);
  Value value = node.input(0);
  const Shape& coordinates = known_shape(node, 1);
  if (!value.shape) return {value};
  if (value.shape->size() != 4 || coordinates.size() != 4 || coordinates[3] != 2) {
    reject(node, describe(value) + " at coordinates " + describe(node.input(1)));
  }
  const size_t height = height_of(node, *value.shape);
  (*value.shape)[height] = coordinates[1];
  (*value.shape)[height + 1] = coordinates[2];
  return {value};
}

// States, then cells, then gates, each for all steps.
Values lstm(const Node& node, size_t) {
  const int64_t hidden = hidden_length(node);
  const DataType type = node.input(0).type;
  const Shape& source = known_shape(node, 0);
  const Value states = {type, Shape{source[0], source[1], hidden}};
  Values values = {states};
  if (node.attributes.integer("cell")) values.push_back(states);
  if (node.attributes.integer("training")) values.push_back({type, Shape{source[0], source[1], 4 * hidden}});
  return values;
}

// Of the source, the recurrent weight, the input weight, the bias if there is one, the first state and the first cell.
// PyTorch takes two leading dimensions of 1 from the bias's.
Values lstm_gradients(const Node& node, size_t) {
  const int64_t hidden = hidden_length(node);
  const DataType type = node.input(0).type;
  const Value state = {type, Shape{known_shape(node, 0)[1], hidden}};
  Values values = {node.input(0), node.input(1), node.input(2)};
  if (node.attributes.integer("bias")) values.push_back({type, Shape{1, 1, 4 * hidden}});
  values.insert(values.end(), {state, state});
  return values;
}

}  // namespace rules
}  // namespace mpsforge::graph
