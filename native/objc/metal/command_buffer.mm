// Command queues and buffers. All rules about them are the engine's: a message goes there as it comes.
#import <Foundation/Foundation.h>
#import <MetalPerformanceShaders/MPSCommandBuffer.h>
#include <mpsforge/host.h>

#include <mutex>

#include "../engine.h"
#include "metal_objects.h"

using namespace mpsforge::objc;

NSString* const MTLCommandBufferErrorDomain = @"MTLCommandBufferErrorDomain";

namespace {

// A handler's block and what makes the command buffer that it is given. It holds no command buffer: one that is never
// committed would then own itself.
struct Handler {
  MTLCommandBufferHandler block;
  id<MTLCommandQueue> queue;
};

void run_handler(void* context, mpsforge_metal_command_buffer* borrowed) {
  const auto* handler = static_cast<const Handler*>(context);
  mpsforge_metal_command_buffer* own = api().root_command_buffer(borrowed);
  OutsideEngine outside;
  @autoreleasepool {
    SoftwareMTLCommandBuffer* buffer = [[SoftwareMTLCommandBuffer alloc] initWithEngine:own queue:handler->queue];
    handler->block(buffer);
    [buffer release];
  }
}

void end_handler(void* context) {
  OutsideEngine outside;
  const auto* handler = static_cast<const Handler*>(context);
  @autoreleasepool {
    [handler->block release];
    [handler->queue release];
  }
  delete handler;
}

}  // namespace

namespace mpsforge::objc {

void release_object(void* object) {
  OutsideEngine outside;
  @autoreleasepool {
    [(id)object release];
  }
}

mpsforge_metal_command_buffer* engine_command_buffer(id<MTLCommandBuffer> buffer) {
  if (!buffer) return nullptr;
  if (![buffer isKindOfClass:[SoftwareMTLCommandBuffer class]]) {
    fail("an object of class %s is used as a command buffer",
         [NSStringFromClass([(NSObject*)buffer class]) UTF8String]);
  }
  return ((SoftwareMTLCommandBuffer*)buffer)->_engine;
}

void keep_until_completed(id<MTLCommandBuffer> buffer, id object) {
  if (!object) return;
  mpsforge_metal_command_buffer* engine = engine_command_buffer(buffer);
  [object retain];
  bool kept;
  {
    EngineCall guard;
    kept = api().keep(engine, object, release_object, 0);
  }
  if (!kept) [object release];
}

}  // namespace mpsforge::objc

void mpsforge_host_fail_command_buffer(void* queue, uint32_t n) {
  EngineCall guard;
  api().inject(((SoftwareMTLCommandQueue*)queue)->_engine, MPSFORGE_METAL_INJECT_ERROR, n);
}

@implementation SoftwareMTLCommandQueue

- (instancetype)init {
  self = [super init];
  if (self) {
    EngineCall guard;
    _engine = api().queue_create(mpsforge::objc::device(), nullptr);
  }
  return self;
}

- (void)dealloc {
  if (_engine) {
    EngineCall guard;
    api().queue_release(_engine);
  }
  [super dealloc];
}

- (id<MTLCommandBuffer>)commandBuffer {
  mpsforge_metal_command_buffer* made;
  {
    EngineCall guard;
    made = api().command_buffer(_engine);
  }
  return [[[SoftwareMTLCommandBuffer alloc] initWithEngine:made queue:self] autorelease];
}

- (id<MTLCommandBuffer>)commandBufferWithUnretainedReferences {
  fail("-[SoftwareMTLCommandQueue commandBufferWithUnretainedReferences] is not implemented");
}

@end

@implementation SoftwareMTLCommandBuffer

- (instancetype)initWithEngine:(mpsforge_metal_command_buffer*)engine queue:(id<MTLCommandQueue>)queue {
  self = [super init];
  if (!self || !engine) {
    [self release];
    return nil;
  }
  _engine = engine;
  _queue = [queue retain];
  return self;
}

- (void)dealloc {
  if (_engine) {
    EngineCall guard;
    api().command_buffer_release(_engine);
  }
  [_queue release];
  [super dealloc];
}

- (id<MTLCommandQueue>)commandQueue {
  return _queue;
}

- (BOOL)retainedReferences {
  return YES;
}

- (void)setLabel:(NSString*)label {
  used_by_one_thread(_used);
  [super setLabel:label];
}

- (MTLCommandBufferStatus)status {
  EngineCall guard;
  return static_cast<MTLCommandBufferStatus>(api().status(_engine));
}

- (NSError*)error {
  const char* text;
  {
    EngineCall guard;
    text = api().error(_engine);
  }
  if (!text || !*text) return nil;
  NSDictionary* info = [NSDictionary dictionaryWithObject:[NSString stringWithUTF8String:text]
                                                   forKey:NSLocalizedDescriptionKey];
  return [NSError errorWithDomain:MTLCommandBufferErrorDomain code:MTLCommandBufferErrorInternal userInfo:info];
}

- (mpsforge_metal_times)times {
  EngineCall guard;
  mpsforge_metal_times times;
  api().times(_engine, &times);
  return times;
}

- (CFTimeInterval)kernelStartTime {
  return [self times].kernel_start;
}

- (CFTimeInterval)kernelEndTime {
  return [self times].kernel_end;
}

- (CFTimeInterval)GPUStartTime {
  return [self times].gpu_start;
}

