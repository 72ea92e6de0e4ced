#pragma once

#include <Foundation/NSDate.h>
#include <Foundation/NSObject.h>

#ifdef __OBJC__
@interface NSThread : NSObject
+ (BOOL)isMainThread;
+ (void)sleepForTimeInterval:(NSTimeInterval)seconds;
@end
#endif
