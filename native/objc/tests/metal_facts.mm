// What Apple's pages and headers say of single calls, where the classes once did something else.
#import <Foundation/Foundation.h>
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <mach/vm_page_size.h>
#include <objc/runtime.h>
#include <simd/simd.h>

#include <cstdlib>

#include "metal_scenarios.h"

namespace mpsforge::objc::test {
namespace {

// Apple's simd/vector_types.h.
static_assert(sizeof(simd_ulong3) == 32 && alignof(simd_ulong3) == 16);
static_assert(sizeof(simd_ulong4) == 32 && alignof(simd_ulong4) == 16);
static_assert(sizeof(simd_uint3) == 16 && alignof(simd_uint3) == 16);
static_assert(alignof(simd_uint2) == 8 && alignof(simd_float4) == 16);

void a_heap_is_private_unless_told() {
  MTLHeapDescriptor* descriptor = [[MTLHeapDescriptor new] autorelease];
  CHECK(descriptor.storageMode == MTLStorageModePrivate);
  CHECK(descriptor.resourceOptions == MTLResourceStorageModePrivate);
  MTLHeapDescriptor* copy = [[descriptor copy] autorelease];
  CHECK(copy.storageMode == MTLStorageModePrivate);
}

void a_managed_heap() {
  MTLHeapDescriptor* descriptor = [[MTLHeapDescriptor new] autorelease];
  descriptor.size = 4096;
  descriptor.storageMode = MTLStorageModeManaged;
  [device() newHeapWithDescriptor:descriptor];
}

void a_shared_event_is_of_no_device() {
  CHECK([device() newSharedEvent].device == nil);
  CHECK([device() newEvent].device == device());
}

void an_event_is_set_back() {
  id<MTLSharedEvent> event = [device() newSharedEvent];
  event.signaledValue = 5;
  event.signaledValue = 5;
  event.signaledValue = 0;
  CHECK(event.signaledValue == 0 && ![event waitUntilSignaledValue:1 timeoutMS:1]);
  id<MTLCommandBuffer> commands = [[device() newCommandQueue] commandBuffer];
  [commands encodeSignalEvent:event value:3];
  [commands commit];
  CHECK([event waitUntilSignaledValue:3 timeoutMS:20000] && event.signaledValue == 3);
}

void the_root_is_one_object() {
  MPSCommandBuffer* commands = [MPSCommandBuffer commandBufferFromCommandQueue:[device() newCommandQueue]];
  id<MTLCommandBuffer> first = commands.rootCommandBuffer;
  CHECK(first && commands.rootCommandBuffer == first && commands.commandBuffer == first);
  [commands commitAndContinue];
  CHECK(commands.rootCommandBuffer != first && commands.rootCommandBuffer == commands.rootCommandBuffer);
  CHECK(first.status >= MTLCommandBufferStatusCommitted);
  CHECK(commands.rootCommandBuffer.status == MTLCommandBufferStatusNotEnqueued);
}

// Aligned to a page of this machine, which is no page of a Mac.
void memory_of_a_quarter_page() {
  void* memory = std::aligned_alloc(vm_page_size, vm_page_size);
  [device() newBufferWithBytesNoCopy:memory length:4096 options:MTLResourceStorageModeShared deallocator:nil];
}

void a_unary_kernel_is_a_multiary_one() {
  CHECK([MPSNDArrayUnaryKernel superclass] == [MPSNDArrayMultiaryKernel class]);
  CHECK([MPSNDArrayMultiaryKernel superclass] == [MPSNDArrayMultiaryBase class]);
}

// Apple's words on permuteWithDimensionOrder: each number is the place that the dimension goes to. Only an order that
// is not its own inverse shows it.
void dimensions_are_permuted() {
  const NSUInteger sizes[] = {2, 3, 5}, order[] = {1, 2, 0};
  MPSNDArrayDescriptor* descriptor = [MPSNDArrayDescriptor descriptorWithDataType:MPSDataTypeFloat32
                                                                   dimensionCount:3
                                                                   dimensionSizes:sizes];
  [descriptor permuteWithDimensionOrder:order];
  CHECK([descriptor lengthOfDimension:0] == 5 && [descriptor lengthOfDimension:1] == 2 &&
        [descriptor lengthOfDimension:2] == 3);
}

void a_place_named_twice() {
  const NSUInteger sizes[] = {2, 3}, order[] = {1, 1};
  [[MPSNDArrayDescriptor descriptorWithDataType:MPSDataTypeFloat32 dimensionCount:2
                                 dimensionSizes:sizes] permuteWithDimensionOrder:order];
}

// PyTorch asks so which macOS it is on, and so whether MPSGraph has an operation.
void an_old_macos_lacks_what_is_newer() {
  Class graph = NSClassFromString(@"MPSGraph");
  CHECK([graph instancesRespondToSelector:@selector(cumulativeSumWithTensor:axis:name:)]);
  CHECK(![graph instancesRespondToSelector:@selector(conjugateWithTensor:name:)]);
  CHECK(![[[MPSGraph new] autorelease] respondsToSelector:@selector(reciprocalSquareRootWithTensor:name:)]);
  CHECK(NSClassFromString(@"MPSGraphFFTDescriptor") == nil && objc_getClass("MPSNDArrayIdentity") == nil);
  CHECK(![MTLCompileOptions instancesRespondToSelector:@selector(setMathMode:)]);
  CHECK([[[MTLCompileOptions new] autorelease] copy] != nil);  // which have a mathMode all the same
}

void a_newer_macos_has_it() {
  Class graph = NSClassFromString(@"MPSGraph");
  CHECK([graph instancesRespondToSelector:@selector(conjugateWithTensor:name:)]);
  CHECK([graph instancesRespondToSelector:@selector(reciprocalSquareRootWithTensor:name:)]);
  CHECK(NSClassFromString(@"MPSGraphFFTDescriptor") == [MPSGraphFFTDescriptor class]);
  CHECK(NSClassFromString(@"MPSNDArrayIdentity") != nil);
  CHECK([MTLCompileOptions instancesRespondToSelector:@selector(setMathMode:)]);
}

void a_newer_method_is_sent() { [[MTLCompileOptions new] setMathMode:MTLMathModeSafe]; }

void a_newer_class_is_used() { [MPSGraphFFTDescriptor descriptor]; }

}  // namespace

#define SCENARIO(name) {#name, name}

std::vector<Case> fact_scenarios() {
  return {
      SCENARIO(a_heap_is_private_unless_told),
      {"a_managed_heap", a_managed_heap, "a heap is shared or private"},
      SCENARIO(a_shared_event_is_of_no_device),
      SCENARIO(an_event_is_set_back),
      SCENARIO(the_root_is_one_object),
      {"memory_of_a_quarter_page", memory_of_a_quarter_page, "are not whole pages"},
      SCENARIO(a_unary_kernel_is_a_multiary_one),
      SCENARIO(dimensions_are_permuted),
      {"an_old_macos_lacks_what_is_newer", an_old_macos_lacks_what_is_newer, nullptr, Case::kAlways,
       "MPSFORGE_METAL_MACOS=13.3"},
      {"a_newer_macos_has_it", a_newer_macos_has_it, nullptr, Case::kAlways, "MPSFORGE_METAL_MACOS=15.0"},
      {"a_newer_method_is_sent", a_newer_method_is_sent, "-[MTLCompileOptions setMathMode:]: unrecognized selector",
       Case::kAlways, "MPSFORGE_METAL_MACOS=14.4"},
      {"a_newer_class_is_used", a_newer_class_is_used,
       "Apple's API has it since macOS 14.0, and MPSFORGE_METAL_MACOS is 13.3", Case::kAlways,
       "MPSFORGE_METAL_MACOS=13.3"},
      {"a_place_named_twice", a_place_named_twice, "place 1 is named twice"},
  };
}

}  // namespace mpsforge::objc::test
