#pragma once

#import <MetalPerformanceShadersGraph/MPSGraph.h>

typedef NS_ENUM(NSUInteger, MPSGraphResizeMode) {
  MPSGraphResizeNearest = 0,
  MPSGraphResizeBilinear = 1,
};

typedef NS_ENUM(NSUInteger, MPSGraphResizeNearestRoundingMode) {
  MPSGraphResizeNearestRoundingModeRoundPreferCeil = 0,
  MPSGraphResizeNearestRoundingModeRoundPreferFloor = 1,
  MPSGraphResizeNearestRoundingModeCeil = 2,
  MPSGraphResizeNearestRoundingModeFloor = 3,
  MPSGraphResizeNearestRoundingModeRoundToEven = 4,
  MPSGraphResizeNearestRoundingModeRoundToOdd = 5,
};

@interface MPSGraph (MPSGraphResizeOps)
- (MPSGraphTensor*)resizeNearestWithTensor:(MPSGraphTensor*)imagesTensor
                                sizeTensor:(MPSGraphTensor*)size
                       nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                              centerResult:(BOOL)centerResult
                              alignCorners:(BOOL)alignCorners
                                    layout:(MPSGraphTensorNamedDataLayout)layout
                                      name:(NSString*)name;
- (MPSGraphTensor*)resizeNearestWithTensor:(MPSGraphTensor*)imagesTensor
                                sizeTensor:(MPSGraphTensor*)size
                         scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                       nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                                    layout:(MPSGraphTensorNamedDataLayout)layout
                                      name:(NSString*)name;
- (MPSGraphTensor*)resizeBilinearWithTensor:(MPSGraphTensor*)imagesTensor
                                 sizeTensor:(MPSGraphTensor*)size
                               centerResult:(BOOL)centerResult
                               alignCorners:(BOOL)alignCorners
                                     layout:(MPSGraphTensorNamedDataLayout)layout
                                       name:(NSString*)name;
- (MPSGraphTensor*)resizeBilinearWithTensor:(MPSGraphTensor*)imagesTensor
                                 sizeTensor:(MPSGraphTensor*)size
                          scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                                     layout:(MPSGraphTensorNamedDataLayout)layout
                                       name:(NSString*)name;
- (MPSGraphTensor*)resizeNearestWithGradientTensor:(MPSGraphTensor*)gradient
                                             input:(MPSGraphTensor*)input
                               nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                                      centerResult:(BOOL)centerResult
                                      alignCorners:(BOOL)alignCorners
                                            layout:(MPSGraphTensorNamedDataLayout)layout
                                              name:(NSString*)name;
- (MPSGraphTensor*)resizeNearestWithGradientTensor:(MPSGraphTensor*)gradient
                                             input:(MPSGraphTensor*)input
                                 scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                               nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                                            layout:(MPSGraphTensorNamedDataLayout)layout
                                              name:(NSString*)name;
- (MPSGraphTensor*)resizeBilinearWithGradientTensor:(MPSGraphTensor*)gradient
                                              input:(MPSGraphTensor*)input
                                       centerResult:(BOOL)centerResult
                                       alignCorners:(BOOL)alignCorners
                                             layout:(MPSGraphTensorNamedDataLayout)layout
                                               name:(NSString*)name;
- (MPSGraphTensor*)resizeBilinearWithGradientTensor:(MPSGraphTensor*)gradient
                                              input:(MPSGraphTensor*)input
                                  scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                                             layout:(MPSGraphTensorNamedDataLayout)layout
                                               name:(NSString*)name;
- (MPSGraphTensor*)sampleGridWithSourceTensor:(MPSGraphTensor*)source
                             coordinateTensor:(MPSGraphTensor*)coordinates
                                       layout:(MPSGraphTensorNamedDataLayout)layout
                         normalizeCoordinates:(BOOL)normalizeCoordinates
                          relativeCoordinates:(BOOL)relativeCoordinates
                                 alignCorners:(BOOL)alignCorners
                                  paddingMode:(MPSGraphPaddingMode)paddingMode
                                 samplingMode:(MPSGraphResizeMode)samplingMode
                                constantValue:(double)constantValue
                                         name:(NSString*)name;
- (MPSGraphTensor*)sampleGridWithSourceTensor:(MPSGraphTensor*)source
                             coordinateTensor:(MPSGraphTensor*)coordinates
                                       layout:(MPSGraphTensorNamedDataLayout)layout
                         normalizeCoordinates:(BOOL)normalizeCoordinates
                          relativeCoordinates:(BOOL)relativeCoordinates
                                 alignCorners:(BOOL)alignCorners
                                  paddingMode:(MPSGraphPaddingMode)paddingMode
                          nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                                constantValue:(double)constantValue
                                         name:(NSString*)name;
@end
