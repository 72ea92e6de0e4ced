// The Python extension of a host build: the checkout's torch/csrc/mps, put over what torch._C was built with.
#include <ATen/detail/MPSHooksInterface.h>
#include <dlfcn.h>
#include <torch/csrc/python_headers.h>

#include "field.h"

extern "C" const char mpsforge_stamp[];

// As the checkout's torch/csrc/mps/Module.h declares them.
namespace torch::mps {
PyMethodDef* python_functions();
void initModule(PyObject* module);
}  // namespace torch::mps

namespace {

// What torch/csrc/Module.cpp does in a build with MPS.
PyObject* install(PyObject*, PyObject* torch_c) {
  if (PyModule_AddFunctions(torch_c, torch::mps::python_functions()) != 0) return nullptr;
  try {
    torch::mps::initModule(torch_c);
  } catch (const std::exception& error) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
  if (PyObject_SetAttrString(torch_c, "_has_mps", Py_True) != 0) return nullptr;
  Py_RETURN_NONE;
}

// The library that is loaded, as the dynamic loader names it, and the stamp in it.
PyObject* identity(PyObject*, PyObject*) {
  Dl_info info{};
  const bool known = dladdr(mpsforge_stamp, &info) != 0 && info.dli_fname;
  return Py_BuildValue("(ss)", known ? info.dli_fname : "", mpsforge_stamp);
}

// The address of MPS's allocator, as torch.UntypedStorage(allocator=...) takes it.
PyObject* allocator(PyObject*, PyObject*) {
  return PyLong_FromVoidPtr(at::detail::getMPSHooks().getMPSDeviceAllocator());
}

namespace field = mpsforge::field;

// NOLINTNEXTLINE(*-c-arrays): Python's own form
PyMethodDef functions[] = {
    {"install", install, METH_O, "install(torch._C): put the checkout's bindings over the prebuilt ones."},
    {"identity", identity, METH_NOARGS, "The path of the loaded libhostmps.so, and its stamp."},
    {"allocator", allocator, METH_NOARGS, "The address of MPS's allocator."},
    {"hold_queue", field::hold_queue, METH_NOARGS, "Stay on the queue of the current stream until let_go()."},
    {"wait_until_held", field::wait_until_held, METH_NOARGS, "Wait until another thread is in hold_queue()."},
    {"on_completion", field::on_completion, METH_O,
     "Call the function when what the current stream has been given by now is complete."},
    {"let_go", field::let_go, METH_NOARGS, "End hold_queue()."},
    {"fail_command_buffer", field::fail_command_buffer, METH_O,
     "fail_command_buffer(n): the n-th one that the current stream commits from now on fails."},
    {"refuse", field::refuse, METH_VARARGS,
     "refuse(kind, n): Metal makes none of the next n queues, events or buffers that it is asked for."},
    {"foreign", field::foreign, METH_VARARGS,
     "foreign(n, private=False): n floats on mps in a buffer that is not the allocator's; the CPU cannot read a "
     "private one."},
    {"encode_copy", field::encode_copy, METH_VARARGS, "encode_copy(to, from): on the current stream, by no operator."},
    {"encode_copy_on", field::encode_copy_on, METH_VARARGS,
     "encode_copy_on(to, from, id): the same on the stream of that id, which nothing orders."},
    {"run_shader", field::run_shader, METH_VARARGS, "run_shader(to, from): exp, by runCommandBlock and no operator."},
    {"library_copy", field::library_copy, METH_VARARGS,
     "library_copy(to, from, queue): in a command buffer of its own on that MTLCommandQueue, by Metal alone."},
    {"kernel_copy", field::kernel_copy, METH_VARARGS, "kernel_copy(to, from): by an encoder of its own, in a guard."},
    {"kernel_exp", field::kernel_exp, METH_VARARGS, "kernel_exp(to, from): by PyTorch's encoder, in a guard."},
    {"bind", field::bind, METH_O, "bind(tensor): what a kernel does with each of its tensors, in no guard."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_mpsforge_hostmps", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__mpsforge_hostmps() { return PyModule_Create(&definition); }
