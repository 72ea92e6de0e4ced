#import <Foundation/Foundation.h>
#include <mpsforge/host.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

#include "../engine.h"
#include "metal_objects.h"

using namespace mpsforge::objc;

namespace {

MTLStorageMode storage_of(MTLResourceOptions options) {
  return static_cast<MTLStorageMode>((options & MTLResourceStorageModeMask) >> MTLResourceStorageModeShift);
}

MTLCPUCacheMode cache_of(MTLResourceOptions options) {
  return static_cast<MTLCPUCacheMode>((options & MTLResourceCPUCacheModeMask) >> MTLResourceCPUCacheModeShift);
}

MTLHazardTrackingMode hazard_of(MTLResourceOptions options) {
  return static_cast<MTLHazardTrackingMode>((options & MTLResourceHazardTrackingModeMask) >>
                                            MTLResourceHazardTrackingModeShift);
}

uint32_t engine_storage(MTLResourceOptions options) {
  return storage_of(options) == MTLStorageModePrivate ? MPSFORGE_METAL_PRIVATE : MPSFORGE_METAL_SHARED;
}

// Fresh memory is zero, which hides that a program counts on it. With MPSFORGE_METAL_POISON=1 it is not: heaps give no
// such promise.
bool poisons() {
  static const bool wanted = [] {
    const char* text = std::getenv("MPSFORGE_METAL_POISON");
    return text && std::strcmp(text, "1") == 0;
  }();
  return wanted;
}

// The memory of all buffers, by its first byte, to find the one that a pointer points into.
struct Places {
  struct Place {
    size_t length;
    mpsforge_metal_buffer* buffer;
  };
  std::mutex mutex;
  std::map<uintptr_t, Place> by_address;
};

// Never destroyed: buffers live until the process ends.
Places& places() {
  static Places* const made = new Places();
  return *made;
}

}  // namespace

namespace mpsforge::objc {

mpsforge_metal_buffer* engine_buffer(id<MTLBuffer> buffer) {
  if (!buffer) return nullptr;
  if (![buffer isKindOfClass:[SoftwareMTLBuffer class]]) {
    fail("an object of class %s is used as a buffer", [NSStringFromClass([(NSObject*)buffer class]) UTF8String]);
  }
  return ((SoftwareMTLBuffer*)buffer)->_engine;
}

}  // namespace mpsforge::objc

void mpsforge_host_cpu_access(const void* pointer, size_t length, uint32_t access) {
  EngineCall guard;
  Places& all = places();
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const auto after = all.by_address.upper_bound(address);
  if (after == all.by_address.begin()) return;
  const auto& [first, place] = *std::prev(after);
  if (address - first >= place.length) return;
  api().cpu_access(place.buffer, address - first, length, access);
}

@implementation SoftwareMTLBuffer {
  SoftwareMTLHeap* _heap;
  NSUInteger _size;  // that the heap or the device has counted
  BOOL _isOver;      // over memory of the program's
  MTLResourceOptions _options;
  void (^_deallocator)(void*, NSUInteger);
}

- (void)place {
  EngineCall guard;
  Places& all = places();
  std::lock_guard<std::mutex> lock(all.mutex);
  // Of two buffers over the same memory the first one is found.
  all.by_address.insert({api().gpu_address(_engine), {api().buffer_length(_engine), _engine}});
}

- (void)displace {
  EngineCall guard;
  Places& all = places();
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.by_address.find(api().gpu_address(_engine));
  if (found != all.by_address.end() && found->second.buffer == _engine) all.by_address.erase(found);
}

- (instancetype)initWithLength:(NSUInteger)length
                          size:(NSUInteger)size
                       options:(MTLResourceOptions)options
                          heap:(SoftwareMTLHeap*)heap {
  self = [super init];
  if (!self) return nil;
  _heap = [heap retain];
  _size = size;
  _options = options;
  {
    EngineCall guard;
    _engine = api().buffer_create(device(), length, engine_storage(options), nullptr);
    if (_engine && poisons()) std::memset(reinterpret_cast<void*>(api().gpu_address(_engine)), 0xa5, length);
  }
  if (!_engine) {
    [self release];
    return nil;
  }
  [self place];
  return self;
}

- (instancetype)initOver:(void*)memory
                  length:(NSUInteger)length
                 options:(MTLResourceOptions)options
             deallocator:(void (^)(void* pointer, NSUInteger length))deallocator {
  self = [super init];
  if (!self) return nil;
  _size = length;
  _isOver = YES;
  _options = options;
  {
    EngineCall guard;
    _engine = api().buffer_over(device(), memory, length, engine_storage(options), nullptr);
  }
  if (!_engine) {
    [self release];
    return nil;
  }
  _deallocator = [deallocator copy];
  [self place];
  return self;
}

