// The C ABI of metal.h on Apple's Metal framework. This backend has not been run yet: there was no Mac. It was checked
// with clang on Linux against the headers of host builds (native/objc/include), which finds slips and not mistakes
// about Apple's interfaces.
//
// Calls go to Metal as they are, so what Metal forbids ends the process with Metal's own assertion, and no violation,
// race or deadlock is ever among the findings: those hold only what was left behind at the device's end. What a program
// informs the checker (order_release, order_acquire, cpu_access, buffer_note) is not needed here, and a real queue
// cannot be made to fail (inject, resume): these functions do nothing.
#import "framework_darwin.h"

#import <MetalPerformanceShaders/MetalPerformanceShaders.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

// Messages to nil do nothing and return zero, as metal.h asks of calls on NULL; only what touches more than the
// message's receiver has to look.
static ForgeDevice* device_of(mpsforge_metal_device* pointer) { return (__bridge ForgeDevice*)(void*)pointer; }
static ForgeBuffer* buffer_of(mpsforge_metal_buffer* pointer) { return (__bridge ForgeBuffer*)(void*)pointer; }
static ForgeQueue* queue_of(mpsforge_metal_queue* pointer) { return (__bridge ForgeQueue*)(void*)pointer; }
static ForgeEncoder* encoder_of(mpsforge_metal_encoder* pointer) { return (__bridge ForgeEncoder*)(void*)pointer; }
static ForgeEvent* event_of(mpsforge_metal_event* pointer) { return (__bridge ForgeEvent*)(void*)pointer; }
static ForgeCommandBuffer* command_buffer_of(mpsforge_metal_command_buffer* pointer) {
  return (__bridge ForgeCommandBuffer*)(void*)pointer;
}

// --- device

static const char* identity(void) {
  static char text[256];
  static dispatch_once_t once;
  dispatch_once(&once, ^{
    @autoreleasepool {
      NSString* version = NSProcessInfo.processInfo.operatingSystemVersionString;
      snprintf(text, sizeof text, "Apple's Metal framework, macOS %s, %s", version.UTF8String,
               MTLCreateSystemDefaultDevice().name.UTF8String);
    }
  });
  return text;
}

static mpsforge_metal_device* device_create(const mpsforge_metal_config* config) {
  @autoreleasepool {
    // There is none in a program without CoreGraphics (Apple's page on this function), so doc.go links it.
    id<MTLDevice> metal = config ? MTLCreateSystemDefaultDevice() : nil;
    if (!metal) return NULL;
    ForgeDevice* device = [[ForgeDevice alloc] initWithMetal:metal maxUncompleted:config->max_uncompleted];
    return (__bridge_retained void*)device;
  }
}

static void device_close(mpsforge_metal_device* device) {
  @autoreleasepool {
    [device_of(device) close];
  }
}

static void device_release(mpsforge_metal_device* device) {
  @autoreleasepool {
    ForgeDevice* last = (__bridge_transfer ForgeDevice*)(void*)device;
    [last close];
  }
}

static size_t findings(mpsforge_metal_device* device, mpsforge_metal_finding* out, size_t capacity) {
  return [device_of(device) findings:out capacity:capacity];
}

static void statistics(mpsforge_metal_device* device, mpsforge_metal_statistics* out) {
  if (!out) return;
  memset(out, 0, sizeof *out);
  ForgeDevice* of = device_of(device);
  if (!of) return;
  out->command_buffers = atomic_load(&of->commandBuffers);
  out->commands = atomic_load(&of->commands);
  out->handlers = atomic_load(&of->handlers);
}

// The name is the operating system's, so that it is in crash reports.
static void name_thread(mpsforge_metal_device* device, const char* name) {
  if (!device || !name) return;
  char text[64];  // MAXTHREADNAMESIZE of sys/proc_info.h; a longer name would be refused
  snprintf(text, sizeof text, "%s", name);
  pthread_setname_np(text);
}

static void add_kernel(mpsforge_metal_device* device, const mpsforge_metal_kernel* kernel) {
  @autoreleasepool {
    NSString* name = kernel ? forge_string(kernel->name) : nil;
    if (name) [device_of(device) addKernel:name source:forge_string(kernel->source)];
  }
}

static void no_order(mpsforge_metal_device* device, const void* object) {
  (void)device;
  (void)object;
}

// --- buffers

