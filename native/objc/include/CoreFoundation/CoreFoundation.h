// The few types and functions of Core Foundation that appear beside Foundation. A CFTypeRef is an Objective-C object.
#pragma once

#include <TargetConditionals.h>
#include <mach/vm_page_size.h>
#include <math.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef double CFTimeInterval;
typedef CFTimeInterval CFAbsoluteTime;  // since 2001-01-01 00:00 UTC
typedef const void* CFTypeRef;
typedef long CFIndex;
typedef unsigned long CFOptionFlags;

typedef const struct __CFAllocator* CFAllocatorRef;
typedef const struct __CFString* CFStringRef;
typedef const struct __CFNumber* CFNumberRef;
typedef const struct __CFDictionary* CFDictionaryRef;
typedef struct __CFDictionary* CFMutableDictionaryRef;
typedef unsigned char Boolean;
#define kCFAllocatorDefault ((CFAllocatorRef)0)
typedef enum CFNumberType : CFIndex {
  kCFNumberIntType = 9,
  kCFNumberLongType = 10,
  kCFNumberLongLongType = 11,
  kCFNumberDoubleType = 13,
} CFNumberType;

// A constant string.
CFStringRef mpsforge_cf_string(const char* text);
#define CFSTR(text) mpsforge_cf_string("" text)
// False if the number does not fit into the type.
Boolean CFNumberGetValue(CFNumberRef number, CFNumberType type, void* value);

CFAbsoluteTime CFAbsoluteTimeGetCurrent(void);
CFTypeRef CFRetain(CFTypeRef object);
void CFRelease(CFTypeRef object);
CFIndex CFGetRetainCount(CFTypeRef object);

#ifdef __cplusplus
}
#endif
