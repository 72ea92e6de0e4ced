// What translated kernels cost beside loops in C++ that do the same, with the same checks of bounds.
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "shaders_bench.h"
#include "shaders_launch.h"

using namespace mpsforge::objc::test;

namespace {

constexpr NSUInteger kElements = 1 << 20, kGroup = 1024;
constexpr size_t kDispatches = 10000;

// The least of several, of all threads and the time that they had processors: other work of the machine is no part of
// it.
template <class Work>
double fastest_seconds(Work work) {
  double best = 0;
  for (int i = 0; i < 15; ++i) {
    const std::clock_t start = std::clock();
    work();
    const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    best = i == 0 ? took : std::min(best, took);
  }
  return best;
}

struct Places {
  uint32_t out, left, right, unused;  // bytes from the beginning of each buffer, as PyTorch's kernels get them
};

struct Operands {
  // In bytes of an element.
  Operands(size_t input, size_t output)
      : bytes(kElements * std::max(input, output)),
        left(shared_buffer(bytes)),
        right(shared_buffer(bytes)),
        out(shared_buffer(bytes)),
        places(shared_buffer(kElements * sizeof(Places))) {
    fill<float>(left, [](size_t i) { return 0.25f * static_cast<float>(i % 97); });
    fill<float>(right, [](size_t i) { return 0.5f * static_cast<float>(i % 89) - 20; });
    auto* all = static_cast<Places*>(places.contents);
    for (uint32_t i = 0; i < kElements; ++i) {
      const auto in = static_cast<uint32_t>(i * input), to = static_cast<uint32_t>(i * output);
      all[i] = {to, in, in, 0};
    }
  }

  size_t bytes;
  id<MTLBuffer> left, right, out, places;
};

void dispatch(const char* kernel, const Operands& operands, NSUInteger threads, size_t times) {
  static id<MTLCommandQueue> const queue = [device() newCommandQueue];
  static id<MTLLibrary> const library = library_of("metal_bfloat");
  @autoreleasepool {
    id<MTLFunction> function = [library newFunctionWithName:[NSString stringWithUTF8String:kernel]];
    id<MTLComputePipelineState> state = [device() newComputePipelineStateWithFunction:function error:nil];
    id<MTLCommandBuffer> commands = [queue commandBuffer];
    id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
    for (size_t i = 0; i < times; ++i) {
      [encoder setComputePipelineState:state];
      [encoder setBuffer:operands.left offset:0 atIndex:0];
      [encoder setBuffer:operands.right offset:0 atIndex:1];
      [encoder setBuffer:operands.out offset:0 atIndex:2];
      [encoder setBuffer:operands.places offset:0 atIndex:3];
      [encoder dispatchThreads:MTLSizeMake(threads, 1, 1) threadsPerThreadgroup:MTLSizeMake(kGroup, 1, 1)];
    }
    [encoder endEncoding];
    [commands commit];
    [commands waitUntilCompleted];
  }
}

template <int inputs, int outputs, class Element>
double ratio(const char* kernel, Element element) {
  const Operands operands(inputs * sizeof(float), outputs * sizeof(float));
  const double translated = fastest_seconds([&] { dispatch(kernel, operands, kElements, 1); });
  const std::string expected(static_cast<char*>(operands.out.contents), operands.bytes);
  // Outside of the loop: a message for each element would be what is measured.
  const auto* left = static_cast<const char*>(operands.left.contents);
  const auto* right = static_cast<const char*>(operands.right.contents);
  auto* out = static_cast<char*>(operands.out.contents);
  const auto* places = static_cast<const Places*>(operands.places.contents);
  const size_t bytes = operands.bytes;
  const double plain = fastest_seconds([&] {
    for (size_t i = 0; i < kElements; ++i) {
      const Places place = places[i];
      if (place.left + inputs * sizeof(float) > bytes || place.right + inputs * sizeof(float) > bytes ||
          place.out + outputs * sizeof(float) > bytes) {
        std::abort();
      }
      element(reinterpret_cast<const float*>(left + place.left), reinterpret_cast<const float*>(right + place.right),
              reinterpret_cast<float*>(out + place.out));
    }
  });
  const auto* made = reinterpret_cast<const float*>(expected.data());
  const auto* wanted = reinterpret_cast<const float*>(out);
  for (size_t i = 0; i < bytes / sizeof(float); ++i) {
    CHECK(std::fabs(made[i] - wanted[i]) <= 1e-5f * std::max(1.0f, std::fabs(wanted[i])));
  }
  return translated / plain;
}

}  // namespace

void measure_translated_kernels() {
  const Operands operands(sizeof(float), sizeof(float));
  const double seconds = fastest_seconds([&] { dispatch("fmax_float", operands, 1, kDispatches); });
  std::printf("{\"microseconds\": %.3f, \"ratios\": {", 1e6 * seconds / kDispatches);
  std::printf("\"fmax_float\": %.2f, ",
              ratio<1, 1>("fmax_float", [](const float* a, const float* b, float* out) { *out = std::fmax(*a, *b); }));
  std::printf("\"copysign_float\": %.2f, ", ratio<1, 1>("copysign_float", [](const float* a, const float* b, float* o) {
                *o = std::copysign(*a, *b);
              }));
  std::printf("\"nextafter_kernel_float\": %.2f, ",
              ratio<1, 1>("nextafter_kernel_float",
                          [](const float* a, const float* b, float* out) { *out = std::nextafter(*a, *b); }));
  std::printf("\"polar_float\": %.2f, ", ratio<1, 2>("polar_float", [](const float* a, const float* b, float* out) {
                out[0] = *a * std::cos(*b);
                out[1] = *a * std::sin(*b);
              }));
  std::printf("\"complex_mul_float\": %.2f}}\n",
              ratio<2, 2>("complex_mul_float", [](const float* a, const float* b, float* out) {
                out[0] = a[0] * b[0] - a[1] * b[1];
                out[1] = a[0] * b[1] + a[1] * b[0];
              }));
}
