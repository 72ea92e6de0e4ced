#import <Foundation/Foundation.h>
#include <mpsforge/host.h>

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "../engine.h"
#include "../metal/host_kernel.h"
#include "../metal/metal_objects.h"
#include "metal_scenarios.h"

namespace mpsforge::objc::test {
namespace {

CASE(the_device_is_a_mac) {
  NSArray* all = MTLCopyAllDevices();
  CHECK(all.count == 1 && all[0] == device());
  [all release];
  CHECK([device() supportsFamily:MTLGPUFamilyMac2] && ![device() isLowPower] && [device() hasUnifiedMemory]);
  CHECK(![device() supportsFamily:(MTLGPUFamily)9999]);
  CHECK(device().recommendedMaxWorkingSetSize > 0 && device().maxBufferLength > 0);
  CHECK([device().name length] > 0);
}

CASE(fill_and_copy) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  id<MTLBuffer> from = shared_buffer(64);
  id<MTLBuffer> hidden = [device() newBufferWithLength:64 options:MTLResourceStorageModePrivate];
  id<MTLBuffer> to = shared_buffer(64);
  CHECK([hidden contents] == nullptr && hidden.storageMode == MTLStorageModePrivate);
  std::memset([from contents], 3, 64);
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  CHECK(commands.status == MTLCommandBufferStatusNotEnqueued && commands.commandQueue == queue);
  id<MTLBlitCommandEncoder> encoder = [commands blitCommandEncoder];
  [encoder copyFromBuffer:from sourceOffset:0 toBuffer:hidden destinationOffset:0 size:64];
  [encoder fillBuffer:hidden range:NSMakeRange(8, 8) value:7];
  [encoder copyFromBuffer:hidden sourceOffset:4 toBuffer:to destinationOffset:0 size:60];
  [encoder endEncoding];
  [commands commit];
  [commands waitUntilCompleted];
  CHECK(commands.status == MTLCommandBufferStatusCompleted && commands.error == nil);
  const auto* bytes = static_cast<const uint8_t*>([to contents]);
  CHECK(bytes[3] == 3 && bytes[4] == 7 && bytes[11] == 7 && bytes[12] == 3 && bytes[60] == 0);
  CHECK(0 < commands.GPUStartTime && commands.GPUStartTime <= commands.GPUEndTime);
  [to release];
  [hidden release];
  [from release];
  [queue release];
}

CASE(a_command_buffer_retains_what_it_uses) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  id<MTLBuffer> buffer = shared_buffer(64);
  CHECK([buffer retainCount] == 1);
  dispatch_semaphore_t ended = dispatch_semaphore_create(0);
  @autoreleasepool {
    id<MTLCommandBuffer> commands = [queue commandBuffer];
    id<MTLBlitCommandEncoder> encoder = [commands blitCommandEncoder];
    [encoder fillBuffer:buffer range:NSMakeRange(0, 64) value:1];
    [encoder fillBuffer:buffer range:NSMakeRange(0, 64) value:2];
    CHECK([buffer retainCount] == 2);
    [encoder endEncoding];
    [commands addCompletedHandler:^(id<MTLCommandBuffer> one) {
      CHECK(one.status == MTLCommandBufferStatusCompleted);
      CHECK([buffer retainCount] == 2);  // the test's and this block's
      dispatch_semaphore_signal(ended);
    }];
    [commands commit];
  }
  dispatch_semaphore_wait(ended, DISPATCH_TIME_FOREVER);
  mpsforge_host_close();
  CHECK([buffer retainCount] == 1);
}

CASE(an_abandoned_command_buffer_gives_back) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  id<MTLBuffer> buffer = shared_buffer(64);
  for (int i = 0; i < 100; ++i) {  // more than a queue holds
    @autoreleasepool {
      id<MTLCommandBuffer> commands = [queue commandBuffer];
      id<MTLBlitCommandEncoder> encoder = [commands blitCommandEncoder];
      [encoder fillBuffer:buffer range:NSMakeRange(0, 64) value:1];
      [encoder endEncoding];
      [commands addCompletedHandler:^(id<MTLCommandBuffer>) {
        CHECK([buffer length] == 0);
      }];
    }
  }
  CHECK([buffer retainCount] == 1);
}

