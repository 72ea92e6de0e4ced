// Matrices over a buffer and the kernels on them.
#pragma once

#import <MetalPerformanceShaders/MPSCore/MPSCoreTypes.h>
#import <MetalPerformanceShaders/MPSKernel.h>

@interface MPSMatrixDescriptor : NSObject
@property(readwrite, nonatomic) NSUInteger rows;
@property(readwrite, nonatomic) NSUInteger columns;
@property(readonly, nonatomic) NSUInteger matrices;
@property(readwrite, nonatomic) MPSDataType dataType;
@property(readwrite, nonatomic) NSUInteger rowBytes;
@property(readonly, nonatomic) NSUInteger matrixBytes;
+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows
                                 columns:(NSUInteger)columns
                                rowBytes:(NSUInteger)rowBytes
                                dataType:(MPSDataType)dataType;
+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows
                                 columns:(NSUInteger)columns
                                matrices:(NSUInteger)matrices
                                rowBytes:(NSUInteger)rowBytes
                             matrixBytes:(NSUInteger)matrixBytes
                                dataType:(MPSDataType)dataType;
@end

@interface MPSMatrix : NSObject
@property(readonly, nonatomic) NSUInteger rows;
@property(readonly, nonatomic) NSUInteger columns;
@property(readonly, nonatomic) NSUInteger matrices;
@property(readonly, nonatomic) MPSDataType dataType;
@property(readonly, nonatomic) NSUInteger rowBytes;
@property(readonly, nonatomic) NSUInteger matrixBytes;
@property(readonly, nonatomic) NSUInteger offset;
@property(readonly, nonatomic) id<MTLBuffer> data;
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer descriptor:(MPSMatrixDescriptor*)descriptor;
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer
                        offset:(NSUInteger)offset
                    descriptor:(MPSMatrixDescriptor*)descriptor;
@end

typedef NS_ENUM(int, MPSMatrixDecompositionStatus) {
  MPSMatrixDecompositionStatusSuccess = 0,
  MPSMatrixDecompositionStatusFailure = -1,
  MPSMatrixDecompositionStatusSingular = -2,
  MPSMatrixDecompositionStatusNonPositiveDefinite = -3,
};

@interface MPSMatrixUnaryKernel : MPSKernel
@end

@interface MPSMatrixBinaryKernel : MPSKernel
@end

@interface MPSMatrixDecompositionLU : MPSMatrixUnaryKernel
- (instancetype)initWithDevice:(id<MTLDevice>)device rows:(NSUInteger)rows columns:(NSUInteger)columns;
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                 sourceMatrix:(MPSMatrix*)sourceMatrix
                 resultMatrix:(MPSMatrix*)resultMatrix
                 pivotIndices:(MPSMatrix*)pivotIndices
                       status:(id<MTLBuffer>)status;
@end

@interface MPSMatrixSolveLU : MPSMatrixBinaryKernel
- (instancetype)initWithDevice:(id<MTLDevice>)device
                     transpose:(BOOL)transpose
                         order:(NSUInteger)order
        numberOfRightHandSides:(NSUInteger)numberOfRightHandSides;
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                 sourceMatrix:(MPSMatrix*)sourceMatrix
          rightHandSideMatrix:(MPSMatrix*)rightHandSideMatrix
                 pivotIndices:(MPSMatrix*)pivotIndices
               solutionMatrix:(MPSMatrix*)solutionMatrix;
@end

@interface MPSMatrixSolveTriangular : MPSMatrixBinaryKernel
- (instancetype)initWithDevice:(id<MTLDevice>)device
                         right:(BOOL)right
                         upper:(BOOL)upper
                     transpose:(BOOL)transpose
                          unit:(BOOL)unit
                         order:(NSUInteger)order
        numberOfRightHandSides:(NSUInteger)numberOfRightHandSides
                         alpha:(double)alpha;
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                 sourceMatrix:(MPSMatrix*)sourceMatrix
          rightHandSideMatrix:(MPSMatrix*)rightHandSideMatrix
               solutionMatrix:(MPSMatrix*)solutionMatrix;
@end

@interface MPSMatrixMultiplication : MPSKernel
- (instancetype)initWithDevice:(id<MTLDevice>)device
                 transposeLeft:(BOOL)transposeLeft
                transposeRight:(BOOL)transposeRight
                    resultRows:(NSUInteger)resultRows
                 resultColumns:(NSUInteger)resultColumns
               interiorColumns:(NSUInteger)interiorColumns
                         alpha:(double)alpha
                          beta:(double)beta;
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                   leftMatrix:(MPSMatrix*)leftMatrix
                  rightMatrix:(MPSMatrix*)rightMatrix
                 resultMatrix:(MPSMatrix*)resultMatrix;
@end
