// copy_ has no kernel for MPS: the operator of all devices calls the backend's function. A host build's libtorch, built
// without MPS, lacks that branch, and under an overlay it leads to torch's own copy. Here the dispatcher finds one.
#include <ATen/ATen.h>
#include <ATen/native/mps/Copy.h>
#include <torch/library.h>

namespace {

// The branch in ATen/native/Copy.cpp.
at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  if (self.is_same(source)) return self;
  if (self.numel() == 0) {   // the branch is after this
    source.expand_as(self);  // throws if the shapes do not fit
    return self;
  }
  return at::native::mps::mps_copy_(self, source, non_blocking);
}

TORCH_LIBRARY_IMPL(aten, MPS, m) { m.impl("copy_", copy); }

}  // namespace
