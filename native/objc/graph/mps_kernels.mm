// Kernels on MPSNDArray and MPSMatrix: each encode is a plan of one node.
#include <stdexcept>

#include "../engine.h"
#include "arrays.h"
#include "recorder.h"

using mpsforge::graph::Attributes;
using mpsforge::graph::DataType;
using mpsforge::graph::Input;
using mpsforge::graph::integer;
using mpsforge::graph::Memory;
using mpsforge::graph::NodePointer;
using mpsforge::objc::EngineCall;
using mpsforge::objc::fail;

namespace {

mpsforge_metal_mps_kernel* make_kernel(uint32_t mps_class, const char* label) {
  const EngineCall call;
  return mpsforge::objc::api().mps_create(mpsforge::objc::device(), mps_class, label);
}

void release(mpsforge_metal_mps_kernel* kernel) {
  const EngineCall call;
  mpsforge::objc::api().mps_release(kernel);
}

// Encodes one operation whose sources and results are given.
void encode_operation(mpsforge_metal_mps_kernel* kernel, id<MTLCommandBuffer> command_buffer,
                      id<MTLComputeCommandEncoder> encoder, const char* operation, Attributes attributes,
                      const std::vector<Memory>& sources, const std::vector<Memory>& results) {
  try {
    std::vector<Input> feeds, targets;
    for (const Memory& source : sources) {
      feeds.push_back({mpsforge::graph::make_placeholder(source.type, source.shape), 0});
    }
    const NodePointer node = mpsforge::graph::make_node(operation, feeds, std::move(attributes), results.size());
    for (size_t i = 0; i < results.size(); ++i) targets.push_back({node, i});
    mpsforge::graph::encode(kernel, command_buffer, encoder, mpsforge::graph::plan(feeds, targets), sources, results);
  } catch (const std::exception& error) {
    fail("%s: %s", operation, error.what());
  }
}

}  // namespace

@interface MPSNDArrayMultiaryKernel ()
// Both of Apple's methods end here; the one with an encoder is not on every macOS.
- (void)encode:(id<MTLComputeCommandEncoder>)encoder
            on:(id<MTLCommandBuffer>)commandBuffer
          from:(NSArray<MPSNDArray*>*)sourceArrays
            to:(MPSNDArray*)destination;
@end

@implementation MPSNDArrayMultiaryBase
@end

@implementation MPSNDArrayMultiaryKernel {
 @protected
  NSUInteger _sources;
}

- (instancetype)initWithDevice:(id<MTLDevice>)device sourceCount:(NSUInteger)count {
  if ((self = [super initWithDevice:device])) _sources = count;
  return self;
}

- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                 sourceArrays:(NSArray<MPSNDArray*>*)sourceArrays
             destinationArray:(MPSNDArray*)destination {
  [self encode:nil on:commandBuffer from:sourceArrays to:destination];
}

- (void)encodeToCommandEncoder:(id<MTLComputeCommandEncoder>)encoder
                 commandBuffer:(id<MTLCommandBuffer>)commandBuffer
                  sourceArrays:(NSArray<MPSNDArray*>*)sourceArrays
              destinationArray:(MPSNDArray*)destination {
  [self encode:encoder on:commandBuffer from:sourceArrays to:destination];
}

- (void)encode:(id<MTLComputeCommandEncoder>)encoder
            on:(id<MTLCommandBuffer>)commandBuffer
          from:(NSArray<MPSNDArray*>*)sourceArrays
            to:(MPSNDArray*)destination {
  fail("-[%s encodeToCommandEncoder:commandBuffer:sourceArrays:destinationArray:] is not implemented",
       [NSStringFromClass([self class]) UTF8String]);
}

@end

@implementation MPSNDArrayUnaryKernel

- (instancetype)initWithDevice:(id<MTLDevice>)device {
  return [self initWithDevice:device sourceCount:1];
}

@end

@implementation MPSNDArrayMatrixMultiplication {
  mpsforge_metal_mps_kernel* _engine;
  char _used;  // an MPSKernel is not to be used by two threads at a time
}

- (instancetype)initWithDevice:(id<MTLDevice>)device sourceCount:(NSUInteger)count {
  if (count != 2 && count != 3) {
    fail("-[MPSNDArrayMatrixMultiplication initWithDevice:sourceCount:]: %zu sources", static_cast<size_t>(count));
  }
  if ((self = [super initWithDevice:device sourceCount:count])) {
    _alpha = 1;
    _beta = 1;
    _engine = make_kernel(MPSFORGE_METAL_MPS_MATRIX, "MPSNDArrayMatrixMultiplication");
  }
  return self;
}

