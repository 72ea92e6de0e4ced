// Which copy of the backend answers, read from what is in use.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/MPSHooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <map>
#include <sstream>

#include "attempt.h"
#include "state.h"

namespace mpsforge::overlay {
namespace {

// Access is not checked in an explicit instantiation, and the types of these members have no public name.
template <auto Member>
struct GrantEntry {
  friend auto entry_of(const c10::OperatorHandle& op) { return &(op.*Member)->op; }
};
auto entry_of(const c10::OperatorHandle& op);
template struct GrantEntry<&c10::OperatorHandle::operatorDef_>;

template <auto Member>
struct GrantUnboxed {
  friend const void* unboxed(const c10::KernelFunction& kernel) { return kernel.*Member; }
};
const void* unboxed(const c10::KernelFunction& kernel);
template struct GrantUnboxed<&c10::KernelFunction::unboxed_kernel_func_>;

template <auto Kernel, auto Function>
struct GrantBoxed {
  friend const void* boxed(const c10::KernelFunction& kernel) {
    return reinterpret_cast<const void*>((kernel.*Kernel).*Function);
  }
};
const void* boxed(const c10::KernelFunction& kernel);
template struct GrantBoxed<&c10::KernelFunction::boxed_kernel_func_, &c10::BoxedKernel::boxed_kernel_func_>;

template <auto Member>
struct GrantFallbacks {
  friend const c10::KernelFunction& fallback(const c10::Dispatcher& dispatcher, int index) {
    return (dispatcher.*Member)[index].kernel;
  }
};
const c10::KernelFunction& fallback(const c10::Dispatcher& dispatcher, int index);
template struct GrantFallbacks<&c10::Dispatcher::backendFallbackKernels_>;

// Of a kernel that is called both ways, the unboxed function is its own; the boxed one may be anybody's.
std::string image_of_kernel(const c10::KernelFunction& kernel) {
  return image_of(unboxed(kernel) ? unboxed(kernel) : boxed(kernel));
}

std::string status() {
  std::ostringstream lines;
  lines << "stock\t" << state().stock << '\n';
  lines << "hooks\t" << image_of(vtable_of(&at::detail::getMPSHooks())) << '\n';
  lines << "allocator\t" << image_of(vtable_of(at::detail::getMPSHooks().getMPSDeviceAllocator())) << '\n';
  lines << "guard\t" << image_of(vtable_of(c10::impl::getDeviceGuardImpl(c10::DeviceType::MPS))) << '\n';
  auto& dispatcher = c10::Dispatcher::singleton();
  const int index = c10::getDispatchTableIndexForDispatchKey(c10::DispatchKey::MPS);
  lines << "fallback\t" << image_of_kernel(fallback(dispatcher, index)) << '\n';
  for (const auto& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findOp(name);
    if (!op) continue;
    for (const auto key : {c10::DispatchKey::MPS, c10::DispatchKey::SparseMPS, c10::DispatchKey::SparseCsrMPS,
                           c10::DispatchKey::AutogradMPS}) {
      if (!op->hasKernelForDispatchKey(key)) continue;
      lines << "kernel\t" << toString(key) << '\t' << toString(name) << '\t'
            << image_of_kernel(entry_of(*op)->lookup(c10::DispatchKeySet(key))) << '\n';
    }
  }
  const Rebound rebound = state().rebinding->result();
  lines << "symbols\t" << rebound.symbols << '\n';
  for (const auto& [image, count] : rebound.pointers) lines << "rebound\t" << image << '\t' << count << '\n';
  for (const auto& name : rebound.gone) lines << "gone\t" << name << '\n';
  for (const auto& pointer : state().rebinding->left()) lines << "left\t" << pointer << '\n';
  return lines.str();
}

}  // namespace
}  // namespace mpsforge::overlay

extern "C" int mpsforge_overlay_status(const char** text) {
  using namespace mpsforge::overlay;
  return attempt([&] { *text = keep(status()); });
}
