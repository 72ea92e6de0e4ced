#pragma once

#import <MetalPerformanceShadersGraph/MPSGraph.h>

@interface MPSGraphConvolution2DOpDescriptor : MPSGraphObject <NSCopying>
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
@property(readwrite, nonatomic) MPSGraphTensorNamedDataLayout weightsLayout;
@property(readwrite, nonatomic) NSUInteger groups;
@end

@interface MPSGraphConvolution3DOpDescriptor : MPSGraphObject <NSCopying>
@property(readwrite, nonatomic) NSUInteger strideInX;
@property(readwrite, nonatomic) NSUInteger strideInY;
@property(readwrite, nonatomic) NSUInteger strideInZ;
@property(readwrite, nonatomic) NSUInteger dilationRateInX;
@property(readwrite, nonatomic) NSUInteger dilationRateInY;
@property(readwrite, nonatomic) NSUInteger dilationRateInZ;
@property(readwrite, nonatomic) NSUInteger paddingLeft;
@property(readwrite, nonatomic) NSUInteger paddingRight;
@property(readwrite, nonatomic) NSUInteger paddingTop;
@property(readwrite, nonatomic) NSUInteger paddingBottom;
@property(readwrite, nonatomic) NSUInteger paddingFront;
@property(readwrite, nonatomic) NSUInteger paddingBack;
@property(readwrite, nonatomic) MPSGraphPaddingStyle paddingStyle;
@property(readwrite, nonatomic) MPSGraphTensorNamedDataLayout dataLayout;
@property(readwrite, nonatomic) MPSGraphTensorNamedDataLayout weightsLayout;
@property(readwrite, nonatomic) NSUInteger groups;
@end

@interface MPSGraphDepthwiseConvolution3DOpDescriptor : MPSGraphObject <NSCopying>
@property(readwrite, nonatomic, copy) NSArray<NSNumber*>* strides;
@property(readwrite, nonatomic, copy) NSArray<NSNumber*>* dilationRates;
@property(readwrite, nonatomic, copy) NSArray<NSNumber*>* paddingValues;
@property(readwrite, nonatomic) MPSGraphPaddingStyle paddingStyle;
@property(readwrite, nonatomic) NSInteger channelDimensionIndex;
@end

@interface MPSGraph (MPSGraphConvolutionOps)
- (MPSGraphTensor*)convolution2DWithSourceTensor:(MPSGraphTensor*)source
                                   weightsTensor:(MPSGraphTensor*)weights
                                      descriptor:(MPSGraphConvolution2DOpDescriptor*)descriptor
                                            name:(NSString*)name;
- (MPSGraphTensor*)convolution2DDataGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradient
                                                         weightsTensor:(MPSGraphTensor*)weights
                                                           outputShape:(MPSShape*)outputShape
                                          forwardConvolutionDescriptor:
                                              (MPSGraphConvolution2DOpDescriptor*)forwardConvolutionDescriptor
                                                                  name:(NSString*)name;
- (MPSGraphTensor*)convolution2DWeightsGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradient
                                                             sourceTensor:(MPSGraphTensor*)source
                                                              outputShape:(MPSShape*)outputShape
                                             forwardConvolutionDescriptor:
                                                 (MPSGraphConvolution2DOpDescriptor*)forwardConvolutionDescriptor
                                                                     name:(NSString*)name;
- (MPSGraphTensor*)convolution3DWithSourceTensor:(MPSGraphTensor*)source
                                   weightsTensor:(MPSGraphTensor*)weights
                                      descriptor:(MPSGraphConvolution3DOpDescriptor*)descriptor
                                            name:(NSString*)name;
- (MPSGraphTensor*)convolution3DDataGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradient
                                                         weightsTensor:(MPSGraphTensor*)weights
                                                           outputShape:(MPSShape*)outputShape
                                          forwardConvolutionDescriptor:
                                              (MPSGraphConvolution3DOpDescriptor*)forwardConvolutionDescriptor
                                                                  name:(NSString*)name;
- (MPSGraphTensor*)convolution3DWeightsGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradient
                                                             sourceTensor:(MPSGraphTensor*)source
                                                              outputShape:(MPSShape*)outputShape
                                             forwardConvolutionDescriptor:
                                                 (MPSGraphConvolution3DOpDescriptor*)forwardConvolutionDescriptor
                                                                     name:(NSString*)name;
- (MPSGraphTensor*)depthwiseConvolution3DWithSourceTensor:(MPSGraphTensor*)source
                                            weightsTensor:(MPSGraphTensor*)weights
                                               descriptor:(MPSGraphDepthwiseConvolution3DOpDescriptor*)descriptor
                                                     name:(NSString*)name;
- (MPSGraphTensor*)
    depthwiseConvolution3DDataGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradient
                                                   weightsTensor:(MPSGraphTensor*)weights
                                                     outputShape:(MPSShape*)outputShape
                                                      descriptor:(MPSGraphDepthwiseConvolution3DOpDescriptor*)descriptor
                                                            name:(NSString*)name;
- (MPSGraphTensor*)
    depthwiseConvolution3DWeightsGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradient
                                                       sourceTensor:(MPSGraphTensor*)source
                                                        outputShape:(MPSShape*)outputShape
                                                         descriptor:
                                                             (MPSGraphDepthwiseConvolution3DOpDescriptor*)descriptor
                                                               name:(NSString*)name;
@end
