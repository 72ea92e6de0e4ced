// Launches every translated kernel of PyTorch's Metal libraries (native/objc/metal/translated.h) through Metal's
// classes, with buffers that its metadata asks for. Usage: shaders_test [SCENARIO ...], or shaders_test bench
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../metal/translated.h"
#include "mpsforge/host.h"
#include "shaders_bench.h"
#include "shaders_launch.h"

using namespace mpsforge::objc::test;
namespace shaders = mpsforge::shaders;

namespace {

constexpr size_t kBytes = 256 << 10;
constexpr size_t kGroupMemory = 16 << 10;
constexpr NSUInteger kThreads = 128, kGroup = 64;

// Entries are addresses of buffers.
bool is_argument_buffer(const std::string& type) {
  return type == "IndexAB" || (type != "MetadataArguments" && type.find("Arguments") != std::string::npos);
}

// Small numbers: each kernel multiplies some of them with thread numbers, and must stay in its buffers.
void fill_input(id<MTLBuffer> buffer, const std::string& type, const std::string& name, uint64_t address) {
  const auto four = [](size_t) { return 4; };
  if (is_argument_buffer(type)) {
    // Arrays of 32, each of which leads to memory of its own.
    fill<uint64_t>(buffer, [address](size_t i) { return address + i / 32 % 8 * (kBytes / 8); });
  } else if (type == "MetadataArguments") {  // numbers of elements, then the tensor and its part for each threadgroup
    fill<uint32_t>(buffer, [](size_t i) { return i < 32 ? 300 : 0; });
  } else if (name == "sizes") {  // of matrices
    fill<uint32_t>(buffer, [](size_t) { return 64; });
  } else if (type == "uint3") {  // places of elements, in bytes
    fill<uint32_t>(buffer, [](size_t i) { return 16 * (i / 4); });
  } else if (type == "ulong3") {
    fill<uint64_t>(buffer, [](size_t i) { return 16 * (i / 4); });
  } else if (type.rfind("float", 0) == 0) {
    fill<float>(buffer, [](size_t i) { return 0.25f * static_cast<float>(i % 7 + 1); });
  } else if (type.rfind("half", 0) == 0) {
    fill<uint16_t>(buffer, [](size_t) { return 0x3800; });  // 0.5
  } else if (type == "bfloat") {
    fill<uint16_t>(buffer, [](size_t) { return 0x3f00; });
  } else if (type == "char" || type == "uchar" || type == "bool") {
    fill<uint8_t>(buffer, [](size_t) { return 1; });
  } else if (type == "short") {
    fill<int16_t>(buffer, four);
  } else if (type.rfind("int", 0) == 0 || type.rfind("uint", 0) == 0 || type == "packed_uint3") {
    fill<int32_t>(buffer, four);
  } else {
    fill<int64_t>(buffer, four);
  }
}

// Adds to what is there, which is NaN and stays so.
bool only_adds(const std::string& kernel) {
  return kernel.find("accumulate_32bit_float") != std::string::npos || kernel.rfind("histogramdd", 0) == 0 ||
         kernel.rfind("upsample_bicubic2d_backward", 0) == 0;
}

// Returns whether the kernel has written anything.
bool launch(id<MTLLibrary> library, const shaders::Kernel& kernel, id<MTLCommandQueue> queue) {
  NSError* error = nil;
  id<MTLFunction> function = [library newFunctionWithName:[NSString stringWithUTF8String:kernel.name]];
  id<MTLComputePipelineState> state = [device() newComputePipelineStateWithFunction:function error:&error];
  CHECK(state);
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
  [encoder setComputePipelineState:state];
  id<MTLBuffer> pointed = shared_buffer(kBytes);
  [encoder useResource:pointed usage:MTLResourceUsageRead | MTLResourceUsageWrite];
  std::vector<id<MTLBuffer>> written = {pointed};
  for (uint32_t i = 0; i < kernel.argument_count; ++i) {
    const shaders::Argument& argument = kernel.arguments[i];
    if (argument.kind == shaders::ArgumentKind::Threadgroup) {
      [encoder setThreadgroupMemoryLength:kGroupMemory atIndex:argument.index];
    }
    if (argument.kind != shaders::ArgumentKind::Buffer) continue;
    id<MTLBuffer> buffer = shared_buffer(kBytes);
    if (argument.access & shaders::kWrite && !is_argument_buffer(argument.type)) {
      std::memset(buffer.contents, 0xff, kBytes);
      written.push_back(buffer);
    } else {
      fill_input(buffer, argument.type, argument.name, pointed.gpuAddress);
      // Else they are indices, of 0.
      if (argument.type != std::string("IndexAB") && is_argument_buffer(argument.type)) {
        fill<float>(pointed, [](size_t) { return 1; });
      }
    }
    [encoder setBuffer:buffer offset:0 atIndex:argument.index];
  }
  std::vector<std::string> before;
  for (id<MTLBuffer> buffer : written) before.emplace_back(static_cast<char*>(buffer.contents), kBytes);
  [encoder dispatchThreads:MTLSizeMake(kThreads, 1, 1) threadsPerThreadgroup:MTLSizeMake(kGroup, 1, 1)];
  [encoder endEncoding];
  [commands commit];
  [commands waitUntilCompleted];
  bool changed = false;
  for (size_t i = 0; i < written.size(); ++i) {
    changed = changed || std::memcmp(before[i].data(), written[i].contents, kBytes) != 0;
  }
  return changed;
}

void every_kernel_runs() {
  id<MTLCommandQueue> queue = [device() newCommandQueue];
  size_t ran = 0;
  std::string silent;
  for (const char* section : {"metal_basic", "metal_bfloat"}) {
    const shaders::Library* translated = mpsforge::objc::translated_library(section).library;
    CHECK(translated);
    id<MTLLibrary> library = library_of(section);
    CHECK(library.functionNames.count == translated->kernel_count);
    for (uint32_t i = 0; i < translated->kernel_count; ++i, ++ran) {
      @autoreleasepool {
        const shaders::Kernel& kernel = translated->kernels[i];
        if (!launch(library, kernel, queue) && !only_adds(kernel.name)) silent += std::string(" ") + kernel.name;
        mpsforge_host_finding finding;
        if (mpsforge_host_findings(&finding, 1) > 0) {
          std::fprintf(stderr, "%s: %s; %s\n", kernel.name, finding.message, finding.second);
          return;
        }
      }
    }
  }
  if (!silent.empty()) std::fprintf(stderr, "they write nothing:%s\n", silent.c_str());
  CHECK(ran == 355);
}

// fmax_float with 16 threads of a group, over buffers that may be too short for them.
void run_fmax(size_t input_bytes) {
  id<MTLLibrary> library = library_of("metal_bfloat");
  id<MTLFunction> function = [library newFunctionWithName:@"fmax_float"];
  id<MTLComputeCommandEncoder> encoder = nil;
  id<MTLCommandBuffer> commands = [[device() newCommandQueue] commandBuffer];
  encoder = [commands computeCommandEncoder];
  [encoder setComputePipelineState:[device() newComputePipelineStateWithFunction:function error:nil]];
  id<MTLBuffer> places = shared_buffer(16 * 16);
  fill<uint32_t>(places, [](size_t i) { return 4 * (i / 4); });
  id<MTLBuffer> left = shared_buffer(input_bytes), right = shared_buffer(64), out = shared_buffer(64);
  fill<float>(left, [](size_t i) { return i; });
  fill<float>(right, [](size_t i) { return 15 - static_cast<int>(i); });
  [encoder setBuffer:left offset:0 atIndex:0];
  [encoder setBuffer:right offset:0 atIndex:1];
  [encoder setBuffer:out offset:0 atIndex:2];
  [encoder setBuffer:places offset:0 atIndex:3];
  [encoder dispatchThreads:MTLSizeMake(16, 1, 1) threadsPerThreadgroup:MTLSizeMake(16, 1, 1)];
  [encoder endEncoding];
  [commands commit];
  [commands waitUntilCompleted];
  const auto* result = static_cast<const float*>(out.contents);
  for (int i = 0; i < 16; ++i) CHECK(result[i] == (i > 7 ? i : 15 - i));
}

// As run_fmax over one input, whose output is the other half of the same buffer: ranges are distinguished by the byte.
void two_queues_use_one_buffer(size_t second_offset) {
  id<MTLLibrary> library = library_of("metal_bfloat");
  id<MTLFunction> function = [library newFunctionWithName:@"i0_float_float"];
  id<MTLComputePipelineState> state = [device() newComputePipelineStateWithFunction:function error:nil];
  id<MTLBuffer> input = shared_buffer(64), output = shared_buffer(128);
  std::vector<id<MTLCommandBuffer>> both;
  for (size_t offset : {size_t{0}, second_offset}) {
    id<MTLCommandBuffer> commands = [[device() newCommandQueue] commandBuffer];
    id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
    [encoder setComputePipelineState:state];
    [encoder setBuffer:input offset:0 atIndex:0];
    [encoder setBuffer:output offset:offset atIndex:1];
    [encoder dispatchThreads:MTLSizeMake(16, 1, 1) threadsPerThreadgroup:MTLSizeMake(16, 1, 1)];
    [encoder endEncoding];
    [commands commit];
    both.push_back(commands);
  }
  for (id<MTLCommandBuffer> commands : both) [commands waitUntilCompleted];
  mpsforge_host_finding finding;
  if (mpsforge_host_findings(&finding, 1) > 0) {
    std::fprintf(stderr, "%s\n", finding.message);
    std::abort();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (!mpsforge::objc::translated_library("metal_bfloat").library) {
    std::printf("SKIP translated kernels: this build has none\n");
    return 0;
  }
  if (argc == 2 && argv[1] == std::string("bench")) {
    measure_translated_kernels();
    return 0;
  }
  add({"every-kernel-runs", every_kernel_runs});
  add({"fmax", [] { run_fmax(64); }});
  add({"read-beyond-the-buffer", [] { run_fmax(40); }, "thread (10, 0, 0) reads 4 bytes at 40 of 40"});
  add({"disjoint-ranges", [] { two_queues_use_one_buffer(64); }});
  add({"ranges-that-meet", [] { two_queues_use_one_buffer(60); }, "nothing orders"});
  return run_cases(argc, argv);
}
