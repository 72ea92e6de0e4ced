// MPSGraph, MPSNDArray and their kernels on the engine. The evaluator here knows four operations, so that the test
// needs no libtorch; native/torch tests the real one. Usage: graph_test [SCENARIO ...]
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <mpsforge/host.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../../metal/metal.h"
#include "../graph/evaluator_hook.h"
#include "../graph/infer_rules.h"
#include "../graph/recorder.h"
#include "metal_scenarios.h"

using namespace mpsforge::graph;
using namespace mpsforge::objc::test;

namespace {

using Numbers = std::vector<float>;

// Runs the function with the place of every element, in the order of a packed array.
template <typename Function>
void each(const View& view, Function function) {
  int64_t count = 1;
  for (const int64_t length : view.shape) count *= length;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, place = 0;
    for (size_t j = view.shape.size(); j-- > 0; rest /= view.shape[j]) {
      place += rest % view.shape[j] * view.strides[j];
    }
    function(static_cast<float*>(view.data)[place]);
  }
}

class SmallEvaluator : public Evaluator {
 public:
  Rule* rule(const std::string& operation) const override {
    if (operation == "negative" || operation == "identity") return rules::same;
    if (operation == "addition") return rules::binary;
    return operation == "arrayMatrixMultiplication" ? rules::array_matrix_multiplication : nullptr;
  }

  void run(const Plan& plan, const std::vector<View>& feeds, const std::vector<View>& results) const override {
    std::map<const Node*, Numbers> values;
    for (size_t i = 0; i < feeds.size(); ++i) {
      each(feeds[i], [&](float& number) { values[plan.feeds[i].node.get()].push_back(number); });
    }
    for (const NodePointer& node : plan.nodes) {
      Numbers numbers = values.at(node->inputs[0].node.get());
      if (node->operation == "negative") {
        for (float& number : numbers) number = -number;
      }
      if (node->operation == "addition") {
        for (size_t i = 0; i < numbers.size(); ++i) numbers[i] += values.at(node->inputs[1].node.get()).at(i);
      }
      if (node->operation == "arrayMatrixMultiplication") numbers = product(*node, numbers, values);
      values[node.get()] = numbers;
    }
    for (size_t i = 0; i < results.size(); ++i) {
      size_t next = 0;
      each(results[i], [&](float& number) { number = values.at(plan.targets[i].node.get()).at(next++); });
    }
  }

 private:
  static Numbers product(const Node& node, const Numbers& left, std::map<const Node*, Numbers>& values) {
    const Numbers& right = values.at(node.inputs[1].node.get());
    const auto rows = static_cast<size_t>(node.input(0).shape->at(0));
    const auto inner = static_cast<size_t>(node.input(0).shape->at(1));
    const auto columns = static_cast<size_t>(node.input(1).shape->at(1));
    Numbers result(rows * columns);
    for (size_t i = 0; i < rows * columns; ++i) {
      for (size_t k = 0; k < inner; ++k) result[i] += left[i / columns * inner + k] * right[k * columns + i % columns];
    }
    return result;
  }
};

id<MTLBuffer> buffer_of(const Numbers& numbers) {
  return [device() newBufferWithBytes:numbers.data()
                               length:numbers.size() * sizeof(float)
                              options:MTLResourceStorageModeShared];
}

Numbers numbers_of(id<MTLBuffer> buffer) {
  mpsforge_host_cpu_access([buffer contents], [buffer length], MPSFORGE_HOST_READ);
  const float* const first = static_cast<const float*>([buffer contents]);
  return {first, first + [buffer length] / sizeof(float)};
}

MPSGraphTensorData* data_of(id<MTLBuffer> buffer, MPSShape* shape) {
  return [[[MPSGraphTensorData alloc] initWithMTLBuffer:buffer shape:shape dataType:MPSDataTypeFloat32] autorelease];
}

MPSNDArray* array_of(id<MTLBuffer> buffer, MPSShape* shape) {
  MPSNDArrayDescriptor* descriptor = [MPSNDArrayDescriptor descriptorWithDataType:MPSDataTypeFloat32 shape:shape];
  return [[[MPSNDArray alloc] initWithBuffer:buffer offset:0 descriptor:descriptor] autorelease];
}

// result = -(input + input)
struct Doubling {
  MPSGraph* graph = [MPSGraph new];
  MPSGraphTensor* input;
  MPSGraphTensor* result;

  explicit Doubling(MPSShape* shape) {
    input = [graph placeholderWithShape:shape dataType:MPSDataTypeFloat32 name:nil];
    result = [graph negativeWithTensor:[graph additionWithPrimaryTensor:input secondaryTensor:input name:nil] name:nil];
  }

