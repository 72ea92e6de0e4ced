// MPSKernel and MPSGraph objects of the backend on Apple's framework. Not run yet, see framework_darwin.m.
//
// The values of a program come from a plain dispatch of the named kernel, as on the software Metal. Beside it a real
// multiplication of small matrices is encoded, by Apple's kernel or by a graph, so that what Apple's classes do when
// threads encode them at once can show. Its result is of no interest, nor is that threads share its memory.
#import "framework_darwin.h"

#import <MetalPerformanceShaders/MetalPerformanceShaders.h>
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

// Rows and columns. Small, because only the encoding matters.
static const NSUInteger kSide = 16;

// A method of MPSNDArrayMultiaryKernel since macOS 15 (Apple's page on encode(to:commandBuffer:sourceArrays:
// destinationArray:)), declared here because older SDKs do not.
@protocol ForgeEncodesOnEncoder
- (void)encodeToCommandEncoder:(id<MTLComputeCommandEncoder>)encoder
                 commandBuffer:(id<MTLCommandBuffer>)commandBuffer
                  sourceArrays:(NSArray<MPSNDArray*>*)sourceArrays
              destinationArray:(MPSNDArray*)destination;
@end

@interface ForgeKernel : ForgeHandle
- (instancetype)initWithDevice:(ForgeDevice*)device mpsClass:(uint32_t)mpsClass label:(NSString*)label;
- (void)encodeOn:(ForgeCommandBuffer*)buffer inside:(ForgeEncoder*)encoder;
@end

@implementation ForgeKernel {
  MPSNDArray *_left, *_right, *_product;
  MPSNDArrayMatrixMultiplication* _matrix;  // of MPSFORGE_METAL_MPS_MATRIX
  MPSGraph* _graph;                         // of MPSFORGE_METAL_MPS_GRAPH
  NSDictionary<MPSGraphTensor*, MPSGraphTensorData*>*_feeds, *_results;
}

- (instancetype)initWithDevice:(ForgeDevice*)device mpsClass:(uint32_t)mpsClass label:(NSString*)label {
  if (!(self = [super initWithDevice:device kind:ForgeKindKernel])) return nil;
  if (mpsClass == MPSFORGE_METAL_MPS_OTHER) return self;
  NSArray<NSNumber*>* shape = @[ @(kSide), @(kSide) ];
  MPSNDArrayDescriptor* descriptor = [MPSNDArrayDescriptor descriptorWithDataType:MPSDataTypeFloat32 shape:shape];
  _left = [[MPSNDArray alloc] initWithDevice:device.metal descriptor:descriptor];
  _right = [[MPSNDArray alloc] initWithDevice:device.metal descriptor:descriptor];
  _product = [[MPSNDArray alloc] initWithDevice:device.metal descriptor:descriptor];
  if (mpsClass == MPSFORGE_METAL_MPS_MATRIX) {
    _matrix = [[MPSNDArrayMatrixMultiplication alloc] initWithDevice:device.metal sourceCount:2];
    _matrix.label = label;
  } else {
    _graph = [[MPSGraph alloc] init];
    MPSGraphTensor* left = [_graph placeholderWithShape:shape dataType:MPSDataTypeFloat32 name:nil];
    MPSGraphTensor* right = [_graph placeholderWithShape:shape dataType:MPSDataTypeFloat32 name:nil];
    MPSGraphTensor* product = [_graph matrixMultiplicationWithPrimaryTensor:left secondaryTensor:right name:label];
    _feeds = @{
      left : [[MPSGraphTensorData alloc] initWithMPSNDArray:_left],
      right : [[MPSGraphTensorData alloc] initWithMPSNDArray:_right]
    };
    _results = @{product : [[MPSGraphTensorData alloc] initWithMPSNDArray:_product]};
  }
  return self;
}

- (void)encodeOn:(ForgeCommandBuffer*)buffer inside:(ForgeEncoder*)encoder {
  if (_graph) {
    // A graph makes its encoders itself, and wants an MPSCommandBuffer: on others only the dispatch is encoded.
    if (encoder || !buffer.mps) return;
    id<MTLCommandBuffer> before = buffer.root;
    [_graph encodeToCommandBuffer:(MPSCommandBuffer*)buffer.metal
                            feeds:_feeds
                 targetOperations:nil
                resultsDictionary:_results
              executionDescriptor:nil];
    // "commitAndContinue might be called" (Apple's page on the method).
    if (buffer.root != before) [buffer continuedAfter:before];
  } else if (_matrix && encoder) {
    // Before macOS 15 it cannot be encoded on an open encoder: then only the dispatch is.
    if (@available(macOS 15.0, *)) {
      [(id<ForgeEncodesOnEncoder>)_matrix encodeToCommandEncoder:encoder.compute
                                                   commandBuffer:buffer.metal
                                                    sourceArrays:@[ _left, _right ]
                                                destinationArray:_product];
    }
  } else if (_matrix) {
    [_matrix encodeToCommandBuffer:buffer.metal sourceArrays:@[ _left, _right ] destinationArray:_product];
  }
}

@end

mpsforge_metal_mps_kernel* mpsforge_metal_framework_mps_create(mpsforge_metal_device* device, uint32_t mps_class,
                                                               const char* label) {
  @autoreleasepool {
    ForgeDevice* of = (__bridge ForgeDevice*)(void*)device;
    if (!of || mps_class > MPSFORGE_METAL_MPS_OTHER) return NULL;
    return forge_hand_out([[ForgeKernel alloc] initWithDevice:of mpsClass:mps_class label:forge_string(label)]);
  }
}

void mpsforge_metal_framework_mps_encode(mpsforge_metal_mps_kernel* kernel, mpsforge_metal_command_buffer* buffer,
                                         mpsforge_metal_encoder* encoder, const char* name,
                                         const mpsforge_metal_binding* bindings, size_t count, const void* bytes,
                                         size_t length, uint64_t threads) {
  @autoreleasepool {
    ForgeKernel* of = (__bridge ForgeKernel*)(void*)kernel;
    ForgeCommandBuffer* to = (__bridge ForgeCommandBuffer*)(void*)buffer;
    ForgeEncoder* inside = (__bridge ForgeEncoder*)(void*)encoder;
    if (!of || !to || !name) return;
    // First, because it leaves its own arguments on the encoder.
    [of encodeOn:to inside:inside];
    ForgeEncoder* on = inside;
    if (!on) on = [[ForgeEncoder alloc] initWithDevice:to.device metal:[to.metal computeCommandEncoder]];
    [on setKernel:name];
    for (size_t i = 0; i < count; ++i) {
      ForgeBuffer* bound = (__bridge ForgeBuffer*)(void*)bindings[i].buffer;
      [on.compute setBuffer:bound.metal offset:bindings[i].offset atIndex:i];
    }
    if (bytes) [on.compute setBytes:bytes length:length atIndex:count];
    [on dispatch:threads];
    if (!inside) [on.compute endEncoding];
  }
}
