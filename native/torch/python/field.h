// Functions of the host build's extension for the Python parallel tests; extension.cc says what each does.
#ifndef MPSFORGE_HOSTMPS_FIELD_H
#define MPSFORGE_HOSTMPS_FIELD_H

#include <torch/csrc/python_headers.h>

namespace mpsforge::field {

PyObject* hold_queue(PyObject* self, PyObject* none);
PyObject* wait_until_held(PyObject* self, PyObject* none);
PyObject* let_go(PyObject* self, PyObject* none);
PyObject* foreign(PyObject* self, PyObject* count);
PyObject* encode_copy(PyObject* self, PyObject* arguments);
PyObject* encode_copy_on(PyObject* self, PyObject* arguments);
PyObject* run_shader(PyObject* self, PyObject* arguments);

}  // namespace mpsforge::field

#endif
