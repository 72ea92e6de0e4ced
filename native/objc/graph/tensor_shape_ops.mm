#import <MetalPerformanceShadersGraph/MPSGraphTensorShapeOps.h>

#include "recorder.h"

using namespace mpsforge::graph;

namespace {

Attributes slice_attributes(NSArray<NSNumber*>* starts, NSArray<NSNumber*>* ends, NSArray<NSNumber*>* strides,
                            uint32_t start_mask, uint32_t end_mask, uint32_t squeeze_mask) {
  return {{"starts", integers(starts)},    {"ends", integers(ends)},
          {"strides", integers(strides)},  {"start_mask", integer(start_mask)},
          {"end_mask", integer(end_mask)}, {"squeeze_mask", integer(squeeze_mask)}};
}

Attributes block_attributes(NSUInteger width, NSUInteger height, NSUInteger depth, NSUInteger block,
                            BOOL pixel_shuffle) {
  return {{"width", integer(width)},
          {"height", integer(height)},
          {"depth", integer(depth)},
          {"block", integer(block)},
          {"pixel_shuffle", integer(pixel_shuffle)}};
}

}  // namespace

@implementation MPSGraph (MPSGraphTensorShapeOps)
- (MPSGraphTensor*)reshapeTensor:(MPSGraphTensor*)tensor withShape:(MPSShape*)shape name:(NSString*)name {
  return record(self, "reshape", {tensor}, {{"shape", integers(shape)}});
}

- (MPSGraphTensor*)reshapeTensor:(MPSGraphTensor*)tensor
                 withShapeTensor:(MPSGraphTensor*)shapeTensor
                            name:(NSString*)name {
  return record(self, "reshapeByTensor", {tensor, shapeTensor});
}

- (MPSGraphTensor*)transposeTensor:(MPSGraphTensor*)tensor
                         dimension:(NSUInteger)dimensionIndex
                     withDimension:(NSUInteger)dimensionIndex2
                              name:(NSString*)name {
  return record(self, "transpose", {tensor},
                {{"dimension", integer(dimensionIndex)}, {"other", integer(dimensionIndex2)}});
}

- (MPSGraphTensor*)transposeTensor:(MPSGraphTensor*)tensor
                       permutation:(NSArray<NSNumber*>*)permutation
                              name:(NSString*)name {
  return record(self, "permute", {tensor}, {{"permutation", integers(permutation)}});
}

- (MPSGraphTensor*)sliceTensor:(MPSGraphTensor*)tensor
                     dimension:(NSUInteger)dimensionIndex
                         start:(NSInteger)start
                        length:(NSInteger)length
                          name:(NSString*)name {
  return record(self, "slice", {tensor},
                {{"dimension", integer(dimensionIndex)}, {"start", integer(start)}, {"length", integer(length)}});
}

- (MPSGraphTensor*)sliceTensor:(MPSGraphTensor*)tensor
                        starts:(NSArray<NSNumber*>*)starts
                          ends:(NSArray<NSNumber*>*)ends
                       strides:(NSArray<NSNumber*>*)strides
                          name:(NSString*)name {
  return record(self, "sliceStrided", {tensor}, slice_attributes(starts, ends, strides, 0, 0, 0));
}

- (MPSGraphTensor*)sliceTensor:(MPSGraphTensor*)tensor
                        starts:(NSArray<NSNumber*>*)starts
                          ends:(NSArray<NSNumber*>*)ends
                       strides:(NSArray<NSNumber*>*)strides
                     startMask:(uint32_t)startMask
                       endMask:(uint32_t)endMask
                   squeezeMask:(uint32_t)squeezeMask
                          name:(NSString*)name {
  return record(self, "sliceStrided", {tensor},
                slice_attributes(starts, ends, strides, startMask, endMask, squeezeMask));
}

- (MPSGraphTensor*)sliceGradientTensor:(MPSGraphTensor*)inputGradientTensor
                      fwdInShapeTensor:(MPSGraphTensor*)fwdInShapeTensor
                                starts:(NSArray<NSNumber*>*)starts
                                  ends:(NSArray<NSNumber*>*)ends
                               strides:(NSArray<NSNumber*>*)strides
                                  name:(NSString*)name {
  return record(self, "sliceGradient", {inputGradientTensor, fwdInShapeTensor},
                slice_attributes(starts, ends, strides, 0, 0, 0));
}

