// What results a node has: their data types always, their shapes as far as the inputs' are known.
#include <algorithm>
#include <stdexcept>

#include "infer_rules.h"

namespace mpsforge::graph {

void reject(const Node& node, const std::string& why) {
  throw std::runtime_error("MPSGraph operation " + node.operation + ": " + why);
}

std::string describe(const Value& value) {
  return std::string(name_of(value.type)) + (value.shape ? text_of(*value.shape) : "[?]");
}

// MPSGraph promotes no types.
void require_same_type(const Node& node, size_t first, size_t second) {
  if (node.input(first).type == node.input(second).type) return;
  reject(node, "operands of different types, " + describe(node.input(first)) + " and " + describe(node.input(second)));
}

bool fixed(const Value& value) {
  return value.shape && std::none_of(value.shape->begin(), value.shape->end(), [](int64_t n) { return n < 0; });
}

namespace {

size_t axis_of(const Node& node, int64_t axis, size_t rank) {
  const int64_t count = static_cast<int64_t>(rank);
  if (axis < -count || axis >= std::max<int64_t>(count, 1)) {
    reject(node, "axis " + std::to_string(axis) + " of " + std::to_string(rank) + " dimensions");
  }
  return static_cast<size_t>(axis < 0 ? axis + count : axis);
}

std::optional<Shape> broadcast(const Node& node, const std::optional<Shape>& one, const std::optional<Shape>& other) {
  if (!one || !other) return std::nullopt;
  Shape shape(std::max(one->size(), other->size()));
  for (size_t i = 0; i < shape.size(); ++i) {  // from the last dimension
    const int64_t a = i < one->size() ? (*one)[one->size() - 1 - i] : 1;
    const int64_t b = i < other->size() ? (*other)[other->size() - 1 - i] : 1;
    if (a != b && a != 1 && b != 1 && a >= 0 && b >= 0) {
      reject(node, "shapes " + text_of(*one) + " and " + text_of(*other) + " do not broadcast");
    }
    shape[shape.size() - 1 - i] = a == 1 ? b : b == 1 ? a : std::max(a, b);
  }
  return shape;
}

DataType real_of(DataType type) {
  if (type == DataType::ComplexFloat32) return DataType::Float32;
  return type == DataType::ComplexFloat16 ? DataType::Float16 : type;
}

DataType complex_of(const Node& node, DataType type) {
  if (type == DataType::Float32) return DataType::ComplexFloat32;
  if (type == DataType::Float16) return DataType::ComplexFloat16;
  reject(node, std::string("no complex type of ") + name_of(type));
}

int64_t elements(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t length : shape) count *= length;
  return count;
}

}  // namespace

