#ifndef MPSFORGE_MAC_IOKITLIB_H
#define MPSFORGE_MAC_IOKITLIB_H

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

#endif
