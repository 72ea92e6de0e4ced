// What programs in the field do to MPS from C++, for the Python parallel tests: extensions that encode by themselves,
// tensors over memory that PyTorch did not allocate, and a stream that is held up.
#include <ATen/ATen.h>
#include <ATen/mps/MPSDevice.h>
#include <ATen/mps/MPSStream.h>
#include <ATen/native/mps/MetalShaderLibrary.h>
#include <ATen/ops/from_blob.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include <condition_variable>
#include <mutex>

#include "field.h"

// Stock PyTorch has no streams to choose from.
namespace at::mps {
MPSStream* getMPSStreamFromID(c10::StreamId id) __attribute__((weak));
}

namespace {

struct WithoutGIL {
  PyThreadState* state = PyEval_SaveThread();
  ~WithoutGIL() { PyEval_RestoreThread(state); }
};

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

id<MTLBuffer> buffer_of(const at::Tensor& tensor) { return (id<MTLBuffer>)tensor.storage().mutable_data(); }
size_t offset_of(const at::Tensor& tensor) { return tensor.storage_offset() * tensor.element_size(); }

void two_tensors(PyObject* arguments, at::Tensor& to, at::Tensor& from, long* stream = nullptr) {
  PyObject *first = nullptr, *second = nullptr;
  long ignored = 0;
  const char* const format = stream ? "OOl" : "OO";
  if (!PyArg_ParseTuple(arguments, format, &first, &second, stream ? stream : &ignored)) throw python_error();
  TORCH_CHECK_TYPE(THPVariable_Check(first) && THPVariable_Check(second), "expected two tensors");
  to = THPVariable_Unpack(first);
  from = THPVariable_Unpack(second);
  TORCH_CHECK(
      to.is_mps() && from.is_mps() && to.is_contiguous() && from.is_contiguous() && to.nbytes() == from.nbytes(),
      "expected two contiguous tensors of mps, of one size");
}

void encode(at::mps::MPSStream* stream, const at::Tensor& to, const at::Tensor& from) {
  dispatch_sync(stream->queue(), ^{
    stream->endKernelCoalescing();
    id<MTLBlitCommandEncoder> encoder = [stream->commandBuffer() blitCommandEncoder];
    [encoder copyFromBuffer:buffer_of(from)
               sourceOffset:offset_of(from)
                   toBuffer:buffer_of(to)
          destinationOffset:offset_of(to)
                       size:to.nbytes()];
    [encoder endEncoding];
  });
}

}  // namespace

namespace mpsforge::field {

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

PyObject* foreign(PyObject*, PyObject* count) {
  HANDLE_TH_ERRORS
  const long size = PyLong_AsLong(count);
  if (size == -1 && PyErr_Occurred()) throw python_error();
  id<MTLBuffer> buffer = [at::mps::MPSDevice::getInstance()->device() newBufferWithLength:size * sizeof(float)
                                                                                  options:MTLResourceStorageModeShared];
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
  at::Tensor to, from;
  two_tensors(arguments, to, from);
  const WithoutGIL released;
  encode(at::mps::getCurrentMPSStream(), to, from);
  END_HANDLE_TH_ERRORS
  Py_RETURN_NONE;
}

PyObject* encode_copy_on(PyObject*, PyObject* arguments) {
  HANDLE_TH_ERRORS
  at::Tensor to, from;
  long stream = 0;
  two_tensors(arguments, to, from, &stream);
  TORCH_CHECK_NOT_IMPLEMENTED(at::mps::getMPSStreamFromID != nullptr, "this PyTorch has no streams by id");
  const WithoutGIL released;
  encode(at::mps::getMPSStreamFromID(stream), to, from);
  END_HANDLE_TH_ERRORS
  Py_RETURN_NONE;
}

PyObject* run_shader(PyObject*, PyObject* arguments) {
  HANDLE_TH_ERRORS
  at::Tensor to, from;
  two_tensors(arguments, to, from);
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
    kernel->setArg(0, to);
    kernel->setArg(1, from);
    kernel->dispatch(static_cast<uint64_t>(to.numel()));
  });
  END_HANDLE_TH_ERRORS
  Py_RETURN_NONE;
}

}  // namespace mpsforge::field
