// What the tests of the Metal classes share: each scenario runs in a process of its own, so that one that must end in
// Metal's assertion can.
#ifndef MPSFORGE_NATIVE_OBJC_TESTS_METAL_SCENARIOS_H
#define MPSFORGE_NATIVE_OBJC_TESTS_METAL_SCENARIOS_H

#import <Metal/Metal.h>
#import <MetalPerformanceShaders/MPSCommandBuffer.h>

#include <cstdint>
#include <vector>

namespace mpsforge::objc::test {

struct Scenario {
  const char* name;
  void (*run)();
  // What standard error must hold of one that must end the process; nullptr: it must end well and print nothing.
  const char* message;
  // Only where ThreadSanitizer watches.
  bool sanitized_only;
};

// metal_behaviour.mm, metal_misuse.mm, metal_threads.mm
std::vector<Scenario> behaviour_scenarios();
std::vector<Scenario> misuse_scenarios();
std::vector<Scenario> thread_scenarios();

// Ends the process with a message that names the expression.
void check(bool holds, const char* expression, const char* file, int line);
#define CHECK(expression) ::mpsforge::objc::test::check((expression), #expression, __FILE__, __LINE__)

id<MTLDevice> device();
id<MTLBuffer> shared_buffer(NSUInteger length);

// Fills the buffer's range on a command buffer of the queue, which is committed; +0.
id<MTLCommandBuffer> fill(id<MTLCommandQueue> queue, id<MTLBuffer> buffer, NSRange range, uint8_t value);

}  // namespace mpsforge::objc::test

#endif
