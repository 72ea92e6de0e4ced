#pragma once

#import <MetalPerformanceShadersGraph/MPSGraph.h>

@interface MPSGraph (MPSGraphMatrixOps)
- (MPSGraphTensor*)matrixMultiplicationWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                         secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                                    name:(NSString*)name;
- (MPSGraphTensor*)scaledDotProductAttentionWithQueryTensor:(MPSGraphTensor*)queryTensor
                                                  keyTensor:(MPSGraphTensor*)keyTensor
                                                valueTensor:(MPSGraphTensor*)valueTensor
                                                 maskTensor:(MPSGraphTensor*)maskTensor
                                                      scale:(float)scale
                                                       name:(NSString*)name;
- (MPSGraphTensor*)scaledDotProductAttentionWithQueryTensor:(MPSGraphTensor*)queryTensor
                                                  keyTensor:(MPSGraphTensor*)keyTensor
                                                valueTensor:(MPSGraphTensor*)valueTensor
                                                      scale:(float)scale
                                                       name:(NSString*)name;
- (MPSGraphTensor*)bandPartWithTensor:(MPSGraphTensor*)inputTensor
                             numLower:(NSInteger)numLower
                             numUpper:(NSInteger)numUpper
                                 name:(NSString*)name;
- (MPSGraphTensor*)bandPartWithTensor:(MPSGraphTensor*)inputTensor
                       numLowerTensor:(MPSGraphTensor*)numLowerTensor
                       numUpperTensor:(MPSGraphTensor*)numUpperTensor
                                 name:(NSString*)name;
- (MPSGraphTensor*)inverseOfTensor:(MPSGraphTensor*)inputTensor name:(NSString*)name;
@end