- (MPSGraphTensor*)sliceGradientTensor:(MPSGraphTensor*)inputGradientTensor
                      fwdInShapeTensor:(MPSGraphTensor*)fwdInShapeTensor
                                starts:(NSArray<NSNumber*>*)starts
                                  ends:(NSArray<NSNumber*>*)ends
                               strides:(NSArray<NSNumber*>*)strides
                             startMask:(uint32_t)startMask
                               endMask:(uint32_t)endMask
                           squeezeMask:(uint32_t)squeezeMask
                                  name:(NSString*)name {
  return record(self, "sliceGradient", {inputGradientTensor, fwdInShapeTensor},
                slice_attributes(starts, ends, strides, startMask, endMask, squeezeMask));
}

- (MPSGraphTensor*)concatTensor:(MPSGraphTensor*)tensor
                     withTensor:(MPSGraphTensor*)tensor2
                      dimension:(NSInteger)dimensionIndex
                           name:(NSString*)name {
  return record(self, "concat", {tensor, tensor2},
                {{"dimension", integer(dimensionIndex)}, {"interleave", integer(0)}});
}

- (MPSGraphTensor*)concatTensors:(NSArray<MPSGraphTensor*>*)tensors
                       dimension:(NSInteger)dimensionIndex
                            name:(NSString*)name {
  return record(self, "concat", list(tensors), {{"dimension", integer(dimensionIndex)}, {"interleave", integer(0)}});
}

- (MPSGraphTensor*)concatTensors:(NSArray<MPSGraphTensor*>*)tensors
                       dimension:(NSInteger)dimensionIndex
                      interleave:(BOOL)interleave
                            name:(NSString*)name {
  return record(self, "concat", list(tensors),
                {{"dimension", integer(dimensionIndex)}, {"interleave", integer(interleave)}});
}

- (NSArray<MPSGraphTensor*>*)splitTensor:(MPSGraphTensor*)tensor
                               numSplits:(NSUInteger)numSplits
                                    axis:(NSInteger)axis
                                    name:(NSString*)name {
  return record_all(self, "split", {tensor}, {{"axis", integer(axis)}, {"count", integer(numSplits)}}, numSplits);
}

- (MPSGraphTensor*)stackTensors:(NSArray<MPSGraphTensor*>*)inputTensors axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "stack", list(inputTensors), {{"axis", integer(axis)}});
}

- (MPSGraphTensor*)tileTensor:(MPSGraphTensor*)tensor withMultiplier:(MPSShape*)multiplier name:(NSString*)name {
  return record(self, "tile", {tensor}, {{"multiplier", integers(multiplier)}});
}

- (MPSGraphTensor*)padTensor:(MPSGraphTensor*)tensor
             withPaddingMode:(MPSGraphPaddingMode)paddingMode
                 leftPadding:(MPSShape*)leftPadding
                rightPadding:(MPSShape*)rightPadding
               constantValue:(double)constantValue
                        name:(NSString*)name {
  return record(self, "pad", {tensor},
                {{"mode", integer(paddingMode)},
                 {"left", integers(leftPadding)},
                 {"right", integers(rightPadding)},
                 {"value", constantValue}});
}

- (MPSGraphTensor*)padGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradientTensor
                                            sourceTensor:(MPSGraphTensor*)sourceTensor
                                             paddingMode:(MPSGraphPaddingMode)paddingMode
                                             leftPadding:(MPSShape*)leftPadding
                                            rightPadding:(MPSShape*)rightPadding
                                                    name:(NSString*)name {
  return record(self, "padGradient", {incomingGradientTensor, sourceTensor},
                {{"mode", integer(paddingMode)}, {"left", integers(leftPadding)}, {"right", integers(rightPadding)}});
}

- (MPSGraphTensor*)spaceToDepth2DTensor:(MPSGraphTensor*)tensor
                              widthAxis:(NSUInteger)widthAxis
                             heightAxis:(NSUInteger)heightAxis
                              depthAxis:(NSUInteger)depthAxis
                              blockSize:(NSUInteger)blockSize
                   usePixelShuffleOrder:(BOOL)usePixelShuffleOrder
                                   name:(NSString*)name {
  return record(self, "spaceToDepth2D", {tensor},
                block_attributes(widthAxis, heightAxis, depthAxis, blockSize, usePixelShuffleOrder));
}

