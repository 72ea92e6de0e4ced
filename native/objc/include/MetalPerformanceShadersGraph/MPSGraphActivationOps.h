#pragma once

#import <MetalPerformanceShadersGraph/MPSGraph.h>

@interface MPSGraph (MPSGraphActivationOps)
- (MPSGraphTensor*)reLUWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name;
- (MPSGraphTensor*)reLUGradientWithIncomingGradient:(MPSGraphTensor*)gradient
                                       sourceTensor:(MPSGraphTensor*)source
                                               name:(NSString*)name;
- (MPSGraphTensor*)sigmoidWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name;
- (MPSGraphTensor*)sigmoidGradientWithIncomingGradient:(MPSGraphTensor*)gradient
                                          sourceTensor:(MPSGraphTensor*)source
                                                  name:(NSString*)name;
- (MPSGraphTensor*)leakyReLUWithTensor:(MPSGraphTensor*)tensor alpha:(double)alpha name:(NSString*)name;
- (MPSGraphTensor*)leakyReLUWithTensor:(MPSGraphTensor*)tensor
                           alphaTensor:(MPSGraphTensor*)alphaTensor
                                  name:(NSString*)name;
- (MPSGraphTensor*)softMaxWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name;
@end
