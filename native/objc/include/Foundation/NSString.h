#pragma once

#include <Foundation/NSObject.h>
#include <Foundation/NSRange.h>

#ifdef __OBJC__
@class NSArray<ObjectType>, NSData;

typedef unsigned short unichar;
typedef NSUInteger NSStringEncoding;
enum : NSStringEncoding {
  NSASCIIStringEncoding = 1,
  NSUTF8StringEncoding = 4,
  NSISOLatin1StringEncoding = 5,
};

// Strings are UTF-8 inside. length, indices and ranges count UTF-16 units as Foundation's do; those with indices are
// for ASCII strings only here and abort for others. Encodings other than ASCII and UTF-8 abort.
@interface NSString : NSObject <NSCopying, NSMutableCopying>
+ (instancetype)string;
+ (instancetype)stringWithString:(NSString*)string;
+ (instancetype)stringWithUTF8String:(const char*)text;
+ (instancetype)stringWithCString:(const char*)text encoding:(NSStringEncoding)encoding;
+ (instancetype)stringWithFormat:(NSString*)format, ... NS_FORMAT_FUNCTION(1, 2);
- (instancetype)initWithUTF8String:(const char*)text;
- (instancetype)initWithCString:(const char*)text encoding:(NSStringEncoding)encoding;
- (instancetype)initWithBytes:(const void*)bytes length:(NSUInteger)length encoding:(NSStringEncoding)encoding;
- (instancetype)initWithData:(NSData*)data encoding:(NSStringEncoding)encoding;
- (instancetype)initWithString:(NSString*)string;
- (instancetype)initWithFormat:(NSString*)format, ... NS_FORMAT_FUNCTION(1, 2);
- (instancetype)initWithFormat:(NSString*)format arguments:(va_list)arguments;
@property(readonly) NSUInteger length;
- (unichar)characterAtIndex:(NSUInteger)index;
@property(readonly) const char* UTF8String NS_RETURNS_INNER_POINTER;
- (const char*)cStringUsingEncoding:(NSStringEncoding)encoding;
- (NSUInteger)lengthOfBytesUsingEncoding:(NSStringEncoding)encoding;
- (NSData*)dataUsingEncoding:(NSStringEncoding)encoding;
- (BOOL)isEqualToString:(NSString*)string;
- (NSComparisonResult)compare:(NSString*)string;
- (BOOL)hasPrefix:(NSString*)prefix;
- (BOOL)hasSuffix:(NSString*)suffix;
- (BOOL)containsString:(NSString*)string;
- (NSRange)rangeOfString:(NSString*)string;
- (NSString*)substringFromIndex:(NSUInteger)index;
- (NSString*)substringToIndex:(NSUInteger)index;
- (NSString*)substringWithRange:(NSRange)range;
- (NSString*)stringByAppendingString:(NSString*)string;
- (NSString*)stringByAppendingFormat:(NSString*)format, ... NS_FORMAT_FUNCTION(1, 2);
- (NSString*)stringByReplacingOccurrencesOfString:(NSString*)target withString:(NSString*)replacement;
- (NSArray<NSString*>*)componentsSeparatedByString:(NSString*)separator;
@property(readonly, copy) NSString* lowercaseString;  // of ASCII letters
@property(readonly, copy) NSString* uppercaseString;  // of ASCII letters
@property(readonly) double doubleValue;
@property(readonly) float floatValue;
@property(readonly) int intValue;
@property(readonly) NSInteger integerValue;
@property(readonly) long long longLongValue;
@property(readonly) BOOL boolValue;
@end

@interface NSMutableString : NSString
- (void)appendString:(NSString*)string;
- (void)appendFormat:(NSString*)format, ... NS_FORMAT_FUNCTION(1, 2);
- (void)setString:(NSString*)string;
@end

// The compiler lays these out itself: @"...".
@interface NSConstantString : NSString {
  const char* bytes_;
  unsigned int size_;
}
@end
#endif
