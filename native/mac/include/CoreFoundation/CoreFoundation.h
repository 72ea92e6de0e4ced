// Constants that are macros on Linux are Apple's own here.
#ifndef MPSFORGE_MAC_COREFOUNDATION_H
#define MPSFORGE_MAC_COREFOUNDATION_H

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

#endif
