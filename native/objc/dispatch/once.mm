// dispatch_once: no lock of the system, so that the only edge is from the end of the function to every later call.
#include <sched.h>

#include <atomic>

#include "objects.h"

namespace {

enum : dispatch_once_t { kNotYet = 0, kRunning = 1, kDone = -1 };

std::atomic<dispatch_once_t>* atomic(dispatch_once_t* predicate) {
  static_assert(sizeof(std::atomic<dispatch_once_t>) == sizeof(dispatch_once_t), "a predicate is used as an atomic");
  return reinterpret_cast<std::atomic<dispatch_once_t>*>(predicate);
}

}  // namespace

extern "C" {

void dispatch_once_f(dispatch_once_t* predicate, void* context, dispatch_function_t function) {
  std::atomic<dispatch_once_t>* state = atomic(predicate);
  dispatch_once_t seen = kNotYet;
  if (state->load(std::memory_order_acquire) != kDone) {
    if (state->compare_exchange_strong(seen, kRunning, std::memory_order_relaxed)) {
      function(context);
      mpsforge::objc::order_release(predicate);
      state->store(kDone, std::memory_order_release);
      return;
    }
    while (state->load(std::memory_order_acquire) != kDone) sched_yield();
  }
  mpsforge::objc::order_acquire(predicate);
}

void dispatch_once(dispatch_once_t* predicate, dispatch_block_t block) {
  dispatch_once_f(predicate, static_cast<void*>(block), mpsforge::objc::call_block);
}

}  // extern "C"