- (void)dealloc {
  release(_engine);
  [super dealloc];
}

- (void)encode:(id<MTLComputeCommandEncoder>)encoder
            on:(id<MTLCommandBuffer>)commandBuffer
          from:(NSArray<MPSNDArray*>*)sourceArrays
            to:(MPSNDArray*)destination {
  mpsforge::objc::used_by_one_thread(_used);
  if ([sourceArrays count] != _sources) {
    fail("MPSNDArrayMatrixMultiplication: %zu source arrays, made for %zu", static_cast<size_t>([sourceArrays count]),
         static_cast<size_t>(_sources));
  }
  std::vector<Memory> sources;
  for (MPSNDArray* source in sourceArrays) sources.push_back([source memory]);
  encode_operation(_engine, commandBuffer, encoder, "arrayMatrixMultiplication", {{"alpha", _alpha}, {"beta", _beta}},
                   sources, {[destination memory]});
}

@end

@implementation MPSNDArrayIdentity

- (MPSNDArray*)reshapeWithCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                            sourceArray:(MPSNDArray*)sourceArray
                                  shape:(MPSShape*)shape
                       destinationArray:(MPSNDArray*)destinationArray {
  if (commandBuffer != nil || destinationArray != nil) {
    fail("-[MPSNDArrayIdentity reshapeWithCommandBuffer:sourceArray:shape:destinationArray:]: only a view is "
         "implemented, without a command buffer and a destination");
  }
  const Memory& memory = [sourceArray memory];
  const mpsforge::graph::Shape wanted = mpsforge::graph::integers(shape);
  const auto strides = mpsforge::graph::strides_of_view(memory.shape, memory.strides, wanted);
  return strides ? [sourceArray viewWithShape:wanted strides:*strides] : nil;
}

@end

@implementation MPSMatrixDescriptor
+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows
                                 columns:(NSUInteger)columns
                                rowBytes:(NSUInteger)rowBytes
                                dataType:(MPSDataType)dataType {
  return [self matrixDescriptorWithRows:rows
                                columns:columns
                               matrices:1
                               rowBytes:rowBytes
                            matrixBytes:rows * rowBytes
                               dataType:dataType];
}

+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows
                                 columns:(NSUInteger)columns
                                matrices:(NSUInteger)matrices
                                rowBytes:(NSUInteger)rowBytes
                             matrixBytes:(NSUInteger)matrixBytes
                                dataType:(MPSDataType)dataType {
  MPSMatrixDescriptor* made = [[[self alloc] init] autorelease];
  made->_rows = rows;
  made->_columns = columns;
  made->_matrices = matrices;
  made->_rowBytes = rowBytes;
  made->_matrixBytes = matrixBytes;
  made->_dataType = dataType;
  return made;
}

@end

@implementation MPSMatrix
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer descriptor:(MPSMatrixDescriptor*)descriptor {
  return [self initWithBuffer:buffer offset:0 descriptor:descriptor];
}

- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer
                        offset:(NSUInteger)offset
                    descriptor:(MPSMatrixDescriptor*)descriptor {
  if ((self = [super init])) {
    _data = [buffer retain];
    _offset = offset;
    _rows = descriptor.rows;
    _columns = descriptor.columns;
    _matrices = descriptor.matrices;
    _rowBytes = descriptor.rowBytes;
    _matrixBytes = descriptor.matrixBytes;
    _dataType = descriptor.dataType;
  }
  return self;
}

- (void)dealloc {
  [_data release];
  [super dealloc];
}

@end

namespace {

// The first matrix: kernels of a batch are not used with more than PyTorch's offsets select.
Memory memory_of(MPSMatrix* matrix) {
  Memory memory;
  memory.buffer = matrix.data;
  memory.offset = matrix.offset;
  memory.type = static_cast<DataType>(matrix.dataType);
  const size_t bytes = mpsforge::graph::bytes_of(memory.type);
  memory.shape = {static_cast<int64_t>(matrix.rows), static_cast<int64_t>(matrix.columns)};
  memory.strides = {static_cast<int64_t>(matrix.rowBytes / bytes), 1};
  return memory;
}

}  // namespace

@implementation MPSMatrixUnaryKernel
@end

@implementation MPSMatrixBinaryKernel
@end

@implementation MPSMatrixDecompositionLU {
  mpsforge_metal_mps_kernel* _engine;
  char _used;
}

- (instancetype)initWithDevice:(id<MTLDevice>)device rows:(NSUInteger)rows columns:(NSUInteger)columns {
  if ((self = [super initWithDevice:device])) {
    _engine = make_kernel(MPSFORGE_METAL_MPS_OTHER, "MPSMatrixDecompositionLU");
  }
  return self;
}

