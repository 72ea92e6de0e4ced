// An array of numbers over a buffer, with strides. Dimension 0 is the fastest, so a shape's last entry.
#pragma once

#import <MetalPerformanceShaders/MPSCore/MPSCoreTypes.h>
#import <MetalPerformanceShaders/MPSKernel.h>

@class MPSNDArray;

@interface MPSNDArrayDescriptor : NSObject
@property(readwrite, nonatomic) MPSDataType dataType;
@property(readonly, nonatomic) NSUInteger numberOfDimensions;
@property(readwrite, nonatomic) BOOL preferPackedRows;
+ (instancetype)descriptorWithDataType:(MPSDataType)dataType shape:(MPSShape*)shape;
+ (instancetype)descriptorWithDataType:(MPSDataType)dataType
                        dimensionCount:(NSUInteger)numberOfDimensions
                        dimensionSizes:(const NSUInteger*)dimensionSizes;
- (NSUInteger)lengthOfDimension:(NSUInteger)dimensionIndex;
- (MPSDimensionSlice)sliceRangeForDimension:(NSUInteger)dimensionIndex;
- (void)sliceDimension:(NSUInteger)dimensionIndex withSubrange:(MPSDimensionSlice)subRange;
- (void)transposeDimension:(NSUInteger)dimensionIndex withDimension:(NSUInteger)dimensionIndex2;
- (void)permuteWithDimensionOrder:(const NSUInteger*)dimensionOrder;
- (NSArray<NSNumber*>*)getShape;
@end

@interface MPSNDArray : NSObject
@property(readwrite, copy, atomic) NSString* label;
@property(readonly, nonatomic) MPSDataType dataType;
@property(readonly, nonatomic) size_t dataTypeSize;
@property(readonly, nonatomic) NSUInteger numberOfDimensions;
@property(readonly, retain, nonatomic) id<MTLDevice> device;
@property(readonly, retain, nonatomic) MPSNDArray* parent;
- (instancetype)initWithDevice:(id<MTLDevice>)device descriptor:(MPSNDArrayDescriptor*)descriptor;
- (instancetype)initWithDevice:(id<MTLDevice>)device scalar:(double)value;
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer
                        offset:(NSUInteger)offset
                    descriptor:(MPSNDArrayDescriptor*)descriptor;
- (NSUInteger)lengthOfDimension:(NSUInteger)dimensionIndex;
- (MPSNDArrayDescriptor*)descriptor;
- (id<MTLBuffer>)userBuffer;
- (NSUInteger)resourceSize;
// A view of the same memory: the descriptor is this array's own, transposed, permuted or sliced.
- (MPSNDArray*)arrayViewWithCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                               descriptor:(MPSNDArrayDescriptor*)descriptor
                                 aliasing:(MPSAliasingStrategy)aliasing;
- (MPSNDArray*)arrayViewWithDescriptor:(MPSNDArrayDescriptor*)descriptor;
// Strides in elements, in the order of the shape. Apple returns nil where it cannot; here, too, if the last stride is
// not 1 or the view leaves the buffer.
- (MPSNDArray*)arrayViewWithShape:(MPSShape*)shape strides:(MPSShape*)strides;
- (void)readBytes:(void*)buffer strideBytes:(NSInteger*)strideBytesPerDimension;
- (void)writeBytes:(void*)buffer strideBytes:(NSInteger*)strideBytesPerDimension;
@end
