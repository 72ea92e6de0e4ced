// An example of what docs/interop.md describes, for the Python parallel tests: a library that knows Metal alone and
// commits command buffers of its own, and two kernels that encode into PyTorch's.
#include <ATen/ATen.h>
#include <ATen/mps/MPSStream.h>
#include <ATen/native/mps/MetalShaderLibrary.h>
#include <ATen/native/mps/OperationUtils.h>
#import <Metal/Metal.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include "field.h"
#if __has_include(<ATen/mps/MPSInterop.h>)
#include <ATen/mps/MPSInterop.h>
#include <ATen/mps/MPSOpGuard.h>
#define MPSFORGE_HAS_INTEROP 1
#endif

using mpsforge::field::TwoTensors;
using mpsforge::field::WithoutGIL;

namespace {

#ifdef MPSFORGE_HAS_INTEROP
void copy(const TwoTensors& tensors) {
  const at::mps::MPSOpGuard guard({{tensors.from}, {tensors.to, /*writes=*/true}});
  at::mps::runOnStreamQueue(at::mps::getCurrentMPSStream(), ^{
    tensors.blit(at::mps::getMPSCommandBuffer());
  });
}

void exp(const TwoTensors& tensors) {
  static auto& library = *new at::native::mps::MetalShaderLibrary(R"METAL(
#include <metal_stdlib>
kernel void exp_kernel( device float *to [[buffer(0)]], device float *from [[buffer(1)]], uint place [[thread_position_in_grid]]) {
  to[place] = metal::exp(from[place]);
}
)METAL");
  id<MTLComputePipelineState> pipeline = library.getPipelineStateForFunc("exp_kernel");
  const at::mps::MPSOpGuard guard({{tensors.from}, {tensors.to, /*writes=*/true}});
  at::mps::runOnStreamQueue(at::mps::getCurrentMPSStream(), ^{
    id<MTLComputeCommandEncoder> encoder = at::mps::getMPSCommandEncoder();
    [encoder setComputePipelineState:pipeline];
    [encoder setBuffer:tensors.to_buffer() offset:tensors.to_offset() atIndex:0];
    [encoder setBuffer:tensors.from_buffer() offset:tensors.from_offset() atIndex:1];
    [encoder dispatchThreads:MTLSizeMake(tensors.to.numel(), 1, 1) threadsPerThreadgroup:MTLSizeMake(64, 1, 1)];
  });
}
#else
void copy(const TwoTensors&) { TORCH_CHECK_NOT_IMPLEMENTED(false, "this PyTorch has no ATen/mps/MPSInterop.h"); }
void exp(const TwoTensors& tensors) { copy(tensors); }
#endif

}  // namespace

namespace mpsforge::field {

PyObject* library_copy(PyObject*, PyObject* arguments) {
  HANDLE_TH_ERRORS
  long long queue = 0;
  const TwoTensors tensors(arguments, &queue);
  const WithoutGIL released;
  @autoreleasepool {
    id<MTLCommandBuffer> buffer = [(id<MTLCommandQueue>)(void*)queue commandBuffer];
    tensors.blit(buffer);
    [buffer commit];
  }
  END_HANDLE_TH_ERRORS
  Py_RETURN_NONE;
}

PyObject* kernel_copy(PyObject*, PyObject* arguments) {
  HANDLE_TH_ERRORS
  const TwoTensors tensors(arguments);
  const WithoutGIL released;
  copy(tensors);
  END_HANDLE_TH_ERRORS
  Py_RETURN_NONE;
}

PyObject* bind(PyObject*, PyObject* tensor) {
  HANDLE_TH_ERRORS
  TORCH_CHECK_TYPE(THPVariable_Check(tensor), "expected a tensor");
  at::native::mps::getMTLBufferStorage(THPVariable_Unpack(tensor));
  END_HANDLE_TH_ERRORS
  Py_RETURN_NONE;
}

PyObject* kernel_exp(PyObject*, PyObject* arguments) {
  HANDLE_TH_ERRORS
  const TwoTensors tensors(arguments);
  const WithoutGIL released;
  exp(tensors);
  END_HANDLE_TH_ERRORS
  Py_RETURN_NONE;
}

}  // namespace mpsforge::field
