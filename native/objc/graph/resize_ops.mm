#import <MetalPerformanceShadersGraph/MPSGraphResizeOps.h>

#include "recorder.h"

#include <stdexcept>
#include <string>

using namespace mpsforge::graph;

// What Apple's words (MPSGraphResizeOps.h) leave open is taken from PyTorch's use (UpSample.mm, GridSampler.mm).
namespace {

// The images' height; their width is the next dimension. PyTorch's one-dimensional resizing is CHW with its channels as
// the height.
Attribute height_of(const char* operation, MPSGraphTensorNamedDataLayout layout) {
  switch (layout) {
    case MPSGraphTensorNamedDataLayoutNCHW:
      return int64_t{2};
    case MPSGraphTensorNamedDataLayoutNHWC:
    case MPSGraphTensorNamedDataLayoutCHW:
      return int64_t{1};
    case MPSGraphTensorNamedDataLayoutHWC:
    case MPSGraphTensorNamedDataLayoutHW:
      return int64_t{0};
    default:
      throw std::runtime_error("MPSGraph operation " + std::string(operation) + ": images in data layout " +
                               std::to_string(layout));
  }
}

Attributes resizing(const char* operation, MPSGraphTensorNamedDataLayout layout, BOOL center = NO, BOOL align = NO) {
  return {{"height", height_of(operation, layout)}, {"center", integer(center)}, {"align", integer(align)}};
}

Attributes rounding(Attributes attributes, MPSGraphResizeNearestRoundingMode mode) {
  attributes.set("rounding", integer(mode));
  return attributes;
}

// What PyTorch asks for; the evaluator samples with its operator.
MPSGraphTensor* sample_grid(MPSGraph* graph, MPSGraphTensor* source, MPSGraphTensor* coordinates,
                            MPSGraphTensorNamedDataLayout layout, BOOL normalized, BOOL relative, BOOL align,
                            MPSGraphPaddingMode padding, bool nearest) {
  const auto reject = [](const char* what) {
    throw std::runtime_error("MPSGraph operation sampleGrid: " + std::string(what) + " is not implemented");
  };
  if (!normalized || relative) reject("any coordinate but an absolute one from -1 to 1");
  if (layout != MPSGraphTensorNamedDataLayoutNCHW && layout != MPSGraphTensorNamedDataLayoutNHWC) {
    reject("any layout but NCHW and NHWC");
  }
  // Reflected at the outermost pixels' centres, or at their outer edges, as aligned corners are at the one or the
  // other.
  const bool reflected = padding == (align ? MPSGraphPaddingModeReflect : MPSGraphPaddingModeSymmetric);
  if (!reflected && padding != MPSGraphPaddingModeZero && padding != MPSGraphPaddingModeClampToEdge) {
    reject("any padding but zeros, the edge, and a reflection where the corners are");
  }
  return record(graph, "sampleGrid", {source, coordinates},
                {{"height", height_of("sampleGrid", layout)},
                 {"align", integer(align)},
                 {"padding", integer(padding)},
                 {"nearest", integer(nearest)}});
}

}  // namespace

@implementation MPSGraph (MPSGraphResizeOps)
- (MPSGraphTensor*)resizeNearestWithTensor:(MPSGraphTensor*)imagesTensor
                                sizeTensor:(MPSGraphTensor*)size
                       nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                              centerResult:(BOOL)centerResult
                              alignCorners:(BOOL)alignCorners
                                    layout:(MPSGraphTensorNamedDataLayout)layout
                                      name:(NSString*)name {
  return record(self, "resizeNearest", {imagesTensor, size},
                rounding(resizing("resizeNearest", layout, centerResult, alignCorners), nearestRoundingMode));
}

- (MPSGraphTensor*)resizeNearestWithTensor:(MPSGraphTensor*)imagesTensor
                                sizeTensor:(MPSGraphTensor*)size
                         scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                       nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                                    layout:(MPSGraphTensorNamedDataLayout)layout
                                      name:(NSString*)name {
  return record(self, "resizeNearest", {imagesTensor, size, scaleOffset},
                rounding(resizing("resizeNearest", layout), nearestRoundingMode));
}

- (MPSGraphTensor*)resizeBilinearWithTensor:(MPSGraphTensor*)imagesTensor
                                 sizeTensor:(MPSGraphTensor*)size
                               centerResult:(BOOL)centerResult
                               alignCorners:(BOOL)alignCorners
                                     layout:(MPSGraphTensorNamedDataLayout)layout
                                       name:(NSString*)name {
  return record(self, "resizeBilinear", {imagesTensor, size},
                resizing("resizeBilinear", layout, centerResult, alignCorners));
}

