#pragma once

#include <Foundation/NSDictionary.h>
#include <Foundation/NSObject.h>
#include <Foundation/NSString.h>

#ifdef __OBJC__
typedef NSString* NSErrorDomain;
typedef NSString* NSErrorUserInfoKey;
FOUNDATION_EXTERN const NSErrorUserInfoKey NSLocalizedDescriptionKey;
FOUNDATION_EXTERN const NSErrorUserInfoKey NSLocalizedFailureReasonErrorKey;
FOUNDATION_EXTERN const NSErrorUserInfoKey NSUnderlyingErrorKey;
FOUNDATION_EXTERN const NSErrorDomain NSCocoaErrorDomain;
FOUNDATION_EXTERN const NSErrorDomain NSPOSIXErrorDomain;

@interface NSError : NSObject <NSCopying> {
  NSErrorDomain domain_;
  NSInteger code_;
  NSDictionary* user_info_;
}
+ (instancetype)errorWithDomain:(NSErrorDomain)domain code:(NSInteger)code userInfo:(NSDictionary*)user_info;
- (instancetype)initWithDomain:(NSErrorDomain)domain code:(NSInteger)code userInfo:(NSDictionary*)user_info;
@property(readonly, copy) NSErrorDomain domain;
@property(readonly) NSInteger code;
@property(readonly, copy) NSDictionary<NSErrorUserInfoKey, id>* userInfo;
@property(readonly, copy) NSString* localizedDescription;
@property(readonly, copy) NSString* localizedFailureReason;
@end
#endif
