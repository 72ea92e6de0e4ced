// What mpsforge's backend on Apple's Metal uses, and host builds do not have.
#ifndef MPSFORGE_MAC_NSLOCK_H
#define MPSFORGE_MAC_NSLOCK_H

#include_next <Foundation/NSLock.h>

#ifdef __OBJC__
@interface NSCondition : NSObject <NSLocking>
- (void)wait;
- (void)signal;
- (void)broadcast;
@end
#endif

#endif
