#import <MetalPerformanceShadersGraph/MPSGraphPoolingOps.h>

#include "recorder.h"

using namespace mpsforge::graph;

namespace {

std::vector<int64_t> vector_of(std::initializer_list<NSUInteger> numbers) { return {numbers.begin(), numbers.end()}; }

// Height before width.
Attributes pooling_attributes(MPSGraphPooling2DOpDescriptor* descriptor) {
  return {{"kernel", vector_of({descriptor.kernelHeight, descriptor.kernelWidth})},
          {"strides", vector_of({descriptor.strideInY, descriptor.strideInX})},
          {"dilations", vector_of({descriptor.dilationRateInY, descriptor.dilationRateInX})},
          {"padding", vector_of({descriptor.paddingTop, descriptor.paddingBottom, descriptor.paddingLeft,
                                 descriptor.paddingRight})},
          {"style", integer(descriptor.paddingStyle)},
          {"layout", integer(descriptor.dataLayout)},
          {"indices_mode", integer(descriptor.returnIndicesMode)},
          {"indices", integer(descriptor.returnIndicesDataType)},
          {"ceil", integer(descriptor.ceilMode)},
          {"include_padding", integer(descriptor.includeZeroPadToAverage)}};
}

}  // namespace

@implementation MPSGraph (MPSGraphPoolingOps)
- (MPSGraphTensor*)maxPooling2DWithSourceTensor:(MPSGraphTensor*)source
                                     descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                           name:(NSString*)name {
  return record(self, "maxPooling2D", {source}, pooling_attributes(descriptor));
}

- (MPSGraphTensor*)maxPooling2DGradientWithGradientTensor:(MPSGraphTensor*)gradient
                                             sourceTensor:(MPSGraphTensor*)source
                                               descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                                     name:(NSString*)name {
  return record(self, "maxPooling2DGradient", {gradient, source}, pooling_attributes(descriptor));
}

- (MPSGraphTensor*)avgPooling2DWithSourceTensor:(MPSGraphTensor*)source
                                     descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                           name:(NSString*)name {
  return record(self, "avgPooling2D", {source}, pooling_attributes(descriptor));
}

- (MPSGraphTensor*)avgPooling2DGradientWithGradientTensor:(MPSGraphTensor*)gradient
                                             sourceTensor:(MPSGraphTensor*)source
                                               descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                                     name:(NSString*)name {
  return record(self, "avgPooling2DGradient", {gradient, source}, pooling_attributes(descriptor));
}

- (NSArray<MPSGraphTensor*>*)maxPooling2DReturnIndicesWithSourceTensor:(MPSGraphTensor*)source
                                                            descriptor:(MPSGraphPooling2DOpDescriptor*)descriptor
                                                                  name:(NSString*)name {
  return record_all(self, "maxPooling2DReturnIndices", {source}, pooling_attributes(descriptor), 2);
}

@end
