#import <MetalPerformanceShadersGraph/MPSGraphSortOps.h>

#include "recorder.h"

using namespace mpsforge::graph;

namespace {

Attributes cumulative_attributes(NSInteger axis, BOOL exclusive, BOOL reverse) {
  return {{"axis", integer(axis)}, {"exclusive", integer(exclusive)}, {"reverse", integer(reverse)}};
}

}  // namespace

@implementation MPSGraph (MPSGraphSortOps)
- (MPSGraphTensor*)sortWithTensor:(MPSGraphTensor*)tensor
                             axis:(NSInteger)axis
                       descending:(BOOL)descending
                             name:(NSString*)name {
  return record(self, "sort", {tensor}, {{"axis", integer(axis)}, {"descending", integer(descending)}});
}

- (MPSGraphTensor*)sortWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "sort", {tensor}, {{"axis", integer(axis)}, {"descending", integer(0)}});
}

- (MPSGraphTensor*)sortWithTensor:(MPSGraphTensor*)tensor
                       axisTensor:(MPSGraphTensor*)axisTensor
                       descending:(BOOL)descending
                             name:(NSString*)name {
  return record(self, "sortByTensor", {tensor, axisTensor}, {{"descending", integer(descending)}});
}

- (MPSGraphTensor*)sortWithTensor:(MPSGraphTensor*)tensor axisTensor:(MPSGraphTensor*)axisTensor name:(NSString*)name {
  return record(self, "sortByTensor", {tensor, axisTensor}, {{"descending", integer(0)}});
}

- (MPSGraphTensor*)argSortWithTensor:(MPSGraphTensor*)tensor
                                axis:(NSInteger)axis
                          descending:(BOOL)descending
                                name:(NSString*)name {
  return record(self, "argSort", {tensor}, {{"axis", integer(axis)}, {"descending", integer(descending)}});
}

- (MPSGraphTensor*)argSortWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "argSort", {tensor}, {{"axis", integer(axis)}, {"descending", integer(0)}});
}

- (MPSGraphTensor*)argSortWithTensor:(MPSGraphTensor*)tensor
                          axisTensor:(MPSGraphTensor*)axisTensor
                          descending:(BOOL)descending
                                name:(NSString*)name {
  return record(self, "argSortByTensor", {tensor, axisTensor}, {{"descending", integer(descending)}});
}

- (MPSGraphTensor*)argSortWithTensor:(MPSGraphTensor*)tensor
                          axisTensor:(MPSGraphTensor*)axisTensor
                                name:(NSString*)name {
  return record(self, "argSortByTensor", {tensor, axisTensor}, {{"descending", integer(0)}});
}

- (NSArray<MPSGraphTensor*>*)topKWithSourceTensor:(MPSGraphTensor*)source k:(NSUInteger)k name:(NSString*)name {
  return record_all(self, "topK", {source}, {{"k", integer(k)}, {"axis", integer(-1)}}, 2);
}

- (NSArray<MPSGraphTensor*>*)topKWithSourceTensor:(MPSGraphTensor*)source
                                             axis:(NSInteger)axis
                                                k:(NSUInteger)k
                                             name:(NSString*)name {
  return record_all(self, "topK", {source}, {{"k", integer(k)}, {"axis", integer(axis)}}, 2);
}

UNARY(nonZeroIndicesOfTensor, "nonZeroIndices")

- (MPSGraphTensor*)cumulativeSumWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "cumulativeSum", {tensor}, cumulative_attributes(axis, NO, NO));
}

- (MPSGraphTensor*)cumulativeSumWithTensor:(MPSGraphTensor*)tensor
                                      axis:(NSInteger)axis
                                 exclusive:(BOOL)exclusive
                                   reverse:(BOOL)reverse
                                      name:(NSString*)name {
  return record(self, "cumulativeSum", {tensor}, cumulative_attributes(axis, exclusive, reverse));
}

- (MPSGraphTensor*)cumulativeProductWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "cumulativeProduct", {tensor}, cumulative_attributes(axis, NO, NO));
}

- (MPSGraphTensor*)cumulativeProductWithTensor:(MPSGraphTensor*)tensor
                                          axis:(NSInteger)axis
                                     exclusive:(BOOL)exclusive
                                       reverse:(BOOL)reverse
                                          name:(NSString*)name {
  return record(self, "cumulativeProduct", {tensor}, cumulative_attributes(axis, exclusive, reverse));
}

- (MPSGraphTensor*)cumulativeMinimumWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "cumulativeMinimum", {tensor}, cumulative_attributes(axis, NO, NO));
}

- (MPSGraphTensor*)cumulativeMinimumWithTensor:(MPSGraphTensor*)tensor
                                          axis:(NSInteger)axis
                                     exclusive:(BOOL)exclusive
                                       reverse:(BOOL)reverse
                                          name:(NSString*)name {
  return record(self, "cumulativeMinimum", {tensor}, cumulative_attributes(axis, exclusive, reverse));
}

- (MPSGraphTensor*)cumulativeMaximumWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "cumulativeMaximum", {tensor}, cumulative_attributes(axis, NO, NO));
}

- (MPSGraphTensor*)cumulativeMaximumWithTensor:(MPSGraphTensor*)tensor
                                          axis:(NSInteger)axis
                                     exclusive:(BOOL)exclusive
                                       reverse:(BOOL)reverse
                                          name:(NSString*)name {
  return record(self, "cumulativeMaximum", {tensor}, cumulative_attributes(axis, exclusive, reverse));
}

@end
