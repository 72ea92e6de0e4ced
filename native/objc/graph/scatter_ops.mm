#import <MetalPerformanceShadersGraph/MPSGraphScatterOps.h>

#include "recorder.h"

using namespace mpsforge::graph;

@implementation MPSGraph (MPSGraphScatterOps)
- (MPSGraphTensor*)scatterWithUpdatesTensor:(MPSGraphTensor*)updatesTensor
                              indicesTensor:(MPSGraphTensor*)indicesTensor
                                      shape:(MPSShape*)shape
                                       axis:(NSInteger)axis
                                       mode:(MPSGraphScatterMode)mode
                                       name:(NSString*)name {
  return record(self, "scatter", {updatesTensor, indicesTensor},
                {{"shape", integers(shape)}, {"axis", integer(axis)}, {"mode", integer(mode)}});
}

- (MPSGraphTensor*)scatterWithDataTensor:(MPSGraphTensor*)dataTensor
                           updatesTensor:(MPSGraphTensor*)updatesTensor
                           indicesTensor:(MPSGraphTensor*)indicesTensor
                                    axis:(NSInteger)axis
                                    mode:(MPSGraphScatterMode)mode
                                    name:(NSString*)name {
  return record(self, "scatterInto", {dataTensor, updatesTensor, indicesTensor},
                {{"axis", integer(axis)}, {"mode", integer(mode)}});
}

- (MPSGraphTensor*)scatterNDWithUpdatesTensor:(MPSGraphTensor*)updatesTensor
                                indicesTensor:(MPSGraphTensor*)indicesTensor
                                        shape:(MPSShape*)shape
                              batchDimensions:(NSUInteger)batchDimensions
                                         mode:(MPSGraphScatterMode)mode
                                         name:(NSString*)name {
  return record(self, "scatterND", {updatesTensor, indicesTensor},
                {{"shape", integers(shape)}, {"batch", integer(batchDimensions)}, {"mode", integer(mode)}});
}

- (MPSGraphTensor*)scatterNDWithUpdatesTensor:(MPSGraphTensor*)updatesTensor
                                indicesTensor:(MPSGraphTensor*)indicesTensor
                                        shape:(MPSShape*)shape
                              batchDimensions:(NSUInteger)batchDimensions
                                         name:(NSString*)name {
  return record(
      self, "scatterND", {updatesTensor, indicesTensor},
      {{"shape", integers(shape)}, {"batch", integer(batchDimensions)}, {"mode", integer(MPSGraphScatterModeAdd)}});
}

- (MPSGraphTensor*)scatterNDWithDataTensor:(MPSGraphTensor*)dataTensor
                             updatesTensor:(MPSGraphTensor*)updatesTensor
                             indicesTensor:(MPSGraphTensor*)indicesTensor
                           batchDimensions:(NSUInteger)batchDimensions
                                      mode:(MPSGraphScatterMode)mode
                                      name:(NSString*)name {
  return record(self, "scatterNDInto", {dataTensor, updatesTensor, indicesTensor},
                {{"batch", integer(batchDimensions)}, {"mode", integer(mode)}});
}

- (MPSGraphTensor*)scatterAlongAxis:(NSInteger)axis
                  withUpdatesTensor:(MPSGraphTensor*)updatesTensor
                      indicesTensor:(MPSGraphTensor*)indicesTensor
                              shape:(MPSShape*)shape
                               mode:(MPSGraphScatterMode)mode
                               name:(NSString*)name {
  return record(self, "scatterAlongAxis", {updatesTensor, indicesTensor},
                {{"shape", integers(shape)}, {"axis", integer(axis)}, {"mode", integer(mode)}});
}

- (MPSGraphTensor*)scatterAlongAxis:(NSInteger)axis
                     withDataTensor:(MPSGraphTensor*)dataTensor
                      updatesTensor:(MPSGraphTensor*)updatesTensor
                      indicesTensor:(MPSGraphTensor*)indicesTensor
                               mode:(MPSGraphScatterMode)mode
                               name:(NSString*)name {
  return record(self, "scatterAlongAxisInto", {dataTensor, updatesTensor, indicesTensor},
                {{"axis", integer(axis)}, {"mode", integer(mode)}});
}

@end
