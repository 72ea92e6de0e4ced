#import <MetalPerformanceShadersGraph/MPSGraphNormalizationOps.h>

#include "recorder.h"

using namespace mpsforge::graph;

@implementation MPSGraph (MPSGraphNormalizationOps)
- (MPSGraphTensor*)meanOfTensor:(MPSGraphTensor*)tensor axes:(NSArray<NSNumber*>*)axes name:(NSString*)name {
  return record(self, "mean", {tensor}, with_axes(axes));
}

- (MPSGraphTensor*)varianceOfTensor:(MPSGraphTensor*)tensor axes:(NSArray<NSNumber*>*)axes name:(NSString*)name {
  return record(self, "variance", {tensor}, with_axes(axes));
}

- (MPSGraphTensor*)varianceOfTensor:(MPSGraphTensor*)tensor
                         meanTensor:(MPSGraphTensor*)meanTensor
                               axes:(NSArray<NSNumber*>*)axes
                               name:(NSString*)name {
  return record(self, "varianceWithMean", {tensor, meanTensor}, with_axes(axes));
}

- (MPSGraphTensor*)normalizationWithTensor:(MPSGraphTensor*)tensor
                                meanTensor:(MPSGraphTensor*)mean
                            varianceTensor:(MPSGraphTensor*)variance
                               gammaTensor:(MPSGraphTensor*)gamma
                                betaTensor:(MPSGraphTensor*)beta
                                   epsilon:(float)epsilon
                                      name:(NSString*)name {
  return record(
      self, "normalization", optional({tensor, mean, variance, gamma, beta}),
      {{"epsilon", static_cast<double>(epsilon)}, {"gamma", integer(gamma != nil)}, {"beta", integer(beta != nil)}});
}

- (MPSGraphTensor*)normalizationGammaGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradientTensor
                                                           sourceTensor:(MPSGraphTensor*)sourceTensor
                                                             meanTensor:(MPSGraphTensor*)meanTensor
                                                         varianceTensor:(MPSGraphTensor*)varianceTensor
                                                          reductionAxes:(NSArray<NSNumber*>*)axes
                                                                epsilon:(float)epsilon
                                                                   name:(NSString*)name {
  return record(self, "normalizationGammaGradient", {incomingGradientTensor, sourceTensor, meanTensor, varianceTensor},
                {{"axes", integers(axes)}, {"epsilon", static_cast<double>(epsilon)}});
}

- (MPSGraphTensor*)normalizationBetaGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradientTensor
                                                          sourceTensor:(MPSGraphTensor*)sourceTensor
                                                         reductionAxes:(NSArray<NSNumber*>*)axes
                                                                  name:(NSString*)name {
  return record(self, "normalizationBetaGradient", {incomingGradientTensor, sourceTensor}, with_axes(axes));
}

- (MPSGraphTensor*)normalizationGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradientTensor
                                                      sourceTensor:(MPSGraphTensor*)sourceTensor
                                                        meanTensor:(MPSGraphTensor*)meanTensor
                                                    varianceTensor:(MPSGraphTensor*)varianceTensor
                                                       gammaTensor:(MPSGraphTensor*)gamma
                                               gammaGradientTensor:(MPSGraphTensor*)gammaGradient
                                                betaGradientTensor:(MPSGraphTensor*)betaGradient
                                                     reductionAxes:(NSArray<NSNumber*>*)axes
                                                           epsilon:(float)epsilon
                                                              name:(NSString*)name {
  return record(
      self, "normalizationGradient",
      optional({incomingGradientTensor, sourceTensor, meanTensor, varianceTensor, gamma, gammaGradient, betaGradient}),
      {{"axes", integers(axes)},
       {"epsilon", static_cast<double>(epsilon)},
       {"gamma", integer(gamma != nil)},
       {"gammaGradient", integer(gammaGradient != nil)},
       {"betaGradient", integer(betaGradient != nil)}});
}

@end
