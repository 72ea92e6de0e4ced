// Kernels on MPSNDArray.
#pragma once

#import <MetalPerformanceShaders/MPSNDArray/MPSNDArray.h>

@interface MPSNDArrayMultiaryBase : MPSKernel
@end

@interface MPSNDArrayMultiaryKernel : MPSNDArrayMultiaryBase
- (instancetype)initWithDevice:(id<MTLDevice>)device sourceCount:(NSUInteger)count;
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                 sourceArrays:(NSArray<MPSNDArray*>*)sourceArrays
             destinationArray:(MPSNDArray*)destination;
- (void)encodeToCommandEncoder:(id<MTLComputeCommandEncoder>)encoder
                 commandBuffer:(id<MTLCommandBuffer>)commandBuffer
                  sourceArrays:(NSArray<MPSNDArray*>*)sourceArrays
              destinationArray:(MPSNDArray*)destination;
@end

@interface MPSNDArrayUnaryKernel : MPSNDArrayMultiaryKernel
- (instancetype)initWithDevice:(id<MTLDevice>)device;
@end

// destination = alpha * (first x second) + beta * third; batch dimensions of length 1 are broadcast.
@interface MPSNDArrayMatrixMultiplication : MPSNDArrayMultiaryKernel
@property(readwrite, nonatomic) double alpha;
@property(readwrite, nonatomic) double beta;
@end

@interface MPSNDArrayIdentity : MPSNDArrayUnaryKernel
// Without a command buffer and a destination it is a view, or nil if none can be.
- (MPSNDArray*)reshapeWithCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                            sourceArray:(MPSNDArray*)sourceArray
                                  shape:(MPSShape*)shape
                       destinationArray:(MPSNDArray*)destinationArray;
@end
