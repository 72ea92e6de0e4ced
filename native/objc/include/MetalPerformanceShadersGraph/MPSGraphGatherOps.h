#pragma once

#import <MetalPerformanceShadersGraph/MPSGraph.h>

@interface MPSGraph (MPSGraphGatherOps)
- (MPSGraphTensor*)gatherWithUpdatesTensor:(MPSGraphTensor*)updatesTensor
                             indicesTensor:(MPSGraphTensor*)indicesTensor
                                      axis:(NSUInteger)axis
                           batchDimensions:(NSUInteger)batchDimensions
                                      name:(NSString*)name;
- (MPSGraphTensor*)gatherNDWithUpdatesTensor:(MPSGraphTensor*)updatesTensor
                               indicesTensor:(MPSGraphTensor*)indicesTensor
                             batchDimensions:(NSUInteger)batchDimensions
                                        name:(NSString*)name;
- (MPSGraphTensor*)gatherAlongAxis:(NSInteger)axis
                 withUpdatesTensor:(MPSGraphTensor*)updatesTensor
                     indicesTensor:(MPSGraphTensor*)indicesTensor
                              name:(NSString*)name;
- (MPSGraphTensor*)oneHotWithIndicesTensor:(MPSGraphTensor*)indicesTensor
                                     depth:(NSUInteger)depth
                                      axis:(NSUInteger)axis
                                  dataType:(MPSDataType)dataType
                                   onValue:(double)onValue
                                  offValue:(double)offValue
                                      name:(NSString*)name;
- (MPSGraphTensor*)oneHotWithIndicesTensor:(MPSGraphTensor*)indicesTensor
                                     depth:(NSUInteger)depth
                                  dataType:(MPSDataType)dataType
                                      name:(NSString*)name;
@end
