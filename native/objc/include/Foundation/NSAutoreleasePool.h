#pragma once

#include <Foundation/NSObject.h>

#ifdef __OBJC__
@interface NSAutoreleasePool : NSObject {
  void* token_;
}
+ (void)addObject:(id)object;
- (void)drain;
@end
#endif
