// The basic types of Objective-C, for clang's objfw ABI with our own runtime (native/objc/runtime).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// As on Apple silicon.
typedef bool BOOL;
#define OBJC_BOOL_DEFINED 1
#define OBJC_BOOL_IS_BOOL 1

#ifdef __OBJC__
#define YES __objc_yes
#define NO __objc_no
#else
#define YES ((BOOL)1)
#define NO ((BOOL)0)
typedef struct objc_class* Class;
typedef struct objc_object* id;
typedef struct objc_selector* SEL;
#endif

#ifdef __cplusplus
#define nil nullptr
#define Nil nullptr
#define OBJC_EXTERN extern "C"
#else
#define nil ((void*)0)
#define Nil ((void*)0)
#define OBJC_EXTERN extern
#endif

typedef void (*IMP)(void);

// Words of Apple's headers that have no meaning here.
#define OBJC_EXPORT OBJC_EXTERN
#ifndef __OSX_AVAILABLE
#define __OSX_AVAILABLE(...)
#endif

// Without automatic reference counting these say nothing; the compiler knows the __bridge casts itself.
#ifndef __strong
#define __strong
#define __unsafe_unretained
#define __autoreleasing
#endif

OBJC_EXTERN const char* sel_getName(SEL selector);
OBJC_EXTERN SEL sel_registerName(const char* name);
OBJC_EXTERN BOOL sel_isEqual(SEL first, SEL second);
