#pragma once

#import <Metal/MTLLibrary.h>

@protocol MTLComputePipelineState <NSObject>
@property(readonly) NSString* label;
@property(readonly) id<MTLDevice> device;
@property(readonly) NSUInteger maxTotalThreadsPerThreadgroup;
@property(readonly) NSUInteger threadExecutionWidth;
@property(readonly) NSUInteger staticThreadgroupMemoryLength;
@end

@interface MTLComputePipelineDescriptor : NSObject <NSCopying>
@property(copy, nonatomic) NSString* label;
@property(retain, nonatomic) id<MTLFunction> computeFunction;
@property(nonatomic) BOOL threadGroupSizeIsMultipleOfThreadExecutionWidth;
@property(nonatomic) NSUInteger maxTotalThreadsPerThreadgroup;
@end

@interface MTLComputePipelineReflection : NSObject
@end
