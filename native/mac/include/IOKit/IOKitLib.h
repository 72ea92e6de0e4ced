#pragma once

#include_next <IOKit/IOKitLib.h>
#include <mach/mach.h>

#undef kIOMainPortDefault
#ifdef __cplusplus
extern "C" {
#endif
extern const mach_port_t kIOMainPortDefault;
#ifdef __cplusplus
}
#endif
