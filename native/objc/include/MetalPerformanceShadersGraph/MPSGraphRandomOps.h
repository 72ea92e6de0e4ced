#pragma once

#import <MetalPerformanceShadersGraph/MPSGraph.h>

typedef NS_ENUM(uint64_t, MPSGraphRandomDistribution) {
  MPSGraphRandomDistributionUniform = 0,
  MPSGraphRandomDistributionNormal = 1,
  MPSGraphRandomDistributionTruncatedNormal = 2,
};

typedef NS_ENUM(uint64_t, MPSGraphRandomNormalSamplingMethod) {
  MPSGraphRandomNormalSamplingInvCDF = 0,
  MPSGraphRandomNormalSamplingBoxMuller = 1,
};

@interface MPSGraphRandomOpDescriptor : MPSGraphObject <NSCopying>
@property(readwrite, nonatomic) MPSGraphRandomDistribution distribution;
@property(readwrite, nonatomic) MPSDataType dataType;
@property(readwrite, nonatomic) float min;
@property(readwrite, nonatomic) float max;
@property(readwrite, nonatomic) NSInteger minInteger;
@property(readwrite, nonatomic) NSInteger maxInteger;
@property(readwrite, nonatomic) float mean;
@property(readwrite, nonatomic) float standardDeviation;
@property(readwrite, nonatomic) MPSGraphRandomNormalSamplingMethod samplingMethod;
+ (instancetype)descriptorWithDistribution:(MPSGraphRandomDistribution)distribution dataType:(MPSDataType)dataType;
@end

@interface MPSGraph (MPSGraphRandomOps)
- (NSArray<MPSGraphTensor*>*)randomTensorWithShape:(MPSShape*)shape
                                        descriptor:(MPSGraphRandomOpDescriptor*)descriptor
                                       stateTensor:(MPSGraphTensor*)state
                                              name:(NSString*)name;
- (MPSGraphTensor*)dropoutTensor:(MPSGraphTensor*)tensor rate:(double)rate name:(NSString*)name;
@end
