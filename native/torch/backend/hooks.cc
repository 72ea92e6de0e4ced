// Hooks that the patches add, for scenarios, which are compiled once for all checkouts. Where the sources have none,
// there is no counter, and nothing to release.
#include <ATen/detail/MPSHooksInterface.h>
#include <ATen/mps/MPSStream.h>
#include <mpsforge/host.h>

namespace {

template <class Hooks>
auto statistic(const Hooks& hooks, const std::string& name, int) -> decltype(hooks.streamPoolStatistics(), int64_t()) {
  for (const auto& [known, value] : hooks.streamPoolStatistics()) {
    if (known == name) return static_cast<int64_t>(value);
  }
  return -1;
}
template <class Hooks>
int64_t statistic(const Hooks&, const std::string&, long) {
  return -1;
}

template <class Hooks>
auto release(const Hooks& hooks, int) -> decltype(hooks.returnStream()) {
  hooks.returnStream();
}
template <class Hooks>
void release(const Hooks&, long) {}

}  // namespace

extern "C" int64_t mpsforge_hostmps_stream_statistic(const char* name) {
  return statistic(at::detail::getMPSHooks(), name, 0);
}

extern "C" void mpsforge_hostmps_fail_command_buffer(uint32_t n) {
  mpsforge_host_fail_command_buffer(at::mps::getCurrentMPSStream()->commandQueue(), n);
}

extern "C" void mpsforge_hostmps_release_stream_slot() { release(at::detail::getMPSHooks(), 0); }
