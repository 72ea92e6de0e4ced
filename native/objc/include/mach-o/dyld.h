// The list of images has one: "libtorch_cpu.dylib", whose sections are those that mpsforge/host.h was given.
#pragma once

#include <mach-o/loader.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

uint32_t _dyld_image_count(void);
const struct mach_header* _dyld_get_image_header(uint32_t index);
const char* _dyld_get_image_name(uint32_t index);
intptr_t _dyld_get_image_vmaddr_slide(uint32_t index);

#ifdef __cplusplus
}
#endif
