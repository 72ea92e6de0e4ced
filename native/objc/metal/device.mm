#import <Foundation/Foundation.h>
#include <mach/vm_page_size.h>
#include <mpsforge/host.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "../engine.h"
#include "../record.h"
#include "metal_objects.h"

using namespace mpsforge::objc;

namespace {

// Heaps place buffers so on Apple's GPUs.
constexpr NSUInteger kAlignment = 256;

// What storage modes mean to the engine. Managed memory is for GPUs with memory of their own: on others Metal treats it
// as shared.
void check_options(MTLResourceOptions options) {
  const NSUInteger mode = (options & MTLResourceStorageModeMask) >> MTLResourceStorageModeShift;
  if (mode > MTLStorageModePrivate) fail("storage mode %lu of a buffer", static_cast<unsigned long>(mode));
}

// Requests that are still to be refused, by kind.
std::array<std::atomic<uint32_t>, MPSFORGE_HOST_KINDS> refusals;

bool refuses(uint32_t kind) {
  uint32_t left = refusals[kind];
  while (left > 0 && !refusals[kind].compare_exchange_weak(left, left - 1)) continue;
  return left > 0;
}

}  // namespace

void mpsforge_host_refuse(uint32_t kind, uint32_t n) {
  if (kind >= MPSFORGE_HOST_KINDS) fail("mpsforge_host_refuse: there is no kind %u", kind);
  refusals[kind] = n;
}

@implementation SoftwareMTLDevice {
  uint64_t _workingSet;
  std::atomic<int64_t>* _allocated;
}

+ (SoftwareMTLDevice*)shared {
  // Never released, as Metal's: PyTorch's static objects use it until the process ends.
  static SoftwareMTLDevice* const made = [[SoftwareMTLDevice alloc] init];
  return made;
}

- (instancetype)init {
  self = [super init];
  if (self) {
    _workingSet = environment().working_set_bytes;
    _allocated = new std::atomic<int64_t>(0);
  }
  return self;
}

- (BOOL)count:(int64_t)bytes {
  // The working set is three quarters of the memory of a Mac; more than the memory there is not.
  const auto memory = static_cast<int64_t>(_workingSet / 3 * 4);
  if (_allocated->fetch_add(bytes, std::memory_order_relaxed) + bytes <= memory || bytes <= 0) return YES;
  _allocated->fetch_sub(bytes, std::memory_order_relaxed);
  return NO;
}

- (BOOL)allocate:(int64_t)bytes {
  if (![self count:bytes]) return NO;
  record("memory " + std::to_string(bytes));
  return YES;
}

- (NSString*)name {
  return @"mpsforge software Metal";
}

- (uint64_t)registryID {
  return 1;
}

- (BOOL)isLowPower {
  return NO;
}

- (BOOL)isHeadless {
  return NO;
}

- (BOOL)isRemovable {
  return NO;
}

- (BOOL)hasUnifiedMemory {
  return YES;
}

- (uint64_t)recommendedMaxWorkingSetSize {
  return _workingSet;
}

- (NSUInteger)currentAllocatedSize {
  return static_cast<NSUInteger>(_allocated->load(std::memory_order_relaxed));
}

- (NSUInteger)maxBufferLength {
  return environment().max_buffer_bytes;
}

- (NSUInteger)maxThreadgroupMemoryLength {
  return 32768;
}

- (MTLSize)maxThreadsPerThreadgroup {
  return MTLSizeMake(1024, 1024, 1024);
}

// The families of an M1, which every GPU that PyTorch runs on has.
- (BOOL)supportsFamily:(MTLGPUFamily)family {
  switch (family) {
    case MTLGPUFamilyApple1:
    case MTLGPUFamilyApple2:
    case MTLGPUFamilyApple3:
    case MTLGPUFamilyApple4:
    case MTLGPUFamilyApple5:
    case MTLGPUFamilyApple6:
    case MTLGPUFamilyApple7:
    case MTLGPUFamilyMac1:
    case MTLGPUFamilyMac2:
    case MTLGPUFamilyCommon1:
    case MTLGPUFamilyCommon2:
    case MTLGPUFamilyCommon3:
    case MTLGPUFamilyMetal3:
      return YES;
    default:
      return NO;
  }
}

- (id<MTLCommandQueue>)newCommandQueue {
  if (refuses(MPSFORGE_HOST_QUEUES)) return nil;
  return [[SoftwareMTLCommandQueue alloc] init];
}

- (id<MTLCommandQueue>)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)count {
  fail("-[SoftwareMTLDevice newCommandQueueWithMaxCommandBufferCount:] with %lu: all queues of the software Metal "
       "hold the same number of command buffers",
       static_cast<unsigned long>(count));
}

- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
  check_options(options);
  if (length == 0 || length > self.maxBufferLength || refuses(MPSFORGE_HOST_BUFFERS) ||
      ![self allocate:static_cast<int64_t>(length)])
    return nil;
  return [[SoftwareMTLBuffer alloc] initWithLength:length size:length options:options heap:nil];
}