namespace rules {

Values same(const Node& node, size_t) { return {node.input(0)}; }

Values binary(const Node& node, size_t) {
  require_same_type(node, 0, 1);
  return {{node.input(0).type, broadcast(node, node.input(0).shape, node.input(1).shape)}};
}

Values comparison(const Node& node, size_t) {
  Values values = binary(node, 1);
  values[0].type = DataType::Bool;
  return values;
}

// Logical operations take any type; the result is a truth value.
Values logical(const Node& node, size_t) {
  return {{DataType::Bool, broadcast(node, node.input(0).shape, node.input(1).shape)}};
}

Values truth(const Node& node, size_t) { return {{DataType::Bool, node.input(0).shape}}; }

Values real_part(const Node& node, size_t) { return {{real_of(node.input(0).type), node.input(0).shape}}; }

Values complex(const Node& node, size_t) {
  Values values = binary(node, 1);
  values[0].type = complex_of(node, values[0].type);
  return values;
}

Values select(const Node& node, size_t) {
  require_same_type(node, 1, 2);
  const auto branches = broadcast(node, node.input(1).shape, node.input(2).shape);
  return {{node.input(1).type, broadcast(node, node.input(0).shape, branches)}};
}

Values clamp(const Node& node, size_t) {
  require_same_type(node, 0, 1);
  require_same_type(node, 0, 2);
  const auto limits = broadcast(node, node.input(1).shape, node.input(2).shape);
  return {{node.input(0).type, broadcast(node, node.input(0).shape, limits)}};
}

Values reduce(const Node& node, size_t) {
  Value value = node.input(0);
  if (!value.shape) return {value};
  if (!node.attributes.has("axes")) {
    std::fill(value.shape->begin(), value.shape->end(), 1);
    return {value};
  }
  for (const int64_t axis : node.attributes.integers("axes")) {
    const size_t index = axis_of(node, axis, value.shape->size());
    if (!value.shape->empty()) (*value.shape)[index] = 1;
  }
  return {value};
}

// Apple's words give no type for the sum of truth values. PyTorch counts with it (count_nonzero, ReduceOps.mm) and
// finds counts above 1.
Values reduce_sum(const Node& node, size_t) {
  Values values = reduce(node, 1);
  if (values[0].type == DataType::Bool) values[0].type = DataType::Int32;
  return values;
}

Values reduce_index(const Node& node, size_t) {
  Value value{DataType::Int32, node.input(0).shape};
  if (value.shape && !value.shape->empty()) {
    (*value.shape)[axis_of(node, node.attributes.integer("axis"), value.shape->size())] = 1;
  }
  return {value};
}

Values cast(const Node& node, size_t) {
  const DataType type = static_cast<DataType>(node.attributes.integer("type"));
  bytes_of(type);
  return {{type, node.input(0).shape}};
}

Values constant(const Node& node, size_t) {
  const DataType type = static_cast<DataType>(node.attributes.integer("type"));
  const Shape& shape = node.attributes.integers("shape");
  if (node.operation == "constantData") {
    size_t bytes = bytes_of(type);
    for (const int64_t length : shape) bytes *= static_cast<size_t>(length);
    const size_t given = node.attributes.bytes("data").size();
    if (given != bytes) {
      reject(node, std::to_string(given) + " bytes of data for " + std::string(name_of(type)) + text_of(shape));
    }
  }
  bytes_of(type);
  return {{type, shape}};
}

Values reshape(const Node& node, size_t) {
  Shape shape = node.attributes.integers("shape");
  const Value& input = node.input(0);
  const auto unknown = std::count(shape.begin(), shape.end(), -1);
  if (unknown > 1) reject(node, "more than one unknown length in " + text_of(shape));
  if (!fixed(input)) return {{input.type, shape}};
  const int64_t count = elements(*input.shape);
  if (unknown == 1) {
    const int64_t rest = -elements(shape);
    if (rest != 0 && count % rest == 0) *std::find(shape.begin(), shape.end(), -1) = count / rest;
  }
  if (elements(shape) != count) reject(node, describe(input) + " cannot have the shape " + text_of(shape));
  return {{input.type, shape}};
}

Values transpose(const Node& node, size_t) {
  Value value = node.input(0);
  if (!value.shape) return {value};
  const size_t one = axis_of(node, node.attributes.integer("dimension"), value.shape->size());
  const size_t other = axis_of(node, node.attributes.integer("other"), value.shape->size());
  if (!value.shape->empty()) std::swap((*value.shape)[one], (*value.shape)[other]);
  return {value};
}

Values permute(const Node& node, size_t) {
  Value value = node.input(0);
  if (!value.shape) return {value};
  const Shape& order = node.attributes.integers("permutation");
  if (order.size() != value.shape->size()) reject(node, "an order of another rank than " + describe(value));
  for (size_t i = 0; i < order.size(); ++i) {
    (*value.shape)[i] = (*node.input(0).shape)[axis_of(node, order[i], order.size())];
  }
  return {value};
}

Values slice(const Node& node, size_t) {
  Value value = node.input(0);
  if (!value.shape || value.shape->empty()) return {value};
  (*value.shape)[axis_of(node, node.attributes.integer("dimension"), value.shape->size())] =
      node.attributes.integer("length");
  return {value};
}

Values concat(const Node& node, size_t) {
  if (node.inputs.empty()) reject(node, "nothing to concatenate");
  Value value = node.input(0);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    require_same_type(node, 0, i);
    if (!fixed(node.input(i))) return {{value.type, std::nullopt}};
    if (node.input(i).shape->size() != value.shape->size()) reject(node, "inputs of different ranks");
  }
  if (value.shape->empty()) reject(node, "inputs without dimensions");
  const size_t axis = axis_of(node, node.attributes.integer("dimension"), value.shape->size());
  for (size_t i = 1; i < node.inputs.size(); ++i) (*value.shape)[axis] += (*node.input(i).shape)[axis];
  return {value};
}

