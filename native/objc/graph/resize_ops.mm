#import <MetalPerformanceShadersGraph/MPSGraphResizeOps.h>

#include "recorder.h"

using namespace mpsforge::graph;

@implementation MPSGraph (MPSGraphResizeOps)
- (MPSGraphTensor*)resizeNearestWithTensor:(MPSGraphTensor*)imagesTensor
                                sizeTensor:(MPSGraphTensor*)size
                       nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                              centerResult:(BOOL)centerResult
                              alignCorners:(BOOL)alignCorners
                                    layout:(MPSGraphTensorNamedDataLayout)layout
                                      name:(NSString*)name {
  return record(self, "resizeNearest", {imagesTensor, size});
}

- (MPSGraphTensor*)resizeNearestWithTensor:(MPSGraphTensor*)imagesTensor
                                sizeTensor:(MPSGraphTensor*)size
                         scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                       nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                                    layout:(MPSGraphTensorNamedDataLayout)layout
                                      name:(NSString*)name {
  return record(self, "resizeNearest", {imagesTensor, size, scaleOffset});
}

- (MPSGraphTensor*)resizeBilinearWithTensor:(MPSGraphTensor*)imagesTensor
                                 sizeTensor:(MPSGraphTensor*)size
                               centerResult:(BOOL)centerResult
                               alignCorners:(BOOL)alignCorners
                                     layout:(MPSGraphTensorNamedDataLayout)layout
                                       name:(NSString*)name {
  return record(self, "resizeBilinear", {imagesTensor, size});
}

- (MPSGraphTensor*)resizeBilinearWithTensor:(MPSGraphTensor*)imagesTensor
                                 sizeTensor:(MPSGraphTensor*)size
                          scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                                     layout:(MPSGraphTensorNamedDataLayout)layout
                                       name:(NSString*)name {
  return record(self, "resizeBilinear", {imagesTensor, size, scaleOffset});
}

- (MPSGraphTensor*)resizeNearestWithGradientTensor:(MPSGraphTensor*)gradient
                                             input:(MPSGraphTensor*)input
                               nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                                      centerResult:(BOOL)centerResult
                                      alignCorners:(BOOL)alignCorners
                                            layout:(MPSGraphTensorNamedDataLayout)layout
                                              name:(NSString*)name {
  return record(self, "resizeNearestGradient", {gradient, input});
}

- (MPSGraphTensor*)resizeNearestWithGradientTensor:(MPSGraphTensor*)gradient
                                             input:(MPSGraphTensor*)input
                                 scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                               nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                                            layout:(MPSGraphTensorNamedDataLayout)layout
                                              name:(NSString*)name {
  return record(self, "resizeNearestGradient", {gradient, input, scaleOffset});
}

- (MPSGraphTensor*)resizeBilinearWithGradientTensor:(MPSGraphTensor*)gradient
                                              input:(MPSGraphTensor*)input
                                       centerResult:(BOOL)centerResult
                                       alignCorners:(BOOL)alignCorners
                                             layout:(MPSGraphTensorNamedDataLayout)layout
                                               name:(NSString*)name {
  return record(self, "resizeBilinearGradient", {gradient, input});
}

- (MPSGraphTensor*)resizeBilinearWithGradientTensor:(MPSGraphTensor*)gradient
                                              input:(MPSGraphTensor*)input
                                  scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                                             layout:(MPSGraphTensorNamedDataLayout)layout
                                               name:(NSString*)name {
  return record(self, "resizeBilinearGradient", {gradient, input, scaleOffset});
}

- (MPSGraphTensor*)sampleGridWithSourceTensor:(MPSGraphTensor*)source
                             coordinateTensor:(MPSGraphTensor*)coordinates
                                       layout:(MPSGraphTensorNamedDataLayout)layout
                         normalizeCoordinates:(BOOL)normalizeCoordinates
                          relativeCoordinates:(BOOL)relativeCoordinates
                                 alignCorners:(BOOL)alignCorners
                                  paddingMode:(MPSGraphPaddingMode)paddingMode
                                 samplingMode:(MPSGraphResizeMode)samplingMode
                                constantValue:(double)constantValue
                                         name:(NSString*)name {
  return record(self, "sampleGrid", {source, coordinates});
}

- (MPSGraphTensor*)sampleGridWithSourceTensor:(MPSGraphTensor*)source
                             coordinateTensor:(MPSGraphTensor*)coordinates
                                       layout:(MPSGraphTensorNamedDataLayout)layout
                         normalizeCoordinates:(BOOL)normalizeCoordinates
                          relativeCoordinates:(BOOL)relativeCoordinates
                                 alignCorners:(BOOL)alignCorners
                                  paddingMode:(MPSGraphPaddingMode)paddingMode
                          nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                                constantValue:(double)constantValue
                                         name:(NSString*)name {
  return record(self, "sampleGrid", {source, coordinates});
}

@end
