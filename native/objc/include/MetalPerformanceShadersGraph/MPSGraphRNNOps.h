#pragma once

#import <MetalPerformanceShadersGraph/MPSGraph.h>

@interface MPSGraphLSTMDescriptor : MPSGraphObject <NSCopying>
@property(readwrite, nonatomic) BOOL reverse;
@property(readwrite, nonatomic) BOOL bidirectional;
@property(readwrite, nonatomic) BOOL produceCell;
@property(readwrite, nonatomic) BOOL training;
@property(readwrite, nonatomic) BOOL forgetGateLast;
+ (instancetype)descriptor;
@end

@interface MPSGraph (MPSGraphRNNOps)
- (NSArray<MPSGraphTensor*>*)LSTMWithSourceTensor:(MPSGraphTensor*)source
                                  recurrentWeight:(MPSGraphTensor*)recurrentWeight
                                      inputWeight:(MPSGraphTensor*)inputWeight
                                             bias:(MPSGraphTensor*)bias
                                        initState:(MPSGraphTensor*)initState
                                         initCell:(MPSGraphTensor*)initCell
                                       descriptor:(MPSGraphLSTMDescriptor*)descriptor
                                             name:(NSString*)name;
- (NSArray<MPSGraphTensor*>*)LSTMGradientsWithSourceTensor:(MPSGraphTensor*)source
                                           recurrentWeight:(MPSGraphTensor*)recurrentWeight
                                            sourceGradient:(MPSGraphTensor*)sourceGradient
                                                    zState:(MPSGraphTensor*)zState
                                             cellOutputFwd:(MPSGraphTensor*)cellOutputFwd
                                             stateGradient:(MPSGraphTensor*)stateGradient
                                              cellGradient:(MPSGraphTensor*)cellGradient
                                               inputWeight:(MPSGraphTensor*)inputWeight
                                                      bias:(MPSGraphTensor*)bias
                                                 initState:(MPSGraphTensor*)initState
                                                  initCell:(MPSGraphTensor*)initCell
                                                      mask:(MPSGraphTensor*)mask
                                                  peephole:(MPSGraphTensor*)peephole
                                                descriptor:(MPSGraphLSTMDescriptor*)descriptor
                                                      name:(NSString*)name;
@end