  void encode(MPSCommandBuffer* commands, MPSGraphTensorData* from, MPSGraphTensorData* to) const {
    [graph encodeToCommandBuffer:commands
                           feeds:@{input : from}
                targetOperations:nil
               resultsDictionary:@{result : to}
             executionDescriptor:nil];
  }
};

CASE(runs) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  const Doubling doubling(@[ @2, @3 ]);
  CHECK([doubling.result.shape isEqual:(@[ @2, @3 ])] && doubling.result.dataType == MPSDataTypeFloat32);
  CHECK([doubling.graph.placeholderTensors count] == 1);
  id<MTLBuffer> from = buffer_of({1, 2, 3, 4, 5, 6}), to = buffer_of(Numbers(6));
  const NSUInteger owners = [from retainCount];
  MPSCommandBuffer* commands = [MPSCommandBuffer commandBufferFromCommandQueue:queue];
  @autoreleasepool {
    doubling.encode(commands, data_of(from, @[ @2, @3 ]), data_of(to, @[ @2, @3 ]));
  }
  CHECK([from retainCount] == owners + 1);  // the command buffer's
  CHECK(numbers_of(to) == Numbers(6));      // nothing runs before the commit
  [commands commit];
  [commands waitUntilCompleted];
  CHECK((numbers_of(to) == Numbers{-2, -4, -6, -8, -10, -12}));
  [doubling.graph release];
}

// A graph whose command buffer nobody commits goes with it: what the encode made of it is the command buffer's.
CASE(goes_with_a_dropped_command_buffer) {
  std::weak_ptr<const Node> node;
  @autoreleasepool {
    id<MTLCommandQueue> queue = [[device() newCommandQueue] autorelease];
    const Doubling doubling(@[ @2 ]);
    node = doubling.result->_input->node;
    doubling.encode([MPSCommandBuffer commandBufferFromCommandQueue:queue], data_of(buffer_of({1, 2}), @[ @2 ]),
                    data_of(buffer_of(Numbers(2)), @[ @2 ]));
    [doubling.graph release];
    CHECK(!node.expired());
  }
  CHECK(node.expired());
}

// The layer itself uses nothing that an old macOS does not have.
CASE(runs_on_macos_13, "MPSFORGE_METAL_MACOS=13.0") {
  runs();
  CHECK(![MPSNDArray instancesRespondToSelector:@selector(initWithBuffer:offset:descriptor:)]);
}

// Views as PyTorch makes them: of a transposed matrix, and of every other column.
CASE(views) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  id<MTLBuffer> from = buffer_of({1, 2, 3, 4, 5, 6}), to = buffer_of({9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9});
  MPSNDArray* matrix = [array_of(from, @[ @6 ]) arrayViewWithShape:@[ @2, @3 ] strides:@[ @3, @1 ]];
  MPSNDArrayDescriptor* descriptor = [matrix descriptor];
  [descriptor transposeDimension:0 withDimension:1];
  MPSNDArray* transposed = [matrix arrayViewWithCommandBuffer:nil
                                                   descriptor:descriptor
                                                     aliasing:MPSAliasingStrategyShallAlias];
  CHECK([transposed lengthOfDimension:0] == 2 && [transposed lengthOfDimension:1] == 3);
  // A last dimension of length 1 lets the stride before it be 2; then it goes again.
  MPSNDArray* wide = [array_of(to, @[ @12 ]) arrayViewWithShape:@[ @3, @2, @1 ] strides:@[ @4, @2, @1 ]];
  MPSNDArrayIdentity* identity = [[[MPSNDArrayIdentity alloc] initWithDevice:device()] autorelease];
  MPSNDArray* columns = [identity reshapeWithCommandBuffer:nil sourceArray:wide shape:@[ @3, @2 ] destinationArray:nil];
  CHECK(columns != nil && columns.numberOfDimensions == 2);
  CHECK([array_of(to, @[ @12 ]) arrayViewWithShape:@[ @5, @4 ] strides:@[ @4, @1 ]] == nil);  // beyond the buffer
  CHECK([identity reshapeWithCommandBuffer:nil sourceArray:transposed shape:@[ @6 ] destinationArray:nil] == nil);
  const Doubling doubling(@[ @3, @2 ]);
  MPSCommandBuffer* commands = [MPSCommandBuffer commandBufferFromCommandQueue:queue];
  doubling.encode(commands, [[[MPSGraphTensorData alloc] initWithMPSNDArray:transposed] autorelease],
                  [[[MPSGraphTensorData alloc] initWithMPSNDArray:columns] autorelease]);
  [commands commit];
  [commands waitUntilCompleted];
  CHECK((numbers_of(to) == Numbers{-2, 9, -8, 9, -4, 9, -10, 9, -6, 9, -12, 9}));
}

