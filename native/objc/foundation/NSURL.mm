// URLs, as text, and null.
#include <cstring>

#include "support.h"

@implementation NSURL

+ (NSURL*)fileURLWithPath:(NSString*)path {
  if (!path) mpsforge::objc::invalid_argument(self, _cmd, "nil path");
  NSURL* url = [[[self alloc] init] autorelease];
  url->path_ = [path copy];
  url->text_ = [[@"file://" stringByAppendingString:path] retain];
  return url;
}

+ (instancetype)URLWithString:(NSString*)text {
  if (!text) mpsforge::objc::invalid_argument(self, _cmd, "nil string");
  if ([text hasPrefix:@"file://"]) {
    return [self fileURLWithPath:mpsforge::objc::text([text UTF8String] + std::strlen("file://"))];
  }
  NSURL* url = [[[self alloc] init] autorelease];
  url->text_ = [text copy];
  return url;
}

- (void)dealloc {
  [text_ release];
  [path_ release];
  [super dealloc];
}

- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}

- (NSString*)absoluteString {
  return text_;
}

- (NSString*)path {
  return path_;
}

- (BOOL)isFileURL {
  return path_ != nil;
}

- (NSURL*)URLByAppendingPathComponent:(NSString*)component {
  NSString* base = [text_ hasSuffix:@"/"] ? text_ : [text_ stringByAppendingString:@"/"];
  return [NSURL URLWithString:[base stringByAppendingString:component]];
}

- (BOOL)isEqual:(id)object {
  return self == object || ([object isKindOfClass:[NSURL class]] && [text_ isEqual:[object absoluteString]]);
}

- (NSUInteger)hash {
  return [text_ hash];
}

- (NSString*)description {
  return text_;
}

@end

@implementation NSNull

+ (NSNull*)null {
  static NSNull* const only = [[NSNull alloc] init];
  return only;
}

- (id)copyWithZone:(NSZone*)zone {
  return self;
}

- (NSString*)description {
  return @"<null>";
}

@end