- (CFTimeInterval)GPUEndTime {
  return [self times].gpu_end;
}

- (void)enqueue {
  used_by_one_thread(_used);
  EngineCall guard;
  api().enqueue(_engine);
}

- (void)commit {
  used_by_one_thread(_used);
  EngineCall guard;
  api().commit(_engine);
}

- (void)add:(MTLCommandBufferHandler)block
       with:(void (*)(mpsforge_metal_command_buffer*, mpsforge_metal_handler, void*))add {
  used_by_one_thread(_used);
  if (!block) fail("-[%s addHandler] with nil", [NSStringFromClass([self class]) UTF8String]);
  auto* handler = new Handler{[block copy], [_queue retain]};
  EngineCall guard;
  // First the buffer owns it, for as long as the buffer may call it. One that has ended does not take it, and refuses
  // the handler too: then it is lost, with the report.
  api().keep(_engine, handler, end_handler, 1);
  add(_engine, run_handler, handler);
}

- (void)addScheduledHandler:(MTLCommandBufferHandler)block {
  [self add:block with:api().add_scheduled_handler];
}

- (void)addCompletedHandler:(MTLCommandBufferHandler)block {
  [self add:block with:api().add_completed_handler];
}

- (void)waitUntilScheduled {
  EngineCall guard;
  api().wait_until_scheduled(_engine);
}

- (void)waitUntilCompleted {
  EngineCall guard;
  api().wait_until_completed(_engine);
}

- (id<MTLBlitCommandEncoder>)blitCommandEncoder {
  used_by_one_thread(_used);
  mpsforge_metal_encoder* made;
  {
    EngineCall guard;
    made = api().blit_encoder(_engine);
  }
  return [[[SoftwareMTLBlitCommandEncoder alloc] initWithEngine:made] autorelease];
}

- (id<MTLComputeCommandEncoder>)computeCommandEncoder {
  used_by_one_thread(_used);
  mpsforge_metal_encoder* made;
  {
    EngineCall guard;
    made = api().compute_encoder(_engine);
  }
  return [[[SoftwareMTLComputeCommandEncoder alloc] initWithEngine:made] autorelease];
}

- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type {
  if (type != MTLDispatchTypeSerial) {
    fail("-[%s computeCommandEncoderWithDispatchType:] with a concurrent one: dispatches of the software Metal run one "
         "after another",
         [NSStringFromClass([self class]) UTF8String]);
  }
  return [self computeCommandEncoder];
}

- (mpsforge_metal_event*)engineEvent:(id<MTLEvent>)event {
  used_by_one_thread(_used);
  if (!event) fail("-[%s encode...Event:value:] with nil", [NSStringFromClass([self class]) UTF8String]);
  if (![event isKindOfClass:[SoftwareMTLEvent class]]) {
    fail("an object of class %s is used as an event", [NSStringFromClass([(NSObject*)event class]) UTF8String]);
  }
  keep_until_completed(self, event);
  return ((SoftwareMTLEvent*)event)->_engine;
}

- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value {
  mpsforge_metal_event* engine = [self engineEvent:event];
  EngineCall guard;
  api().encode_signal(_engine, engine, value);
}

- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(uint64_t)value {
  mpsforge_metal_event* engine = [self engineEvent:event];
  EngineCall guard;
  api().encode_wait(_engine, engine, value);
}

// Groups are for captures, of which there are none.
- (void)pushDebugGroup:(NSString*)name {
  used_by_one_thread(_used);
}

- (void)popDebugGroup {
  used_by_one_thread(_used);
}

@end

@implementation MPSCommandBuffer

+ (instancetype)commandBufferFromCommandQueue:(id<MTLCommandQueue>)queue {
  if (queue && ![queue isKindOfClass:[SoftwareMTLCommandQueue class]]) {
    fail("an object of class %s is used as a command queue", [NSStringFromClass([(NSObject*)queue class]) UTF8String]);
  }
  mpsforge_metal_command_buffer* made = nullptr;
  if (queue) {
    EngineCall guard;
    made = api().mps_command_buffer(((SoftwareMTLCommandQueue*)queue)->_engine);
  }
  return [[[self alloc] initWithEngine:made queue:queue] autorelease];
}

+ (instancetype)commandBufferWithCommandBuffer:(id<MTLCommandBuffer>)buffer {
  fail("+[MPSCommandBuffer commandBufferWithCommandBuffer:] is not implemented");
}

- (void)dealloc {
  [_root release];
  [super dealloc];
}

// One object for each root, however often it is asked for. The engine may have changed the root by itself, inside an
// MPSGraph.
- (id<MTLCommandBuffer>)rootCommandBuffer {
  static std::mutex mutex;
  SoftwareMTLCommandBuffer *old = nil, *root;
  {
    EngineCall guard;
    std::lock_guard<std::mutex> lock(mutex);
    if (!_root || !api().is_root(_engine, _root->_engine)) {
      old = _root;
      _root = [[SoftwareMTLCommandBuffer alloc] initWithEngine:api().root_command_buffer(_engine) queue:_queue];
    }
    root = [_root retain];
  }
  [old release];  // which may release what it kept, and run anything
  return [root autorelease];
}

- (id<MTLCommandBuffer>)commandBuffer {
  return [self rootCommandBuffer];
}

- (void)commitAndContinue {
  used_by_one_thread(_used);
  EngineCall guard;
  api().commit_and_continue(_engine);
}

@end
