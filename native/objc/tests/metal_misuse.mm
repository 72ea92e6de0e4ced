// What Metal forbids: each ends the process with Metal's words, or with ours where Metal's are not known.
#import <Foundation/Foundation.h>

#include <mpsforge/host.h>

#include <vector>

#include "metal_scenarios.h"

namespace mpsforge::objc::test {
namespace {

id<MTLCommandBuffer> commands() { return [[device() newCommandQueue] commandBuffer]; }

DIES(commit_twice, "commit an already committed command buffer") {
  id<MTLCommandBuffer> buffer = commands();
  [buffer commit];
  [buffer commit];
}

DIES(commit_with_open_encoder, "commit command buffer with uncommitted encoder") {
  id<MTLCommandBuffer> buffer = commands();
  [buffer computeCommandEncoder];
  [buffer commit];
}

DIES(continue_with_open_encoder, "commit command buffer with uncommitted encoder") {
  MPSCommandBuffer* buffer = [MPSCommandBuffer commandBufferFromCommandQueue:[device() newCommandQueue]];
  [buffer blitCommandEncoder];
  [buffer commitAndContinue];
}

DIES(continue_after_commit, "commit an already committed command buffer") {
  MPSCommandBuffer* buffer = [MPSCommandBuffer commandBufferFromCommandQueue:[device() newCommandQueue]];
  [buffer commit];
  [buffer commitAndContinue];
}

DIES(completed_handler_after_commit, "Completed handler provided after commit call") {
  id<MTLCommandBuffer> buffer = commands();
  [buffer commit];
  [buffer addCompletedHandler:^(id<MTLCommandBuffer>){
  }];
}

DIES(scheduled_handler_after_commit, "Scheduled handler provided after commit call") {
  id<MTLCommandBuffer> buffer = commands();
  [buffer commit];
  [buffer addScheduledHandler:^(id<MTLCommandBuffer>){
  }];
}

DIES(two_encoders, "A command encoder is already encoding to this command buffer") {
  id<MTLCommandBuffer> buffer = commands();
  [buffer blitCommandEncoder];
  [buffer computeCommandEncoder];
}

DIES(encoder_after_commit, "_status < MTLCommandBufferStatusCommitted") {
  id<MTLCommandBuffer> buffer = commands();
  [buffer commit];
  [buffer computeCommandEncoder];
}

DIES(encoder_lost, "Command encoder released without endEncoding") {
  id<MTLCommandBuffer> buffer = commands();
  @autoreleasepool {
    [buffer computeCommandEncoder];
  }
}

DIES(ended_twice, "end_encoding of an encoder that has ended") {
  id<MTLBlitCommandEncoder> encoder = [commands() blitCommandEncoder];
  [encoder endEncoding];
  [encoder endEncoding];
}

DIES(encode_after_end, "encoding with an encoder that has ended") {
  id<MTLBlitCommandEncoder> encoder = [commands() blitCommandEncoder];
  [encoder endEncoding];
  [encoder fillBuffer:shared_buffer(8) range:NSMakeRange(0, 8) value:0];
}

DIES(signal_with_open_encoder, "encodeSignalEvent:value: with uncommitted encoder") {
  id<MTLCommandBuffer> buffer = commands();
  [buffer blitCommandEncoder];
  [buffer encodeSignalEvent:[device() newSharedEvent] value:1];
}

DIES(enqueue_twice, "enqueue an already enqueued command buffer") {
  id<MTLCommandBuffer> buffer = commands();
  [buffer enqueue];
  [buffer enqueue];
}

DIES(fill_over_the_end, "range outside of the buffer") {
  [[commands() blitCommandEncoder] fillBuffer:shared_buffer(8) range:NSMakeRange(4, 5) value:0];
}

DIES(too_many_bytes, "more than 4096 bytes") {
  const std::vector<char> bytes(5000);
  [[commands() computeCommandEncoder] setBytes:bytes.data() length:bytes.size() atIndex:0];
}

DIES(dispatch_without_pipeline, "dispatch without a kernel") {
  [[commands() computeCommandEncoder] dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
}

DIES(dispatch_with_empty_groups, "threadgroup that has not 1 to 1024 threads") {
  [[commands() computeCommandEncoder] dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(0, 1, 1)];
}

DIES(offset_of_nothing, "no buffer is bound at 3") { [[commands() computeCommandEncoder] setBufferOffset:0 atIndex:3]; }

DIES(unaligned_memory, "are not whole pages") {
  static char memory[8192];
  [device() newBufferWithBytesNoCopy:memory + 1 length:4096 options:MTLResourceStorageModeShared deallocator:nil];
}

DIES(options_that_are_not_the_heaps, "in a heap of options") {
  MTLHeapDescriptor* descriptor = [MTLHeapDescriptor new];
  descriptor.size = 4096;
  descriptor.storageMode = MTLStorageModePrivate;
  [[device() newHeapWithDescriptor:descriptor] newBufferWithLength:16 options:MTLResourceStorageModeShared];
}

// The CPU writes while the GPU may read: nothing orders them.
CASE(cpu_races_gpu) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  id<MTLBuffer> buffer = shared_buffer(8);
  id<MTLCommandBuffer> buffer_commands = fill(queue, buffer, NSMakeRange(0, 8), 1);
  mpsforge_host_cpu_access([buffer contents], 8, MPSFORGE_HOST_WRITE);
  [buffer_commands waitUntilCompleted];
  CHECK(mpsforge_host_findings(nullptr, 0) > 0);
}

// Metal allows it; the series promises never to.
CASE(wait_before_its_signal) {
  id<MTLSharedEvent> event = [device() newSharedEvent];
  id<MTLCommandBuffer> early = commands(), late = commands();
  [early encodeWaitForEvent:event value:1];
  [early commit];
  [late encodeSignalEvent:event value:1];
  [late commit];
  [early waitUntilCompleted];
}
ALSO(wait_before_its_signal_looked_for, wait_before_its_signal, "a wait is committed before its signal",
     "MPSFORGE_METAL_CHECK_WAITS=1");

// A wait for an event that the CPU has set is free.
CASE(wait_for_the_cpu, "MPSFORGE_METAL_CHECK_WAITS=1") {
  id<MTLSharedEvent> event = [device() newSharedEvent];
  event.signaledValue = 0;
  id<MTLCommandBuffer> waiting = commands();
  [waiting encodeWaitForEvent:event value:1];
  [waiting commit];
  event.signaledValue = 1;
  [waiting waitUntilCompleted];
}

}  // namespace

}  // namespace mpsforge::objc::test
