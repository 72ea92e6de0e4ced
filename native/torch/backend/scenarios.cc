// What the patches add for scenarios, which are compiled once for all checkouts. Where the sources have none, there is
// no counter, and nothing to release.
#include <ATen/mps/MPSStream.h>
#include <mpsforge/host.h>
#if __has_include(<ATen/mps/MPSStreamSlots.h>)
#include <ATen/mps/MPSStreamChoice.h>
#define MPSFORGE_LEASES 1
#endif

extern "C" int64_t mpsforge_hostmps_stream_statistic(const char* name) {
#ifdef MPSFORGE_LEASES
  const auto statistics = at::mps::getMPSStreamStatistics();
  const auto found = statistics.find(name);
  if (found != statistics.end()) return static_cast<int64_t>(found->second);
#endif
  return -1;
}

extern "C" void mpsforge_hostmps_fail_command_buffer(uint32_t n) {
  mpsforge_host_fail_command_buffer(at::mps::getCurrentMPSStream()->commandQueue(), n);
}

extern "C" void mpsforge_hostmps_release_stream_slot() {
#ifdef MPSFORGE_LEASES
  at::mps::returnMPSStream();
#endif
}