CASE(handlers_in_order) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  NSMutableArray* seen = [NSMutableArray array];
  dispatch_semaphore_t ended = dispatch_semaphore_create(0);
  [commands addScheduledHandler:^(id<MTLCommandBuffer>) {
    [seen addObject:@"scheduled"];
  }];
  [commands addCompletedHandler:^(id<MTLCommandBuffer>) {
    [seen addObject:@"first"];
  }];
  [commands addCompletedHandler:^(id<MTLCommandBuffer>) {
    [seen addObject:@"second"];
    dispatch_semaphore_signal(ended);
  }];
  [commands commit];
  dispatch_semaphore_wait(ended, DISPATCH_TIME_FOREVER);
  CHECK(seen.count == 3 && [seen[0] isEqualToString:@"scheduled"] && [seen[1] isEqualToString:@"first"] &&
        [seen[2] isEqualToString:@"second"]);
}

CASE(commit_and_continue_changes_the_root) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  id<MTLBuffer> buffer = shared_buffer(8);
  MPSCommandBuffer* commands = [MPSCommandBuffer commandBufferFromCommandQueue:queue];
  id<MTLCommandBuffer> root = commands.rootCommandBuffer;
  id<MTLBlitCommandEncoder> encoder = [commands blitCommandEncoder];
  [encoder fillBuffer:buffer range:NSMakeRange(0, 8) value:5];
  [encoder endEncoding];
  [commands commitAndContinue];
  CHECK(commands.status == MTLCommandBufferStatusNotEnqueued);
  [root waitUntilCompleted];
  CHECK(root.status == MTLCommandBufferStatusCompleted);
  CHECK(static_cast<const uint8_t*>([buffer contents])[7] == 5);
  encoder = [commands blitCommandEncoder];
  [encoder fillBuffer:buffer range:NSMakeRange(0, 8) value:6];
  [encoder endEncoding];
  [commands commit];
  [commands waitUntilCompleted];
  CHECK(commands.status == MTLCommandBufferStatusCompleted);
  CHECK(static_cast<const uint8_t*>([buffer contents])[0] == 6);
}

CASE(an_event_notifies_and_orders) {
  id<MTLCommandQueue> one = [device() newCommandQueue];
  id<MTLCommandQueue> other = [device() newCommandQueue];
  id<MTLBuffer> buffer = shared_buffer(8);
  id<MTLSharedEvent> event = [device() newSharedEvent];
  CHECK(event.signaledValue == 0);
  MTLSharedEventListener* listener = [[MTLSharedEventListener alloc] init];
  dispatch_semaphore_t called = dispatch_semaphore_create(0);
  __block uint64_t value = 0;
  [event notifyListener:listener
                atValue:4
                  block:^(id<MTLSharedEvent> which, uint64_t reached) {
                    CHECK(which == event);
                    value = reached;
                    dispatch_semaphore_signal(called);
                  }];
  id<MTLCommandBuffer> second = [other commandBuffer];
  [second encodeWaitForEvent:event value:4];
  id<MTLBlitCommandEncoder> encoder = [second blitCommandEncoder];
  [encoder fillBuffer:buffer range:NSMakeRange(0, 8) value:2];
  [encoder endEncoding];
  [second commit];
  id<MTLCommandBuffer> first = [one commandBuffer];
  encoder = [first blitCommandEncoder];
  [encoder fillBuffer:buffer range:NSMakeRange(0, 8) value:1];
  [encoder endEncoding];
  [first encodeSignalEvent:event value:4];
  [first commit];
  [second waitUntilCompleted];
  CHECK(static_cast<const uint8_t*>([buffer contents])[0] == 2);
  dispatch_semaphore_wait(called, DISPATCH_TIME_FOREVER);
  CHECK(value == 4 && event.signaledValue == 4);
  CHECK([event waitUntilSignaledValue:4 timeoutMS:0] && ![event waitUntilSignaledValue:5 timeoutMS:1]);
}

