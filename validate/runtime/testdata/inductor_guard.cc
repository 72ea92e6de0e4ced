// A device guard for mps that does nothing: some operators ask for one even for tensors without memory.
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {
c10::impl::DeviceGuardImplRegistrar guard(c10::DeviceType::MPS,
                                          new c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::MPS>());
}
