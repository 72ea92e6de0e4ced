#pragma once

#import <Metal/Metal.h>
#import <Metal/SoftwareMTLCommandBuffer.h>

@protocol MPSHeapProvider;

// A wrapper around a command buffer, the root, which commitAndContinue replaces. Everything else goes to the root, so
// it inherits the methods of the class of roots; Apple's is a plain NSObject.
@interface MPSCommandBuffer : SoftwareMTLCommandBuffer {
  SoftwareMTLCommandBuffer* _root;  // the object that was given out for the root
}
@property(readonly, nonatomic) id<MTLCommandBuffer> commandBuffer;
@property(readonly, nonatomic) id<MTLCommandBuffer> rootCommandBuffer;
+ (instancetype)commandBufferFromCommandQueue:(id<MTLCommandQueue>)queue;
+ (instancetype)commandBufferWithCommandBuffer:(id<MTLCommandBuffer>)buffer;
- (void)commitAndContinue;
@end
