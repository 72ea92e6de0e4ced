#pragma once

#include <Foundation/NSObject.h>
#include <Foundation/NSString.h>

#ifdef __OBJC__
@class NSDictionary<KeyType, ObjectType>;

typedef NSString* NSExceptionName;
FOUNDATION_EXTERN const NSExceptionName NSGenericException;
FOUNDATION_EXTERN const NSExceptionName NSRangeException;
FOUNDATION_EXTERN const NSExceptionName NSInvalidArgumentException;
FOUNDATION_EXTERN const NSExceptionName NSInternalInconsistencyException;
FOUNDATION_EXTERN const NSExceptionName NSMallocException;

// An exception that nobody catches ends the process with its name and reason on standard error.
@interface NSException : NSObject <NSCopying> {
  NSExceptionName name_;
  NSString* reason_;
  NSDictionary* user_info_;
}
+ (NSException*)exceptionWithName:(NSExceptionName)name reason:(NSString*)reason userInfo:(NSDictionary*)user_info;
- (instancetype)initWithName:(NSExceptionName)name reason:(NSString*)reason userInfo:(NSDictionary*)user_info;
+ (void)raise:(NSExceptionName)name format:(NSString*)format, ... __attribute__((noreturn));
- (void)raise __attribute__((noreturn));
@property(readonly, copy) NSExceptionName name;
@property(readonly, copy) NSString* reason;
@property(readonly, copy) NSDictionary* userInfo;
@end

// Prints the condition and where it is, and aborts.
FOUNDATION_EXTERN void MPSForgeAssertionFailed(const char* file, int line, NSString* format, ...)
    __attribute__((noreturn));
#define NSAssert(condition, ...) ((condition) ? (void)0 : MPSForgeAssertionFailed(__FILE__, __LINE__, @"" __VA_ARGS__))
#define NSCAssert NSAssert
#define NSParameterAssert(condition) NSAssert((condition), @"invalid parameter: " #condition)
#endif
