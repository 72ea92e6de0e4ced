// What mpsforge's backend on Apple's Metal uses, and host builds do not have.
#pragma once

#include_next <Foundation/NSLock.h>

#ifdef __OBJC__
@interface NSCondition : NSObject <NSLocking>
- (void)wait;
- (void)signal;
- (void)broadcast;
@end
#endif
