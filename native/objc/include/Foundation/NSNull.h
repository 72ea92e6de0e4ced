#pragma once

#include <Foundation/NSObject.h>

#ifdef __OBJC__
@interface NSNull : NSObject <NSCopying>
+ (NSNull*)null;
@end
#endif
