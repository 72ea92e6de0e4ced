#import <Foundation/Foundation.h>

#include <array>

#include "../engine.h"
#include "metal_objects.h"

using namespace mpsforge::objc;

namespace {

constexpr NSUInteger kArguments = 31;  // as the engine has

uint32_t engine_access(MTLResourceUsage usage) {
  uint32_t access = 0;
  if (usage & (MTLResourceUsageRead | MTLResourceUsageSample)) access |= MPSFORGE_METAL_READ;
  if (usage & MTLResourceUsageWrite) access |= MPSFORGE_METAL_WRITE;
  return access;
}

}  // namespace

namespace mpsforge::objc {

mpsforge_metal_encoder* engine_encoder(id<MTLComputeCommandEncoder> encoder) {
  if (!encoder) return nullptr;
  if (![encoder isKindOfClass:[SoftwareMTLComputeCommandEncoder class]]) {
    fail("an object of class %s is used as a compute encoder",
         [NSStringFromClass([(NSObject*)encoder class]) UTF8String]);
  }
  return ((SoftwareMTLComputeCommandEncoder*)encoder)->_engine;
}

}  // namespace mpsforge::objc

@implementation SoftwareMTLCommandEncoder

- (instancetype)initWithEngine:(mpsforge_metal_encoder*)engine {
  self = [super init];
  if (!self || !engine) {
    [self release];
    return nil;
  }
  _engine = engine;
  return self;
}

- (void)dealloc {
  if (_engine) {
    EngineCall guard;
    api().encoder_release(_engine);
  }
  [super dealloc];
}

- (void)keep:(id)object {
  if (!object) return;
  [object retain];
  bool kept;
  {
    EngineCall guard;
    kept = api().encoder_keep(_engine, object, release_object);
  }
  if (!kept) [object release];
}

- (void)setLabel:(NSString*)label {
  used_by_one_thread(_used);
  [super setLabel:label];
}

- (void)endEncoding {
  used_by_one_thread(_used);
  EngineCall guard;
  api().end_encoding(_engine);
}

// Groups and signposts are for captures, of which there are none.
- (void)insertDebugSignpost:(NSString*)name {
  used_by_one_thread(_used);
}

- (void)pushDebugGroup:(NSString*)name {
  used_by_one_thread(_used);
}

- (void)popDebugGroup {
  used_by_one_thread(_used);
}

@end

@implementation SoftwareMTLBlitCommandEncoder

- (void)fillBuffer:(id<MTLBuffer>)buffer range:(NSRange)range value:(uint8_t)value {
  used_by_one_thread(_used);
  mpsforge_metal_buffer* engine = engine_buffer(buffer);
  if (!engine) fail("-[SoftwareMTLBlitCommandEncoder fillBuffer:range:value:] with nil");
  [self keep:buffer];
  EngineCall guard;
  api().fill(_engine, engine, range.location, range.length, value);
}

- (void)copyFromBuffer:(id<MTLBuffer>)from
          sourceOffset:(NSUInteger)fromOffset
              toBuffer:(id<MTLBuffer>)to
     destinationOffset:(NSUInteger)toOffset
                  size:(NSUInteger)size {
  used_by_one_thread(_used);
  mpsforge_metal_buffer* source = engine_buffer(from);
  mpsforge_metal_buffer* destination = engine_buffer(to);
  if (!source || !destination) fail("-[SoftwareMTLBlitCommandEncoder copyFromBuffer:toBuffer:] with nil");
  [self keep:from];
  [self keep:to];
  EngineCall guard;
  api().copy(_engine, source, fromOffset, destination, toOffset, size);
}

- (void)synchronizeResource:(id<MTLResource>)resource {
  used_by_one_thread(_used);
  // Memory is unified, so even of a managed buffer there is one copy.
  if (resource.storageMode != MTLStorageModeManaged) {
    fail("-[SoftwareMTLBlitCommandEncoder synchronizeResource:] of a resource whose storage is not managed");
  }
}

@end

@implementation SoftwareMTLComputeCommandEncoder {
  // What is bound, for setBufferOffset:atIndex:. The command buffer owns it.
  std::array<id<MTLBuffer>, kArguments> _bound;
}

- (MTLDispatchType)dispatchType {
  return MTLDispatchTypeSerial;
}

- (void)setComputePipelineState:(id<MTLComputePipelineState>)state {
  used_by_one_thread(_used);
  if (!state) fail("-[SoftwareMTLComputeCommandEncoder setComputePipelineState:] with nil");
  [self keep:state];
  EngineCall guard;
  api().set_kernel(_engine, ((SoftwareMTLComputePipelineState*)state)->_kernel);
}

- (void)setBytes:(const void*)bytes length:(NSUInteger)length atIndex:(NSUInteger)index {
  used_by_one_thread(_used);
  // No bytes are allowed, and where they would be does not matter: PyTorch passes the sizes of a tensor without
  // dimensions so. Then nothing is bound, and a kernel that reads the argument reads out of range.
  if (!bytes && length > 0) fail("-[SoftwareMTLComputeCommandEncoder setBytes:length:atIndex:] without bytes");
  if (index < kArguments) _bound[index] = nil;
  EngineCall guard;
  api().set_bytes(_engine, static_cast<uint32_t>(index), bytes, length);
}

- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  used_by_one_thread(_used);
  mpsforge_metal_buffer* engine = engine_buffer(buffer);
  [self keep:buffer];
  if (index < kArguments) _bound[index] = buffer;
  EngineCall guard;
  api().set_buffer(_engine, static_cast<uint32_t>(index), engine, offset);
}

- (void)setBufferOffset:(NSUInteger)offset atIndex:(NSUInteger)index {
  id<MTLBuffer> bound = index < kArguments ? _bound[index] : nil;
  if (!bound) {
    fail("-[SoftwareMTLComputeCommandEncoder setBufferOffset:atIndex:]: no buffer is bound at %lu",
         static_cast<unsigned long>(index));
  }
  [self setBuffer:bound offset:offset atIndex:index];
}

- (void)setBuffers:(const id<MTLBuffer>*)buffers offsets:(const NSUInteger*)offsets withRange:(NSRange)range {
  for (NSUInteger i = 0; i < range.length; ++i) {
    [self setBuffer:buffers[i] offset:offsets[i] atIndex:range.location + i];
  }
}

- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index {
  used_by_one_thread(_used);
  if (length % 16 != 0 || length > [SoftwareMTLDevice shared].maxThreadgroupMemoryLength) {
    fail("-[SoftwareMTLComputeCommandEncoder setThreadgroupMemoryLength:atIndex:] with %lu: a multiple of 16, and no "
         "more than maxThreadgroupMemoryLength, is allowed",
         static_cast<unsigned long>(length));
  }
  EngineCall guard;
  api().set_threadgroup_memory(_engine, static_cast<uint32_t>(index), length);
}

- (void)useResource:(id<MTLResource>)resource usage:(MTLResourceUsage)usage {
  used_by_one_thread(_used);
  mpsforge_metal_buffer* engine = engine_buffer((id<MTLBuffer>)resource);
  if (!engine) fail("-[SoftwareMTLComputeCommandEncoder useResource:usage:] with nil");
  [self keep:resource];
  EngineCall guard;
  api().use_buffer(_engine, engine, engine_access(usage));
}

- (void)useResources:(const id<MTLResource>*)resources count:(NSUInteger)count usage:(MTLResourceUsage)usage {
  for (NSUInteger i = 0; i < count; ++i) [self useResource:resources[i] usage:usage];
}

- (void)dispatchThreads:(MTLSize)threads threadsPerThreadgroup:(MTLSize)group {
  used_by_one_thread(_used);
  const mpsforge_metal_grid grid = {{threads.width, threads.height, threads.depth},
                                    {group.width, group.height, group.depth}};
  EngineCall guard;
  api().dispatch_grid(_engine, &grid);
}

- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)group {
  [self dispatchThreads:MTLSizeMake(groups.width * group.width, groups.height * group.height,
                                    groups.depth * group.depth)
      threadsPerThreadgroup:group];
}

// Dispatches run one after another, so barriers have nothing to do.
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope {
  used_by_one_thread(_used);
}

- (void)memoryBarrierWithResources:(const id<MTLResource>*)resources count:(NSUInteger)count {
  used_by_one_thread(_used);
}

@end

@implementation SoftwareMTLArgumentEncoder {
  SoftwareMTLBuffer* _buffer;
  NSUInteger _offset;
}

namespace {

// An entry is an address. What the function's structure holds only Metal's compiler knows, so there is place for as
// many as PyTorch's longest has, and more.
constexpr NSUInteger kEntry = sizeof(uint64_t);
constexpr NSUInteger kEntries = 512;

}  // namespace

- (void)dealloc {
  [_buffer release];
  [super dealloc];
}

- (NSUInteger)encodedLength {
  return kEntry * kEntries;
}

- (NSUInteger)alignment {
  return kEntry;
}

- (void)setArgumentBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset {
  engine_buffer(buffer);
  if (buffer && (buffer.length < offset || buffer.length - offset < self.encodedLength)) {
    fail("-[SoftwareMTLArgumentEncoder setArgumentBuffer:offset:]: the buffer is shorter than encodedLength");
  }
  [buffer retain];
  [_buffer release];
  _buffer = (SoftwareMTLBuffer*)buffer;
  _offset = offset;
}

- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  if (!_buffer || index >= kEntries) {
    fail("-[SoftwareMTLArgumentEncoder setBuffer:offset:atIndex:] at %lu, %s", static_cast<unsigned long>(index),
         _buffer ? "beyond the entries that there are" : "without an argument buffer");
  }
  const uint64_t address = buffer ? buffer.gpuAddress + offset : 0;
  EngineCall guard;
  api().cpu_write(_buffer->_engine, _offset + kEntry * index, sizeof address, &address);
}

@end
