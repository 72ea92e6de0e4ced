#import <MetalPerformanceShadersGraph/MPSGraphFourierTransformOps.h>

#include "recorder.h"

using namespace mpsforge::graph;

namespace {

Attributes fourier_attributes(NSArray<NSNumber*>* axes, MPSGraphFFTDescriptor* descriptor) {
  return {{"axes", integers(axes)},
          {"inverse", integer(descriptor.inverse)},
          {"scaling", integer(descriptor.scalingMode)},
          {"odd", integer(descriptor.roundToOddHermitean)}};
}

}  // namespace

@implementation MPSGraph (MPSGraphFourierTransformOps)
- (MPSGraphTensor*)fastFourierTransformWithTensor:(MPSGraphTensor*)tensor
                                             axes:(NSArray<NSNumber*>*)axes
                                       descriptor:(MPSGraphFFTDescriptor*)descriptor
                                             name:(NSString*)name {
  return record(self, "fastFourierTransform", {tensor}, fourier_attributes(axes, descriptor));
}

- (MPSGraphTensor*)realToHermiteanFFTWithTensor:(MPSGraphTensor*)tensor
                                           axes:(NSArray<NSNumber*>*)axes
                                     descriptor:(MPSGraphFFTDescriptor*)descriptor
                                           name:(NSString*)name {
  return record(self, "realToHermiteanFFT", {tensor}, fourier_attributes(axes, descriptor));
}

- (MPSGraphTensor*)HermiteanToRealFFTWithTensor:(MPSGraphTensor*)tensor
                                           axes:(NSArray<NSNumber*>*)axes
                                     descriptor:(MPSGraphFFTDescriptor*)descriptor
                                           name:(NSString*)name {
  return record(self, "HermiteanToRealFFT", {tensor}, fourier_attributes(axes, descriptor));
}

@end
