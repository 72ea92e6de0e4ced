#pragma once

#import <MetalPerformanceShadersGraph/MPSGraph.h>

typedef NS_ENUM(NSUInteger, MPSGraphFFTScalingMode) {
  MPSGraphFFTScalingModeNone = 0,
  MPSGraphFFTScalingModeSize = 1,
  MPSGraphFFTScalingModeUnitary = 2,
};

@interface MPSGraphFFTDescriptor : MPSGraphObject <NSCopying>
@property(readwrite, nonatomic) BOOL inverse;
@property(readwrite, nonatomic) MPSGraphFFTScalingMode scalingMode;
@property(readwrite, nonatomic) BOOL roundToOddHermitean;
+ (instancetype)descriptor;
@end

@interface MPSGraph (MPSGraphFourierTransformOps)
- (MPSGraphTensor*)fastFourierTransformWithTensor:(MPSGraphTensor*)tensor
                                             axes:(NSArray<NSNumber*>*)axes
                                       descriptor:(MPSGraphFFTDescriptor*)descriptor
                                             name:(NSString*)name;
- (MPSGraphTensor*)realToHermiteanFFTWithTensor:(MPSGraphTensor*)tensor
                                           axes:(NSArray<NSNumber*>*)axes
                                     descriptor:(MPSGraphFFTDescriptor*)descriptor
                                           name:(NSString*)name;
- (MPSGraphTensor*)HermiteanToRealFFTWithTensor:(MPSGraphTensor*)tensor
                                           axes:(NSArray<NSNumber*>*)axes
                                     descriptor:(MPSGraphFFTDescriptor*)descriptor
                                           name:(NSString*)name;
@end
