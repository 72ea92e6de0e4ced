#include "fork.h"

#include <pthread.h>

#include <atomic>
#include <mutex>

namespace mpsforge::pool {
namespace {

std::atomic<bool> forked{false};
std::once_flag watched;

}  // namespace

void watch_forks() {
  std::call_once(watched, [] { pthread_atfork(nullptr, nullptr, [] { forked = true; }); });
}

bool in_forked_child() { return forked; }

}  // namespace mpsforge::pool