// Also a buffer seen through a transposed descriptor, as nn.Linear's weight is.
CASE(matrices) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  id<MTLBuffer> left = buffer_of({1, 2, 3, 4}), right = buffer_of({5, 6, 7, 8}), to = buffer_of(Numbers(4));
  MPSNDArrayMatrixMultiplication* kernel = [[MPSNDArrayMatrixMultiplication alloc] initWithDevice:device()
                                                                                      sourceCount:2];
  MPSCommandBuffer* commands = [MPSCommandBuffer commandBufferFromCommandQueue:queue];
  id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
  [kernel encodeToCommandEncoder:encoder
                   commandBuffer:commands
                    sourceArrays:@[ array_of(left, @[ @2, @2 ]), array_of(right, @[ @2, @2 ]) ]
                destinationArray:array_of(to, @[ @2, @2 ])];
  MPSNDArrayDescriptor* turned = [MPSNDArrayDescriptor descriptorWithDataType:MPSDataTypeFloat32 shape:@[ @2, @2 ]];
  [turned transposeDimension:0 withDimension:1];
  MPSNDArray* weight = [[[MPSNDArray alloc] initWithBuffer:right offset:0 descriptor:turned] autorelease];
  id<MTLBuffer> to_turned = buffer_of(Numbers(4));
  [kernel encodeToCommandEncoder:encoder
                   commandBuffer:commands
                    sourceArrays:@[ array_of(left, @[ @2, @2 ]), weight ]
                destinationArray:array_of(to_turned, @[ @2, @2 ])];
  [encoder endEncoding];
  [commands commit];
  [commands waitUntilCompleted];
  CHECK((numbers_of(to) == Numbers{19, 22, 43, 50}));
  CHECK((numbers_of(to_turned) == Numbers{17, 23, 39, 53}));
}

// The graph may go before the GPU has run it.
CASE(outlives_its_graph) {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  id<MTLBuffer> from = buffer_of({1, 2}), to = buffer_of(Numbers(2));
  MPSCommandBuffer* commands = [MPSCommandBuffer commandBufferFromCommandQueue:queue];
  @autoreleasepool {
    const Doubling doubling(@[ @2 ]);
    doubling.encode(commands, data_of(from, @[ @2 ]), data_of(to, @[ @2 ]));
    [doubling.graph release];
  }
  [commands commit];
  [commands waitUntilCompleted];
  CHECK((numbers_of(to) == Numbers{-2, -4}));
}

CASE(copied_descriptor) {
  MPSGraphPooling2DOpDescriptor* descriptor = [[MPSGraphPooling2DOpDescriptor new] autorelease];
  descriptor.kernelWidth = 3;
  descriptor.includeZeroPadToAverage = YES;
  MPSGraphPooling2DOpDescriptor* copy = [[descriptor copy] autorelease];
  descriptor.kernelWidth = 4;
  CHECK(copy != descriptor && [copy class] == [MPSGraphPooling2DOpDescriptor class] && [copy retainCount] == 1);
  CHECK(copy.kernelWidth == 3 && copy.includeZeroPadToAverage && copy.returnIndicesDataType == MPSDataTypeInt32);
}

