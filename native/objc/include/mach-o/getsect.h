#pragma once

#include <mach-o/loader.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// NULL if the image has no such section.
uint8_t* getsectiondata(const struct mach_header_64* header, const char* segment, const char* section,
                        unsigned long* size);

#ifdef __cplusplus
}
#endif
