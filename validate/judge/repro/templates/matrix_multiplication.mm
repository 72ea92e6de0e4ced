// Threads that each encode an MPSNDArrayMatrixMultiplication of their own into a command buffer of their own, on a
// command queue of their own. Nothing is shared but the device. Each product is compared with the right numbers.
// Exit code 0: all right. Written by mpsforge.
//
//   clang++ -std=c++17 -fobjc-arc matrix_multiplication.mm -o matrix_multiplication \
//     -framework Foundation -framework Metal -framework MetalPerformanceShaders
//   ./matrix_multiplication [THREADS [ITERATIONS]]
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>
#import <MetalPerformanceShaders/MetalPerformanceShaders.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr NSUInteger kSize = 64;

MPSNDArray* array(id<MTLBuffer> buffer) {
  MPSNDArrayDescriptor* descriptor = [MPSNDArrayDescriptor descriptorWithDataType:MPSDataTypeFloat32
                                                                            shape:@[ @(kSize), @(kSize) ]];
  descriptor.preferPackedRows = YES;
  return [[MPSNDArray alloc] initWithBuffer:buffer offset:0 descriptor:descriptor];
}

id<MTLBuffer> buffer_of(id<MTLDevice> device, float value) {
  id<MTLBuffer> buffer = [device newBufferWithLength:kSize * kSize * sizeof(float)
                                             options:MTLResourceStorageModeShared];
  float* numbers = static_cast<float*>([buffer contents]);
  for (NSUInteger i = 0; i < kSize * kSize; ++i) numbers[i] = value;
  return buffer;
}

// One thread's work; gives the number of wrong elements.
long work(id<MTLDevice> device, int thread, int iterations) {
  long wrong = 0;
  id<MTLCommandQueue> queue = [device newCommandQueue];
  MPSNDArrayMatrixMultiplication* kernel = [[MPSNDArrayMatrixMultiplication alloc] initWithDevice:device sourceCount:2];
  for (int iteration = 0; iteration < iterations; ++iteration) {
    @autoreleasepool {
      const float value = static_cast<float>(thread + iteration % 4);
      id<MTLBuffer> left = buffer_of(device, value), right = buffer_of(device, 1), product = buffer_of(device, -1);
      id<MTLCommandBuffer> commands = [queue commandBuffer];
      [kernel encodeToCommandBuffer:commands
                       sourceArrays:@[ array(left), array(right) ]
                   destinationArray:array(product)];
      [commands commit];
      [commands waitUntilCompleted];
      const float* numbers = static_cast<const float*>([product contents]);
      for (NSUInteger i = 0; i < kSize * kSize; ++i) wrong += numbers[i] != value * kSize;
    }
  }
  return wrong;
}

}  // namespace

int main(int count, char** words) {
  const int threads = count > 1 ? std::atoi(words[1]) : 8, iterations = count > 2 ? std::atoi(words[2]) : 50;
  id<MTLDevice> device = MTLCreateSystemDefaultDevice();
  std::printf("%d threads, %d iterations each, %s\n", threads, iterations, [[device name] UTF8String]);
  std::fflush(stdout);
  std::atomic<long> wrong{0};
  std::vector<std::thread> started;
  for (int thread = 0; thread < threads; ++thread) {
    started.emplace_back([&wrong, device, thread, iterations] { wrong += work(device, thread, iterations); });
  }
  for (std::thread& thread : started) thread.join();
  std::printf("wrong elements: %ld\n", wrong.load());
  return wrong == 0 ? 0 : 1;
}
