// Constants that are macros on Linux are Apple's own here.
#pragma once

#include_next <CoreFoundation/CoreFoundation.h>
#include <MacTypes.h>
#include <mach/mach.h>

#undef kCFAllocatorDefault
#undef CFSTR
#define CFSTR(text) ((CFStringRef)__builtin___CFStringMakeConstantString("" text ""))

#ifdef __cplusplus
extern "C" {
#endif
extern const CFAllocatorRef kCFAllocatorDefault;
#ifdef __cplusplus
}
#endif
