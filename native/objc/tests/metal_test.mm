// Runs the scenarios of the Metal classes, each in a process of its own. Usage: metal_test [SCENARIO ...]
#include "metal_scenarios.h"

namespace mpsforge::objc::test {

id<MTLDevice> device() {
  static id<MTLDevice> const made = MTLCreateSystemDefaultDevice();
  return made;
}

id<MTLBuffer> shared_buffer(NSUInteger length) {
  return [device() newBufferWithLength:length options:MTLResourceStorageModeShared];
}

id<MTLCommandBuffer> fill(id<MTLCommandQueue> queue, id<MTLBuffer> buffer, NSRange range, uint8_t value) {
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  id<MTLBlitCommandEncoder> encoder = [commands blitCommandEncoder];
  [encoder fillBuffer:buffer range:range value:value];
  [encoder endEncoding];
  [commands commit];
  return commands;
}

}  // namespace mpsforge::objc::test

using namespace mpsforge::objc::test;

int main(int argc, char** argv) {
  std::vector<Case> all = behaviour_scenarios();
  for (const auto& more : {fact_scenarios(), misuse_scenarios(), thread_scenarios()})
    all.insert(all.end(), more.begin(), more.end());
  return run_cases(all, argc, argv);
}
