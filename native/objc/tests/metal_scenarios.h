// What the tests of the Metal classes share.
#ifndef MPSFORGE_NATIVE_OBJC_TESTS_METAL_SCENARIOS_H
#define MPSFORGE_NATIVE_OBJC_TESTS_METAL_SCENARIOS_H

#import <Metal/Metal.h>
#import <MetalPerformanceShaders/MPSCommandBuffer.h>

#include <cstdint>
#include <vector>

#include "harness.h"

namespace mpsforge::objc::test {

// metal_behaviour.mm, metal_facts.mm, metal_misuse.mm, metal_threads.mm
std::vector<Case> behaviour_scenarios();
std::vector<Case> fact_scenarios();
std::vector<Case> misuse_scenarios();
std::vector<Case> thread_scenarios();

id<MTLDevice> device();
id<MTLBuffer> shared_buffer(NSUInteger length);

// Fills the buffer's range on a command buffer of the queue, which is committed; +0.
id<MTLCommandBuffer> fill(id<MTLCommandQueue> queue, id<MTLBuffer> buffer, NSRange range, uint8_t value);

}  // namespace mpsforge::objc::test

#endif
