// NSObject itself is in Apple's open headers; this is what Foundation adds.
#pragma once

#include <Foundation/NSObjCRuntime.h>
#include <Foundation/NSZone.h>
#include <objc/NSObject.h>
#include <objc/runtime.h>

#ifdef __OBJC__
@class NSString, NSDictionary, NSMethodSignature, NSInvocation, NSCoder;

@protocol NSCopying
- (id)copyWithZone:(NSZone*)zone;
@end

@protocol NSMutableCopying
- (id)mutableCopyWithZone:(NSZone*)zone;
@end

@protocol NSCoding
@end

@protocol NSSecureCoding <NSCoding>
@end

@interface NSObject (NSKeyValueCoding)
- (id)valueForKey:(NSString*)key;
@end

FOUNDATION_EXTERN id NSAllocateObject(Class cls, NSUInteger extra_bytes, NSZone* zone);
#endif
