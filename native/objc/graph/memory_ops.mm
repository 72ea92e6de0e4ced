#import <MetalPerformanceShadersGraph/MPSGraphMemoryOps.h>

#include "recorder.h"

using namespace mpsforge::graph;

@implementation MPSGraph (MPSGraphMemoryOps)
- (MPSGraphTensor*)placeholderWithShape:(MPSShape*)shape dataType:(MPSDataType)dataType name:(NSString*)name {
  return placeholder(self, shape, dataType);
}

- (MPSGraphTensor*)placeholderWithShape:(MPSShape*)shape name:(NSString*)name {
  return placeholder(self, shape, MPSDataTypeFloat32);
}

- (MPSGraphTensor*)constantWithData:(NSData*)data shape:(MPSShape*)shape dataType:(MPSDataType)dataType {
  return record(self, "constantData", {},
                {{"data", std::string(static_cast<const char*>([data bytes]), [data length])},
                 {"shape", integers(shape)},
                 {"type", integer(dataType)}});
}

- (MPSGraphTensor*)constantWithScalar:(double)scalar dataType:(MPSDataType)dataType {
  return record(self, "constant", {},
                {{"value", scalar}, {"type", integer(dataType)}, {"shape", std::vector<int64_t>{}}});
}

- (MPSGraphTensor*)constantWithScalar:(double)scalar shape:(MPSShape*)shape dataType:(MPSDataType)dataType {
  return record(self, "constant", {}, {{"value", scalar}, {"type", integer(dataType)}, {"shape", integers(shape)}});
}

- (MPSGraphTensor*)constantWithRealPart:(double)realPart
                          imaginaryPart:(double)imaginaryPart
                               dataType:(MPSDataType)dataType {
  return record(self, "constantComplex", {},
                {{"value", realPart},
                 {"imaginary", imaginaryPart},
                 {"type", integer(dataType)},
                 {"shape", std::vector<int64_t>{}}});
}

- (MPSGraphTensor*)constantWithRealPart:(double)realPart
                          imaginaryPart:(double)imaginaryPart
                                  shape:(MPSShape*)shape
                               dataType:(MPSDataType)dataType {
  return record(
      self, "constantComplex", {},
      {{"value", realPart}, {"imaginary", imaginaryPart}, {"type", integer(dataType)}, {"shape", integers(shape)}});
}

@end
