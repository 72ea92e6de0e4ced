#pragma once

#include <Foundation/NSObject.h>

typedef double NSTimeInterval;  // seconds

#ifdef __OBJC__
@interface NSDate : NSObject <NSCopying> {
  NSTimeInterval since_1970_;
}
+ (instancetype)date;
+ (instancetype)dateWithTimeIntervalSinceNow:(NSTimeInterval)seconds;
@property(readonly) NSTimeInterval timeIntervalSince1970;
@property(readonly) NSTimeInterval timeIntervalSinceNow;
- (NSTimeInterval)timeIntervalSinceDate:(NSDate*)date;
@end
#endif
