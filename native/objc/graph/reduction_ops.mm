#import <MetalPerformanceShadersGraph/MPSGraphReductionOps.h>

#include "recorder.h"

using namespace mpsforge::graph;

@implementation MPSGraph (MPSGraphReductionOps)
REDUCTION(reductionSumWithTensor, "reductionSum")
REDUCTION(reductionMaximumWithTensor, "reductionMaximum")
REDUCTION(reductionMinimumWithTensor, "reductionMinimum")
REDUCTION(reductionMaximumPropagateNaNWithTensor, "reductionMaximumPropagateNaN")
REDUCTION(reductionMinimumPropagateNaNWithTensor, "reductionMinimumPropagateNaN")
REDUCTION(reductionProductWithTensor, "reductionProduct")
REDUCTION(reductionAndWithTensor, "reductionAnd")
REDUCTION(reductionOrWithTensor, "reductionOr")

- (MPSGraphTensor*)reductionArgMaximumWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "reductionArgMaximum", {tensor}, {{"axis", integer(axis)}});
}

- (MPSGraphTensor*)reductionArgMinimumWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "reductionArgMinimum", {tensor}, {{"axis", integer(axis)}});
}

@end
