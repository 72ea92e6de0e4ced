#pragma once

#import <MetalPerformanceShadersGraph/MPSGraph.h>

@interface MPSGraph (MPSGraphTensorShapeOps)
- (MPSGraphTensor*)reshapeTensor:(MPSGraphTensor*)tensor withShape:(MPSShape*)shape name:(NSString*)name;
- (MPSGraphTensor*)reshapeTensor:(MPSGraphTensor*)tensor
                 withShapeTensor:(MPSGraphTensor*)shapeTensor
                            name:(NSString*)name;
- (MPSGraphTensor*)transposeTensor:(MPSGraphTensor*)tensor
                         dimension:(NSUInteger)dimensionIndex
                     withDimension:(NSUInteger)dimensionIndex2
                              name:(NSString*)name;
- (MPSGraphTensor*)transposeTensor:(MPSGraphTensor*)tensor
                       permutation:(NSArray<NSNumber*>*)permutation
                              name:(NSString*)name;
- (MPSGraphTensor*)sliceTensor:(MPSGraphTensor*)tensor
                     dimension:(NSUInteger)dimensionIndex
                         start:(NSInteger)start
                        length:(NSInteger)length
                          name:(NSString*)name;
- (MPSGraphTensor*)sliceTensor:(MPSGraphTensor*)tensor
                        starts:(NSArray<NSNumber*>*)starts
                          ends:(NSArray<NSNumber*>*)ends
                       strides:(NSArray<NSNumber*>*)strides
                          name:(NSString*)name;
- (MPSGraphTensor*)sliceTensor:(MPSGraphTensor*)tensor
                        starts:(NSArray<NSNumber*>*)starts
                          ends:(NSArray<NSNumber*>*)ends
                       strides:(NSArray<NSNumber*>*)strides
                     startMask:(uint32_t)startMask
                       endMask:(uint32_t)endMask
                   squeezeMask:(uint32_t)squeezeMask
                          name:(NSString*)name;
- (MPSGraphTensor*)sliceGradientTensor:(MPSGraphTensor*)inputGradientTensor
                      fwdInShapeTensor:(MPSGraphTensor*)fwdInShapeTensor
                                starts:(NSArray<NSNumber*>*)starts
                                  ends:(NSArray<NSNumber*>*)ends
                               strides:(NSArray<NSNumber*>*)strides
                                  name:(NSString*)name;
- (MPSGraphTensor*)sliceGradientTensor:(MPSGraphTensor*)inputGradientTensor
                      fwdInShapeTensor:(MPSGraphTensor*)fwdInShapeTensor
                                starts:(NSArray<NSNumber*>*)starts
                                  ends:(NSArray<NSNumber*>*)ends
                               strides:(NSArray<NSNumber*>*)strides
                             startMask:(uint32_t)startMask
                               endMask:(uint32_t)endMask
                           squeezeMask:(uint32_t)squeezeMask
                                  name:(NSString*)name;
- (MPSGraphTensor*)concatTensor:(MPSGraphTensor*)tensor
                     withTensor:(MPSGraphTensor*)tensor2
                      dimension:(NSInteger)dimensionIndex
                           name:(NSString*)name;
- (MPSGraphTensor*)concatTensors:(NSArray<MPSGraphTensor*>*)tensors
                       dimension:(NSInteger)dimensionIndex
                            name:(NSString*)name;
- (MPSGraphTensor*)concatTensors:(NSArray<MPSGraphTensor*>*)tensors
                       dimension:(NSInteger)dimensionIndex
                      interleave:(BOOL)interleave
                            name:(NSString*)name;
- (NSArray<MPSGraphTensor*>*)splitTensor:(MPSGraphTensor*)tensor
                               numSplits:(NSUInteger)numSplits
                                    axis:(NSInteger)axis
                                    name:(NSString*)name;
