// How the methods of MPSGraph add a node.
#pragma once

#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#include <vector>

#include "graph.h"

@interface MPSGraphTensor () {
 @public
  mpsforge::graph::Input* _input;
}
- (instancetype)initWithInput:(const mpsforge::graph::Input&)input;
@end

namespace mpsforge::graph {

using Tensors = std::vector<MPSGraphTensor*>;

// A node's first result, or all of them. They throw a C++ exception that names the operation if it is not known or its
// inputs do not fit.
MPSGraphTensor* record(MPSGraph* graph, const char* operation, const Tensors& inputs, Attributes attributes = {});
NSArray<MPSGraphTensor*>* record_all(MPSGraph* graph, const char* operation, const Tensors& inputs,
                                     Attributes attributes, size_t count);
MPSGraphTensor* placeholder(MPSGraph* graph, MPSShape* shape, MPSDataType type);

template <typename T>
Attribute integer(T value) {
  return static_cast<int64_t>(value);
}
std::vector<int64_t> integers(NSArray<NSNumber*>* numbers);
NSArray<NSNumber*>* numbers(const std::vector<int64_t>& integers);
Tensors list(NSArray<MPSGraphTensor*>* tensors);
Tensors optional(const Tensors& tensors);  // without those that are nil
Attributes with_axes(NSArray<NSNumber*>* axes);
Attributes with_shape(Attributes attributes, MPSShape* shape);

}  // namespace mpsforge::graph

// Methods of MPSGraph that record what they are given and no more, by the first part of their selectors; REDUCTION:
// both over one axis and over several.
#define UNARY(selector, operation)                                              \
  -(MPSGraphTensor*)selector : (MPSGraphTensor*)tensor name : (NSString*)name { \
    return mpsforge::graph::record(self, operation, {tensor});                  \
  }
#define BINARY(selector, operation)                                                                       \
  -(MPSGraphTensor*)selector : (MPSGraphTensor*)primary secondaryTensor : (MPSGraphTensor*)secondary name \
      : (NSString*)name {                                                                                 \
    return mpsforge::graph::record(self, operation, {primary, secondary});                                \
  }
#define REDUCTION(selector, operation)                                                                           \
  -(MPSGraphTensor*)selector : (MPSGraphTensor*)tensor axis : (NSInteger)axis name : (NSString*)name {           \
    return mpsforge::graph::record(self, operation, {tensor}, {{"axes", std::vector<int64_t>{axis}}});           \
  }                                                                                                              \
  -(MPSGraphTensor*)selector : (MPSGraphTensor*)tensor axes : (NSArray<NSNumber*>*)axes name : (NSString*)name { \
    return mpsforge::graph::record(self, operation, {tensor}, mpsforge::graph::with_axes(axes));                 \
  }
