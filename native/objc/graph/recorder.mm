#include "recorder.h"

#include <stdexcept>
#include <utility>

#include "graph_objects.h"

namespace mpsforge::graph {

namespace {

std::vector<Input> inputs_of(const char* operation, const Tensors& tensors) {
  std::vector<Input> inputs;
  for (MPSGraphTensor* tensor : tensors) {
    if (tensor == nil) {
      throw std::runtime_error("MPSGraph operation " + std::string(operation) + ": input " +
                               std::to_string(inputs.size()) + " is nil");
    }
    inputs.push_back(*tensor->_input);
  }
  return inputs;
}

}  // namespace

NSArray<MPSGraphTensor*>* record_all(MPSGraph* graph, const char* operation, const Tensors& inputs,
                                     Attributes attributes, size_t count) {
  const NodePointer node = make_node(operation, inputs_of(operation, inputs), std::move(attributes), count);
  NSMutableArray<MPSGraphTensor*>* tensors = [NSMutableArray arrayWithCapacity:count];
  for (size_t i = 0; i < count; ++i) [tensors addObject:[graph addTensor:{node, i}]];
  return tensors;
}

MPSGraphTensor* record(MPSGraph* graph, const char* operation, const Tensors& inputs, Attributes attributes) {
  return [graph addTensor:{make_node(operation, inputs_of(operation, inputs), std::move(attributes), 1), 0}];
}

MPSGraphTensor* placeholder(MPSGraph* graph, MPSShape* shape, MPSDataType type) {
  std::optional<Shape> known;
  if (shape != nil) known = integers(shape);
  return [graph addTensor:{make_placeholder(static_cast<DataType>(type), known), 0}];
}

std::vector<int64_t> integers(NSArray<NSNumber*>* numbers) {
  std::vector<int64_t> integers;
  for (NSNumber* number in numbers) integers.push_back([number longLongValue]);
  return integers;
}

NSArray<NSNumber*>* numbers(const std::vector<int64_t>& integers) {
  NSMutableArray<NSNumber*>* numbers = [NSMutableArray arrayWithCapacity:integers.size()];
  for (const int64_t integer : integers) [numbers addObject:[NSNumber numberWithLongLong:integer]];
  return numbers;
}

Tensors list(NSArray<MPSGraphTensor*>* tensors) {
  Tensors listed;
  for (MPSGraphTensor* tensor in tensors) listed.push_back(tensor);
  return listed;
}

Tensors optional(const Tensors& tensors) {
  Tensors present;
  for (MPSGraphTensor* tensor : tensors) {
    if (tensor != nil) present.push_back(tensor);
  }
  return present;
}

// Without axes, an operation is over all of them.
Attributes with_axes(NSArray<NSNumber*>* axes) {
  Attributes attributes;
  if (axes != nil) attributes.set("axes", integers(axes));
  return attributes;
}

Attributes with_shape(Attributes attributes, MPSShape* shape) {
  attributes.set("shape", integers(shape));
  return attributes;
}

}  // namespace mpsforge::graph
