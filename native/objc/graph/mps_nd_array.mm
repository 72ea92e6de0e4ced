// MPSNDArray and its descriptor.
#include <mpsforge/host.h>

#include <cstring>
#include <stdexcept>

#include "../engine.h"
#include "arrays.h"
#include "recorder.h"

using mpsforge::graph::DataType;
using mpsforge::graph::Memory;
using mpsforge::graph::Shape;
using mpsforge::objc::fail;

namespace {

// One dimension of a descriptor: which one of the array it describes, and the part of it that is used.
struct Dimension {
  NSUInteger source;
  NSUInteger start;
  NSUInteger length;
};

size_t element_bytes(MPSDataType type, const char* call) {
  try {
    return mpsforge::graph::bytes_of(static_cast<DataType>(type));
  } catch (const std::exception& error) {
    fail("-[%s]: %s", call, error.what());
  }
}

}  // namespace

@interface MPSNDArrayDescriptor () {
 @public
  std::vector<Dimension>* _dimensions;
}
// Outermost first. What getShape answers, which not every macOS has.
- (Shape)lengths;
@end

namespace {

// Packed in the order that the dimensions had before any transposition: a transposed descriptor of a buffer is a
// transposed view of it.
Memory packed(id<MTLBuffer> buffer, NSUInteger offset, MPSNDArrayDescriptor* descriptor) {
  Memory memory;
  memory.buffer = buffer;
  memory.offset = offset;
  memory.type = static_cast<DataType>(descriptor.dataType);
  memory.shape = [descriptor lengths];
  const std::vector<Dimension>& dimensions = *descriptor->_dimensions;
  for (size_t i = dimensions.size(); i-- > 0;) {
    int64_t stride = 1;
    for (const Dimension& other : dimensions) {
      if (other.source < dimensions[i].source) stride *= static_cast<int64_t>(other.length);
    }
    memory.strides.push_back(stride);
  }
  return memory;
}

}  // namespace

@implementation MPSNDArrayDescriptor

- (instancetype)init {
  if ((self = [super init])) _dimensions = new std::vector<Dimension>;
  return self;
}

- (void)dealloc {
  delete _dimensions;
  [super dealloc];
}

- (id)copyWithZone:(NSZone*)zone {
  MPSNDArrayDescriptor* copy = [[MPSNDArrayDescriptor alloc] init];
  copy->_dataType = _dataType;
  copy->_preferPackedRows = _preferPackedRows;
  *copy->_dimensions = *_dimensions;
  return copy;
}

+ (instancetype)descriptorWithDataType:(MPSDataType)dataType shape:(MPSShape*)shape {
  MPSNDArrayDescriptor* made = [[[self alloc] init] autorelease];
  made->_dataType = dataType;
  const NSUInteger count = [shape count];
  for (NSUInteger i = 0; i < count; ++i) {
    made->_dimensions->push_back({i, 0, [[shape objectAtIndex:count - 1 - i] unsignedIntegerValue]});
  }
  return made;
}

+ (instancetype)descriptorWithDataType:(MPSDataType)dataType
                        dimensionCount:(NSUInteger)numberOfDimensions
                        dimensionSizes:(const NSUInteger*)dimensionSizes {
  MPSNDArrayDescriptor* made = [[[self alloc] init] autorelease];
  made->_dataType = dataType;
  for (NSUInteger i = 0; i < numberOfDimensions; ++i) made->_dimensions->push_back({i, 0, dimensionSizes[i]});
  return made;
}

- (Dimension&)dimension:(NSUInteger)index of:(const char*)selector {
  if (index >= _dimensions->size()) {
    fail("-[MPSNDArrayDescriptor %s]: dimension %zu of %zu", selector, static_cast<size_t>(index), _dimensions->size());
  }
  return (*_dimensions)[index];
}

- (NSUInteger)numberOfDimensions {
  return _dimensions->size();
}

- (NSUInteger)lengthOfDimension:(NSUInteger)dimensionIndex {
  return dimensionIndex < _dimensions->size() ? (*_dimensions)[dimensionIndex].length : 1;
}

- (MPSDimensionSlice)sliceRangeForDimension:(NSUInteger)dimensionIndex {
  const Dimension& dimension = [self dimension:dimensionIndex of:"sliceRangeForDimension:"];
  return {dimension.start, dimension.length};
}

- (void)sliceDimension:(NSUInteger)dimensionIndex withSubrange:(MPSDimensionSlice)subRange {
  Dimension& dimension = [self dimension:dimensionIndex of:"sliceDimension:withSubrange:"];
  if (subRange.start + subRange.length > dimension.length) {
    fail("-[MPSNDArrayDescriptor sliceDimension:withSubrange:]: beyond the dimension");
  }
  dimension.start += subRange.start;
  dimension.length = subRange.length;
}