CASE(a_listener_with_a_queue_is_called_there) {
  static char key;
  dispatch_queue_t queue = dispatch_queue_create("listener", nullptr);
  dispatch_queue_set_specific(queue, &key, &key, nullptr);
  MTLSharedEventListener* listener = [[MTLSharedEventListener alloc] initWithDispatchQueue:queue];
  id<MTLSharedEvent> event = [device() newSharedEvent];
  dispatch_semaphore_t called = dispatch_semaphore_create(0);
  [event notifyListener:listener
                atValue:1
                  block:^(id<MTLSharedEvent>, uint64_t) {
                    CHECK(dispatch_get_specific(&key) == &key);
                    dispatch_semaphore_signal(called);
                  }];
  event.signaledValue = 1;
  dispatch_semaphore_wait(called, DISPATCH_TIME_FOREVER);
}

CASE(heaps_count) {
  const NSUInteger before = device().currentAllocatedSize;
  MTLHeapDescriptor* descriptor = [[MTLHeapDescriptor new] autorelease];
  descriptor.size = 4096;
  descriptor.storageMode = MTLStorageModePrivate;
  descriptor.hazardTrackingMode = MTLHazardTrackingModeTracked;
  const MTLResourceOptions options = MTLResourceStorageModePrivate | MTLResourceHazardTrackingModeTracked;
  CHECK(descriptor.resourceOptions == options);
  id<MTLHeap> heap = [device() newHeapWithDescriptor:descriptor];
  CHECK(heap.size == 4096 && [heap maxAvailableSizeWithAlignment:256] == 4096);
  CHECK(device().currentAllocatedSize == before + 4096);
  CHECK([device() heapBufferSizeAndAlignWithLength:257 options:options].size == 512);
  id<MTLBuffer> one = [heap newBufferWithLength:257 options:options];
  CHECK(one.length == 257 && one.heap == heap && heap.usedSize == 512 && [heap retainCount] == 2);
  CHECK([heap newBufferWithLength:4096 options:options] == nil);
  id<MTLBuffer> rest = [heap newBufferWithLength:4096 - 512 options:options];
  CHECK(rest && [heap maxAvailableSizeWithAlignment:4096] == 0);
  [rest release];
  [one release];
  CHECK(heap.usedSize == 0 && [heap retainCount] == 1);
  [heap release];
  CHECK(device().currentAllocatedSize == before);
  descriptor.size = device().recommendedMaxWorkingSetSize * 2;
  CHECK([device() newHeapWithDescriptor:descriptor] == nil && device().currentAllocatedSize == before);
}

CASE(memory_of_the_program_is_used_in_place) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  constexpr NSUInteger page = 16384;
  void* memory = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memory = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory) + page - 1) / page * page);
  __block int freed = 0;
  const NSUInteger before = device().currentAllocatedSize;
  id<MTLBuffer> buffer = [device() newBufferWithBytesNoCopy:memory
                                                     length:page
                                                    options:MTLResourceStorageModeShared
                                                deallocator:^(void* pointer, NSUInteger length) {
                                                  CHECK(pointer == memory && length == page);
                                                  ++freed;
                                                }];
  CHECK([buffer contents] == memory && device().currentAllocatedSize == before + page);
  @autoreleasepool {
    id<MTLCommandBuffer> commands = fill(queue, buffer, NSMakeRange(0, 16), 9);
    [buffer release];
    [commands waitUntilCompleted];
  }
  mpsforge_host_close();
  CHECK(freed == 1 && device().currentAllocatedSize == before && static_cast<const uint8_t*>(memory)[15] == 9);
}

void use_optional_bytes(const KernelCall& call) { *call.write<int>(0, 1) = call.has_bytes(1) ? 1 : 2; }

void follow_addresses(const KernelCall& call) {
  const auto* table = call.read<uint64_t>(0, 2);
  const auto* in = static_cast<const float*>(call.at(table[0], 4, MPSFORGE_METAL_READ));
  *static_cast<float*>(call.at(table[1], 4, MPSFORGE_METAL_WRITE)) = *in + 1;
}

const RegisterHostKernel kRegistered[] = {
    {"test_follow", follow_addresses},
    {"test_optional", use_optional_bytes},
};

id<MTLComputePipelineState> pipeline(NSString* source, NSString* name) {
  NSError* error = nil;
  id<MTLLibrary> library = [device() newLibraryWithSource:source options:nil error:&error];
  CHECK(library && !error);
  id<MTLFunction> function = [library newFunctionWithName:name];
  CHECK([function.name isEqualToString:name]);
  id<MTLComputePipelineState> made = [device() newComputePipelineStateWithFunction:function error:&error];
  CHECK(made && !error && made.maxTotalThreadsPerThreadgroup == 1024);
  return made;
}

