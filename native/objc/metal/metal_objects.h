// The classes behind Metal's protocols, and the engine's objects behind them: for the rest of native/objc.
//
// State of the classes is either fixed after creation, or belongs to the engine, or is guarded by a lock that
// ThreadSanitizer must overlook (EngineCall): a program may break Metal's rules about threads, and then it is the
// engine and ThreadSanitizer that must say so, not a crash in here.
#pragma once

#import <Metal/Metal.h>
#import <Metal/SoftwareMTLCommandBuffer.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "../../metal/metal.h"

@class SoftwareMTLBuffer;

namespace mpsforge::objc {

// The engine's object; NULL of nil. What is not of these classes ends the process with a message.
mpsforge_metal_buffer* engine_buffer(id<MTLBuffer> buffer);
mpsforge_metal_command_buffer* engine_command_buffer(id<MTLCommandBuffer> buffer);
mpsforge_metal_encoder* engine_encoder(id<MTLComputeCommandEncoder> encoder);

// The buffer owns the object until it has ended, as it does with everything that is encoded: the object's retain count
// says so.
void keep_until_completed(id<MTLCommandBuffer> buffer, id object);

// Releases an object, for the engine to call.
void release_object(void* object);

// Marks the use of an object that Metal allows one thread at a time: ThreadSanitizer reports two that nothing orders.
// The field is the object's own.
inline void used_by_one_thread(char& field) { *static_cast<volatile char*>(&field) = 1; }

}  // namespace mpsforge::objc

@interface SoftwareMTLDevice : NSObject <MTLDevice>
+ (SoftwareMTLDevice*)shared;
// Counts memory as allocated or, below 0, as no more allocated. NO, and nothing is counted, if there is not so much.
- (BOOL)count:(int64_t)bytes;
// The same of memory that the program was given or gave back, which is recorded.
- (BOOL)allocate:(int64_t)bytes;
@end

// One that any thread may use, its label among the rest.
@interface SoftwareMTLSharedObject : SoftwareMTLObject
@end

@interface SoftwareMTLHeap : SoftwareMTLSharedObject <MTLHeap>
- (instancetype)initWithDescriptor:(MTLHeapDescriptor*)descriptor;
- (void)giveBack:(NSUInteger)bytes;
@end

@interface SoftwareMTLBuffer : SoftwareMTLSharedObject <MTLBuffer> {
 @public
  mpsforge_metal_buffer* _engine;
}
// Memory of the engine's own; nil if there is none. Its heap, or the device, has counted the size.
- (instancetype)initWithLength:(NSUInteger)length
                          size:(NSUInteger)size
                       options:(MTLResourceOptions)options
                          heap:(SoftwareMTLHeap*)heap;
- (instancetype)initOver:(void*)memory
                  length:(NSUInteger)length
                 options:(MTLResourceOptions)options
             deallocator:(void (^)(void* pointer, NSUInteger length))deallocator;
@end

@interface SoftwareMTLCommandQueue : SoftwareMTLSharedObject <MTLCommandQueue> {
 @public
  mpsforge_metal_queue* _engine;
}
@end

@interface SoftwareMTLEvent : SoftwareMTLSharedObject <MTLSharedEvent> {
 @public
  mpsforge_metal_event* _engine;
}
// nil: a shared event, which is of no device.
- (instancetype)initForDevice:(id<MTLDevice>)device;
@end

@interface SoftwareMTLCommandEncoder : SoftwareMTLObject <MTLCommandEncoder> {
 @public
  mpsforge_metal_encoder* _engine;
  char _used;
}
// Owns the engine's encoder from now on.
- (instancetype)initWithEngine:(mpsforge_metal_encoder*)engine;
// The command buffer that it encodes to owns the object until it has ended.
- (void)keep:(id)object;
@end

@interface SoftwareMTLBlitCommandEncoder : SoftwareMTLCommandEncoder <MTLBlitCommandEncoder>
@end

@interface SoftwareMTLComputeCommandEncoder : SoftwareMTLCommandEncoder <MTLComputeCommandEncoder>
@end

@interface SoftwareMTLLibrary : SoftwareMTLSharedObject <MTLLibrary>
// nil, and an error, if it cannot be compiled.
- (instancetype)initWithSource:(NSString*)source options:(MTLCompileOptions*)options error:(NSError**)error;
// One that PyTorch's binary has in a section: with the kernels that were translated of it; if they were not, with every
// function that a host kernel is registered for.
- (instancetype)initWithSection:(const std::string&)section;
@end

@interface SoftwareMTLComputePipelineState : SoftwareMTLObject <MTLComputePipelineState> {
 @public
  const char* _kernel;  // the engine's name for it
}
// nil, with an error, if there is no host kernel for the function.
+ (instancetype)newWithFunction:(id<MTLFunction>)function error:(NSError**)error;
@end

@interface SoftwareMTLArgumentEncoder : SoftwareMTLObject <MTLArgumentEncoder>
@end
