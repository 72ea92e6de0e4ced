// NSObject: creation, reference counts, introspection.
#pragma once

#include <Foundation/NSObjCRuntime.h>
#include <Foundation/NSZone.h>
#include <objc/runtime.h>

#ifdef __OBJC__
@class NSString, NSDictionary, NSMethodSignature, NSInvocation;

@protocol NSObject
- (BOOL)isEqual:(id)object;
@property(readonly) NSUInteger hash;
@property(readonly) Class superclass;
- (Class)class;
- (instancetype)self;
- (id)performSelector:(SEL)selector;
- (id)performSelector:(SEL)selector withObject:(id)object;
- (id)performSelector:(SEL)selector withObject:(id)first withObject:(id)second;
- (BOOL)isProxy;
- (BOOL)isKindOfClass:(Class)cls;
- (BOOL)isMemberOfClass:(Class)cls;
- (BOOL)conformsToProtocol:(Protocol*)protocol;
- (BOOL)respondsToSelector:(SEL)selector;
- (instancetype)retain;
- (oneway void)release;
- (instancetype)autorelease;
- (NSUInteger)retainCount;
@property(readonly, copy) NSString* description;
@optional
@property(readonly, copy) NSString* debugDescription;
@end

@protocol NSCopying
- (id)copyWithZone:(NSZone*)zone;
@end

@protocol NSMutableCopying
- (id)mutableCopyWithZone:(NSZone*)zone;
@end

@class NSCoder;
@protocol NSCoding
@end

@protocol NSSecureCoding <NSCoding>
@end

// The reference count is not among the instance variables: it is kept in front of the object.
NS_ROOT_CLASS
@interface NSObject <NSObject> {
  Class isa;
}
+ (void)load;
+ (void)initialize;
- (instancetype)init;
+ (instancetype)new;
+ (instancetype)alloc;
+ (instancetype)allocWithZone:(NSZone*)zone;
- (void)dealloc;
- (id)copy;
- (id)mutableCopy;
+ (id)copyWithZone:(NSZone*)zone;
+ (BOOL)instancesRespondToSelector:(SEL)selector;
+ (BOOL)conformsToProtocol:(Protocol*)protocol;
- (IMP)methodForSelector:(SEL)selector;
+ (IMP)instanceMethodForSelector:(SEL)selector;
- (void)doesNotRecognizeSelector:(SEL)selector;  // aborts with the class and the selector
+ (BOOL)isSubclassOfClass:(Class)cls;
+ (NSString*)description;
+ (Class)class;
+ (Class)superclass;
@property(readonly, copy) NSString* debugDescription;
@end

@interface NSObject (NSKeyValueCoding)
// Only keys for which there is a method without arguments that returns an object.
- (id)valueForKey:(NSString*)key;
@end

FOUNDATION_EXTERN id NSAllocateObject(Class cls, NSUInteger extra_bytes, NSZone* zone);
#endif