CASE(one_name_in_two_libraries) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  NSString* source = @"kernel void add(device const float* in, device float* out, constant float& factor, "
                     @"uint i [[thread_position_in_grid]]) { out[i] = in[i] * factor + %@; }";
  id<MTLComputePipelineState> whole = pipeline([NSString stringWithFormat:source, @"1"], @"add");
  id<MTLComputePipelineState> half = pipeline([NSString stringWithFormat:source, @"0.5"], @"add");
  id<MTLBuffer> in = shared_buffer(32), out = shared_buffer(64);
  for (int i = 0; i < 8; ++i) static_cast<float*>([in contents])[i] = static_cast<float>(i);
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
  const float factor = 10;
  [encoder setBuffer:in offset:0 atIndex:0];
  [encoder setBytes:&factor length:sizeof factor atIndex:2];
  for (int i = 0; i < 2; ++i) {
    [encoder setComputePipelineState:i ? half : whole];
    [encoder setBuffer:out offset:i * 32 atIndex:1];
    [encoder dispatchThreads:MTLSizeMake(8, 1, 1) threadsPerThreadgroup:MTLSizeMake(8, 1, 1)];
  }
  [encoder endEncoding];
  [commands commit];
  [commands waitUntilCompleted];
  const auto* result = static_cast<const float*>([out contents]);
  CHECK(result[0] == 1 && result[7] == 71 && result[8] == 0.5f && result[15] == 70.5f);
}

CASE(a_kernel_sees_the_grid) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  id<MTLBuffer> out = shared_buffer(64);
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
  NSString* source = @"kernel void grid(device ulong* out, threadgroup char*, uint3 threads [[threads_per_grid]], "
                     @"uint3 group [[threads_per_threadgroup]]) { "
                     @"for (int i = 0; i < 3; ++i) { out[i] = threads[i]; out[3 + i] = group[i]; } }";
  [encoder setComputePipelineState:pipeline(source, @"grid")];
  [encoder setBuffer:out offset:32 atIndex:0];
  [encoder setBufferOffset:0 atIndex:0];
  [encoder setThreadgroupMemoryLength:64 atIndex:0];
  [encoder dispatchThreadgroups:MTLSizeMake(2, 3, 4) threadsPerThreadgroup:MTLSizeMake(8, 2, 1)];
  [encoder endEncoding];
  [commands commit];
  [commands waitUntilCompleted];
  const uint64_t wanted[6] = {16, 6, 4, 8, 2, 1};
  CHECK(std::memcmp([out contents], wanted, sizeof wanted) == 0);
}

CASE(bytes_of_length_0_bind_nothing) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  id<MTLBuffer> out = shared_buffer(4);
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
  const int before = 7;
  id<MTLFunction> function = [[device() newLibraryWithData:nil error:nil] newFunctionWithName:@"test_optional"];
  [encoder setComputePipelineState:[device() newComputePipelineStateWithFunction:function error:nil]];
  [encoder setBuffer:out offset:0 atIndex:0];
  [encoder setBytes:&before length:sizeof before atIndex:1];
  [encoder setBytes:nullptr length:0 atIndex:1];
  [encoder dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
  [encoder endEncoding];
  [commands commit];
  [commands waitUntilCompleted];
  CHECK(*static_cast<const int*>([out contents]) == 2);
}

CASE(an_argument_buffer_holds_addresses) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  id<MTLLibrary> library = [device() newLibraryWithData:nil error:nil];
  CHECK([library.functionNames containsObject:@"test_follow"]);
  id<MTLFunction> function = [library newFunctionWithName:@"test_follow"];
  id<MTLArgumentEncoder> arguments = [function newArgumentEncoderWithBufferIndex:0];
  id<MTLBuffer> table = shared_buffer(arguments.encodedLength), in = shared_buffer(16), out = shared_buffer(16);
  static_cast<float*>([in contents])[2] = 41;
  [arguments setArgumentBuffer:table offset:0];
  [arguments setBuffer:in offset:8 atIndex:0];
  [arguments setBuffer:out offset:4 atIndex:1];
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
  [encoder setComputePipelineState:[device() newComputePipelineStateWithFunction:function error:nil]];
  [encoder setBuffer:table offset:0 atIndex:0];
  [encoder useResource:in usage:MTLResourceUsageRead];
  [encoder useResource:out usage:MTLResourceUsageRead | MTLResourceUsageWrite];
  [encoder dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
  [encoder endEncoding];
  [commands commit];
  [commands waitUntilCompleted];
  CHECK(static_cast<const float*>([out contents])[1] == 42);
}

