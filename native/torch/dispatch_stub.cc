// A libtorch built without MPS has the place for MPS kernels in its dispatch stubs, but does not look there: the branch
// in ATen/native/DispatchStub.cpp is compiled only with USE_MPS. This function goes before libtorch's own where it
// comes first in the dynamic linker's order: in programs linked with libhostmps, and in Python by a library of this
// file alone, which is loaded before all others.

// What libtorch's builds for x86-64 define: the function's parameters depend on it.
#if defined(__x86_64__)
#define HAVE_AVX512_CPU_DEFINITION
#define HAVE_AVX2_CPU_DEFINITION
#endif
#include <ATen/native/DispatchStub.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace at::native {

namespace {

// libtorch's function of the same name.
template <class Function, class Member>
Function next_of(Member member) {
  void* address = nullptr;
  std::memcpy(&address, &member, sizeof address);  // what a pointer to a member function begins with
  Dl_info here;
  // Python loads libtorch for its extension module alone, where RTLD_NEXT does not look.
  void* const libtorch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  void* const next = libtorch && dladdr(address, &here) && here.dli_sname ? dlsym(libtorch, here.dli_sname) : nullptr;
  if (!next) {
    std::fprintf(stderr, "mpsforge: libtorch has no DispatchStubImpl::try_get_call_ptr: %s\n", dlerror());
    std::abort();
  }
  return reinterpret_cast<Function>(next);
}

template <class... Kernels>
DispatchResult choose(DispatchStubImpl* stub, DispatchResult (DispatchStubImpl::*member)(c10::DeviceType, Kernels...),
                      c10::DeviceType device, Kernels... kernels) {
  if (device == c10::DeviceType::MPS) {
    if (!stub->mps_dispatch_ptr) return ErrorType::MissingDeviceKernel;
    return stub->mps_dispatch_ptr;
  }
  using Function = DispatchResult (*)(DispatchStubImpl*, c10::DeviceType, Kernels...);
  static const auto next = next_of<Function>(member);
  return next(stub, device, kernels...);
}

}  // namespace

#if defined(__x86_64__)
DispatchResult DispatchStubImpl::try_get_call_ptr(c10::DeviceType device, void* plain, void* avx512, void* avx2) {
  return choose(this, &DispatchStubImpl::try_get_call_ptr, device, plain, avx512, avx2);
}
#else
DispatchResult DispatchStubImpl::try_get_call_ptr(c10::DeviceType device, void* plain) {
  return choose(this, &DispatchStubImpl::try_get_call_ptr, device, plain);
}
#endif

}  // namespace at::native
