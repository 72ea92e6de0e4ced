// The objects behind the C pointers of the backend on Apple's framework. They hold Metal's own objects, called metal,
// and add what the C ABI asks for beside them. Not run yet, see framework_darwin.m.
#pragma once

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>
#include <stdatomic.h>

#include "metal.h"

// In the order of the names in framework_darwin.m.
typedef NS_ENUM(NSUInteger, ForgeKind) {
  ForgeKindBuffer,
  ForgeKindQueue,
  ForgeKindCommandBuffer,
  ForgeKindEncoder,
  ForgeKindEvent,
  ForgeKindSerialQueue,
  ForgeKindKernel,
  ForgeKindCount
};

// Ends the process, for mistakes that Metal itself would not notice.
void forge_fail(NSString* format, ...) NS_FORMAT_FUNCTION(1, 2) __attribute__((noreturn));

// nil of NULL, and of what is not UTF-8.
NSString* forge_string(const char* text);

// How many handlers of one root command buffer have been added and not called. Apart from the buffer, because Metal
// keeps handlers alive in the buffer: one that knew its buffer would keep a buffer that is never committed for ever.
@interface ForgeHandlers : NSObject
@property(readonly) BOOL pending;
- (void)added;
- (void)called;
- (void)waitUntilCalled;
@end

@interface ForgeDevice : NSObject {
 @public
  // Of mpsforge_metal_statistics. Commands count when they are encoded: whether the GPU has executed them is not to be
  // seen.
  _Atomic(uint64_t) commandBuffers, commands, handlers;
  _Atomic(int64_t) handles[ForgeKindCount];  // that the program holds
}
@property(readonly) id<MTLDevice> metal;
@property(readonly) NSUInteger maxUncompleted;
@property(readonly) MTLSharedEventListener* listener;
- (instancetype)initWithMetal:(id<MTLDevice>)metal maxUncompleted:(NSUInteger)maxUncompleted;
- (void)addKernel:(NSString*)name source:(NSString*)source;
// Compiled at first use; ends the process if that fails.
- (id<MTLComputePipelineState>)pipelineNamed:(NSString*)name;
// After a commit, so that close can wait for it.
- (void)committed:(id<MTLCommandBuffer>)root handlers:(ForgeHandlers*)handlers;
- (void)close;
- (size_t)findings:(mpsforge_metal_finding*)out capacity:(size_t)capacity;
@end

@interface ForgeHandle : NSObject
@property(readonly) ForgeDevice* device;
@property(readonly) ForgeKind kind;
- (instancetype)initWithDevice:(ForgeDevice*)device kind:(ForgeKind)kind;
@end

// Gives the program its one reference; NULL of nil.
void* forge_hand_out(ForgeHandle* handle);
// Ends it.
void forge_take_back(void* pointer);

@interface ForgeBuffer : ForgeHandle
@property id<MTLBuffer> metal;
@end

@interface ForgeQueue : ForgeHandle
@property id<MTLCommandQueue> metal;
@end

@interface ForgeCommandBuffer : ForgeHandle
@property(readonly) id<MTLCommandBuffer> metal;  // an MPSCommandBuffer if mps
@property(readonly) BOOL mps;
@property(readonly) id<MTLCommandBuffer> root;  // itself if not mps
@property BOOL borrowed;                        // by a handler, which must not release it
// Of the newest root. Atomic as the properties above: a program under test may use one buffer on two threads, and then
// it is Metal that has to notice.
@property ForgeHandlers* handlers;
- (instancetype)initWithDevice:(ForgeDevice*)device
                         metal:(id<MTLCommandBuffer>)metal
                           mps:(BOOL)mps
                      handlers:(ForgeHandlers*)handlers;
// After the root was committed and has made place for another.
- (void)continuedAfter:(id<MTLCommandBuffer>)committed;
// The text for as long as this object lives.
- (const char*)keep:(NSString*)text;
@end

@interface ForgeEncoder : ForgeHandle
@property(readonly) id<MTLCommandEncoder> metal;
// Metal's own call on an encoder of the other kind ends the process: there is no such method.
@property(readonly) id<MTLBlitCommandEncoder> blit;
@property(readonly) id<MTLComputeCommandEncoder> compute;
- (instancetype)initWithDevice:(ForgeDevice*)device metal:(id<MTLCommandEncoder>)metal;
- (void)setKernel:(const char*)name;
- (void)dispatch:(uint64_t)threads;
@end

@interface ForgeEvent : ForgeHandle
@property id<MTLSharedEvent> metal;
@end

@interface ForgeSerialQueue : ForgeHandle
@property dispatch_queue_t dispatch;
@end

// framework_mps_darwin.m
mpsforge_metal_mps_kernel* mpsforge_metal_framework_mps_create(mpsforge_metal_device* device, uint32_t mps_class,
                                                               const char* label);
void mpsforge_metal_framework_mps_encode(mpsforge_metal_mps_kernel* kernel, mpsforge_metal_command_buffer* buffer,
                                         mpsforge_metal_encoder* encoder, const char* name,
                                         const mpsforge_metal_binding* bindings, size_t count, const void* bytes,
                                         size_t length, uint64_t threads);

// framework_serial_darwin.m
mpsforge_metal_serial_queue* mpsforge_metal_framework_serial_create(mpsforge_metal_device* device, const char* label);
void mpsforge_metal_framework_serial_release(mpsforge_metal_serial_queue* queue);
void mpsforge_metal_framework_serial_sync(mpsforge_metal_serial_queue* queue, mpsforge_metal_function function,
                                          void* context);
void mpsforge_metal_framework_serial_async(mpsforge_metal_serial_queue* queue, mpsforge_metal_function function,
                                           void* context);
int mpsforge_metal_framework_serial_is_current(mpsforge_metal_serial_queue* queue);