- (void)dealloc {
  void* memory = nullptr;
  NSUInteger length = 0;
  if (_engine) {
    [self displace];
    EngineCall guard;
    memory = reinterpret_cast<void*>(api().gpu_address(_engine));
    length = api().buffer_length(_engine);
    api().buffer_release(_engine);
  }
  if (_heap) {
    [_heap giveBack:_size];
    [_heap release];
  } else if (_isOver) {
    [[SoftwareMTLDevice shared] count:-static_cast<int64_t>(_size)];
  } else if (_size > 0) {
    [[SoftwareMTLDevice shared] allocate:-static_cast<int64_t>(_size)];
  }
  if (_deallocator) {
    _deallocator(memory, length);
    [_deallocator release];
  }
  [super dealloc];
}

- (NSUInteger)length {
  EngineCall guard;
  return api().buffer_length(_engine);
}

- (void*)contents {
  EngineCall guard;
  return api().buffer_contents(_engine);
}

- (uint64_t)gpuAddress {
  EngineCall guard;
  return api().gpu_address(_engine);
}

- (void)didModifyRange:(NSRange)range {
  if (storage_of(_options) != MTLStorageModeManaged) {
    fail("-[SoftwareMTLBuffer didModifyRange:] of a buffer whose storage is not managed");
  }
}

- (MTLStorageMode)storageMode {
  return storage_of(_options);
}

- (MTLCPUCacheMode)cpuCacheMode {
  return cache_of(_options);
}

- (MTLHazardTrackingMode)hazardTrackingMode {
  return hazard_of(_options);
}

- (MTLResourceOptions)resourceOptions {
  return _options;
}

- (id<MTLHeap>)heap {
  return _heap;
}

- (NSUInteger)heapOffset {
  fail("-[SoftwareMTLBuffer heapOffset]: heaps of the software Metal only count");
}

- (NSUInteger)allocatedSize {
  return _size > 0 ? _size : self.length;
}

- (MTLPurgeableState)setPurgeableState:(MTLPurgeableState)state {
  return MTLPurgeableStateNonVolatile;
}

@end

@implementation SoftwareMTLHeap {
  std::mutex* _mutex;
  NSUInteger _size, _used;
  MTLResourceOptions _options;
  MTLPurgeableState _state;
}

- (instancetype)initWithDescriptor:(MTLHeapDescriptor*)descriptor {
  self = [super init];
  if (!self) return nil;
  _mutex = new std::mutex();
  _size = descriptor.size;
  _options = descriptor.resourceOptions;
  _state = MTLPurgeableStateNonVolatile;
  return self;
}

- (void)dealloc {
  [[SoftwareMTLDevice shared] allocate:-static_cast<int64_t>(_size)];
  delete _mutex;
  [super dealloc];
}

- (void)giveBack:(NSUInteger)bytes {
  EngineCall guard;
  std::lock_guard<std::mutex> lock(*_mutex);
  _used -= bytes;
}

// Heaps only count: nothing of PyTorch looks at where in a heap a buffer lies.
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
  const MTLResourceOptions modes = MTLResourceStorageModeMask | MTLResourceCPUCacheModeMask;
  if ((options & modes) != (_options & modes)) {
    fail("-[SoftwareMTLHeap newBufferWithLength:options:]: options %lu in a heap of options %lu",
         static_cast<unsigned long>(options), static_cast<unsigned long>(_options));
  }
  const NSUInteger size = [[SoftwareMTLDevice shared] heapBufferSizeAndAlignWithLength:length options:options].size;
  {
    EngineCall guard;
    std::lock_guard<std::mutex> lock(*_mutex);
    if (length == 0 || size > _size - _used) return nil;
    _used += size;
  }
  return [[SoftwareMTLBuffer alloc] initWithLength:length size:size options:options heap:self];
}

- (NSUInteger)maxAvailableSizeWithAlignment:(NSUInteger)alignment {
  if (alignment == 0) fail("-[SoftwareMTLHeap maxAvailableSizeWithAlignment:] with 0");
  EngineCall guard;
  std::lock_guard<std::mutex> lock(*_mutex);
  return (_size - _used) / alignment * alignment;
}

- (NSUInteger)size {
  return _size;
}

- (NSUInteger)usedSize {
  EngineCall guard;
  std::lock_guard<std::mutex> lock(*_mutex);
  return _used;
}

- (NSUInteger)currentAllocatedSize {
  return _size;
}

- (MTLPurgeableState)setPurgeableState:(MTLPurgeableState)state {
  EngineCall guard;
  std::lock_guard<std::mutex> lock(*_mutex);
  const MTLPurgeableState old = _state;
  if (state != MTLPurgeableStateKeepCurrent) _state = state;
  return old;
}

- (MTLStorageMode)storageMode {
  return storage_of(_options);
}

- (MTLCPUCacheMode)cpuCacheMode {
  return cache_of(_options);
}

- (MTLHazardTrackingMode)hazardTrackingMode {
  return hazard_of(_options);
}

- (MTLResourceOptions)resourceOptions {
  return _options;
}

- (MTLHeapType)type {
  return MTLHeapTypeAutomatic;
}

@end
