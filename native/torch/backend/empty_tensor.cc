// EmptyTensor.cpp makes tensors only where the compiler says that it compiles for macOS. Its headers come first, so
// that they see the system as it is; then the file itself, unchanged, sees a Mac.
#include <ATen/ATen.h>
#include <ATen/Tensor.h>
#include <ATen/Utils.h>
#include <ATen/mps/EmptyTensor.h>
#include <ATen/mps/MPSDevice.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/native/mps/Copy.h>
#include <torch/library.h>

#define __APPLE__ 1
#define __is_target_os(system) 1

#include "ATen/mps/EmptyTensor.cpp"
