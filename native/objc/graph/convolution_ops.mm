#import <MetalPerformanceShadersGraph/MPSGraphConvolutionOps.h>

#include "recorder.h"

using namespace mpsforge::graph;

namespace {

std::vector<int64_t> vector_of(std::initializer_list<NSUInteger> numbers) { return {numbers.begin(), numbers.end()}; }

// Numbers are in the order depth, height, width; a convolution of two dimensions has no depth. Padding: before and
// after of each.
Attributes convolution_attributes(MPSGraphConvolution2DOpDescriptor* descriptor) {
  return {{"strides", vector_of({descriptor.strideInY, descriptor.strideInX})},
          {"dilations", vector_of({descriptor.dilationRateInY, descriptor.dilationRateInX})},
          {"padding", vector_of({descriptor.paddingTop, descriptor.paddingBottom, descriptor.paddingLeft,
                                 descriptor.paddingRight})},
          {"style", integer(descriptor.paddingStyle)},
          {"layout", integer(descriptor.dataLayout)},
          {"weights_layout", integer(descriptor.weightsLayout)},
          {"groups", integer(descriptor.groups)}};
}

Attributes convolution_attributes(MPSGraphConvolution3DOpDescriptor* descriptor) {
  return {
      {"strides", vector_of({descriptor.strideInZ, descriptor.strideInY, descriptor.strideInX})},
      {"dilations", vector_of({descriptor.dilationRateInZ, descriptor.dilationRateInY, descriptor.dilationRateInX})},
      {"padding", vector_of({descriptor.paddingFront, descriptor.paddingBack, descriptor.paddingTop,
                             descriptor.paddingBottom, descriptor.paddingLeft, descriptor.paddingRight})},
      {"style", integer(descriptor.paddingStyle)},
      {"layout", integer(descriptor.dataLayout)},
      {"weights_layout", integer(descriptor.weightsLayout)},
      {"groups", integer(descriptor.groups)}};
}

Attributes depthwise_attributes(MPSGraphDepthwiseConvolution3DOpDescriptor* descriptor) {
  return {{"strides", integers(descriptor.strides)},
          {"dilations", integers(descriptor.dilationRates)},
          {"padding", integers(descriptor.paddingValues)},
          {"style", integer(descriptor.paddingStyle)},
          {"channel", integer(descriptor.channelDimensionIndex)}};
}

}  // namespace

@implementation MPSGraph (MPSGraphConvolutionOps)
- (MPSGraphTensor*)convolution2DWithSourceTensor:(MPSGraphTensor*)source
                                   weightsTensor:(MPSGraphTensor*)weights
                                      descriptor:(MPSGraphConvolution2DOpDescriptor*)descriptor
                                            name:(NSString*)name {
  return record(self, "convolution", {source, weights}, convolution_attributes(descriptor));
}

- (MPSGraphTensor*)convolution2DDataGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradient
                                                         weightsTensor:(MPSGraphTensor*)weights
                                                           outputShape:(MPSShape*)outputShape
                                          forwardConvolutionDescriptor:
                                              (MPSGraphConvolution2DOpDescriptor*)forwardConvolutionDescriptor
                                                                  name:(NSString*)name {
  return record(self, "convolutionDataGradient", {incomingGradient, weights},
                with_shape(convolution_attributes(forwardConvolutionDescriptor), outputShape));
}

- (MPSGraphTensor*)convolution2DWeightsGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradient
                                                             sourceTensor:(MPSGraphTensor*)source
                                                              outputShape:(MPSShape*)outputShape
                                             forwardConvolutionDescriptor:
                                                 (MPSGraphConvolution2DOpDescriptor*)forwardConvolutionDescriptor
                                                                     name:(NSString*)name {
  return record(self, "convolutionWeightsGradient", {incomingGradient, source},
                with_shape(convolution_attributes(forwardConvolutionDescriptor), outputShape));
}

- (MPSGraphTensor*)convolution3DWithSourceTensor:(MPSGraphTensor*)source
                                   weightsTensor:(MPSGraphTensor*)weights
                                      descriptor:(MPSGraphConvolution3DOpDescriptor*)descriptor
                                            name:(NSString*)name {
  return record(self, "convolution", {source, weights}, convolution_attributes(descriptor));
}

- (MPSGraphTensor*)convolution3DDataGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradient
                                                         weightsTensor:(MPSGraphTensor*)weights
                                                           outputShape:(MPSShape*)outputShape
                                          forwardConvolutionDescriptor:
                                              (MPSGraphConvolution3DOpDescriptor*)forwardConvolutionDescriptor
                                                                  name:(NSString*)name {
  return record(self, "convolutionDataGradient", {incomingGradient, weights},
                with_shape(convolution_attributes(forwardConvolutionDescriptor), outputShape));
}

- (MPSGraphTensor*)convolution3DWeightsGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradient
                                                             sourceTensor:(MPSGraphTensor*)source
                                                              outputShape:(MPSShape*)outputShape
                                             forwardConvolutionDescriptor:
                                                 (MPSGraphConvolution3DOpDescriptor*)forwardConvolutionDescriptor
                                                                     name:(NSString*)name {
  return record(self, "convolutionWeightsGradient", {incomingGradient, source},
                with_shape(convolution_attributes(forwardConvolutionDescriptor), outputShape));
}

- (MPSGraphTensor*)depthwiseConvolution3DWithSourceTensor:(MPSGraphTensor*)source
                                            weightsTensor:(MPSGraphTensor*)weights
                                               descriptor:(MPSGraphDepthwiseConvolution3DOpDescriptor*)descriptor
                                                     name:(NSString*)name {
  return record(self, "depthwiseConvolution", {source, weights}, depthwise_attributes(descriptor));
}

- (MPSGraphTensor*)
    depthwiseConvolution3DDataGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradient
                                                   weightsTensor:(MPSGraphTensor*)weights
                                                     outputShape:(MPSShape*)outputShape
                                                      descriptor:(MPSGraphDepthwiseConvolution3DOpDescriptor*)descriptor
                                                            name:(NSString*)name {
  return record(self, "depthwiseConvolutionDataGradient", {incomingGradient, weights},
                with_shape(depthwise_attributes(descriptor), outputShape));
}

- (MPSGraphTensor*)
    depthwiseConvolution3DWeightsGradientWithIncomingGradientTensor:(MPSGraphTensor*)incomingGradient
                                                       sourceTensor:(MPSGraphTensor*)source
                                                        outputShape:(MPSShape*)outputShape
                                                         descriptor:
                                                             (MPSGraphDepthwiseConvolution3DOpDescriptor*)descriptor
                                                               name:(NSString*)name {
  return record(self, "depthwiseConvolutionWeightsGradient", {incomingGradient, source},
                with_shape(depthwise_attributes(descriptor), outputShape));
}

@end