- (MPSGraphTensor*)depthToSpace2DTensor:(MPSGraphTensor*)tensor
                              widthAxis:(NSUInteger)widthAxis
                             heightAxis:(NSUInteger)heightAxis
                              depthAxis:(NSUInteger)depthAxis
                              blockSize:(NSUInteger)blockSize
                   usePixelShuffleOrder:(BOOL)usePixelShuffleOrder
                                   name:(NSString*)name {
  return record(self, "depthToSpace2D", {tensor},
                block_attributes(widthAxis, heightAxis, depthAxis, blockSize, usePixelShuffleOrder));
}

- (MPSGraphTensor*)reverseTensor:(MPSGraphTensor*)tensor axes:(NSArray<NSNumber*>*)axes name:(NSString*)name {
  return record(self, "reverse", {tensor}, with_axes(axes));
}

UNARY(reverseTensor, "reverse")

- (MPSGraphTensor*)flatten2DTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "flatten2D", {tensor}, {{"axis", integer(axis)}});
}

- (MPSGraphTensor*)broadcastTensor:(MPSGraphTensor*)tensor toShape:(MPSShape*)shape name:(NSString*)name {
  return record(self, "broadcast", {tensor}, {{"shape", integers(shape)}});
}

- (MPSGraphTensor*)broadcastTensor:(MPSGraphTensor*)tensor
                     toShapeTensor:(MPSGraphTensor*)shapeTensor
                              name:(NSString*)name {
  return record(self, "broadcastByTensor", {tensor, shapeTensor});
}

UNARY(shapeOfTensor, "shapeOf")

- (MPSGraphTensor*)castTensor:(MPSGraphTensor*)tensor toType:(MPSDataType)type name:(NSString*)name {
  return record(self, "cast", {tensor}, {{"type", integer(type)}});
}

- (MPSGraphTensor*)reinterpretCastTensor:(MPSGraphTensor*)tensor toType:(MPSDataType)type name:(NSString*)name {
  return record(self, "reinterpretCast", {tensor}, {{"type", integer(type)}});
}

- (MPSGraphTensor*)expandDimsOfTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "expandDims", {tensor}, {{"axes", std::vector<int64_t>{axis}}});
}

- (MPSGraphTensor*)expandDimsOfTensor:(MPSGraphTensor*)tensor axes:(NSArray<NSNumber*>*)axes name:(NSString*)name {
  return record(self, "expandDims", {tensor}, with_axes(axes));
}

UNARY(squeezeTensor, "squeeze")

- (MPSGraphTensor*)squeezeTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name {
  return record(self, "squeeze", {tensor}, {{"axes", std::vector<int64_t>{axis}}});
}

- (MPSGraphTensor*)squeezeTensor:(MPSGraphTensor*)tensor axes:(NSArray<NSNumber*>*)axes name:(NSString*)name {
  return record(self, "squeeze", {tensor}, with_axes(axes));
}

- (MPSGraphTensor*)coordinateAlongAxis:(NSInteger)axis withShape:(MPSShape*)shape name:(NSString*)name {
  return record(self, "coordinate", {}, {{"axis", integer(axis)}, {"shape", integers(shape)}});
}

- (MPSGraphTensor*)coordinateAlongAxis:(NSInteger)axis
                       withShapeTensor:(MPSGraphTensor*)shapeTensor
                                  name:(NSString*)name {
  return record(self, "coordinateByTensor", {shapeTensor}, {{"axis", integer(axis)}});
}

- (MPSGraphTensor*)coordinateAlongAxisTensor:(MPSGraphTensor*)axisTensor
                                   withShape:(MPSShape*)shape
                                        name:(NSString*)name {
  return record(self, "coordinateByAxisTensor", {axisTensor}, {{"shape", integers(shape)}});
}

- (MPSGraphTensor*)coordinateAlongAxisTensor:(MPSGraphTensor*)axisTensor
                             withShapeTensor:(MPSGraphTensor*)shapeTensor
                                        name:(NSString*)name {
  return record(self, "coordinateByTensors", {axisTensor, shapeTensor});
}

@end
