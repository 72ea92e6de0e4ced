// What the tests of the Metal classes share.
#pragma once

#import <Metal/Metal.h>
#import <MetalPerformanceShaders/MPSCommandBuffer.h>

#include <cstdint>

#include "harness.h"

namespace mpsforge::objc::test {

inline id<MTLDevice> device() {
  static id<MTLDevice> const made = MTLCreateSystemDefaultDevice();
  return made;
}

inline id<MTLBuffer> shared_buffer(NSUInteger length) {
  return [device() newBufferWithLength:length options:MTLResourceStorageModeShared];
}

// Fills the buffer's range on a command buffer of the queue, which is committed; +0.
inline id<MTLCommandBuffer> fill(id<MTLCommandQueue> queue, id<MTLBuffer> buffer, NSRange range, uint8_t value) {
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  id<MTLBlitCommandEncoder> encoder = [commands blitCommandEncoder];
  [encoder fillBuffer:buffer range:range value:value];
  [encoder endEncoding];
  [commands commit];
  return commands;
}

}  // namespace mpsforge::objc::test