- (MPSGraphTensor*)resizeBilinearWithTensor:(MPSGraphTensor*)imagesTensor
                                 sizeTensor:(MPSGraphTensor*)size
                          scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                                     layout:(MPSGraphTensorNamedDataLayout)layout
                                       name:(NSString*)name {
  return record(self, "resizeBilinear", {imagesTensor, size, scaleOffset}, resizing("resizeBilinear", layout));
}

- (MPSGraphTensor*)resizeNearestWithGradientTensor:(MPSGraphTensor*)gradient
                                             input:(MPSGraphTensor*)input
                               nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                                      centerResult:(BOOL)centerResult
                                      alignCorners:(BOOL)alignCorners
                                            layout:(MPSGraphTensorNamedDataLayout)layout
                                              name:(NSString*)name {
  return record(self, "resizeNearestGradient", {gradient, input},
                rounding(resizing("resizeNearestGradient", layout, centerResult, alignCorners), nearestRoundingMode));
}

- (MPSGraphTensor*)resizeNearestWithGradientTensor:(MPSGraphTensor*)gradient
                                             input:(MPSGraphTensor*)input
                                 scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                               nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                                            layout:(MPSGraphTensorNamedDataLayout)layout
                                              name:(NSString*)name {
  return record(self, "resizeNearestGradient", {gradient, input, scaleOffset},
                rounding(resizing("resizeNearestGradient", layout), nearestRoundingMode));
}

- (MPSGraphTensor*)resizeBilinearWithGradientTensor:(MPSGraphTensor*)gradient
                                              input:(MPSGraphTensor*)input
                                       centerResult:(BOOL)centerResult
                                       alignCorners:(BOOL)alignCorners
                                             layout:(MPSGraphTensorNamedDataLayout)layout
                                               name:(NSString*)name {
  return record(self, "resizeBilinearGradient", {gradient, input},
                resizing("resizeBilinearGradient", layout, centerResult, alignCorners));
}

- (MPSGraphTensor*)resizeBilinearWithGradientTensor:(MPSGraphTensor*)gradient
                                              input:(MPSGraphTensor*)input
                                  scaleOffsetTensor:(MPSGraphTensor*)scaleOffset
                                             layout:(MPSGraphTensorNamedDataLayout)layout
                                               name:(NSString*)name {
  return record(self, "resizeBilinearGradient", {gradient, input, scaleOffset},
                resizing("resizeBilinearGradient", layout));
}

- (MPSGraphTensor*)sampleGridWithSourceTensor:(MPSGraphTensor*)source
                             coordinateTensor:(MPSGraphTensor*)coordinates
                                       layout:(MPSGraphTensorNamedDataLayout)layout
                         normalizeCoordinates:(BOOL)normalizeCoordinates
                          relativeCoordinates:(BOOL)relativeCoordinates
                                 alignCorners:(BOOL)alignCorners
                                  paddingMode:(MPSGraphPaddingMode)paddingMode
                                 samplingMode:(MPSGraphResizeMode)samplingMode
                                constantValue:(double)constantValue
                                         name:(NSString*)name {
  // Apple rounds a nearest one as RoundPreferCeil here; PyTorch takes the other method, which has an argument for it.
  if (samplingMode != MPSGraphResizeBilinear) {
    throw std::runtime_error("MPSGraph operation sampleGrid: a nearest pixel rounded up is not implemented");
  }
  return sample_grid(self, source, coordinates, layout, normalizeCoordinates, relativeCoordinates, alignCorners,
                     paddingMode, false);
}

- (MPSGraphTensor*)sampleGridWithSourceTensor:(MPSGraphTensor*)source
                             coordinateTensor:(MPSGraphTensor*)coordinates
                                       layout:(MPSGraphTensorNamedDataLayout)layout
                         normalizeCoordinates:(BOOL)normalizeCoordinates
                          relativeCoordinates:(BOOL)relativeCoordinates
                                 alignCorners:(BOOL)alignCorners
                                  paddingMode:(MPSGraphPaddingMode)paddingMode
                          nearestRoundingMode:(MPSGraphResizeNearestRoundingMode)nearestRoundingMode
                                constantValue:(double)constantValue
                                         name:(NSString*)name {
  if (nearestRoundingMode != MPSGraphResizeNearestRoundingModeRoundToEven) {
    throw std::runtime_error("MPSGraph operation sampleGrid: only rounding to even is implemented");
  }
  return sample_grid(self, source, coordinates, layout, normalizeCoordinates, relativeCoordinates, alignCorners,
                     paddingMode, true);
}

@end