static mpsforge_metal_buffer* buffer_create(mpsforge_metal_device* device, size_t length, uint32_t storage,
                                            const char* label) {
  @autoreleasepool {
    ForgeDevice* of = device_of(device);
    if (!of || length == 0 || length > of.metal.maxBufferLength) return NULL;
    const MTLResourceOptions options =
        storage == MPSFORGE_METAL_PRIVATE ? MTLResourceStorageModePrivate : MTLResourceStorageModeShared;
    // Cleared by Metal (Apple's page on newBufferWithLength:options:).
    id<MTLBuffer> metal = [of.metal newBufferWithLength:length options:options];
    if (!metal) return NULL;
    metal.label = forge_string(label);
    ForgeBuffer* made = [[ForgeBuffer alloc] initWithDevice:of kind:ForgeKindBuffer];
    made.metal = metal;
    return forge_hand_out(made);
  }
}

static void buffer_release(mpsforge_metal_buffer* buffer) { forge_take_back(buffer); }

static size_t buffer_length(mpsforge_metal_buffer* buffer) { return buffer_of(buffer).metal.length; }

static void* buffer_contents(mpsforge_metal_buffer* buffer) {
  id<MTLBuffer> metal = buffer_of(buffer).metal;
  return metal.storageMode == MTLStorageModePrivate ? NULL : metal.contents;
}

static void cpu_access(mpsforge_metal_buffer* buffer, size_t offset, size_t length, uint32_t access) {
  (void)buffer;
  (void)offset;
  (void)length;
  (void)access;
}

static uint8_t* range(mpsforge_metal_buffer* buffer, size_t offset, size_t length, const char* call) {
  id<MTLBuffer> metal = buffer_of(buffer).metal;
  if (!metal) return NULL;
  if (metal.storageMode == MTLStorageModePrivate) forge_fail(@"%s of private buffer %@", call, metal.label);
  if (offset > metal.length || length > metal.length - offset) {
    forge_fail(@"%s of %zu bytes from %zu of buffer %@, which has %zu", call, length, offset, metal.label,
               (size_t)metal.length);
  }
  return (uint8_t*)metal.contents + offset;
}

static void cpu_read(mpsforge_metal_buffer* buffer, size_t offset, size_t length, void* to) {
  const uint8_t* from = range(buffer, offset, length, "cpu_read");
  if (from && length > 0) memcpy(to, from, length);
}

static void cpu_write(mpsforge_metal_buffer* buffer, size_t offset, size_t length, const void* from) {
  uint8_t* to = range(buffer, offset, length, "cpu_write");
  if (to && length > 0) memcpy(to, from, length);
}

static void buffer_note(mpsforge_metal_buffer* buffer, size_t offset, size_t length, const char* what) {
  (void)buffer;
  (void)offset;
  (void)length;
  (void)what;
}

// --- queues

static mpsforge_metal_queue* queue_create(mpsforge_metal_device* device, const char* label) {
  @autoreleasepool {
    ForgeDevice* of = device_of(device);
    const NSUInteger max = of.maxUncompleted;
    id<MTLCommandQueue> metal =
        max > 0 ? [of.metal newCommandQueueWithMaxCommandBufferCount:max] : [of.metal newCommandQueue];
    if (!metal) return NULL;
    metal.label = forge_string(label);
    ForgeQueue* made = [[ForgeQueue alloc] initWithDevice:of kind:ForgeKindQueue];
    made.metal = metal;
    return forge_hand_out(made);
  }
}

static void queue_release(mpsforge_metal_queue* queue) { forge_take_back(queue); }

static void inject(mpsforge_metal_queue* queue, uint32_t kind, uint32_t n) {
  (void)queue;
  (void)kind;
  (void)n;
}

static void resume(mpsforge_metal_queue* queue) { (void)queue; }

// --- command buffers

static mpsforge_metal_command_buffer* wrap(ForgeDevice* device, id<MTLCommandBuffer> metal, BOOL mps,
                                           ForgeHandlers* handlers) {
  if (!metal) return NULL;
  return forge_hand_out([[ForgeCommandBuffer alloc] initWithDevice:device metal:metal mps:mps handlers:handlers]);
}

static mpsforge_metal_command_buffer* command_buffer(mpsforge_metal_queue* queue) {
  @autoreleasepool {
    ForgeQueue* of = queue_of(queue);
    return wrap(of.device, [of.metal commandBuffer], NO, [[ForgeHandlers alloc] init]);
  }
}

