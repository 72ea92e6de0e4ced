// A recorded MPSGraph: nodes and values in plain C++, immutable once made, so that an execution can share them with the
// threads that go on building and encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace mpsforge::graph {

// The numbers are MPSDataType's.
enum class DataType : uint32_t {
  Invalid = 0,
  Float32 = 0x10000020,
  Float16 = 0x10000010,
  BFloat16 = 0x90000010,
  ComplexFloat32 = 0x11000040,
  ComplexFloat16 = 0x11000020,
  Int8 = 0x20000008,
  Int16 = 0x20000010,
  Int32 = 0x20000020,
  Int64 = 0x20000040,
  UInt8 = 8,
  UInt16 = 16,
  UInt32 = 32,
  UInt64 = 64,
  Bool = 0x80000008,
};

const char* name_of(DataType type);
size_t bytes_of(DataType type);   // throws for a type that is not listed above
bool is_floating(DataType type);  // real or complex

using Shape = std::vector<int64_t>;
std::string text_of(const Shape& shape);

// One result of a node.
struct Value {
  DataType type = DataType::Invalid;
  std::optional<Shape> shape;  // absent: known when the graph runs; so is a length of -1
};

using Attribute = std::variant<int64_t, double, std::vector<int64_t>, std::string>;

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Attribute>> list) : map_(list) {}
  bool has(const std::string& name) const { return map_.count(name) != 0; }
  void set(const std::string& name, Attribute value) { map_[name] = std::move(value); }
  // These throw if the attribute is absent or of another type.
  int64_t integer(const std::string& name) const { return get<int64_t>(name); }
  double real(const std::string& name) const { return get<double>(name); }
  const std::vector<int64_t>& integers(const std::string& name) const { return get<std::vector<int64_t>>(name); }
  const std::string& bytes(const std::string& name) const { return get<std::string>(name); }

 private:
  template <typename T>
  const T& get(const std::string& name) const;
  std::map<std::string, Attribute> map_;
};

struct Node;
using NodePointer = std::shared_ptr<const Node>;

struct Input {
  NodePointer node;
  size_t result = 0;
};

struct Node {
  std::string operation;
  std::vector<Input> inputs;
  Attributes attributes;
  std::vector<Value> results;

  const Value& input(size_t index) const;  // throws if there is none
};

using Values = std::vector<Value>;
// Infers a node's results; the count is that of results the caller asked for.
using Rule = Values(const Node& node, size_t count);

// Throws if nobody evaluates the operation, or its inputs do not fit.
NodePointer make_node(const std::string& operation, std::vector<Input> inputs, Attributes attributes, size_t count);
NodePointer make_placeholder(DataType type, const std::optional<Shape>& shape);

// What one encode runs: the targets' nodes in an order in which inputs come first.
struct Plan {
  std::vector<NodePointer> nodes;  // without the fed ones
  std::vector<Input> feeds;        // in the order of the feeds' views
  std::vector<Input> targets;      // in the order of the results' views
};
// Throws if a target needs a placeholder that is not fed.
Plan plan(std::vector<Input> feeds, std::vector<Input> targets);

// Whether an operation computes as much of its result as the memory holds that it is written to, whatever it was
// recorded with: the gradient of a convolution's source. Apple's words do not say so; PyTorch relies on it in
// transposed convolutions, of which it keeps one graph for all output paddings, and its test_conv_transpose2d passes on
// a Mac.
bool sized_by_memory(const Node& node);

inline bool operator==(const Input& one, const Input& other) {
  return one.node == other.node && one.result == other.result;
}

}  // namespace mpsforge::graph
