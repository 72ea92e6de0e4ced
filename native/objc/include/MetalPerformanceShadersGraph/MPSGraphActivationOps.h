#ifndef MPSFORGE_NATIVE_OBJC_MPSGRAPHACTIVATIONOPS_H
#define MPSFORGE_NATIVE_OBJC_MPSGRAPHACTIVATIONOPS_H

#import <MetalPerformanceShadersGraph/MPSGraph.h>

typedef NS_ENUM(uint64_t, MPSGraphLossReductionType) {
  MPSGraphLossReductionTypeNone = 0,
  MPSGraphLossReductionTypeAxis = 0,
  MPSGraphLossReductionTypeSum = 1,
  MPSGraphLossReductionTypeMean = 2,
};

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
- (MPSGraphTensor*)leakyReLUGradientWithIncomingGradient:(MPSGraphTensor*)gradient
                                            sourceTensor:(MPSGraphTensor*)source
                                             alphaTensor:(MPSGraphTensor*)alphaTensor
                                                    name:(NSString*)name;
- (MPSGraphTensor*)softMaxWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name;
- (MPSGraphTensor*)softMaxGradientWithIncomingGradient:(MPSGraphTensor*)gradient
                                          sourceTensor:(MPSGraphTensor*)source
                                                  axis:(NSInteger)axis
                                                  name:(NSString*)name;
- (MPSGraphTensor*)softMaxCrossEntropyWithSourceTensor:(MPSGraphTensor*)source
                                          labelsTensor:(MPSGraphTensor*)labels
                                                  axis:(NSInteger)axis
                                         reductionType:(MPSGraphLossReductionType)reduction
                                                  name:(NSString*)name;
@end

#endif
