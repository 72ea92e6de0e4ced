#include "graph.h"

#include <atomic>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "evaluator_hook.h"
#include "infer_rules.h"

namespace mpsforge::graph {
namespace {

struct TypeFacts {
  DataType type;
  const char* name;
  size_t bytes;
};

constexpr TypeFacts kTypes[] = {
    {DataType::Float32, "Float32", 4},   {DataType::Float16, "Float16", 2},
    {DataType::BFloat16, "BFloat16", 2}, {DataType::ComplexFloat32, "ComplexFloat32", 8},
    {DataType::Int8, "Int8", 1},         {DataType::ComplexFloat16, "ComplexFloat16", 4},
    {DataType::Int16, "Int16", 2},       {DataType::Int32, "Int32", 4},
    {DataType::Int64, "Int64", 8},       {DataType::UInt8, "UInt8", 1},
    {DataType::UInt16, "UInt16", 2},     {DataType::UInt32, "UInt32", 4},
    {DataType::UInt64, "UInt64", 8},     {DataType::Bool, "Bool", 1},
};

const TypeFacts* facts_of(DataType type) {
  for (const TypeFacts& facts : kTypes) {
    if (facts.type == type) return &facts;
  }
  return nullptr;
}

std::atomic<const Evaluator*> installed{nullptr};

}  // namespace

const char* name_of(DataType type) {
  const TypeFacts* facts = facts_of(type);
  return facts ? facts->name : "unknown data type";
}

size_t bytes_of(DataType type) {
  const TypeFacts* facts = facts_of(type);
  if (!facts)
    throw std::runtime_error("MPSDataType " + std::to_string(static_cast<uint32_t>(type)) + " is not supported");
  return facts->bytes;
}

bool is_floating(DataType type) { return (static_cast<uint32_t>(type) & 0x10000000u) != 0; }

std::string text_of(const Shape& shape) {
  std::string text = "[";
  for (const int64_t length : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(length);
  return text + "]";
}

template <typename T>
const T& Attributes::get(const std::string& name) const {
  const auto found = map_.find(name);
  if (found == map_.end()) throw std::logic_error("a graph node has no attribute " + name);
  const T* value = std::get_if<T>(&found->second);
  if (!value) throw std::logic_error("the attribute " + name + " of a graph node has another type");
  return *value;
}

template const int64_t& Attributes::get(const std::string&) const;
template const double& Attributes::get(const std::string&) const;
template const std::vector<int64_t>& Attributes::get(const std::string&) const;
template const std::string& Attributes::get(const std::string&) const;

const Value& Node::input(size_t index) const {
  if (index >= inputs.size()) throw std::logic_error(operation + " has no input " + std::to_string(index));
  return inputs[index].node->results.at(inputs[index].result);
}

NodePointer make_node(const std::string& operation, std::vector<Input> inputs, Attributes attributes, size_t count) {
  const Evaluator* computes = evaluator();
  Rule* const rule = computes ? computes->rule(operation) : nullptr;
  if (!rule) {
    throw std::runtime_error("MPSGraph operation " + operation + " is not implemented by mpsforge's software MPSGraph");
  }
  auto node = std::make_shared<Node>();
  node->operation = operation;
  node->inputs = std::move(inputs);
  node->attributes = std::move(attributes);
  node->results = rule(*node, count);
  if (node->results.size() != count) reject(*node, "it has " + std::to_string(node->results.size()) + " results");
  return node;
}

NodePointer make_placeholder(DataType type, const std::optional<Shape>& shape) {
  bytes_of(type);  // throws
  auto node = std::make_shared<Node>();
  node->operation = "placeholder";
  node->results = {{type, shape}};
  return node;
}

Plan plan(std::vector<Input> feeds, std::vector<Input> targets) {
  Plan made;
  std::unordered_set<const Node*> done;
  for (const Input& feed : feeds) done.insert(feed.node.get());
  // Depth first without recursion: a graph can be deep. A node is added when its inputs have been.
  std::vector<std::pair<NodePointer, size_t>> path;
  for (const Input& target : targets) path.emplace_back(target.node, 0);
  while (!path.empty()) {
    const NodePointer node = path.back().first;
    if (done.count(node.get()) != 0) {
      path.pop_back();
      continue;
    }
    const size_t next = path.back().second++;
    if (next < node->inputs.size()) {
      path.emplace_back(node->inputs[next].node, 0);
      continue;
    }
    if (node->operation == "placeholder") throw std::runtime_error("a placeholder that a target needs is not fed");
    made.nodes.push_back(node);
    done.insert(node.get());
    path.pop_back();
  }
  made.feeds = std::move(feeds);
  made.targets = std::move(targets);
  return made;
}

bool sized_by_memory(const Node& node) {
  return node.operation == "convolutionDataGradient" || node.operation == "depthwiseConvolutionDataGradient";
}

void set_evaluator(const Evaluator* evaluator) { installed.store(evaluator, std::memory_order_release); }

const Evaluator* evaluator() { return installed.load(std::memory_order_acquire); }

}  // namespace mpsforge::graph
