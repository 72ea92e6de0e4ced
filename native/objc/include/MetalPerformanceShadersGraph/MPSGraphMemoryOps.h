#pragma once

#import <MetalPerformanceShadersGraph/MPSGraph.h>

@interface MPSGraph (MPSGraphMemoryOps)
- (MPSGraphTensor*)placeholderWithShape:(MPSShape*)shape dataType:(MPSDataType)dataType name:(NSString*)name;
- (MPSGraphTensor*)placeholderWithShape:(MPSShape*)shape name:(NSString*)name;
- (MPSGraphTensor*)constantWithData:(NSData*)data shape:(MPSShape*)shape dataType:(MPSDataType)dataType;
- (MPSGraphTensor*)constantWithScalar:(double)scalar dataType:(MPSDataType)dataType;
- (MPSGraphTensor*)constantWithScalar:(double)scalar shape:(MPSShape*)shape dataType:(MPSDataType)dataType;
- (MPSGraphTensor*)constantWithRealPart:(double)realPart
                          imaginaryPart:(double)imaginaryPart
                               dataType:(MPSDataType)dataType;
- (MPSGraphTensor*)constantWithRealPart:(double)realPart
                          imaginaryPart:(double)imaginaryPart
                                  shape:(MPSShape*)shape
                               dataType:(MPSDataType)dataType;
@end
