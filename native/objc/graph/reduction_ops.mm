#import <MetalPerformanceShadersGraph/MPSGraphReductionOps.h>

#include "recorder.h"

using namespace mpsforge::graph;

@implementation MPSGraph (MPSGraphReductionOps)
- (MPSGraphTensor*)reductionSumWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "reductionSum", {tensor}, {{"axes", std::vector<int64_t>{axis}}});
}

- (MPSGraphTensor*)reductionSumWithTensor:(MPSGraphTensor*)tensor axes:(NSArray<NSNumber*>*)axes name:(NSString*)name {
  return record(self, "reductionSum", {tensor}, with_axes(axes));
}

- (MPSGraphTensor*)reductionMaximumWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "reductionMaximum", {tensor}, {{"axes", std::vector<int64_t>{axis}}});
}

- (MPSGraphTensor*)reductionMaximumWithTensor:(MPSGraphTensor*)tensor
                                         axes:(NSArray<NSNumber*>*)axes
                                         name:(NSString*)name {
  return record(self, "reductionMaximum", {tensor}, with_axes(axes));
}

- (MPSGraphTensor*)reductionMinimumWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "reductionMinimum", {tensor}, {{"axes", std::vector<int64_t>{axis}}});
}

- (MPSGraphTensor*)reductionMinimumWithTensor:(MPSGraphTensor*)tensor
                                         axes:(NSArray<NSNumber*>*)axes
                                         name:(NSString*)name {
  return record(self, "reductionMinimum", {tensor}, with_axes(axes));
}

- (MPSGraphTensor*)reductionMaximumPropagateNaNWithTensor:(MPSGraphTensor*)tensor
                                                     axis:(NSInteger)axis
                                                     name:(NSString*)name {
  return record(self, "reductionMaximumPropagateNaN", {tensor}, {{"axes", std::vector<int64_t>{axis}}});
}

- (MPSGraphTensor*)reductionMaximumPropagateNaNWithTensor:(MPSGraphTensor*)tensor
                                                     axes:(NSArray<NSNumber*>*)axes
                                                     name:(NSString*)name {
  return record(self, "reductionMaximumPropagateNaN", {tensor}, with_axes(axes));
}

- (MPSGraphTensor*)reductionMinimumPropagateNaNWithTensor:(MPSGraphTensor*)tensor
                                                     axis:(NSInteger)axis
                                                     name:(NSString*)name {
  return record(self, "reductionMinimumPropagateNaN", {tensor}, {{"axes", std::vector<int64_t>{axis}}});
}

- (MPSGraphTensor*)reductionMinimumPropagateNaNWithTensor:(MPSGraphTensor*)tensor
                                                     axes:(NSArray<NSNumber*>*)axes
                                                     name:(NSString*)name {
  return record(self, "reductionMinimumPropagateNaN", {tensor}, with_axes(axes));
}

- (MPSGraphTensor*)reductionProductWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "reductionProduct", {tensor}, {{"axes", std::vector<int64_t>{axis}}});
}

- (MPSGraphTensor*)reductionProductWithTensor:(MPSGraphTensor*)tensor
                                         axes:(NSArray<NSNumber*>*)axes
                                         name:(NSString*)name {
  return record(self, "reductionProduct", {tensor}, with_axes(axes));
}

- (MPSGraphTensor*)reductionAndWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "reductionAnd", {tensor}, {{"axes", std::vector<int64_t>{axis}}});
}

- (MPSGraphTensor*)reductionAndWithTensor:(MPSGraphTensor*)tensor axes:(NSArray<NSNumber*>*)axes name:(NSString*)name {
  return record(self, "reductionAnd", {tensor}, with_axes(axes));
}

- (MPSGraphTensor*)reductionOrWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "reductionOr", {tensor}, {{"axes", std::vector<int64_t>{axis}}});
}

- (MPSGraphTensor*)reductionOrWithTensor:(MPSGraphTensor*)tensor axes:(NSArray<NSNumber*>*)axes name:(NSString*)name {
  return record(self, "reductionOr", {tensor}, with_axes(axes));
}

- (MPSGraphTensor*)reductionArgMaximumWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "reductionArgMaximum", {tensor}, {{"axis", integer(axis)}});
}

- (MPSGraphTensor*)reductionArgMinimumWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "reductionArgMinimum", {tensor}, {{"axis", integer(axis)}});
}

@end
