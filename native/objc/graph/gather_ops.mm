#import <MetalPerformanceShadersGraph/MPSGraphGatherOps.h>

#include "recorder.h"

using namespace mpsforge::graph;

@implementation MPSGraph (MPSGraphGatherOps)
- (MPSGraphTensor*)gatherWithUpdatesTensor:(MPSGraphTensor*)updatesTensor
                             indicesTensor:(MPSGraphTensor*)indicesTensor
                                      axis:(NSUInteger)axis
                           batchDimensions:(NSUInteger)batchDimensions
                                      name:(NSString*)name {
  return record(self, "gather", {updatesTensor, indicesTensor},
                {{"axis", integer(axis)}, {"batch", integer(batchDimensions)}});
}

- (MPSGraphTensor*)gatherNDWithUpdatesTensor:(MPSGraphTensor*)updatesTensor
                               indicesTensor:(MPSGraphTensor*)indicesTensor
                             batchDimensions:(NSUInteger)batchDimensions
                                        name:(NSString*)name {
  return record(self, "gatherND", {updatesTensor, indicesTensor}, {{"batch", integer(batchDimensions)}});
}

- (MPSGraphTensor*)gatherAlongAxis:(NSInteger)axis
                 withUpdatesTensor:(MPSGraphTensor*)updatesTensor
                     indicesTensor:(MPSGraphTensor*)indicesTensor
                              name:(NSString*)name {
  return record(self, "gatherAlongAxis", {updatesTensor, indicesTensor}, {{"axis", integer(axis)}});
}

- (MPSGraphTensor*)oneHotWithIndicesTensor:(MPSGraphTensor*)indicesTensor
                                     depth:(NSUInteger)depth
                                      axis:(NSUInteger)axis
                                  dataType:(MPSDataType)dataType
                                   onValue:(double)onValue
                                  offValue:(double)offValue
                                      name:(NSString*)name {
  return record(self, "oneHot", {indicesTensor},
                {{"depth", integer(depth)},
                 {"axis", integer(axis)},
                 {"type", integer(dataType)},
                 {"on", onValue},
                 {"off", offValue}});
}

- (MPSGraphTensor*)oneHotWithIndicesTensor:(MPSGraphTensor*)indicesTensor
                                     depth:(NSUInteger)depth
                                  dataType:(MPSDataType)dataType
                                      name:(NSString*)name {
  return record(
      self, "oneHot", {indicesTensor},
      {{"depth", integer(depth)}, {"axis", integer(-1)}, {"type", integer(dataType)}, {"on", 1.0}, {"off", 0.0}});
}

@end
