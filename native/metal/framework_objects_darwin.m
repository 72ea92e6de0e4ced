// The objects of framework_darwin.h. Not run yet, see framework_darwin.m.
#import "framework_darwin.h"

#import <MetalPerformanceShaders/MetalPerformanceShaders.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void forge_fail(NSString* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  NSString* text = [[NSString alloc] initWithFormat:format arguments:arguments];
  va_end(arguments);
  fprintf(stderr, "mpsforge on Apple's Metal framework: %s\n", text.UTF8String);
  abort();
}

NSString* forge_string(const char* text) { return text ? [NSString stringWithUTF8String:text] : nil; }

void* forge_hand_out(ForgeHandle* handle) {
  if (!handle) return NULL;
  atomic_fetch_add(&handle.device->handles[handle.kind], 1);
  return (__bridge_retained void*)handle;
}

void forge_take_back(void* pointer) {
  // What Metal hands over autoreleased ends here too, and not at some later end of the thread.
  @autoreleasepool {
    ForgeHandle* handle = (__bridge_transfer ForgeHandle*)pointer;
    if (handle) atomic_fetch_sub(&handle.device->handles[handle.kind], 1);
  }
}

@implementation ForgeHandlers {
  NSCondition* _changed;
  NSUInteger _pending;
}

- (instancetype)init {
  if ((self = [super init])) _changed = [[NSCondition alloc] init];
  return self;
}

- (void)added {
  [_changed lock];
  ++_pending;
  [_changed unlock];
}

- (void)called {
  [_changed lock];
  --_pending;
  [_changed broadcast];
  [_changed unlock];
}

- (BOOL)pending {
  [_changed lock];
  const BOOL pending = _pending > 0;
  [_changed unlock];
  return pending;
}

- (void)waitUntilCalled {
  [_changed lock];
  while (_pending > 0) [_changed wait];
  [_changed unlock];
}

@end

// What close has to wait for.
@interface ForgeCommitted : NSObject
@property id<MTLCommandBuffer> root;
@property ForgeHandlers* handlers;
@property(readonly) BOOL done;
@end

@implementation ForgeCommitted
- (BOOL)done {
  return self.root.status >= MTLCommandBufferStatusCompleted && !self.handlers.pending;
}
@end

@implementation ForgeDevice {
  NSMutableDictionary<NSString*, NSString*>* _sources;  // guards itself and the pipelines
  NSMutableDictionary<NSString*, id<MTLComputePipelineState>>* _pipelines;
  NSMutableArray<ForgeCommitted*>* _committed;  // guards itself and the limit
  NSUInteger _limit;
  dispatch_queue_t _listeners;
  NSMutableData* _findings;  // guards itself
  atomic_bool _closed;
}

// Of committed buffers before those that are done are taken out: the 64 of one queue.
static const NSUInteger kCommitted = 64;

- (instancetype)initWithMetal:(id<MTLDevice>)metal maxUncompleted:(NSUInteger)maxUncompleted {
  if ((self = [super init])) {
    _metal = metal;
    _maxUncompleted = maxUncompleted;
    _sources = [[NSMutableDictionary alloc] init];
    _pipelines = [[NSMutableDictionary alloc] init];
    _committed = [[NSMutableArray alloc] init];
    _limit = kCommitted;
    _findings = [[NSMutableData alloc] init];
    _listeners = dispatch_queue_create("mpsforge listeners", DISPATCH_QUEUE_SERIAL);
    _listener = [[MTLSharedEventListener alloc] initWithDispatchQueue:_listeners];
  }
  return self;
}

- (void)addKernel:(NSString*)name source:(NSString*)source {
  @synchronized(_sources) {
    _sources[name] = source;
    [_pipelines removeObjectForKey:name];
  }
}

- (id<MTLComputePipelineState>)pipelineNamed:(NSString*)name {
  if (!name) forge_fail(@"a kernel whose name is not UTF-8");
  @synchronized(_sources) {
    id<MTLComputePipelineState> known = _pipelines[name];
    if (known) return known;
    NSString* source = _sources[name];
    if (!source) forge_fail(@"no kernel %@, or none with Metal source", name);
    NSError* error = nil;
    id<MTLLibrary> library = [_metal newLibraryWithSource:source options:nil error:&error];
    if (!library) forge_fail(@"kernel %@ does not compile: %@", name, error.localizedDescription);
    id<MTLFunction> function = [library newFunctionWithName:name];
    if (!function) forge_fail(@"the source of kernel %@ has no function of that name", name);
    id<MTLComputePipelineState> made = [_metal newComputePipelineStateWithFunction:function error:&error];
    if (!made) forge_fail(@"no pipeline of kernel %@: %@", name, error.localizedDescription);
    _pipelines[name] = made;
    return made;
  }
}

- (void)committed:(id<MTLCommandBuffer>)root handlers:(ForgeHandlers*)pending {
  atomic_fetch_add(&commandBuffers, 1);
  ForgeCommitted* work = [[ForgeCommitted alloc] init];
  work.root = root;
  work.handlers = pending;
  @synchronized(_committed) {
    [_committed addObject:work];
    if (_committed.count <= _limit) return;
    NSMutableArray<ForgeCommitted*>* left = [[NSMutableArray alloc] init];
    for (ForgeCommitted* each in _committed) {
      if (!each.done) [left addObject:each];
    }
    [_committed setArray:left];
    // So a long list of buffers that are not done is not searched at every commit.
    _limit = MAX(kCommitted, 2 * _committed.count);
  }
}