Values split(const Node& node, size_t count) {
  Value value = node.input(0);
  if (fixed(value) && !value.shape->empty()) {
    const size_t axis = axis_of(node, node.attributes.integer("axis"), value.shape->size());
    if ((*value.shape)[axis] % static_cast<int64_t>(count) != 0) reject(node, "parts of different lengths");
    (*value.shape)[axis] /= static_cast<int64_t>(count);
  }
  return Values(count, value);
}

Values tile(const Node& node, size_t) {
  Value value = node.input(0);
  const Shape& times = node.attributes.integers("multiplier");
  if (!fixed(value)) return {{value.type, std::nullopt}};
  if (times.size() != value.shape->size()) reject(node, "a multiplier of another rank than " + describe(value));
  for (size_t i = 0; i < times.size(); ++i) (*value.shape)[i] *= times[i];
  return {value};
}

Values flatten(const Node& node, size_t) {
  const Value& value = node.input(0);
  if (!fixed(value)) return {{value.type, Shape{-1, -1}}};
  int64_t axis = node.attributes.integer("axis");
  if (axis < 0) axis += static_cast<int64_t>(value.shape->size());
  if (axis < 0 || axis > static_cast<int64_t>(value.shape->size())) reject(node, "no such axis");
  Shape shape{1, 1};
  for (size_t i = 0; i < value.shape->size(); ++i) shape[static_cast<int64_t>(i) < axis ? 0 : 1] *= (*value.shape)[i];
  return {{value.type, shape}};
}

Values broadcast_to(const Node& node, size_t) {
  const Shape& shape = node.attributes.integers("shape");
  broadcast(node, node.input(0).shape, shape);
  return {{node.input(0).type, shape}};
}

Values expand(const Node& node, size_t) {
  Value value = node.input(0);
  if (!value.shape) return {value};
  std::vector<int64_t> axes = node.attributes.integers("axes");
  const int64_t rank = static_cast<int64_t>(value.shape->size() + axes.size());
  for (int64_t& axis : axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) reject(node, "no such axis");
  }
  std::sort(axes.begin(), axes.end());
  for (const int64_t axis : axes) value.shape->insert(value.shape->begin() + axis, 1);
  return {value};
}

Values squeeze(const Node& node, size_t) {
  Value value = node.input(0);
  if (!fixed(value)) return {{value.type, std::nullopt}};
  std::vector<bool> gone(value.shape->size(), !node.attributes.has("axes"));
  if (node.attributes.has("axes")) {
    for (const int64_t axis : node.attributes.integers("axes")) {
      const size_t index = axis_of(node, axis, gone.size());
      if ((*value.shape)[index] != 1) reject(node, "a dimension of " + describe(value) + " is not 1");
      gone[index] = true;
    }
  }
  Shape shape;
  for (size_t i = 0; i < gone.size(); ++i) {
    if (!gone[i] || (*value.shape)[i] != 1) shape.push_back((*value.shape)[i]);
  }
  return {{value.type, shape}};
}

Values coordinate(const Node& node, size_t) { return {{DataType::Int32, node.attributes.integers("shape")}}; }
Values integers_of_unknown_shape(const Node&, size_t) { return {{DataType::Int32, std::nullopt}}; }
Values unknown_shape(const Node& node, size_t) { return {{node.input(0).type, std::nullopt}}; }

Values shape_of(const Node& node, size_t) {
  Shape shape{-1};
  if (node.input(0).shape) shape[0] = static_cast<int64_t>(node.input(0).shape->size());
  return {{DataType::Int32, shape}};
}

Values matrix_multiplication(const Node& node, size_t) {
  require_same_type(node, 0, 1);
  const Value& one = node.input(0);
  const Value& other = node.input(1);
  if (!one.shape || !other.shape) return {{one.type, std::nullopt}};
  if (one.shape->empty() || other.shape->empty()) reject(node, "an operand without dimensions");
  Shape left = *one.shape, right = *other.shape;
  // A vector is a row on the left and a column on the right.
  if (left.size() == 1) left.insert(left.begin(), 1);
  if (right.size() == 1) right.push_back(1);
  const int64_t rows = left[left.size() - 2], inner = left.back();
  if (inner >= 0 && right[right.size() - 2] >= 0 && inner != right[right.size() - 2]) {
    reject(node, describe(one) + " by " + describe(other));
  }
  const int64_t columns = right.back();
  auto batch = broadcast(node, Shape(left.begin(), left.end() - 2), Shape(right.begin(), right.end() - 2));
  batch->push_back(rows);
  batch->push_back(columns);
  return {{one.type, batch}};
}

