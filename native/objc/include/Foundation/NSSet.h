#pragma once

#include <Foundation/NSArray.h>
#include <Foundation/NSEnumerator.h>
#include <Foundation/NSObject.h>

#ifdef __OBJC__
@interface NSSet<__covariant ObjectType> : NSObject <NSCopying, NSMutableCopying, NSFastEnumeration> {
 @protected
  struct NSSetStorage* storage_;
}
+ (instancetype)set;
+ (instancetype)setWithObject:(ObjectType)object;
+ (instancetype)setWithObjects:(const ObjectType[])objects count:(NSUInteger)count;
+ (instancetype)setWithObjects:(ObjectType)first, ... NS_REQUIRES_NIL_TERMINATION;
+ (instancetype)setWithArray:(NSArray<ObjectType>*)array;
- (instancetype)initWithObjects:(const ObjectType[])objects count:(NSUInteger)count;
@property(readonly) NSUInteger count;
@property(readonly, copy) NSArray<ObjectType>* allObjects;
- (ObjectType)member:(ObjectType)object;
- (ObjectType)anyObject;
- (BOOL)containsObject:(ObjectType)object;
- (BOOL)isEqualToSet:(NSSet<ObjectType>*)set;
@end

@interface NSMutableSet<ObjectType> : NSSet <ObjectType>
- (void)addObject:(ObjectType)object;
- (void)removeObject:(ObjectType)object;
- (void)removeAllObjects;
@end
#endif
