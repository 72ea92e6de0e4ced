#pragma once

#import <MetalPerformanceShadersGraph/MPSGraphTensor.h>

@protocol MTLBuffer;
@class MPSNDArray;

// Memory that a placeholder reads or a result is written to.
@interface MPSGraphTensorData : MPSGraphObject
@property(readonly) MPSShape* shape;
@property(readonly) MPSDataType dataType;
- (instancetype)initWithMTLBuffer:(id<MTLBuffer>)buffer shape:(MPSShape*)shape dataType:(MPSDataType)dataType;
- (instancetype)initWithMPSNDArray:(MPSNDArray*)ndarray;
- (MPSNDArray*)mpsndarray;
@end