- (void)transposeDimension:(NSUInteger)dimensionIndex withDimension:(NSUInteger)dimensionIndex2 {
  std::swap([self dimension:dimensionIndex of:"transposeDimension:withDimension:"],
            [self dimension:dimensionIndex2 of:"transposeDimension:withDimension:"]);
}

- (void)permuteWithDimensionOrder:(const NSUInteger*)dimensionOrder {
  // Apple's words: the order names for each dimension the place that it goes to.
  std::vector<Dimension> before = *_dimensions;
  std::vector<bool> taken(before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    [self dimension:dimensionOrder[i] of:"permuteWithDimensionOrder:"] = before[i];
    if (taken[dimensionOrder[i]]) {
      fail("-[MPSNDArrayDescriptor permuteWithDimensionOrder:]: place %zu is named twice",
           static_cast<size_t>(dimensionOrder[i]));
    }
    taken[dimensionOrder[i]] = true;
  }
}

- (Shape)lengths {
  Shape shape;
  for (size_t i = _dimensions->size(); i-- > 0;) shape.push_back(static_cast<int64_t>((*_dimensions)[i].length));
  return shape;
}

- (NSArray<NSNumber*>*)getShape {
  return mpsforge::graph::numbers([self lengths]);
}

@end

@implementation MPSNDArray {
  Memory* _memory;
  id<MTLBuffer> _buffer;
  id<MTLDevice> _device;
  MPSNDArray* _parent;
}

- (instancetype)initWithMemory:(const Memory&)memory device:(id<MTLDevice>)device parent:(MPSNDArray*)parent {
  if ((self = [super init])) {
    _memory = new Memory(memory);
    _buffer = [memory.buffer retain];
    _device = [device retain];
    _parent = [parent retain];
  }
  return self;
}

- (instancetype)initWithDevice:(id<MTLDevice>)device descriptor:(MPSNDArrayDescriptor*)descriptor {
  Memory memory = packed(nil, 0, descriptor);
  const size_t bytes = static_cast<size_t>(mpsforge::graph::element_count(memory.shape)) *
                       element_bytes(descriptor.dataType, "MPSNDArray initWithDevice:descriptor:");
  id<MTLBuffer> buffer = bytes ? [device newBufferWithLength:bytes options:MTLResourceStorageModeShared] : nil;
  if (bytes && buffer == nil) {
    [self release];
    return nil;
  }
  memory.buffer = buffer;
  self = [self initWithMemory:memory device:device parent:nil];
  [buffer release];
  return self;
}

- (instancetype)initWithDevice:(id<MTLDevice>)device scalar:(double)value {
  self = [self initWithDevice:device
                   descriptor:[MPSNDArrayDescriptor descriptorWithDataType:MPSDataTypeFloat32 shape:@[ @1 ]]];
  float number = static_cast<float>(value);
  [self writeBytes:&number strideBytes:nullptr];
  return self;
}

- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer
                        offset:(NSUInteger)offset
                    descriptor:(MPSNDArrayDescriptor*)descriptor {
  return [self initOver:buffer offset:offset descriptor:descriptor];
}

- (instancetype)initOver:(id<MTLBuffer>)buffer offset:(NSUInteger)offset descriptor:(MPSNDArrayDescriptor*)descriptor {
  element_bytes(descriptor.dataType, "MPSNDArray initWithBuffer:offset:descriptor:");
  return [self initWithMemory:packed(buffer, offset, descriptor) device:[buffer device] parent:nil];
}

- (void)dealloc {
  delete _memory;
  [_buffer release];
  [_device release];
  [_parent release];
  [_label release];
  [super dealloc];
}

- (const Memory&)memory {
  return *_memory;
}

- (MPSDataType)dataType {
  return static_cast<MPSDataType>(_memory->type);
}

- (size_t)dataTypeSize {
  return mpsforge::graph::bytes_of(_memory->type);
}

- (NSUInteger)numberOfDimensions {
  return _memory->shape.size();
}

- (id<MTLDevice>)device {
  return _device;
}

- (MPSNDArray*)parent {
  return _parent;
}

- (id<MTLBuffer>)userBuffer {
  return _buffer;
}

- (NSUInteger)resourceSize {
  return [_buffer length];
}

