#pragma once

#import <Metal/Metal.h>
#import <MetalPerformanceShadersGraph/MPSGraphTensor.h>
#import <MetalPerformanceShadersGraph/MPSGraphTensorData.h>

@class MPSCommandBuffer;
@class MPSGraphOperation;

typedef NSDictionary<MPSGraphTensor*, MPSGraphTensorData*> MPSGraphTensorDataDictionary;
typedef void (^MPSGraphCompletionHandler)(MPSGraphTensorDataDictionary* results, NSError* error);
typedef void (^MPSGraphScheduledHandler)(MPSGraphTensorDataDictionary* results, NSError* error);

@interface MPSGraphDevice : MPSGraphObject
@property(readonly) id<MTLDevice> metalDevice;
+ (instancetype)deviceWithMTLDevice:(id<MTLDevice>)metalDevice;
@end

@interface MPSGraphCompilationDescriptor : MPSGraphObject <NSCopying>
@property(readwrite) MPSGraphOptimization optimizationLevel;
@property(readwrite) BOOL waitForCompilationCompletion;
@property(readwrite) MPSGraphOptimizationProfile optimizationProfile;
- (void)disableTypeInference;
@end

// Handlers are Apple's; a graph that is given one raises an error, since nothing of PyTorch sets them.
@interface MPSGraphExecutionDescriptor : MPSGraphObject
@property(readwrite, copy, atomic) MPSGraphScheduledHandler scheduledHandler;
@property(readwrite, copy, atomic) MPSGraphCompletionHandler completionHandler;
@property(readwrite, atomic) BOOL waitUntilCompleted;
@property(readwrite, retain) MPSGraphCompilationDescriptor* compilationDescriptor;
@end

@interface MPSGraph : MPSGraphObject
@property(readwrite, atomic) MPSGraphOptions options;
@property(readonly) NSArray<MPSGraphTensor*>* placeholderTensors;
+ (instancetype)new;
- (instancetype)init;
// Encodes what the targets need: one command, whose reads are the feeds and whose writes are the results.
- (MPSGraphTensorDataDictionary*)encodeToCommandBuffer:(MPSCommandBuffer*)commandBuffer
                                                 feeds:(MPSGraphTensorDataDictionary*)feeds
                                         targetTensors:(NSArray<MPSGraphTensor*>*)targetTensors
                                      targetOperations:(NSArray<MPSGraphOperation*>*)targetOperations
                                   executionDescriptor:(MPSGraphExecutionDescriptor*)executionDescriptor;
- (void)encodeToCommandBuffer:(MPSCommandBuffer*)commandBuffer
                        feeds:(MPSGraphTensorDataDictionary*)feeds
             targetOperations:(NSArray<MPSGraphOperation*>*)targetOperations
            resultsDictionary:(MPSGraphTensorDataDictionary*)resultsDictionary
          executionDescriptor:(MPSGraphExecutionDescriptor*)executionDescriptor;
@end
