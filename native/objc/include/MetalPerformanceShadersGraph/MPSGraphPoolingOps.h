#pragma once

#import <MetalPerformanceShadersGraph/MPSGraph.h>

typedef NS_ENUM(NSUInteger, MPSGraphPoolingReturnIndicesMode) {
  MPSGraphPoolingReturnIndicesNone = 0,
  MPSGraphPoolingReturnIndicesGlobalFlatten1D = 1,
  MPSGraphPoolingReturnIndicesGlobalFlatten2D = 2,
  MPSGraphPoolingReturnIndicesGlobalFlatten3D = 3,
  MPSGraphPoolingReturnIndicesGlobalFlatten4D = 4,
  MPSGraphPoolingReturnIndicesLocalFlatten1D = 5,
  MPSGraphPoolingReturnIndicesLocalFlatten2D = 6,
  MPSGraphPoolingReturnIndicesLocalFlatten3D = 7,
  MPSGraphPoolingReturnIndicesLocalFlatten4D = 8,
};

@interface MPSGraphPooling2DOpDescriptor : MPSGraphObject <NSCopying>
@property(readwrite, nonatomic) NSUInteger kernelWidth;
@property(readwrite, nonatomic) NSUInteger kernelHeight;
@property(readwrite, nonatomic) NSUInteger strideInX;
@property(readwrite, nonatomic) NSUInteger strideInY;
@property(readwrite, nonatomic) NSUInteger dilationRateInX;
@property(readwrite, nonatomic) NSUInteger dilationRateInY;
@property(readwrite, nonatomic) NSUInteger paddingLeft;
@property(readwrite, nonatomic) NSUInteger paddingRight;
@property(readwrite, nonatomic) NSUInteger paddingTop;
@property(readwrite, nonatomic) NSUInteger paddingBottom;
@property(readwrite, nonatomic) MPSGraphPaddingStyle paddingStyle;
@property(readwrite, nonatomic) MPSGraphTensorNamedDataLayout dataLayout;
@property(readwrite, nonatomic) MPSGraphPoolingReturnIndicesMode returnIndicesMode;
@property(readwrite, nonatomic) MPSDataType returnIndicesDataType;
@property(readwrite, nonatomic) BOOL ceilMode;
@property(readwrite, nonatomic) BOOL includeZeroPadToAverage;
+ (instancetype)descriptorWithKernelWidth:(NSUInteger)kernelWidth
                             kernelHeight:(NSUInteger)kernelHeight
                                strideInX:(NSUInteger)strideInX
                                strideInY:(NSUInteger)strideInY
                          dilationRateInX:(NSUInteger)dilationRateInX
                          dilationRateInY:(NSUInteger)dilationRateInY
                              paddingLeft:(NSUInteger)paddingLeft
                             paddingRight:(NSUInteger)paddingRight
                               paddingTop:(NSUInteger)paddingTop
                            paddingBottom:(NSUInteger)paddingBottom
                             paddingStyle:(MPSGraphPaddingStyle)paddingStyle
                               dataLayout:(MPSGraphTensorNamedDataLayout)dataLayout;
@end

@interface MPSGraph (MPSGraphPoolingOps)
- (MPSGraphTensor*)maxPooling2DWithSourceTensor:(MPSGraphTensor*)source
                                     descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                           name:(NSString*)name;
- (MPSGraphTensor*)maxPooling2DGradientWithGradientTensor:(MPSGraphTensor*)gradient
                                             sourceTensor:(MPSGraphTensor*)source
                                               descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                                     name:(NSString*)name;
- (MPSGraphTensor*)avgPooling2DWithSourceTensor:(MPSGraphTensor*)source
                                     descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                           name:(NSString*)name;
- (MPSGraphTensor*)avgPooling2DGradientWithGradientTensor:(MPSGraphTensor*)gradient
                                             sourceTensor:(MPSGraphTensor*)source
                                               descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                                     name:(NSString*)name;
- (NSArray<MPSGraphTensor*>*)maxPooling2DReturnIndicesWithSourceTensor:(MPSGraphTensor*)source
                                                            descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                                                  name:(NSString*)name;
@end
