#import <MetalPerformanceShadersGraph/MPSGraphMatrixOps.h>

#include "recorder.h"

using namespace mpsforge::graph;

@implementation MPSGraph (MPSGraphMatrixOps)
BINARY(matrixMultiplicationWithPrimaryTensor, "matrixMultiplication")

- (MPSGraphTensor*)scaledDotProductAttentionWithQueryTensor:(MPSGraphTensor*)queryTensor
                                                  keyTensor:(MPSGraphTensor*)keyTensor
                                                valueTensor:(MPSGraphTensor*)valueTensor
                                                 maskTensor:(MPSGraphTensor*)maskTensor
                                                      scale:(float)scale
                                                       name:(NSString*)name {
  return record(self, "scaledDotProductAttention", optional({queryTensor, keyTensor, valueTensor, maskTensor}),
                {{"scale", static_cast<double>(scale)}});
}

- (MPSGraphTensor*)scaledDotProductAttentionWithQueryTensor:(MPSGraphTensor*)queryTensor
                                                  keyTensor:(MPSGraphTensor*)keyTensor
                                                valueTensor:(MPSGraphTensor*)valueTensor
                                                      scale:(float)scale
                                                       name:(NSString*)name {
  return record(self, "scaledDotProductAttention", {queryTensor, keyTensor, valueTensor},
                {{"scale", static_cast<double>(scale)}});
}

- (MPSGraphTensor*)bandPartWithTensor:(MPSGraphTensor*)inputTensor
                             numLower:(NSInteger)numLower
                             numUpper:(NSInteger)numUpper
                                 name:(NSString*)name {
  return record(self, "bandPart", {inputTensor}, {{"lower", integer(numLower)}, {"upper", integer(numUpper)}});
}

- (MPSGraphTensor*)bandPartWithTensor:(MPSGraphTensor*)inputTensor
                       numLowerTensor:(MPSGraphTensor*)numLowerTensor
                       numUpperTensor:(MPSGraphTensor*)numUpperTensor
                                 name:(NSString*)name {
  return record(self, "bandPartByTensors", {inputTensor, numLowerTensor, numUpperTensor});
}

UNARY(inverseOfTensor, "inverse")

@end