// Threads that share one graph, each with a queue and buffers of its own.
CASE(shared_graph) {
  const Doubling doubling(@[ @4 ]);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&doubling, i] {
      @autoreleasepool {
        id<MTLCommandQueue> queue = [device() newCommandQueue];
        const float n = static_cast<float>(i);
        id<MTLBuffer> from = buffer_of(Numbers(4, n)), to = buffer_of(Numbers(4));
        for (int round = 0; round < 20; ++round) {
          MPSCommandBuffer* commands = [MPSCommandBuffer commandBufferFromCommandQueue:queue];
          doubling.encode(commands, data_of(from, @[ @4 ]), data_of(to, @[ @4 ]));
          [commands commit];
          [commands waitUntilCompleted];
          CHECK(numbers_of(to) == Numbers(4, -2 * n));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(mpsforge_host_findings(nullptr, 0) == 0);
}

// The checker sees what a graph reads and writes, exactly: two queues write one buffer.
void race_of_two_queues(id<MTLBuffer> one, NSUInteger first, NSUInteger second) {
  const Doubling doubling(@[ @2 ]);
  id<MTLBuffer> from = buffer_of({1, 2});
  for (const NSUInteger offset : {first, second}) {
    id<MTLCommandQueue> queue = [device() newCommandQueue];
    MPSCommandBuffer* commands = [MPSCommandBuffer commandBufferFromCommandQueue:queue];
    MPSNDArrayDescriptor* descriptor = [MPSNDArrayDescriptor descriptorWithDataType:MPSDataTypeFloat32 shape:@[ @2 ]];
    MPSNDArray* array = [[[MPSNDArray alloc] initWithBuffer:one offset:offset descriptor:descriptor] autorelease];
    doubling.encode(commands, data_of(from, @[ @2 ]),
                    [[[MPSGraphTensorData alloc] initWithMPSNDArray:array] autorelease]);
    [commands commit];
  }
  mpsforge_host_close();
}

constexpr const char* kRecord = "MPSFORGE_METAL_ON_VIOLATION=record";

// Beside what the scenario leaves behind.
void check_races(size_t wanted) {
  std::vector<mpsforge_host_finding> findings(mpsforge_host_findings(nullptr, 0));
  mpsforge_host_findings(findings.data(), findings.size());
  size_t count = 0;
  for (const mpsforge_host_finding& finding : findings) count += finding.kind == MPSFORGE_METAL_RACE;
  if (count == wanted) return;
  for (const mpsforge_host_finding& finding : findings) std::fprintf(stderr, "found: %s\n", finding.message);
  CHECK(count == wanted);
}

CASE(separate_ranges, kRecord) {
  race_of_two_queues(buffer_of(Numbers(4)), 0, 8);
  check_races(0);
}

CASE(overlapping_ranges, kRecord) {
  race_of_two_queues(buffer_of(Numbers(4)), 0, 4);
  check_races(1);
}

DIES(unknown_operation, "MPSGraph operation tanh is not implemented") {
  MPSGraph* graph = [[MPSGraph new] autorelease];
  MPSGraphTensor* input = [graph placeholderWithShape:@[ @2 ] dataType:MPSDataTypeFloat32 name:nil];
  try {
    [graph tanhWithTensor:input name:nil];
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    abort();
  }
}

DIES(other_types, "operands of different types, Float32[2] and Int32[2]") {
  MPSGraph* graph = [[MPSGraph new] autorelease];
  MPSGraphTensor* one = [graph placeholderWithShape:@[ @2 ] dataType:MPSDataTypeFloat32 name:nil];
  MPSGraphTensor* other = [graph placeholderWithShape:@[ @2 ] dataType:MPSDataTypeInt32 name:nil];
  try {
    [graph additionWithPrimaryTensor:one secondaryTensor:other name:nil];
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    abort();
  }
}

void encode_with(MPSShape* shape, MPSDataType type, size_t length) {
  const Doubling doubling(@[ @4 ]);
  MPSCommandBuffer* commands = [MPSCommandBuffer commandBufferFromCommandQueue:[device() newCommandQueue]];
  MPSGraphTensorData* from = [[[MPSGraphTensorData alloc] initWithMTLBuffer:buffer_of(Numbers(length))
                                                                      shape:shape
                                                                   dataType:type] autorelease];
  doubling.encode(commands, from, data_of(buffer_of(Numbers(4)), @[ @4 ]));
}

DIES(wrong_shape, "a placeholder of type Float32[4] has data of type Float32[5]") {
  encode_with(@[ @5 ], MPSDataTypeFloat32, 5);
}
DIES(wrong_type, "a placeholder of type Float32[4] has data of type Int32[4]") {
  encode_with(@[ @4 ], MPSDataTypeInt32, 4);
}
DIES(small_buffer, "16 bytes in a buffer of 12") { encode_with(@[ @4 ], MPSDataTypeFloat32, 3); }

DIES(wrong_target_type, "a target tensor of type Float32[4] has data of type Int64[4]") {
  const Doubling doubling(@[ @4 ]);
  MPSCommandBuffer* commands = [MPSCommandBuffer commandBufferFromCommandQueue:[device() newCommandQueue]];
  MPSGraphTensorData* to = [[[MPSGraphTensorData alloc] initWithMTLBuffer:buffer_of(Numbers(8))
                                                                    shape:@[ @4 ]
                                                                 dataType:MPSDataTypeInt64] autorelease];
  doubling.encode(commands, data_of(buffer_of(Numbers(4)), @[ @4 ]), to);
}

DIES(not_fed, "is not fed") {
  const Doubling doubling(@[ @4 ]);
  MPSCommandBuffer* commands = [MPSCommandBuffer commandBufferFromCommandQueue:[device() newCommandQueue]];
  [doubling.graph encodeToCommandBuffer:commands
      feeds:@{}
      targetOperations:nil
      resultsDictionary:@{
        doubling.result : data_of(buffer_of(Numbers(4)), @[ @4 ])
      }
      executionDescriptor:nil];
}

// Wrong-order calls reach the engine.
DIES(open_encoder, "A command encoder is already encoding to this command buffer") {
  const Doubling doubling(@[ @4 ]);
  MPSCommandBuffer* commands = [MPSCommandBuffer commandBufferFromCommandQueue:[device() newCommandQueue]];
  [commands computeCommandEncoder];
  doubling.encode(commands, data_of(buffer_of(Numbers(4)), @[ @4 ]), data_of(buffer_of(Numbers(4)), @[ @4 ]));
}

}  // namespace

int main(int argc, char** argv) {
  static const SmallEvaluator evaluator;
  set_evaluator(&evaluator);
  return run_cases(argc, argv);
}
