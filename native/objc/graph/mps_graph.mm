// MPSGraph, its tensors and their data.
#include <mpsforge/host.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "../engine.h"
#include "graph_objects.h"

using mpsforge::graph::DataType;
using mpsforge::graph::Input;
using mpsforge::graph::Memory;
using mpsforge::graph::Value;
using mpsforge::objc::EngineCall;
using mpsforge::objc::fail;

@implementation MPSGraphObject
@end

@implementation MPSGraphType
- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}
@end

@implementation MPSGraphShapedType
- (instancetype)initWithShape:(MPSShape*)shape dataType:(MPSDataType)dataType {
  if ((self = [super init])) {
    _shape = [shape copy];
    _dataType = dataType;
  }
  return self;
}

- (id)copyWithZone:(NSZone*)zone {
  return [[MPSGraphShapedType alloc] initWithShape:_shape dataType:_dataType];
}

- (void)dealloc {
  [_shape release];
  [super dealloc];
}
@end

@implementation MPSGraphTensor

- (instancetype)initWithInput:(const Input&)input {
  if ((self = [super init])) _input = new Input(input);
  return self;
}

- (void)dealloc {
  delete _input;
  [super dealloc];
}

- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}

- (MPSShape*)shape {
  const Value& value = _input->node->results[_input->result];
  return value.shape ? mpsforge::graph::numbers(*value.shape) : nil;
}

- (MPSDataType)dataType {
  return static_cast<MPSDataType>(_input->node->results[_input->result].type);
}

@end

@implementation MPSGraphTensorData {
  MPSNDArray* _array;
}

- (instancetype)initWithMPSNDArray:(MPSNDArray*)ndarray {
  if (ndarray == nil) fail("-[MPSGraphTensorData initWithMPSNDArray:]: no array");
  if ((self = [super init])) _array = [ndarray retain];
  return self;
}

- (instancetype)initWithMTLBuffer:(id<MTLBuffer>)buffer shape:(MPSShape*)shape dataType:(MPSDataType)dataType {
  MPSNDArrayDescriptor* descriptor = [MPSNDArrayDescriptor descriptorWithDataType:dataType shape:shape];
  MPSNDArray* array = [[MPSNDArray alloc] initOver:buffer offset:0 descriptor:descriptor];
  const size_t bytes = mpsforge::graph::end_of([array memory]);
  if (bytes > [buffer length]) {
    fail("-[MPSGraphTensorData initWithMTLBuffer:shape:dataType:]: %zu bytes in a buffer of %zu", bytes,
         static_cast<size_t>([buffer length]));
  }
  self = [self initWithMPSNDArray:array];
  [array release];
  return self;
}

- (void)dealloc {
  [_array release];
  [super dealloc];
}

- (MPSNDArray*)mpsndarray {
  return _array;
}

- (const Memory&)memory {
  return [_array memory];
}

- (MPSShape*)shape {
  return mpsforge::graph::numbers([_array memory].shape);
}

- (MPSDataType)dataType {
  return _array.dataType;
}

// For people; Apple's is private. PyTorch calls it in a function that only a debugger calls.
- (void)printNDArray {
  fprintf(stderr, "MPSNDArray of %s%s\n", mpsforge::graph::name_of([_array memory].type),
          mpsforge::graph::text_of([_array memory].shape).c_str());
}

@end

@implementation MPSGraphDevice
+ (instancetype)deviceWithMTLDevice:(id<MTLDevice>)metalDevice {
  MPSGraphDevice* made = [[[self alloc] init] autorelease];
  made->_metalDevice = [metalDevice retain];
  return made;
}

- (void)dealloc {
  [_metalDevice release];
  [super dealloc];
}
@end

@implementation MPSGraphCompilationDescriptor
- (void)disableTypeInference {
}

- (id)copyWithZone:(NSZone*)zone {
  MPSGraphCompilationDescriptor* copy = [[MPSGraphCompilationDescriptor alloc] init];
  copy->_optimizationLevel = _optimizationLevel;
  copy->_waitForCompilationCompletion = _waitForCompilationCompletion;
  copy->_optimizationProfile = _optimizationProfile;
  return copy;
}
@end

// Private to Apple, declared and set by PyTorch: whether the graph may commit the command buffer by itself while it
// encodes. The engine does so every MPSFORGE_METAL_GRAPH_SPLIT encodes, whatever it says.
@interface MPSGraphExecutionDescriptor ()
@property(readwrite, atomic) BOOL enableCommitAndContinue;
@end

@implementation MPSGraphExecutionDescriptor
- (void)dealloc {
  [_scheduledHandler release];
  [_completionHandler release];
  [_compilationDescriptor release];
  [super dealloc];
}

- (id)copyWithZone:(NSZone*)zone {
  MPSGraphExecutionDescriptor* copy = [[MPSGraphExecutionDescriptor alloc] init];
  copy.scheduledHandler = self.scheduledHandler;
  copy.completionHandler = self.completionHandler;
  copy.waitUntilCompleted = self.waitUntilCompleted;
  copy.compilationDescriptor = self.compilationDescriptor;
  copy.enableCommitAndContinue = self.enableCommitAndContinue;
  return copy;
}
@end

