// The system's, and the clock in nanoseconds that only macOS has.
#pragma once

#include <stdint.h>
#include_next <time.h>

static inline uint64_t clock_gettime_nsec_np(clockid_t clock) {
  struct timespec now;
  return clock_gettime(clock, &now) == 0 ? (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec : 0;
}
