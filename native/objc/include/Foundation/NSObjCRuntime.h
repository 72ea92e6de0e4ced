// Foundation's integer types and macros.
#pragma once

#include <Availability.h>
#include <TargetConditionals.h>
#include <limits.h>
#include <objc/objc.h>
#include <stdarg.h>

typedef long NSInteger;
typedef unsigned long NSUInteger;
#define NSINTEGER_DEFINED 1

#define NSIntegerMax LONG_MAX
#define NSIntegerMin LONG_MIN
#define NSUIntegerMax ULONG_MAX
static const NSInteger NSNotFound = NSIntegerMax;

#define FOUNDATION_EXTERN OBJC_EXTERN
#define FOUNDATION_EXPORT OBJC_EXTERN

#define NS_ENUM(type, name) \
  enum name : type name;    \
  enum name : type
// As Apple's in C++: bits are combined and assigned as plain integers.
#define NS_OPTIONS(type, name) \
  type name;                   \
  enum : type
#define NS_CLOSED_ENUM NS_ENUM
#define NS_TYPED_ENUM
#define NS_TYPED_EXTENSIBLE_ENUM
#define NS_STRING_ENUM

#ifdef __OBJC__
#define NS_ASSUME_NONNULL_BEGIN _Pragma("clang assume_nonnull begin")
#define NS_ASSUME_NONNULL_END _Pragma("clang assume_nonnull end")
#else
#define NS_ASSUME_NONNULL_BEGIN
#define NS_ASSUME_NONNULL_END
#endif
#define NS_UNAVAILABLE __attribute__((unavailable))
#define NS_DESIGNATED_INITIALIZER
#define NS_REQUIRES_SUPER
#define NS_REQUIRES_NIL_TERMINATION __attribute__((sentinel(0, 1)))
#define NS_FORMAT_FUNCTION(format, first)
#define NS_RETURNS_RETAINED __attribute__((ns_returns_retained))
#define NS_RETURNS_NOT_RETAINED __attribute__((ns_returns_not_retained))
#define NS_RETURNS_INNER_POINTER
#define NS_NOESCAPE __attribute__((noescape))
#define NS_SWIFT_NAME(...)
#define NS_REFINED_FOR_SWIFT
#define NS_ROOT_CLASS __attribute__((objc_root_class))
#define NS_INLINE static inline

typedef NS_ENUM(NSInteger, NSComparisonResult) { NSOrderedAscending = -1, NSOrderedSame = 0, NSOrderedDescending = 1 };

#ifndef MIN
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#endif
#ifndef MAX
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#endif

#ifdef __OBJC__
@class NSString;
typedef NSComparisonResult (^NSComparator)(id first, id second);
FOUNDATION_EXTERN Class NSClassFromString(NSString* name);  // nil if there is none
FOUNDATION_EXTERN NSString* NSStringFromClass(Class cls);
FOUNDATION_EXTERN SEL NSSelectorFromString(NSString* name);
FOUNDATION_EXTERN NSString* NSStringFromSelector(SEL selector);
FOUNDATION_EXTERN void NSLog(NSString* format, ...);  // to standard error
FOUNDATION_EXTERN void NSLogv(NSString* format, va_list arguments);
#endif
