#pragma once

#include <Foundation/NSObject.h>
#include <Foundation/NSString.h>

#ifdef __OBJC__
@interface NSURL : NSObject <NSCopying> {
  NSString* text_;
  NSString* path_;  // nil if it is not a file's
}
+ (NSURL*)fileURLWithPath:(NSString*)path;
+ (instancetype)URLWithString:(NSString*)text;
@property(readonly, copy) NSString* absoluteString;
@property(readonly, copy) NSString* path;
@property(readonly, getter=isFileURL) BOOL fileURL;
- (NSURL*)URLByAppendingPathComponent:(NSString*)component;
@end
#endif
