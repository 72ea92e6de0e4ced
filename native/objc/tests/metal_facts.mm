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

CASE(a_heap_is_private_unless_told) {
  MTLHeapDescriptor* descriptor = [[MTLHeapDescriptor new] autorelease];
  CHECK(descriptor.storageMode == MTLStorageModePrivate);
  CHECK(descriptor.resourceOptions == MTLResourceStorageModePrivate);
  MTLHeapDescriptor* copy = [[descriptor copy] autorelease];
  CHECK(copy.storageMode == MTLStorageModePrivate);
}

DIES(a_managed_heap, "a heap is shared or private") {
  MTLHeapDescriptor* descriptor = [[MTLHeapDescriptor new] autorelease];
  descriptor.size = 4096;
  descriptor.storageMode = MTLStorageModeManaged;
  [device() newHeapWithDescriptor:descriptor];
}

CASE(a_shared_event_is_of_no_device) {
  CHECK([device() newSharedEvent].device == nil);
  CHECK([device() newEvent].device == device());
}

CASE(an_event_is_set_back) {
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

CASE(the_root_is_one_object) {
  MPSCommandBuffer* commands = [MPSCommandBuffer commandBufferFromCommandQueue:[device() newCommandQueue]];
  id<MTLCommandBuffer> first = commands.rootCommandBuffer;
  CHECK(first && commands.rootCommandBuffer == first && commands.commandBuffer == first);
  [commands commitAndContinue];
  CHECK(commands.rootCommandBuffer != first && commands.rootCommandBuffer == commands.rootCommandBuffer);
  CHECK(first.status >= MTLCommandBufferStatusCommitted);
  CHECK(commands.rootCommandBuffer.status == MTLCommandBufferStatusNotEnqueued);
}

// Aligned to a page of this machine, which is no page of a Mac.
DIES(memory_of_a_quarter_page, "are not whole pages") {
  void* memory = std::aligned_alloc(vm_page_size, vm_page_size);
  [device() newBufferWithBytesNoCopy:memory length:4096 options:MTLResourceStorageModeShared deallocator:nil];
}

CASE(a_unary_kernel_is_a_multiary_one) {
  CHECK([MPSNDArrayUnaryKernel superclass] == [MPSNDArrayMultiaryKernel class]);
  CHECK([MPSNDArrayMultiaryKernel superclass] == [MPSNDArrayMultiaryBase class]);
}

// Apple's words on permuteWithDimensionOrder: each number is the place that the dimension goes to. Only an order that
// is not its own inverse shows it.
CASE(dimensions_are_permuted) {
  const NSUInteger sizes[] = {2, 3, 5}, order[] = {1, 2, 0};
  MPSNDArrayDescriptor* descriptor = [MPSNDArrayDescriptor descriptorWithDataType:MPSDataTypeFloat32
                                                                   dimensionCount:3
                                                                   dimensionSizes:sizes];
  [descriptor permuteWithDimensionOrder:order];
  CHECK([descriptor lengthOfDimension:0] == 5 && [descriptor lengthOfDimension:1] == 2 &&
        [descriptor lengthOfDimension:2] == 3);
}

DIES(a_place_named_twice, "place 1 is named twice") {
  const NSUInteger sizes[] = {2, 3}, order[] = {1, 1};
  [[MPSNDArrayDescriptor descriptorWithDataType:MPSDataTypeFloat32 dimensionCount:2
                                 dimensionSizes:sizes] permuteWithDimensionOrder:order];
}

// PyTorch asks so which macOS it is on, and so whether MPSGraph has an operation.
CASE(an_old_macos_lacks_what_is_newer, "MPSFORGE_METAL_MACOS=13.3") {
  Class graph = NSClassFromString(@"MPSGraph");
  CHECK([graph instancesRespondToSelector:@selector(cumulativeSumWithTensor:axis:name:)]);
  CHECK(![graph instancesRespondToSelector:@selector(conjugateWithTensor:name:)]);
  CHECK(![[[MPSGraph new] autorelease] respondsToSelector:@selector(reciprocalSquareRootWithTensor:name:)]);
  CHECK(NSClassFromString(@"MPSGraphFFTDescriptor") == nil && objc_getClass("MPSNDArrayIdentity") == nil);
  CHECK(![MTLCompileOptions instancesRespondToSelector:@selector(setMathMode:)]);
  CHECK([[[MTLCompileOptions new] autorelease] copy] != nil);  // which have a mathMode all the same
}

CASE(a_newer_macos_has_it, "MPSFORGE_METAL_MACOS=15.0") {
  Class graph = NSClassFromString(@"MPSGraph");
  CHECK([graph instancesRespondToSelector:@selector(conjugateWithTensor:name:)]);
  CHECK([graph instancesRespondToSelector:@selector(reciprocalSquareRootWithTensor:name:)]);
  CHECK(NSClassFromString(@"MPSGraphFFTDescriptor") == [MPSGraphFFTDescriptor class]);
  CHECK(NSClassFromString(@"MPSNDArrayIdentity") != nil);
  CHECK([MTLCompileOptions instancesRespondToSelector:@selector(setMathMode:)]);
}

DIES(a_newer_method_is_sent, "-[MTLCompileOptions setMathMode:]: unrecognized selector", "MPSFORGE_METAL_MACOS=14.4") {
  [[MTLCompileOptions new] setMathMode:MTLMathModeSafe];
}

DIES(a_newer_class_is_used, "Apple's API has it since macOS 14.0, and MPSFORGE_METAL_MACOS is 13.3",
     "MPSFORGE_METAL_MACOS=13.3") {
  [MPSGraphFFTDescriptor descriptor];
}

}  // namespace

}  // namespace mpsforge::objc::test
