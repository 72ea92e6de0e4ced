#pragma once

#import <MetalPerformanceShadersGraph/MPSGraph.h>

@interface MPSGraph (MPSGraphSortOps)
- (MPSGraphTensor*)sortWithTensor:(MPSGraphTensor*)tensor
                             axis:(NSInteger)axis
                       descending:(BOOL)descending
                             name:(NSString*)name;
- (MPSGraphTensor*)sortWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name;
- (MPSGraphTensor*)sortWithTensor:(MPSGraphTensor*)tensor
                       axisTensor:(MPSGraphTensor*)axisTensor
                       descending:(BOOL)descending
                             name:(NSString*)name;
- (MPSGraphTensor*)sortWithTensor:(MPSGraphTensor*)tensor axisTensor:(MPSGraphTensor*)axisTensor name:(NSString*)name;
- (MPSGraphTensor*)argSortWithTensor:(MPSGraphTensor*)tensor
                                axis:(NSInteger)axis
                          descending:(BOOL)descending
                                name:(NSString*)name;
- (MPSGraphTensor*)argSortWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name;
- (MPSGraphTensor*)argSortWithTensor:(MPSGraphTensor*)tensor
                          axisTensor:(MPSGraphTensor*)axisTensor
                          descending:(BOOL)descending
                                name:(NSString*)name;
- (MPSGraphTensor*)argSortWithTensor:(MPSGraphTensor*)tensor
                          axisTensor:(MPSGraphTensor*)axisTensor
                                name:(NSString*)name;
- (NSArray<MPSGraphTensor*>*)topKWithSourceTensor:(MPSGraphTensor*)source k:(NSUInteger)k name:(NSString*)name;
- (NSArray<MPSGraphTensor*>*)topKWithSourceTensor:(MPSGraphTensor*)source
                                             axis:(NSInteger)axis
                                                k:(NSUInteger)k
                                             name:(NSString*)name;
- (MPSGraphTensor*)nonZeroIndicesOfTensor:(MPSGraphTensor*)tensor name:(NSString*)name;
- (MPSGraphTensor*)cumulativeSumWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name;
- (MPSGraphTensor*)cumulativeSumWithTensor:(MPSGraphTensor*)tensor
                                      axis:(NSInteger)axis
                                 exclusive:(BOOL)exclusive
                                   reverse:(BOOL)reverse
                                      name:(NSString*)name;
- (MPSGraphTensor*)cumulativeProductWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name;
- (MPSGraphTensor*)cumulativeProductWithTensor:(MPSGraphTensor*)tensor
                                          axis:(NSInteger)axis
                                     exclusive:(BOOL)exclusive
                                       reverse:(BOOL)reverse
                                          name:(NSString*)name;
- (MPSGraphTensor*)cumulativeMinimumWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name;
- (MPSGraphTensor*)cumulativeMinimumWithTensor:(MPSGraphTensor*)tensor
                                          axis:(NSInteger)axis
                                     exclusive:(BOOL)exclusive
                                       reverse:(BOOL)reverse
                                          name:(NSString*)name;
- (MPSGraphTensor*)cumulativeMaximumWithTensor:(MPSGraphTensor*)tensor axis:(NSInteger)axis name:(NSString*)name;
- (MPSGraphTensor*)cumulativeMaximumWithTensor:(MPSGraphTensor*)tensor
                                          axis:(NSInteger)axis
                                     exclusive:(BOOL)exclusive
                                       reverse:(BOOL)reverse
                                          name:(NSString*)name;
@end