- (id<MTLBuffer>)newBufferWithBytes:(const void*)bytes length:(NSUInteger)length options:(MTLResourceOptions)options {
  if ((options & MTLResourceStorageModeMask) == MTLResourceStorageModePrivate) {
    fail("-[SoftwareMTLDevice newBufferWithBytes:length:options:] of a private buffer");
  }
  SoftwareMTLBuffer* made = (SoftwareMTLBuffer*)[self newBufferWithLength:length options:options];
  if (made) {
    EngineCall guard;
    api().cpu_write(made->_engine, 0, length, bytes);
  }
  return made;
}

- (id<MTLBuffer>)newBufferWithBytesNoCopy:(void*)bytes
                                   length:(NSUInteger)length
                                  options:(MTLResourceOptions)options
                              deallocator:(void (^)(void* pointer, NSUInteger length))deallocator {
  // Apple's page: the memory must begin at a page and be whole pages long. What a page is, vm_page_size says: 16 KiB on
  // Apple silicon, whatever it is here.
  const NSUInteger page = vm_page_size;
  if (reinterpret_cast<uintptr_t>(bytes) % page != 0 || length % page != 0) {
    fail("-[SoftwareMTLDevice newBufferWithBytesNoCopy:length:options:deallocator:]: %p with %lu bytes are not "
         "whole pages",
         bytes, static_cast<unsigned long>(length));
  }
  if ((options & MTLResourceStorageModeMask) == MTLResourceStorageModePrivate) {
    fail("-[SoftwareMTLDevice newBufferWithBytesNoCopy:length:options:deallocator:] of a private buffer");
  }
  check_options(options);
  // Apple's counts it, too: llama.cpp#3606's log shows currentAllocatedSize grow by the size of each such buffer.
  if (!bytes || length == 0 || length > self.maxBufferLength || refuses(MPSFORGE_HOST_BUFFERS) ||
      ![self count:static_cast<int64_t>(length)])
    return nil;
  return [[SoftwareMTLBuffer alloc] initOver:bytes length:length options:options deallocator:deallocator];
}

- (MTLSizeAndAlign)heapBufferSizeAndAlignWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
  check_options(options);
  MTLSizeAndAlign result = {(length + kAlignment - 1) / kAlignment * kAlignment, kAlignment};
  return result;
}

- (id<MTLHeap>)newHeapWithDescriptor:(MTLHeapDescriptor*)descriptor {
  if (descriptor.type != MTLHeapTypeAutomatic) fail("a heap of type %ld", static_cast<long>(descriptor.type));
  // Apple's MTLHeap.h, of the descriptor's storageMode: managed and memoryless are disallowed.
  if (descriptor.storageMode != MTLStorageModeShared && descriptor.storageMode != MTLStorageModePrivate) {
    fail("-[SoftwareMTLDevice newHeapWithDescriptor:] with storage mode %lu: a heap is shared or private",
         static_cast<unsigned long>(descriptor.storageMode));
  }
  if (descriptor.size == 0 || ![self allocate:static_cast<int64_t>(descriptor.size)]) return nil;
  return [[SoftwareMTLHeap alloc] initWithDescriptor:descriptor];
}

- (id<MTLEvent>)newEvent {
  return [[SoftwareMTLEvent alloc] initForDevice:self];
}

- (id<MTLSharedEvent>)newSharedEvent {
  if (refuses(MPSFORGE_HOST_EVENTS)) return nil;
  return [[SoftwareMTLEvent alloc] initForDevice:nil];
}

- (id<MTLLibrary>)newDefaultLibrary {
  return nil;  // as in every program without a default.metallib
}

- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source options:(MTLCompileOptions*)options error:(NSError**)error {
  if (error) *error = nil;
  return [[SoftwareMTLLibrary alloc] initWithSource:source options:options error:error];
}

- (id<MTLLibrary>)newLibraryWithData:(dispatch_data_t)data error:(NSError**)error {
  if (error) *error = nil;
  // A section that takes the place of a Metal library holds its own name (native/torch/libraries.cc).
  const void* bytes = nullptr;
  size_t size = 0;
  dispatch_data_t map = data ? dispatch_data_create_map(data, &bytes, &size) : nullptr;
  const std::string section(size > 0 ? static_cast<const char*>(bytes) : "", size);
  if (map) dispatch_release(map);
  return [[SoftwareMTLLibrary alloc] initWithSection:section];
}

- (id<MTLLibrary>)newLibraryWithURL:(NSURL*)url error:(NSError**)error {
  if (error) *error = nil;
  return [[SoftwareMTLLibrary alloc] initWithSection:""];
}

- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)function error:(NSError**)error {
  return [SoftwareMTLComputePipelineState newWithFunction:function error:error];
}

- (id<MTLComputePipelineState>)newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                                             options:(MTLPipelineOption)options
                                                          reflection:(MTLComputePipelineReflection**)reflection
                                                               error:(NSError**)error {
  if (options != MTLPipelineOptionNone || reflection) {
    fail("-[SoftwareMTLDevice newComputePipelineStateWithDescriptor:options:reflection:error:] with reflection");
  }
  return [SoftwareMTLComputePipelineState newWithFunction:descriptor.computeFunction error:error];
}

@end

id<MTLDevice> MTLCreateSystemDefaultDevice(void) { return [[SoftwareMTLDevice shared] retain]; }

NSArray* MTLCopyAllDevices(void) { return [[NSArray alloc] initWithObjects:[SoftwareMTLDevice shared], nil]; }