// A third source is added to the product.
Values array_matrix_multiplication(const Node& node, size_t) {
  Values values = matrix_multiplication(node, 1);
  if (node.inputs.size() > 2) {
    require_same_type(node, 0, 2);
    values[0].shape = broadcast(node, values[0].shape, node.input(2).shape);
  }
  return values;
}

Values decomposition(const Node& node, size_t count) {
  const Shape& shape = node.input(0).shape.value();
  Values values = {node.input(0), {DataType::UInt32, Shape{1, std::min(shape.at(0), shape.at(1))}}};
  if (count > 2) values.push_back({DataType::Int32, Shape{1}});
  return values;
}

Values matrix_solution(const Node& node, size_t) {
  require_same_type(node, 0, 1);
  return {node.input(1)};
}

Values attention(const Node& node, size_t) {
  require_same_type(node, 0, 1);
  require_same_type(node, 0, 2);
  Value value = node.input(0);
  if (value.shape && node.input(2).shape && !value.shape->empty()) value.shape->back() = node.input(2).shape->back();
  return {value};
}

Values gather_along(const Node& node, size_t) { return {{node.input(0).type, node.input(1).shape}}; }

Values gather(const Node& node, size_t) {
  const Value& data = node.input(0);
  const Value& indices = node.input(1);
  if (!data.shape || !indices.shape) return {{data.type, std::nullopt}};
  const size_t axis = axis_of(node, node.attributes.integer("axis"), data.shape->size());
  const auto batch = node.attributes.integer("batch");
  if (batch < 0 || batch > static_cast<int64_t>(std::min(axis, indices.shape->size())))
    reject(node, "batch dimensions");
  Shape shape(data.shape->begin(), data.shape->begin() + static_cast<int64_t>(axis));
  shape.insert(shape.end(), indices.shape->begin() + batch, indices.shape->end());
  shape.insert(shape.end(), data.shape->begin() + static_cast<int64_t>(axis) + 1, data.shape->end());
  return {{data.type, shape}};
}

Values one_hot(const Node& node, size_t) {
  Value value{static_cast<DataType>(node.attributes.integer("type")), node.input(0).shape};
  if (!value.shape) return {value};
  int64_t axis = node.attributes.integer("axis");
  if (axis < 0) axis += static_cast<int64_t>(value.shape->size()) + 1;
  if (axis < 0 || axis > static_cast<int64_t>(value.shape->size())) reject(node, "no such axis");
  value.shape->insert(value.shape->begin() + axis, node.attributes.integer("depth"));
  return {value};
}

Values scatter_new(const Node& node, size_t) { return {{node.input(0).type, node.attributes.integers("shape")}}; }

Values scatter_into(const Node& node, size_t) {
  require_same_type(node, 0, 1);
  return {node.input(0)};
}

Values index_like(const Node& node, size_t) { return {{DataType::Int32, node.input(0).shape}}; }

Values gradient_of_second(const Node& node, size_t) {
  require_same_type(node, 0, 1);
  return {node.input(1)};
}

Values normalization(const Node& node, size_t) {
  for (size_t i = 1; i < node.inputs.size(); ++i) require_same_type(node, 0, i);
  return {node.input(0)};
}

Values gamma_gradient(const Node& node, size_t) {
  Value value = node.input(1);
  if (value.shape) {
    for (const int64_t axis : node.attributes.integers("axes")) {
      (*value.shape)[axis_of(node, axis, value.shape->size())] = 1;
    }
  }
  return {value};
}

Values random(const Node& node, size_t) {
  return {{static_cast<DataType>(node.attributes.integer("type")), node.attributes.integers("shape")}, node.input(0)};
}

Values to_complex(const Node& node, size_t) { return {{complex_of(node, node.input(0).type), std::nullopt}}; }
Values to_real(const Node& node, size_t) { return {{real_of(node.input(0).type), std::nullopt}}; }

Values top(const Node& node, size_t) {
  Value value = node.input(0);
  if (value.shape && !value.shape->empty()) {
    (*value.shape)[axis_of(node, node.attributes.integer("axis"), value.shape->size())] = node.attributes.integer("k");
  }
  return {value, {DataType::Int32, value.shape}};
}

}  // namespace rules
}  // namespace mpsforge::graph