static mpsforge_metal_command_buffer* mps_command_buffer(mpsforge_metal_queue* queue) {
  @autoreleasepool {
    ForgeQueue* of = queue_of(queue);
    if (!of) return NULL;
    return wrap(of.device, [MPSCommandBuffer commandBufferFromCommandQueue:of.metal], YES,
                [[ForgeHandlers alloc] init]);
  }
}

static void command_buffer_release(mpsforge_metal_command_buffer* buffer) {
  if (command_buffer_of(buffer).borrowed) forge_fail(@"a handler released the command buffer that it borrowed");
  forge_take_back(buffer);
}

static uint32_t status(mpsforge_metal_command_buffer* buffer) {
  @autoreleasepool {
    return (uint32_t)command_buffer_of(buffer).root.status;
  }
}

static const char* error(mpsforge_metal_command_buffer* buffer) {
  @autoreleasepool {
    ForgeCommandBuffer* of = command_buffer_of(buffer);
    id<MTLCommandBuffer> root = of.root;
    if (!of || root.status != MTLCommandBufferStatusError) return "";
    NSString* text = root.error.localizedDescription;
    return [of keep:text ? text : @"Metal gave no error"];
  }
}

static void enqueue(mpsforge_metal_command_buffer* buffer) {
  @autoreleasepool {
    [command_buffer_of(buffer).metal enqueue];
  }
}

static void commit(mpsforge_metal_command_buffer* buffer) {
  @autoreleasepool {
    ForgeCommandBuffer* of = command_buffer_of(buffer);
    if (!of) return;
    id<MTLCommandBuffer> root = of.root;
    ForgeHandlers* handlers = of.handlers;
    [of.metal commit];
    [of.device committed:root handlers:handlers];
  }
}

static void commit_and_continue(mpsforge_metal_command_buffer* buffer) {
  @autoreleasepool {
    ForgeCommandBuffer* of = command_buffer_of(buffer);
    if (!of) return;
    id<MTLCommandBuffer> root = of.root;
    // A plain command buffer has no such method, and ends the process.
    [(MPSCommandBuffer*)of.metal commitAndContinue];
    [of continuedAfter:root];
  }
}

static mpsforge_metal_command_buffer* root_command_buffer(mpsforge_metal_command_buffer* buffer) {
  @autoreleasepool {
    ForgeCommandBuffer* of = command_buffer_of(buffer);
    return wrap(of.device, of.root, NO, of.handlers);
  }
}

static void wait_until_scheduled(mpsforge_metal_command_buffer* buffer) {
  @autoreleasepool {
    [command_buffer_of(buffer).metal waitUntilScheduled];
  }
}

static void wait_until_completed(mpsforge_metal_command_buffer* buffer) {
  @autoreleasepool {
    [command_buffer_of(buffer).metal waitUntilCompleted];
  }
}

static MTLCommandBufferHandler handler_block(ForgeCommandBuffer* of, mpsforge_metal_handler function, void* context) {
  ForgeDevice* device = of.device;
  ForgeHandlers* handlers = of.handlers;
  [handlers added];
  return ^(id<MTLCommandBuffer> root) {
    @autoreleasepool {
      ForgeCommandBuffer* borrowed = [[ForgeCommandBuffer alloc] initWithDevice:device
                                                                          metal:root
                                                                            mps:NO
                                                                       handlers:handlers];
      borrowed.borrowed = YES;
      function(context, (__bridge void*)borrowed);
      atomic_fetch_add(&device->handlers, 1);
    }
    [handlers called];
  };
}

static void add_scheduled_handler(mpsforge_metal_command_buffer* buffer, mpsforge_metal_handler handler,
                                  void* context) {
  @autoreleasepool {
    ForgeCommandBuffer* of = command_buffer_of(buffer);
    if (of && handler) [of.metal addScheduledHandler:handler_block(of, handler, context)];
  }
}

static void add_completed_handler(mpsforge_metal_command_buffer* buffer, mpsforge_metal_handler handler,
                                  void* context) {
  @autoreleasepool {
    ForgeCommandBuffer* of = command_buffer_of(buffer);
    if (of && handler) [of.metal addCompletedHandler:handler_block(of, handler, context)];
  }
}

static void encode_signal(mpsforge_metal_command_buffer* buffer, mpsforge_metal_event* event, uint64_t value) {
  @autoreleasepool {
    ForgeCommandBuffer* of = command_buffer_of(buffer);
    ForgeEvent* with = event_of(event);
    if (!of || !with) return;
    [of.metal encodeSignalEvent:with.metal value:value];
    atomic_fetch_add(&of.device->commands, 1);
  }
}

