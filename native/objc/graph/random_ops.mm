#import <MetalPerformanceShadersGraph/MPSGraphRandomOps.h>

#include "recorder.h"

using namespace mpsforge::graph;

namespace {

Attributes random_attributes(MPSShape* shape, MPSGraphRandomOpDescriptor* descriptor) {
  return {{"shape", integers(shape)},
          {"type", integer(descriptor.dataType)},
          {"distribution", integer(descriptor.distribution)},
          {"min", static_cast<double>(descriptor.min)},
          {"max", static_cast<double>(descriptor.max)},
          {"min_integer", integer(descriptor.minInteger)},
          {"max_integer", integer(descriptor.maxInteger)},
          {"mean", static_cast<double>(descriptor.mean)},
          {"deviation", static_cast<double>(descriptor.standardDeviation)}};
}

}  // namespace

@implementation MPSGraph (MPSGraphRandomOps)
- (NSArray<MPSGraphTensor*>*)randomTensorWithShape:(MPSShape*)shape
                                        descriptor:(MPSGraphRandomOpDescriptor*)descriptor
                                       stateTensor:(MPSGraphTensor*)state
                                              name:(NSString*)name {
  return record_all(self, "random", {state}, random_attributes(shape, descriptor), 2);
}

- (MPSGraphTensor*)dropoutTensor:(MPSGraphTensor*)tensor rate:(double)rate name:(NSString*)name {
  return record(self, "dropout", {tensor}, {{"rate", rate}});
}

@end
