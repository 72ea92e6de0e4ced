#pragma once

#include <Foundation/NSObject.h>

#ifdef __OBJC__
// Filled by collections, read by the code the compiler makes of `for (x in collection)`.
typedef struct {
  unsigned long state;
  id __unsafe_unretained* itemsPtr;
  unsigned long* mutationsPtr;
  unsigned long extra[5];
} NSFastEnumerationState;

@protocol NSFastEnumeration
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)state
                                  objects:(id __unsafe_unretained[])buffer
                                    count:(NSUInteger)count;
@end

typedef NS_OPTIONS(NSUInteger, NSEnumerationOptions) {
  NSEnumerationConcurrent = 1UL << 0,
  NSEnumerationReverse = 1UL << 1
};

@class NSArray<ObjectType>;

@interface NSEnumerator<ObjectType> : NSObject <NSFastEnumeration> {
  NSArray* objects_;
  NSUInteger next_;
}
- (ObjectType)nextObject;
@property(readonly, copy) NSArray<ObjectType>* allObjects;
@end
#endif
