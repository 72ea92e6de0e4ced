// Errors and exceptions.
#include <cstdio>
#include <cstdlib>

#include "support.h"

const NSErrorUserInfoKey NSLocalizedDescriptionKey = @"NSLocalizedDescription";
const NSErrorUserInfoKey NSLocalizedFailureReasonErrorKey = @"NSLocalizedFailureReason";
const NSErrorUserInfoKey NSUnderlyingErrorKey = @"NSUnderlyingError";
const NSErrorDomain NSCocoaErrorDomain = @"NSCocoaErrorDomain";
const NSErrorDomain NSPOSIXErrorDomain = @"NSPOSIXErrorDomain";

const NSExceptionName NSGenericException = @"NSGenericException";
const NSExceptionName NSRangeException = @"NSRangeException";
const NSExceptionName NSInvalidArgumentException = @"NSInvalidArgumentException";
const NSExceptionName NSInternalInconsistencyException = @"NSInternalInconsistencyException";
const NSExceptionName NSMallocException = @"NSMallocException";

extern "C" void objc_exception_throw(id object) __attribute__((noreturn));

namespace mpsforge::objc {

void out_of_range(id object, SEL selector, NSUInteger index, NSUInteger count) {
  [NSException
       raise:NSRangeException
      format:@"-[%s %s]: %lu is beyond the end, %lu", object_getClassName(object), sel_getName(selector), index, count];
  __builtin_unreachable();
}

void invalid_argument(id object, SEL selector, const char* what) {
  [NSException raise:NSInvalidArgumentException
              format:@"-[%s %s]: %s", object_getClassName(object), sel_getName(selector), what];
  __builtin_unreachable();
}

}  // namespace mpsforge::objc

@implementation NSError

+ (instancetype)errorWithDomain:(NSErrorDomain)domain code:(NSInteger)code userInfo:(NSDictionary*)user_info {
  return [[[self alloc] initWithDomain:domain code:code userInfo:user_info] autorelease];
}

- (instancetype)initWithDomain:(NSErrorDomain)domain code:(NSInteger)code userInfo:(NSDictionary*)user_info {
  if (!(self = [super init])) return nil;
  domain_ = [domain copy];
  code_ = code;
  user_info_ = user_info ? [user_info copy] : [[NSDictionary alloc] init];
  return self;
}

- (void)dealloc {
  [domain_ release];
  [user_info_ release];
  [super dealloc];
}

- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}

- (NSErrorDomain)domain {
  return domain_;
}

- (NSInteger)code {
  return code_;
}

- (NSDictionary*)userInfo {
  return user_info_;
}

- (NSString*)localizedDescription {
  NSString* text = [user_info_ objectForKey:NSLocalizedDescriptionKey];
  return text ? text : [NSString stringWithFormat:@"The operation failed: error %ld of %@", code_, domain_];
}

- (NSString*)localizedFailureReason {
  return [user_info_ objectForKey:NSLocalizedFailureReasonErrorKey];
}

- (NSString*)description {
  return [NSString stringWithFormat:@"Error Domain=%@ Code=%ld \"%@\"", domain_, code_, [self localizedDescription]];
}

@end

@implementation NSException

+ (NSException*)exceptionWithName:(NSExceptionName)name reason:(NSString*)reason userInfo:(NSDictionary*)user_info {
  return [[[self alloc] initWithName:name reason:reason userInfo:user_info] autorelease];
}

- (instancetype)initWithName:(NSExceptionName)name reason:(NSString*)reason userInfo:(NSDictionary*)user_info {
  if (!(self = [super init])) return nil;
  name_ = [name copy];
  reason_ = [reason copy];
  user_info_ = [user_info copy];
  return self;
}

- (void)dealloc {
  [name_ release];
  [reason_ release];
  [user_info_ release];
  [super dealloc];
}

+ (void)raise:(NSExceptionName)name format:(NSString*)format, ... {
  va_list arguments;
  va_start(arguments, format);
  NSString* reason = [[[NSString alloc] initWithFormat:format arguments:arguments] autorelease];
  va_end(arguments);
  objc_exception_throw([self exceptionWithName:name reason:reason userInfo:nil]);
}

- (void)raise {
  objc_exception_throw(self);
}

- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}

- (NSExceptionName)name {
  return name_;
}

- (NSString*)reason {
  return reason_;
}

- (NSDictionary*)userInfo {
  return user_info_;
}

- (NSString*)description {
  return reason_ ? reason_ : name_;
}

@end

extern "C" void MPSForgeAssertionFailed(const char* file, int line, NSString* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "*** Assertion failure at %s:%d: %s\n", file, line,
               mpsforge::objc::format(format, arguments).c_str());
  va_end(arguments);
  std::abort();
}
