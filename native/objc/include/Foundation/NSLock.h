#pragma once

#include <Foundation/NSObject.h>
#include <pthread.h>

#ifdef __OBJC__
@protocol NSLocking
- (void)lock;
- (void)unlock;
@end

@interface NSLock : NSObject <NSLocking> {
  pthread_mutex_t mutex_;
}
- (BOOL)tryLock;
@end

@interface NSRecursiveLock : NSObject <NSLocking> {
  pthread_mutex_t mutex_;
}
- (BOOL)tryLock;
@end
#endif
