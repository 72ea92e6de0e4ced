// Where an MPSNDArray's numbers are, and what is encoded over them.
#pragma once

#import <MetalPerformanceShaders/MetalPerformanceShaders.h>

#include <optional>
#include <vector>

#include "../metal/metal_objects.h"
#include "graph.h"

namespace mpsforge::graph {

// Shape and strides as in MPSGraph: the last dimension is the fastest of a packed array. Strides in elements.
struct Memory {
  id<MTLBuffer> buffer = nil;  // not retained; nil of an array without elements
  size_t offset = 0;           // bytes
  DataType type = DataType::Invalid;
  Shape shape;
  Shape strides;
};

Shape packed_strides(const Shape& shape);
int64_t element_count(const Shape& shape);
// The bytes from the buffer's begin to the last element's end; 0 without elements.
size_t end_of(const Memory& memory);
// The strides under which the same elements have another shape, if there are such.
std::optional<Shape> strides_of_view(const Shape& shape, const Shape& strides, const Shape& wanted);

// Encodes one dispatch that runs the plan on the memory. Ends the process with a message if the plan's types and shapes
// and the memory's do not fit, since MPSGraph does so. The command buffer retains the buffers until it has ended.
void encode(mpsforge_metal_mps_kernel* kernel, id<MTLCommandBuffer> command_buffer,
            id<MTLComputeCommandEncoder> encoder, Plan plan, const std::vector<Memory>& feeds,
            const std::vector<Memory>& results);

}  // namespace mpsforge::graph

// What the layer itself calls: Apple's methods that do the same are hidden on a macOS that does not have them yet.
@interface MPSNDArray (Memory)
- (instancetype)initOver:(id<MTLBuffer>)buffer offset:(NSUInteger)offset descriptor:(MPSNDArrayDescriptor*)descriptor;
- (MPSNDArray*)viewWithDescriptor:(MPSNDArrayDescriptor*)descriptor;
- (const mpsforge::graph::Memory&)memory;
- (MPSNDArray*)viewWithShape:(const mpsforge::graph::Shape&)shape strides:(const mpsforge::graph::Shape&)strides;
@end