static std::atomic<uint64_t> live_graphs{0};

uint64_t mpsforge_host_live_graphs() { return live_graphs.load(std::memory_order_relaxed); }

@implementation MPSGraph {
  // Not guarded: two threads that build one graph without a lock are a mistake of theirs, which ThreadSanitizer sees.
  std::vector<MPSGraphTensor*>* _tensors;
  mpsforge_metal_mps_kernel* _engine;
}

+ (instancetype)new {
  return [[self alloc] init];
}

- (instancetype)init {
  if ((self = [super init])) {
    live_graphs.fetch_add(1, std::memory_order_relaxed);
    _tensors = new std::vector<MPSGraphTensor*>;
    _options = MPSGraphOptionsDefault;
    const EngineCall call;
    _engine = mpsforge::objc::api().mps_create(mpsforge::objc::device(), MPSFORGE_METAL_MPS_GRAPH, "MPSGraph");
  }
  return self;
}

- (void)dealloc {
  for (MPSGraphTensor* tensor : *_tensors) [tensor release];
  delete _tensors;
  {
    const EngineCall call;
    mpsforge::objc::api().mps_release(_engine);
  }
  live_graphs.fetch_sub(1, std::memory_order_relaxed);
  [super dealloc];
}

- (MPSGraphTensor*)addTensor:(const Input&)input {
  MPSGraphTensor* tensor = [[MPSGraphTensor alloc] initWithInput:input];
  _tensors->push_back(tensor);
  return tensor;
}

- (NSArray<MPSGraphTensor*>*)placeholderTensors {
  NSMutableArray<MPSGraphTensor*>* placeholders = [NSMutableArray arrayWithCapacity:1];
  for (MPSGraphTensor* tensor : *_tensors) {
    if (tensor->_input->node->operation == "placeholder") [placeholders addObject:tensor];
  }
  return placeholders;
}

- (void)encodeToCommandBuffer:(MPSCommandBuffer*)commandBuffer
                        feeds:(MPSGraphTensorDataDictionary*)feeds
             targetOperations:(NSArray<MPSGraphOperation*>*)targetOperations
            resultsDictionary:(MPSGraphTensorDataDictionary*)resultsDictionary
          executionDescriptor:(MPSGraphExecutionDescriptor*)executionDescriptor {
  if (targetOperations != nil && [targetOperations count] != 0) fail("MPSGraph: target operations are not implemented");
  if (executionDescriptor.scheduledHandler != nil || executionDescriptor.completionHandler != nil ||
      executionDescriptor.waitUntilCompleted) {
    fail("MPSGraph: handlers and waits of an execution descriptor are not implemented");
  }
  std::vector<Input> fed, targets;
  std::vector<Memory> read, written;
  for (MPSGraphTensor* tensor in feeds) {
    fed.push_back(*tensor->_input);
    read.push_back([[feeds objectForKey:tensor] memory]);
  }
  for (MPSGraphTensor* tensor in resultsDictionary) {
    targets.push_back(*tensor->_input);
    written.push_back([[resultsDictionary objectForKey:tensor] memory]);
  }
  try {
    mpsforge::graph::encode(_engine, commandBuffer, nil, mpsforge::graph::plan(std::move(fed), std::move(targets)),
                            read, written);
  } catch (const std::exception& error) {
    fail("MPSGraph: %s", error.what());
  }
}

- (MPSGraphTensorDataDictionary*)encodeToCommandBuffer:(MPSCommandBuffer*)commandBuffer
                                                 feeds:(MPSGraphTensorDataDictionary*)feeds
                                         targetTensors:(NSArray<MPSGraphTensor*>*)targetTensors
                                      targetOperations:(NSArray<MPSGraphOperation*>*)targetOperations
                                   executionDescriptor:(MPSGraphExecutionDescriptor*)executionDescriptor {
  NSMutableDictionary<MPSGraphTensor*, MPSGraphTensorData*>* results = [NSMutableDictionary dictionary];
  for (MPSGraphTensor* tensor in targetTensors) {
    MPSShape* shape = tensor.shape;
    if (shape == nil) fail("MPSGraph: a target tensor without a known shape needs a resultsDictionary");
    MPSNDArray* array = [[MPSNDArray alloc] initWithDevice:[commandBuffer device]
                                                descriptor:[MPSNDArrayDescriptor descriptorWithDataType:tensor.dataType
                                                                                                  shape:shape]];
    MPSGraphTensorData* data = [[MPSGraphTensorData alloc] initWithMPSNDArray:array];
    [results setObject:data forKey:tensor];
    [data release];
    [array release];
  }
  [self encodeToCommandBuffer:commandBuffer
                        feeds:feeds
             targetOperations:targetOperations
            resultsDictionary:results
          executionDescriptor:executionDescriptor];
  return results;
}

@end
