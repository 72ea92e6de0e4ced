// What programs in the field do to MPS from C++, for the Python parallel tests: extensions that encode by themselves,
// tensors over memory that PyTorch did not allocate, and a stream that is held up.
#include <ATen/ATen.h>
#include <ATen/mps/MPSDevice.h>
#include <ATen/mps/MPSStream.h>
#include <ATen/native/mps/MetalShaderLibrary.h>
#include <ATen/ops/from_blob.h>
#include <mpsforge/host.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#import <Metal/Metal.h>

#include "field.h"

// Stock PyTorch has no streams to choose from.
namespace at::mps {
MPSStream* getMPSStreamFromID(c10::StreamId id) __attribute__((weak));
}

namespace {

// A block that stays on a stream's queue until it is let go.
struct Hold {
  std::mutex mutex;
  std::condition_variable changed;
  bool held = false;
  bool let_go = false;
};

Hold& hold() {
  static auto& one = *new Hold;
  return one;
}

void encode(at::mps::MPSStream* stream, const mpsforge::field::TwoTensors& tensors) {
  dispatch_sync(stream->queue(), ^{
    stream->endKernelCoalescing();
    tensors.blit(stream->commandBuffer());
  });
}

}  // namespace

namespace mpsforge::field {

TwoTensors::TwoTensors(PyObject* arguments, long long* number) {
  PyObject *first = nullptr, *second = nullptr;
  if (!PyArg_ParseTuple(arguments, number ? "OOL" : "OO", &first, &second, number)) throw python_error();
  TORCH_CHECK_TYPE(THPVariable_Check(first) && THPVariable_Check(second), "expected two tensors");
  to = THPVariable_Unpack(first);
  from = THPVariable_Unpack(second);
  TORCH_CHECK(
      to.is_mps() && from.is_mps() && to.is_contiguous() && from.is_contiguous() && to.nbytes() == from.nbytes(),
      "expected two contiguous tensors of mps, of one size");
}

void TwoTensors::blit(id<MTLCommandBuffer> buffer) const {
  id<MTLBlitCommandEncoder> encoder = [buffer blitCommandEncoder];
  [encoder copyFromBuffer:from_buffer()
             sourceOffset:from_offset()
                 toBuffer:to_buffer()
        destinationOffset:to_offset()
                     size:to.nbytes()];
  [encoder endEncoding];
}

PyObject* hold_queue(PyObject*, PyObject*) {
  HANDLE_TH_ERRORS
  const WithoutGIL released;
  dispatch_sync(at::mps::getCurrentMPSStream()->queue(), ^{
    std::unique_lock<std::mutex> lock(hold().mutex);
    hold().held = true;
    hold().changed.notify_all();
    hold().changed.wait(lock, [] { return hold().let_go; });
    hold().held = hold().let_go = false;
  });
  END_HANDLE_TH_ERRORS
  Py_RETURN_NONE;
}

PyObject* wait_until_held(PyObject*, PyObject*) {
  const WithoutGIL released;
  std::unique_lock<std::mutex> lock(hold().mutex);
  hold().changed.wait(lock, [] { return hold().held; });
  Py_RETURN_NONE;
}

PyObject* let_go(PyObject*, PyObject*) {
  const std::lock_guard<std::mutex> lock(hold().mutex);
  hold().let_go = true;
  hold().changed.notify_all();
  Py_RETURN_NONE;
}

PyObject* on_completion(PyObject*, PyObject* function) {
  HANDLE_TH_ERRORS
  Py_INCREF(function);  // until it has been called
  const WithoutGIL released;
  at::mps::MPSStream* const stream = at::mps::getCurrentMPSStream();
  dispatch_sync(stream->queue(), ^{
    [stream->commandBuffer() addCompletedHandler:^(id<MTLCommandBuffer>) {
      const PyGILState_STATE state = PyGILState_Ensure();
      Py_XDECREF(PyObject_CallNoArgs(function));
      if (PyErr_Occurred()) PyErr_WriteUnraisable(function);
      Py_DECREF(function);
      PyGILState_Release(state);
    }];
  });
  END_HANDLE_TH_ERRORS
  Py_RETURN_NONE;
}

PyObject* fail_command_buffer(PyObject*, PyObject* n) {
  HANDLE_TH_ERRORS
  const unsigned long number = PyLong_AsUnsignedLong(n);
  if (PyErr_Occurred()) throw python_error();
  mpsforge_host_fail_command_buffer(at::mps::getCurrentMPSStream()->commandQueue(), static_cast<uint32_t>(number));
  END_HANDLE_TH_ERRORS
  Py_RETURN_NONE;
}

PyObject* refuse(PyObject*, PyObject* arguments) {
  const char* kind = nullptr;
  unsigned int number = 0;
  if (!PyArg_ParseTuple(arguments, "sI", &kind, &number)) return nullptr;
  static const std::map<std::string, uint32_t> kinds = {
      {"queues", MPSFORGE_HOST_QUEUES}, {"events", MPSFORGE_HOST_EVENTS}, {"buffers", MPSFORGE_HOST_BUFFERS}};
  const auto known = kinds.find(kind);
  if (known == kinds.end()) return PyErr_Format(PyExc_ValueError, "there is no kind %s", kind);
  mpsforge_host_refuse(known->second, number);
  Py_RETURN_NONE;
}

PyObject* foreign(PyObject*, PyObject* arguments) {
  HANDLE_TH_ERRORS
  long size = 0;
  int is_private = 0;
  if (!PyArg_ParseTuple(arguments, "l|p", &size, &is_private)) throw python_error();
  const auto options = is_private ? MTLResourceStorageModePrivate : MTLResourceStorageModeShared;
  id<MTLBuffer> buffer = [at::mps::MPSDevice::getInstance()->device() newBufferWithLength:size * sizeof(float)
                                                                                  options:options];
  const at::Device device(at::kMPS, 0);
  return THPVariable_Wrap(at::for_blob((void*)buffer, {size})
                              .deleter([](void* data) { [(id<MTLBuffer>)data release]; })
                              .options(at::TensorOptions().dtype(at::kFloat).device(device))
                              .target_device(device)
                              .make_tensor());
  END_HANDLE_TH_ERRORS
}

PyObject* encode_copy(PyObject*, PyObject* arguments) {
  HANDLE_TH_ERRORS
  const TwoTensors tensors(arguments);
  const WithoutGIL released;
  encode(at::mps::getCurrentMPSStream(), tensors);
  END_HANDLE_TH_ERRORS
  Py_RETURN_NONE;
}

PyObject* encode_copy_on(PyObject*, PyObject* arguments) {
  HANDLE_TH_ERRORS
  long long stream = 0;
  const TwoTensors tensors(arguments, &stream);
  TORCH_CHECK_NOT_IMPLEMENTED(at::mps::getMPSStreamFromID != nullptr, "this PyTorch has no streams by id");
  const WithoutGIL released;
  encode(at::mps::getMPSStreamFromID(stream), tensors);
  END_HANDLE_TH_ERRORS
  Py_RETURN_NONE;
}

PyObject* run_shader(PyObject*, PyObject* arguments) {
  HANDLE_TH_ERRORS
  const TwoTensors tensors(arguments);
  const WithoutGIL released;
  static auto& library = *new at::native::mps::MetalShaderLibrary(R"METAL(
#include <metal_stdlib>
kernel void exp_kernel( device float *to [[buffer(0)]], device float *from [[buffer(1)]], uint place [[thread_position_in_grid]]) {
  to[place] = metal::exp(from[place]);
}
)METAL");
  const auto kernel = library.getKernelFunction("exp_kernel");
  kernel->runCommandBlock([&] {
    kernel->startEncoding();
    kernel->setArg(0, tensors.to);
    kernel->setArg(1, tensors.from);
    kernel->dispatch(static_cast<uint64_t>(tensors.to.numel()));
  });
  END_HANDLE_TH_ERRORS
  Py_RETURN_NONE;
}

}  // namespace mpsforge::field