- (void)dealloc {
  release(_engine);
  [super dealloc];
}

- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                 sourceMatrix:(MPSMatrix*)sourceMatrix
                 resultMatrix:(MPSMatrix*)resultMatrix
                 pivotIndices:(MPSMatrix*)pivotIndices
                       status:(id<MTLBuffer>)status {
  mpsforge::objc::used_by_one_thread(_used);
  std::vector<Memory> results = {memory_of(resultMatrix), memory_of(pivotIndices)};
  if (status != nil) results.push_back({status, 0, DataType::Int32, {1}, {1}});
  encode_operation(_engine, commandBuffer, nil, "matrixDecompositionLU", {}, {memory_of(sourceMatrix)}, results);
}

@end

@implementation MPSMatrixSolveLU {
  mpsforge_metal_mps_kernel* _engine;
  BOOL _transpose;
  char _used;
}

- (instancetype)initWithDevice:(id<MTLDevice>)device
                     transpose:(BOOL)transpose
                         order:(NSUInteger)order
        numberOfRightHandSides:(NSUInteger)numberOfRightHandSides {
  if ((self = [super initWithDevice:device])) {
    _engine = make_kernel(MPSFORGE_METAL_MPS_OTHER, "MPSMatrixSolveLU");
    _transpose = transpose;
  }
  return self;
}

- (void)dealloc {
  release(_engine);
  [super dealloc];
}

- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                 sourceMatrix:(MPSMatrix*)sourceMatrix
          rightHandSideMatrix:(MPSMatrix*)rightHandSideMatrix
                 pivotIndices:(MPSMatrix*)pivotIndices
               solutionMatrix:(MPSMatrix*)solutionMatrix {
  mpsforge::objc::used_by_one_thread(_used);
  encode_operation(_engine, commandBuffer, nil, "matrixSolveLU", {{"transpose", integer(_transpose)}},
                   {memory_of(sourceMatrix), memory_of(rightHandSideMatrix), memory_of(pivotIndices)},
                   {memory_of(solutionMatrix)});
}

@end

@implementation MPSMatrixSolveTriangular {
  mpsforge_metal_mps_kernel* _engine;
  Attributes* _attributes;
  char _used;
}

- (instancetype)initWithDevice:(id<MTLDevice>)device
                         right:(BOOL)right
                         upper:(BOOL)upper
                     transpose:(BOOL)transpose
                          unit:(BOOL)unit
                         order:(NSUInteger)order
        numberOfRightHandSides:(NSUInteger)numberOfRightHandSides
                         alpha:(double)alpha {
  if ((self = [super initWithDevice:device])) {
    _engine = make_kernel(MPSFORGE_METAL_MPS_OTHER, "MPSMatrixSolveTriangular");
    _attributes = new Attributes({{"right", integer(right)},
                                  {"upper", integer(upper)},
                                  {"transpose", integer(transpose)},
                                  {"unit", integer(unit)},
                                  {"alpha", alpha}});
  }
  return self;
}

- (void)dealloc {
  release(_engine);
  delete _attributes;
  [super dealloc];
}

- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                 sourceMatrix:(MPSMatrix*)sourceMatrix
          rightHandSideMatrix:(MPSMatrix*)rightHandSideMatrix
               solutionMatrix:(MPSMatrix*)solutionMatrix {
  mpsforge::objc::used_by_one_thread(_used);
  encode_operation(_engine, commandBuffer, nil, "matrixSolveTriangular", *_attributes,
                   {memory_of(sourceMatrix), memory_of(rightHandSideMatrix)}, {memory_of(solutionMatrix)});
}

@end

@implementation MPSMatrixMultiplication

- (instancetype)initWithDevice:(id<MTLDevice>)device
                 transposeLeft:(BOOL)transposeLeft
                transposeRight:(BOOL)transposeRight
                    resultRows:(NSUInteger)resultRows
                 resultColumns:(NSUInteger)resultColumns
               interiorColumns:(NSUInteger)interiorColumns
                         alpha:(double)alpha
                          beta:(double)beta {
  fail("-[MPSMatrixMultiplication initWithDevice:transposeLeft:...] is not implemented");
}

- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                   leftMatrix:(MPSMatrix*)leftMatrix
                  rightMatrix:(MPSMatrix*)rightMatrix
                 resultMatrix:(MPSMatrix*)resultMatrix {
  fail("-[MPSMatrixMultiplication encodeToCommandBuffer:leftMatrix:rightMatrix:resultMatrix:] is not implemented");
}

@end
