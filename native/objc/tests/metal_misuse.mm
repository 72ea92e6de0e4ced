// What Metal forbids: each ends the process with Metal's words, or with ours where Metal's are not known.
#import <Foundation/Foundation.h>

#include <mpsforge/host.h>

#include <vector>

#include "metal_scenarios.h"

namespace mpsforge::objc::test {
namespace {

id<MTLCommandBuffer> commands() { return [[device() newCommandQueue] commandBuffer]; }

void commit_twice() {
  id<MTLCommandBuffer> buffer = commands();
  [buffer commit];
  [buffer commit];
}

void commit_with_open_encoder() {
  id<MTLCommandBuffer> buffer = commands();
  [buffer computeCommandEncoder];
  [buffer commit];
}

void continue_with_open_encoder() {
  MPSCommandBuffer* buffer = [MPSCommandBuffer commandBufferFromCommandQueue:[device() newCommandQueue]];
  [buffer blitCommandEncoder];
  [buffer commitAndContinue];
}

void continue_after_commit() {
  MPSCommandBuffer* buffer = [MPSCommandBuffer commandBufferFromCommandQueue:[device() newCommandQueue]];
  [buffer commit];
  [buffer commitAndContinue];
}

void completed_handler_after_commit() {
  id<MTLCommandBuffer> buffer = commands();
  [buffer commit];
  [buffer addCompletedHandler:^(id<MTLCommandBuffer>){
  }];
}

void scheduled_handler_after_commit() {
  id<MTLCommandBuffer> buffer = commands();
  [buffer commit];
  [buffer addScheduledHandler:^(id<MTLCommandBuffer>){
  }];
}

void two_encoders() {
  id<MTLCommandBuffer> buffer = commands();
  [buffer blitCommandEncoder];
  [buffer computeCommandEncoder];
}

void encoder_after_commit() {
  id<MTLCommandBuffer> buffer = commands();
  [buffer commit];
  [buffer computeCommandEncoder];
}

void encoder_lost() {
  id<MTLCommandBuffer> buffer = commands();
  @autoreleasepool {
    [buffer computeCommandEncoder];
  }
}

void ended_twice() {
  id<MTLBlitCommandEncoder> encoder = [commands() blitCommandEncoder];
  [encoder endEncoding];
  [encoder endEncoding];
}

void encode_after_end() {
  id<MTLBlitCommandEncoder> encoder = [commands() blitCommandEncoder];
  [encoder endEncoding];
  [encoder fillBuffer:shared_buffer(8) range:NSMakeRange(0, 8) value:0];
}

void signal_with_open_encoder() {
  id<MTLCommandBuffer> buffer = commands();
  [buffer blitCommandEncoder];
  [buffer encodeSignalEvent:[device() newSharedEvent] value:1];
}

void enqueue_twice() {
  id<MTLCommandBuffer> buffer = commands();
  [buffer enqueue];
  [buffer enqueue];
}

void fill_over_the_end() {
  [[commands() blitCommandEncoder] fillBuffer:shared_buffer(8) range:NSMakeRange(4, 5) value:0];
}

void too_many_bytes() {
  const std::vector<char> bytes(5000);
  [[commands() computeCommandEncoder] setBytes:bytes.data() length:bytes.size() atIndex:0];
}

void dispatch_without_pipeline() {
  [[commands() computeCommandEncoder] dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
}

void dispatch_with_empty_groups() {
  [[commands() computeCommandEncoder] dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(0, 1, 1)];
}

void offset_of_nothing() { [[commands() computeCommandEncoder] setBufferOffset:0 atIndex:3]; }

void unaligned_memory() {
  static char memory[8192];
  [device() newBufferWithBytesNoCopy:memory + 1 length:4096 options:MTLResourceStorageModeShared deallocator:nil];
}

void options_that_are_not_the_heaps() {
  MTLHeapDescriptor* descriptor = [MTLHeapDescriptor new];
  descriptor.size = 4096;
  descriptor.storageMode = MTLStorageModePrivate;
  [[device() newHeapWithDescriptor:descriptor] newBufferWithLength:16 options:MTLResourceStorageModeShared];
}

// The CPU writes while the GPU may read: nothing orders them.
void cpu_races_gpu() {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  id<MTLBuffer> buffer = shared_buffer(8);
  id<MTLCommandBuffer> buffer_commands = fill(queue, buffer, NSMakeRange(0, 8), 1);
  mpsforge_host_cpu_access([buffer contents], 8, MPSFORGE_HOST_WRITE);
  [buffer_commands waitUntilCompleted];
  mpsforge_host_finding found;
  CHECK(mpsforge_host_findings(&found, 1) == 0);
}

// Metal allows it; the series promises never to.
void wait_before_its_signal() {
  id<MTLSharedEvent> event = [device() newSharedEvent];
  id<MTLCommandBuffer> early = commands(), late = commands();
  [early encodeWaitForEvent:event value:1];
  [early commit];
  [late encodeSignalEvent:event value:1];
  [late commit];
  [early waitUntilCompleted];
}

// A wait for an event that the CPU has set is free.
void wait_for_the_cpu() {
  id<MTLSharedEvent> event = [device() newSharedEvent];
  event.signaledValue = 0;
  id<MTLCommandBuffer> waiting = commands();
  [waiting encodeWaitForEvent:event value:1];
  [waiting commit];
  event.signaledValue = 1;
  [waiting waitUntilCompleted];
}

}  // namespace

#define SCENARIO(name, message) {#name, name, message}

std::vector<Case> misuse_scenarios() {
  return {
      SCENARIO(commit_twice, "commit an already committed command buffer"),
      SCENARIO(commit_with_open_encoder, "commit command buffer with uncommitted encoder"),
      SCENARIO(continue_with_open_encoder, "commit command buffer with uncommitted encoder"),
      SCENARIO(continue_after_commit, "commit an already committed command buffer"),
      SCENARIO(completed_handler_after_commit, "Completed handler provided after commit call"),
      SCENARIO(scheduled_handler_after_commit, "Scheduled handler provided after commit call"),
      SCENARIO(two_encoders, "A command encoder is already encoding to this command buffer"),
      SCENARIO(encoder_after_commit, "_status < MTLCommandBufferStatusCommitted"),
      SCENARIO(encoder_lost, "Command encoder released without endEncoding"),
      SCENARIO(ended_twice, "end_encoding of an encoder that has ended"),
      SCENARIO(encode_after_end, "encoding with an encoder that has ended"),
      SCENARIO(signal_with_open_encoder, "encodeSignalEvent:value: with uncommitted encoder"),
      SCENARIO(enqueue_twice, "enqueue an already enqueued command buffer"),
      SCENARIO(fill_over_the_end, "range outside of the buffer"),
      SCENARIO(too_many_bytes, "more than 4096 bytes"),
      SCENARIO(dispatch_without_pipeline, "dispatch without a kernel"),
      SCENARIO(dispatch_with_empty_groups, "threadgroup that has not 1 to 1024 threads"),
      SCENARIO(offset_of_nothing, "no buffer is bound at 3"),
      SCENARIO(unaligned_memory, "are not whole pages"),
      SCENARIO(options_that_are_not_the_heaps, "in a heap of options"),
      SCENARIO(wait_before_its_signal, nullptr),
      {"wait_before_its_signal_looked_for", wait_before_its_signal, "a wait is committed before its signal",
       Case::kAlways, "MPSFORGE_METAL_CHECK_WAITS=1"},
      {"wait_for_the_cpu", wait_for_the_cpu, nullptr, Case::kAlways, "MPSFORGE_METAL_CHECK_WAITS=1"},
      SCENARIO(cpu_races_gpu, "not so: mpsforge_host_findings(&found, 1) == 0"),
  };
}

}  // namespace mpsforge::objc::test
