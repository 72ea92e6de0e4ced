// Functions of the host build's extension for the Python parallel tests; extension.cc says what each does.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/python_headers.h>

namespace mpsforge::field {

struct WithoutGIL {
  PyThreadState* state = PyEval_SaveThread();
  ~WithoutGIL() { PyEval_RestoreThread(state); }
};

#ifdef __OBJC__
// What a function copies or computes from one tensor to another one.
struct TwoTensors {
  at::Tensor to, from;

  // The arguments (to, from), or with a number (to, from, number).
  explicit TwoTensors(PyObject* arguments, long long* number = nullptr);
  id<MTLBuffer> to_buffer() const { return (id<MTLBuffer>)to.storage().mutable_data(); }
  id<MTLBuffer> from_buffer() const { return (id<MTLBuffer>)from.storage().mutable_data(); }
  size_t to_offset() const { return to.storage_offset() * to.element_size(); }
  size_t from_offset() const { return from.storage_offset() * from.element_size(); }
  // Encodes a copy, in an encoder of its own.
  void blit(id<MTLCommandBuffer> buffer) const;
};
#endif

PyObject* hold_queue(PyObject* self, PyObject* none);
PyObject* wait_until_held(PyObject* self, PyObject* none);
PyObject* let_go(PyObject* self, PyObject* none);
PyObject* on_completion(PyObject* self, PyObject* function);
PyObject* fail_command_buffer(PyObject* self, PyObject* n);
PyObject* refuse(PyObject* self, PyObject* arguments);
PyObject* foreign(PyObject* self, PyObject* arguments);
PyObject* encode_copy(PyObject* self, PyObject* arguments);
PyObject* encode_copy_on(PyObject* self, PyObject* arguments);
PyObject* run_shader(PyObject* self, PyObject* arguments);
PyObject* library_copy(PyObject* self, PyObject* arguments);
PyObject* kernel_copy(PyObject* self, PyObject* arguments);
PyObject* kernel_exp(PyObject* self, PyObject* arguments);
PyObject* bind(PyObject* self, PyObject* tensor);

}  // namespace mpsforge::field