static void encode_wait(mpsforge_metal_command_buffer* buffer, mpsforge_metal_event* event, uint64_t value) {
  @autoreleasepool {
    ForgeCommandBuffer* of = command_buffer_of(buffer);
    ForgeEvent* with = event_of(event);
    if (!of || !with) return;
    [of.metal encodeWaitForEvent:with.metal value:value];
    atomic_fetch_add(&of.device->commands, 1);
  }
}

// --- encoders

static mpsforge_metal_encoder* hand_out_encoder(ForgeCommandBuffer* of, id<MTLCommandEncoder> metal) {
  if (!metal) return NULL;
  return forge_hand_out([[ForgeEncoder alloc] initWithDevice:of.device metal:metal]);
}

static mpsforge_metal_encoder* blit_encoder(mpsforge_metal_command_buffer* buffer) {
  @autoreleasepool {
    ForgeCommandBuffer* of = command_buffer_of(buffer);
    return hand_out_encoder(of, [of.metal blitCommandEncoder]);
  }
}

static mpsforge_metal_encoder* compute_encoder(mpsforge_metal_command_buffer* buffer) {
  @autoreleasepool {
    ForgeCommandBuffer* of = command_buffer_of(buffer);
    return hand_out_encoder(of, [of.metal computeCommandEncoder]);
  }
}

static void encoder_release(mpsforge_metal_encoder* encoder) { forge_take_back(encoder); }

static void end_encoding(mpsforge_metal_encoder* encoder) {
  @autoreleasepool {
    [encoder_of(encoder).metal endEncoding];
  }
}

static void fill(mpsforge_metal_encoder* encoder, mpsforge_metal_buffer* buffer, size_t offset, size_t length,
                 uint8_t value) {
  @autoreleasepool {
    ForgeEncoder* on = encoder_of(encoder);
    ForgeBuffer* to = buffer_of(buffer);
    if (!on || !to) return;
    [on.blit fillBuffer:to.metal range:NSMakeRange(offset, length) value:value];
    atomic_fetch_add(&on.device->commands, 1);
  }
}

static void copy(mpsforge_metal_encoder* encoder, mpsforge_metal_buffer* from, size_t from_offset,
                 mpsforge_metal_buffer* to, size_t to_offset, size_t length) {
  @autoreleasepool {
    ForgeEncoder* on = encoder_of(encoder);
    ForgeBuffer* source = buffer_of(from);
    ForgeBuffer* destination = buffer_of(to);
    if (!on || !source || !destination) return;
    [on.blit copyFromBuffer:source.metal
               sourceOffset:from_offset
                   toBuffer:destination.metal
          destinationOffset:to_offset
                       size:length];
    atomic_fetch_add(&on.device->commands, 1);
  }
}

static void set_kernel(mpsforge_metal_encoder* encoder, const char* name) {
  @autoreleasepool {
    if (name) [encoder_of(encoder) setKernel:name];
  }
}

static void set_buffer(mpsforge_metal_encoder* encoder, uint32_t index, mpsforge_metal_buffer* buffer, size_t offset) {
  @autoreleasepool {
    [encoder_of(encoder).compute setBuffer:buffer_of(buffer).metal offset:offset atIndex:index];
  }
}

static void set_bytes(mpsforge_metal_encoder* encoder, uint32_t index, const void* data, size_t length) {
  @autoreleasepool {
    if (data) [encoder_of(encoder).compute setBytes:data length:length atIndex:index];
  }
}

static void dispatch(mpsforge_metal_encoder* encoder, uint64_t threads) {
  @autoreleasepool {
    [encoder_of(encoder) dispatch:threads];
  }
}

// --- host functions of kernels are never called here

static void* argument(mpsforge_metal_call* call, uint32_t index, size_t offset, size_t length, uint32_t access) {
  (void)call;
  (void)index;
  (void)offset;
  (void)length;
  (void)access;
  return NULL;
}

static const void* bytes(mpsforge_metal_call* call, uint32_t index, size_t* length) {
  (void)call;
  (void)index;
  if (length) *length = 0;
  return NULL;
}

static uint64_t threads(mpsforge_metal_call* call) {
  (void)call;
  return 0;
}

static void mps_release(mpsforge_metal_mps_kernel* kernel) { forge_take_back(kernel); }

// --- shared events

