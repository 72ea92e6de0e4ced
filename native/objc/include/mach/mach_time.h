#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mach_timebase_info {
  uint32_t numer;
  uint32_t denom;
} mach_timebase_info_data_t, *mach_timebase_info_t;

// Nanoseconds of the monotonic clock, so that the timebase is 1/1.
uint64_t mach_absolute_time(void);
uint64_t mach_continuous_time(void);
int mach_timebase_info(mach_timebase_info_t info);

#ifdef __cplusplus
}
#endif
