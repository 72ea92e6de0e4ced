#import <MetalPerformanceShadersGraph/MPSGraphActivationOps.h>

#include "recorder.h"

using namespace mpsforge::graph;

@implementation MPSGraph (MPSGraphActivationOps)
UNARY(reLUWithTensor, "reLU")

- (MPSGraphTensor*)reLUGradientWithIncomingGradient:(MPSGraphTensor*)gradient
                                       sourceTensor:(MPSGraphTensor*)source
                                               name:(NSString*)name {
  return record(self, "reLUGradient", {gradient, source});
}

UNARY(sigmoidWithTensor, "sigmoid")

- (MPSGraphTensor*)sigmoidGradientWithIncomingGradient:(MPSGraphTensor*)gradient
                                          sourceTensor:(MPSGraphTensor*)source
                                                  name:(NSString*)name {
  return record(self, "sigmoidGradient", {gradient, source});
}

- (MPSGraphTensor*)leakyReLUWithTensor:(MPSGraphTensor*)tensor alpha:(double)alpha name:(NSString*)name {
  return record(self, "leakyReLU", {tensor}, {{"alpha", alpha}});
}

- (MPSGraphTensor*)leakyReLUWithTensor:(MPSGraphTensor*)tensor
                           alphaTensor:(MPSGraphTensor*)alphaTensor
                                  name:(NSString*)name {
  return record(self, "leakyReLUWithAlpha", {tensor, alphaTensor});
}

- (MPSGraphTensor*)softMaxWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "softMax", {tensor}, {{"axis", integer(axis)}});
}

@end
