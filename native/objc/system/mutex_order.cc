// Reports the mutexes of the code under test to the engine's checker. That code is linked with
//   -Wl,--wrap=pthread_mutex_lock -Wl,--wrap=pthread_mutex_trylock -Wl,--wrap=pthread_mutex_unlock
//   -Wl,--wrap=pthread_cond_wait -Wl,--wrap=pthread_cond_timedwait -Wl,--wrap=pthread_cond_clockwait
//   -Wl,--wrap=_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE
// which makes the linker turn its calls to these functions. This library is linked without, so that here the plain
// names are the system's. ThreadSanitizer sees the mutexes by itself.
#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "../engine.h"

namespace {

thread_local uint64_t locks = 0;

void acquired(const void* mutex) {
  ++locks;
  if (!mpsforge::objc::inside_engine()) mpsforge::objc::checker_acquire(mutex);
}

void releasing(const void* mutex) {
  if (!mpsforge::objc::inside_engine()) mpsforge::objc::checker_release(mutex);
}

}  // namespace

extern "C" {

// How often the code under test has locked a mutex on the calling thread, waits for conditions included.
uint64_t mpsforge_mutex_locks() { return locks; }

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  const int result = pthread_mutex_lock(mutex);
  if (result == 0) acquired(mutex);
  return result;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t* mutex) {
  const int result = pthread_mutex_trylock(mutex);
  if (result == 0) acquired(mutex);
  return result;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
  releasing(mutex);
  return pthread_mutex_unlock(mutex);
}

int __wrap_pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  releasing(mutex);
  const int result = pthread_cond_wait(condition, mutex);
  acquired(mutex);
  return result;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  releasing(mutex);
  const int result = pthread_cond_timedwait(condition, mutex, until);
  acquired(mutex);
  return result;
}

int __wrap_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const timespec* until) {
  releasing(mutex);
  const int result = pthread_cond_clockwait(condition, mutex, clock, until);
  acquired(mutex);
  return result;
}

// In libstdc++, not in its headers.
void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(std::condition_variable* condition,
                                                                      std::unique_lock<std::mutex>* lock) {
  const void* mutex = lock->mutex()->native_handle();
  releasing(mutex);
  condition->wait(*lock);
  acquired(mutex);
}

}  // extern "C"