- (NSUInteger)lengthOfDimension:(NSUInteger)dimensionIndex {
  const size_t rank = _memory->shape.size();
  return dimensionIndex < rank ? static_cast<NSUInteger>(_memory->shape[rank - 1 - dimensionIndex]) : 1;
}

- (MPSNDArrayDescriptor*)descriptor {
  return [MPSNDArrayDescriptor descriptorWithDataType:self.dataType shape:mpsforge::graph::numbers(_memory->shape)];
}

- (MPSNDArray*)arrayViewWithDescriptor:(MPSNDArrayDescriptor*)descriptor {
  return [self viewWithDescriptor:descriptor];
}

- (MPSNDArray*)viewWithDescriptor:(MPSNDArrayDescriptor*)descriptor {
  if (descriptor.dataType != self.dataType) {
    fail("-[MPSNDArray arrayViewWithDescriptor:]: a view of another data type is not implemented");
  }
  const size_t rank = _memory->shape.size();
  const auto& dimensions = *descriptor->_dimensions;
  if (dimensions.size() != rank) return nil;
  Memory view = *_memory;
  const size_t bytes = mpsforge::graph::bytes_of(view.type);
  for (size_t i = 0; i < rank; ++i) {
    const size_t from = rank - 1 - dimensions[i].source, to = rank - 1 - i;
    if (static_cast<int64_t>(dimensions[i].start + dimensions[i].length) > _memory->shape[from]) return nil;
    view.shape[to] = static_cast<int64_t>(dimensions[i].length);
    view.strides[to] = _memory->strides[from];
    view.offset += dimensions[i].start * static_cast<size_t>(_memory->strides[from]) * bytes;
  }
  return [[[MPSNDArray alloc] initWithMemory:view device:_device parent:self] autorelease];
}

- (MPSNDArray*)arrayViewWithCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                               descriptor:(MPSNDArrayDescriptor*)descriptor
                                 aliasing:(MPSAliasingStrategy)aliasing {
  if ((aliasing & MPSAliasingStrategyAliasingReserved) != MPSAliasingStrategyShallAlias) {
    fail("-[MPSNDArray arrayViewWithCommandBuffer:descriptor:aliasing:]: only MPSAliasingStrategyShallAlias is "
         "implemented");
  }
  return [self viewWithDescriptor:descriptor];
}

- (MPSNDArray*)arrayViewWithShape:(MPSShape*)shape strides:(MPSShape*)strides {
  Memory view = *_memory;
  view.shape = shape == nil ? _memory->shape : mpsforge::graph::integers(shape);
  view.strides = mpsforge::graph::integers(strides);
  if (view.strides.size() != view.shape.size()) return nil;
  if (!view.strides.empty() && view.shape.back() != 1 && view.strides.back() != 1) return nil;
  if (mpsforge::graph::end_of(view) > [_buffer length]) return nil;
  return [[[MPSNDArray alloc] initWithMemory:view device:_device parent:self] autorelease];
}

- (MPSNDArray*)viewWithShape:(const Shape&)shape strides:(const Shape&)strides {
  Memory view = *_memory;
  view.shape = shape;
  view.strides = strides;
  return [[[MPSNDArray alloc] initWithMemory:view device:_device parent:self] autorelease];
}

// Copies between packed memory and the buffer.
- (void)move:(void*)bytes strideBytes:(NSInteger*)strides write:(BOOL)write {
  const char* const selector = write ? "writeBytes:strideBytes:" : "readBytes:strideBytes:";
  if (strides) fail("-[MPSNDArray %s]: strides are not implemented", selector);
  if (_memory->strides != mpsforge::graph::packed_strides(_memory->shape)) {
    fail("-[MPSNDArray %s]: of a strided view is not implemented", selector);
  }
  const size_t end = mpsforge::graph::end_of(*_memory);
  if (end == 0) return;
  char* const contents = static_cast<char*>([_buffer contents]);
  if (!contents || end > [_buffer length]) fail("-[MPSNDArray %s]: no memory that the CPU reaches", selector);
  char* const first = contents + _memory->offset;
  const size_t length = end - _memory->offset;
  mpsforge_host_cpu_access(first, length, write ? MPSFORGE_HOST_WRITE : MPSFORGE_HOST_READ);
  std::memcpy(write ? first : bytes, write ? bytes : first, length);
}

- (void)readBytes:(void*)buffer strideBytes:(NSInteger*)strideBytesPerDimension {
  [self move:buffer strideBytes:strideBytesPerDimension write:NO];
}

- (void)writeBytes:(void*)buffer strideBytes:(NSInteger*)strideBytesPerDimension {
  [self move:buffer strideBytes:strideBytesPerDimension write:YES];
}

@end