- (void)close {
  if (atomic_exchange(&_closed, true)) return;
  for (;;) {
    NSArray<ForgeCommitted*>* left;
    @synchronized(_committed) {
      left = [_committed copy];
      [_committed removeAllObjects];
    }
    if (left.count == 0) break;
    // Handlers may commit more.
    for (ForgeCommitted* work in left) {
      [work.root waitUntilCompleted];
      [work.handlers waitUntilCalled];
    }
  }
  dispatch_sync(_listeners, ^{
                });
  [self reportLeftBehind];
}

- (void)reportLeftBehind {
  static const char* const names[ForgeKindCount] = {"buffers", "queues",        "command buffers", "encoders",
                                                    "events",  "serial queues", "MPS kernels"};
  @synchronized(_findings) {
    for (NSUInteger kind = 0; kind < ForgeKindCount; ++kind) {
      const int64_t left = atomic_load(&handles[kind]);
      if (left <= 0) continue;
      mpsforge_metal_finding finding;
      memset(&finding, 0, sizeof finding);
      finding.kind = MPSFORGE_METAL_LIFETIME;
      snprintf(finding.message, sizeof finding.message, "%lld %s left behind at the device's end", (long long)left,
               names[kind]);
      [_findings appendBytes:&finding length:sizeof finding];
    }
  }
}

- (size_t)findings:(mpsforge_metal_finding*)out capacity:(size_t)capacity {
  @synchronized(_findings) {
    const size_t count = _findings.length / sizeof(mpsforge_metal_finding);
    const size_t copied = MIN(count, capacity);
    if (copied > 0) memcpy(out, _findings.bytes, copied * sizeof(mpsforge_metal_finding));
    return count;
  }
}

@end

@implementation ForgeHandle
- (instancetype)initWithDevice:(ForgeDevice*)device kind:(ForgeKind)kind {
  if ((self = [super init])) {
    _device = device;
    _kind = kind;
  }
  return self;
}
@end

@implementation ForgeBuffer
@end

@implementation ForgeQueue
@end

@implementation ForgeEvent
@end

@implementation ForgeSerialQueue
@end

@implementation ForgeCommandBuffer {
  NSMutableSet<NSData*>* _texts;  // guards itself
}

- (instancetype)initWithDevice:(ForgeDevice*)device
                         metal:(id<MTLCommandBuffer>)metal
                           mps:(BOOL)mps
                      handlers:(ForgeHandlers*)handlers {
  if ((self = [super initWithDevice:device kind:ForgeKindCommandBuffer])) {
    _metal = metal;
    _mps = mps;
    _handlers = handlers;
    _texts = [[NSMutableSet alloc] init];
  }
  return self;
}

- (id<MTLCommandBuffer>)root {
  return self.mps ? ((MPSCommandBuffer*)self.metal).rootCommandBuffer : self.metal;
}

- (void)continuedAfter:(id<MTLCommandBuffer>)committed {
  ForgeHandlers* pending = self.handlers;
  self.handlers = [[ForgeHandlers alloc] init];
  [self.device committed:committed handlers:pending];
}

- (const char*)keep:(NSString*)text {
  const char* bytes = text.UTF8String;
  if (!bytes) return "";
  NSData* data = [NSData dataWithBytes:bytes length:strlen(bytes) + 1];
  @synchronized(_texts) {
    if (![_texts member:data]) [_texts addObject:data];
    return [_texts member:data].bytes;
  }
}

@end

@implementation ForgeEncoder {
  _Atomic(NSUInteger) _width;  // of the kernel's threadgroups; 0: no kernel
}

- (instancetype)initWithDevice:(ForgeDevice*)device metal:(id<MTLCommandEncoder>)metal {
  if ((self = [super initWithDevice:device kind:ForgeKindEncoder])) _metal = metal;
  return self;
}

- (id<MTLBlitCommandEncoder>)blit {
  return (id<MTLBlitCommandEncoder>)self.metal;
}

- (id<MTLComputeCommandEncoder>)compute {
  return (id<MTLComputeCommandEncoder>)self.metal;
}

- (void)setKernel:(const char*)name {
  id<MTLComputePipelineState> pipeline = [self.device pipelineNamed:forge_string(name)];
  [self.compute setComputePipelineState:pipeline];
  atomic_store(&_width, pipeline.maxTotalThreadsPerThreadgroup);
}

- (void)dispatch:(uint64_t)threads {
  const NSUInteger width = atomic_load(&_width);
  if (width == 0) forge_fail(@"dispatch without a kernel");
  atomic_fetch_add(&self.device->commands, 1);
  if (threads == 0) return;  // Metal takes no empty grid
  [self.compute dispatchThreads:MTLSizeMake(threads, 1, 1)
          threadsPerThreadgroup:MTLSizeMake(MIN(width, threads), 1, 1)];
}

@end