CASE(functions_of_a_library) {
  NSError* error = nil;
  NSString* source = @"kernel void lonely(device float* x) {}\n"
                     @"template <typename T> kernel void set(device T* x, constant T& value) { *x = value; }\n"
                     @"template [[host_name(\"set_half\")]] kernel void set<half>(device half*, constant half&);";
  id<MTLLibrary> library = [device() newLibraryWithSource:source options:nil error:&error];
  CHECK([library newFunctionWithName:@"nowhere"] == nil);
  CHECK([library newFunctionWithName:@"lone"] == nil && [library newFunctionWithName:@"lonely"] != nil);
  CHECK(library.functionNames.count == 2 && [library.functionNames containsObject:@"set_half"]);
  CHECK([library newFunctionWithName:@"nowhere" constantValues:nil error:&error] == nil && error != nil);
  CHECK([[error localizedDescription] containsString:@"nowhere"]);
}

CASE(a_library_that_does_not_compile_is_an_error_with_the_line) {
  NSError* error = nil;
  NSString* source =
      @"#include <metal_stdlib>\nusing namespace metal;\nkernel void wrong(device float* x) {\n  x[0] = y;\n}";
  CHECK([device() newLibraryWithSource:source options:nil error:&error] == nil);
  CHECK(error.code == MTLLibraryErrorCompileFailure);
  CHECK([[error localizedDescription] containsString:@"program_source:4:10: error: use of undeclared identifier 'y'"]);
}

CASE(macros_of_the_options_reach_the_source) {
  MTLCompileOptions* options = [[MTLCompileOptions new] autorelease];
  options.preprocessorMacros = [NSDictionary dictionaryWithObject:@"float" forKey:@"TYPE"];
  NSString* source = @"kernel void with_macro(device TYPE* x) {}";
  CHECK([device() newLibraryWithSource:source options:options error:nil] != nil);
  CHECK([device() newLibraryWithSource:source options:nil error:nil] == nil);
}

CASE(a_failed_command_buffer_has_an_error) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  mpsforge_host_fail_command_buffer(queue, 1);
  id<MTLBuffer> buffer = shared_buffer(8);
  id<MTLCommandBuffer> commands = fill(queue, buffer, NSMakeRange(0, 8), 1);
  [commands waitUntilCompleted];
  CHECK(commands.status == MTLCommandBufferStatusError && commands.error.code == MTLCommandBufferErrorInternal);
  CHECK([[commands.error localizedDescription] containsString:@"injected"]);
  CHECK(static_cast<const uint8_t*>([buffer contents])[0] == 0);
}

CASE(captures_are_off_unless_asked_for) {
  unsetenv("MTL_CAPTURE_ENABLED");
  MTLCaptureManager* manager = [MTLCaptureManager sharedCaptureManager];
  MTLCaptureDescriptor* descriptor = [[MTLCaptureDescriptor new] autorelease];
  descriptor.captureObject = device();
  descriptor.destination = MTLCaptureDestinationGPUTraceDocument;
  NSError* error = nil;
  CHECK(![manager supportsDestination:MTLCaptureDestinationGPUTraceDocument]);
  CHECK(![manager startCaptureWithDescriptor:descriptor error:&error] && error && !manager.isCapturing);
  setenv("MTL_CAPTURE_ENABLED", "1", 1);
  CHECK([manager startCaptureWithDescriptor:descriptor error:&error] && !error && manager.isCapturing);
  CHECK(![manager startCaptureWithDescriptor:descriptor error:&error] && error);
  [manager stopCapture];
  CHECK(!manager.isCapturing);
}

}  // namespace

}  // namespace mpsforge::objc::test