static mpsforge_metal_event* event_create(mpsforge_metal_device* device, const char* label) {
  @autoreleasepool {
    ForgeDevice* of = device_of(device);
    id<MTLSharedEvent> metal = [of.metal newSharedEvent];
    if (!metal) return NULL;
    metal.label = forge_string(label);
    ForgeEvent* made = [[ForgeEvent alloc] initWithDevice:of kind:ForgeKindEvent];
    made.metal = metal;
    return forge_hand_out(made);
  }
}

static void event_release(mpsforge_metal_event* event) { forge_take_back(event); }

static uint64_t event_value(mpsforge_metal_event* event) { return event_of(event).metal.signaledValue; }

static void event_set(mpsforge_metal_event* event, uint64_t value) { event_of(event).metal.signaledValue = value; }

// waitUntilSignaledValue:timeoutMS: came with macOS 12, which go.mod's Go needs too (https://go.dev/doc/go1.25#darwin).
static int event_wait(mpsforge_metal_event* event, uint64_t value, int64_t timeout_ms) {
  @autoreleasepool {
    id<MTLSharedEvent> metal = event_of(event).metal;
    if (!metal) return 0;
    if (timeout_ms >= 0) return [metal waitUntilSignaledValue:value timeoutMS:(uint64_t)timeout_ms];
    // Apple's page names no time that means for ever; any time does, again and again.
    while (![metal waitUntilSignaledValue:value timeoutMS:60000]) {
    }
    return 1;
  }
}

static void event_notify(mpsforge_metal_event* event, uint64_t value, mpsforge_metal_function function, void* context) {
  @autoreleasepool {
    ForgeEvent* of = event_of(event);
    ForgeDevice* device = of.device;
    if (!of || !function) return;
    [of.metal notifyListener:device.listener
                     atValue:value
                       block:^(id<MTLSharedEvent> reached, uint64_t now) {
                         (void)reached;
                         (void)now;
                         function(context);
                         atomic_fetch_add(&device->handlers, 1);
                       }];
  }
}

static const mpsforge_metal_api table = {
    .abi = MPSFORGE_METAL_ABI,
    .identity = identity,
    .device_create = device_create,
    .device_close = device_close,
    .device_release = device_release,
    .findings = findings,
    .statistics = statistics,
    .name_thread = name_thread,
    .add_kernel = add_kernel,
    .order_release = no_order,
    .order_acquire = no_order,
    .buffer_create = buffer_create,
    .buffer_release = buffer_release,
    .buffer_length = buffer_length,
    .buffer_contents = buffer_contents,
    .cpu_access = cpu_access,
    .cpu_read = cpu_read,
    .cpu_write = cpu_write,
    .buffer_note = buffer_note,
    .queue_create = queue_create,
    .queue_release = queue_release,
    .inject = inject,
    .resume = resume,
    .command_buffer = command_buffer,
    .mps_command_buffer = mps_command_buffer,
    .command_buffer_release = command_buffer_release,
    .status = status,
    .error = error,
    .enqueue = enqueue,
    .commit = commit,
    .commit_and_continue = commit_and_continue,
    .root_command_buffer = root_command_buffer,
    .wait_until_scheduled = wait_until_scheduled,
    .wait_until_completed = wait_until_completed,
    .add_scheduled_handler = add_scheduled_handler,
    .add_completed_handler = add_completed_handler,
    .encode_signal = encode_signal,
    .encode_wait = encode_wait,
    .blit_encoder = blit_encoder,
    .compute_encoder = compute_encoder,
    .encoder_release = encoder_release,
    .end_encoding = end_encoding,
    .fill = fill,
    .copy = copy,
    .set_kernel = set_kernel,
    .set_buffer = set_buffer,
    .set_bytes = set_bytes,
    .dispatch = dispatch,
    .argument = argument,
    .bytes = bytes,
    .threads = threads,
    .mps_create = mpsforge_metal_framework_mps_create,
    .mps_release = mps_release,
    .mps_encode = mpsforge_metal_framework_mps_encode,
    .event_create = event_create,
    .event_release = event_release,
    .event_value = event_value,
    .event_set = event_set,
    .event_wait = event_wait,
    .event_notify = event_notify,
    .serial_create = mpsforge_metal_framework_serial_create,
    .serial_release = mpsforge_metal_framework_serial_release,
    .serial_sync = mpsforge_metal_framework_serial_sync,
    .serial_async = mpsforge_metal_framework_serial_async,
    .serial_is_current = mpsforge_metal_framework_serial_is_current,
};

const mpsforge_metal_api* mpsforge_metal_framework(void) { return &table; }