- (MPSGraphTensor*)stackTensors:(NSArray<MPSGraphTensor*>*)inputTensors axis:(NSInteger)axis name:(NSString*)name;
- (MPSGraphTensor*)tileTensor:(MPSGraphTensor*)tensor withMultiplier:(MPSShape*)multiplier name:(NSString*)name;
- (MPSGraphTensor*)padTensor:(MPSGraphTensor*)tensor
             withPaddingMode:(MPSGraphPaddingMode)paddingMode
                 leftPadding:(MPSShape*)leftPadding
                rightPadding:(MPSShape*)rightPadding
               constantValue:(double)constantValue
                        name:(NSString*)name;
- (MPSGraphTensor*)padGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradientTensor
                                            sourceTensor:(MPSGraphTensor*)sourceTensor
                                             paddingMode:(MPSGraphPaddingMode)paddingMode
                                             leftPadding:(MPSShape*)leftPadding
                                            rightPadding:(MPSShape*)rightPadding
                                                    name:(NSString*)name;
- (MPSGraphTensor*)spaceToDepth2DTensor:(MPSGraphTensor*)tensor
                              widthAxis:(NSUInteger)widthAxis
                             heightAxis:(NSUInteger)heightAxis
                              depthAxis:(NSUInteger)depthAxis
                              blockSize:(NSUInteger)blockSize
                   usePixelShuffleOrder:(BOOL)usePixelShuffleOrder
                                   name:(NSString*)name;
- (MPSGraphTensor*)depthToSpace2DTensor:(MPSGraphTensor*)tensor
                              widthAxis:(NSUInteger)widthAxis
                             heightAxis:(NSUInteger)heightAxis
                              depthAxis:(NSUInteger)depthAxis
                              blockSize:(NSUInteger)blockSize
                   usePixelShuffleOrder:(BOOL)usePixelShuffleOrder
                                   name:(NSString*)name;
- (MPSGraphTensor*)reverseTensor:(MPSGraphTensor*)tensor axes:(NSArray<NSNumber*>*)axes name:(NSString*)name;
- (MPSGraphTensor*)reverseTensor:(MPSGraphTensor*)tensor name:(NSString*)name;
- (MPSGraphTensor*)flatten2DTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name;
- (MPSGraphTensor*)broadcastTensor:(MPSGraphTensor*)tensor toShape:(MPSShape*)shape name:(NSString*)name;
- (MPSGraphTensor*)broadcastTensor:(MPSGraphTensor*)tensor
                     toShapeTensor:(MPSGraphTensor*)shapeTensor
                              name:(NSString*)name;
- (MPSGraphTensor*)shapeOfTensor:(MPSGraphTensor*)tensor name:(NSString*)name;
- (MPSGraphTensor*)castTensor:(MPSGraphTensor*)tensor toType:(MPSDataType)type name:(NSString*)name;
- (MPSGraphTensor*)reinterpretCastTensor:(MPSGraphTensor*)tensor toType:(MPSDataType)type name:(NSString*)name;
- (MPSGraphTensor*)expandDimsOfTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name;
- (MPSGraphTensor*)expandDimsOfTensor:(MPSGraphTensor*)tensor axes:(NSArray<NSNumber*>*)axes name:(NSString*)name;
- (MPSGraphTensor*)squeezeTensor:(MPSGraphTensor*)tensor name:(NSString*)name;
- (MPSGraphTensor*)squeezeTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name;
- (MPSGraphTensor*)squeezeTensor:(MPSGraphTensor*)tensor axes:(NSArray<NSNumber*>*)axes name:(NSString*)name;
- (MPSGraphTensor*)coordinateAlongAxis:(NSInteger)axis withShape:(MPSShape*)shape name:(NSString*)name;
- (MPSGraphTensor*)coordinateAlongAxis:(NSInteger)axis
                       withShapeTensor:(MPSGraphTensor*)shapeTensor
                                  name:(NSString*)name;
- (MPSGraphTensor*)coordinateAlongAxisTensor:(MPSGraphTensor*)axisTensor
                                   withShape:(MPSShape*)shape
                                        name:(NSString*)name;
- (MPSGraphTensor*)coordinateAlongAxisTensor:(MPSGraphTensor*)axisTensor
                             withShapeTensor:(MPSGraphTensor*)shapeTensor
                                        name:(NSString*)name;
@end
