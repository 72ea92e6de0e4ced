#ifndef MPSFORGE_FOUNDATION_NSNULL_H
#define MPSFORGE_FOUNDATION_NSNULL_H

#include <Foundation/NSObject.h>

#ifdef __OBJC__
@interface NSNull : NSObject <NSCopying>
+ (NSNull*)null;
@end
#endif

#endif
