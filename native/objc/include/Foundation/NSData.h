#pragma once

#include <Foundation/NSObject.h>
#include <Foundation/NSRange.h>

#ifdef __OBJC__
@interface NSData : NSObject <NSCopying, NSMutableCopying> {
 @protected
  unsigned char* bytes_;
  NSUInteger length_;
  BOOL owned_;                                           // freed with the object
  void (^deallocator_)(void* bytes, NSUInteger length);  // called with the object's end, or nil
}
+ (instancetype)data;
+ (instancetype)dataWithBytes:(const void*)bytes length:(NSUInteger)length;
+ (instancetype)dataWithBytesNoCopy:(void*)bytes length:(NSUInteger)length;
+ (instancetype)dataWithBytesNoCopy:(void*)bytes length:(NSUInteger)length freeWhenDone:(BOOL)free_when_done;
+ (instancetype)dataWithData:(NSData*)data;
+ (instancetype)dataWithContentsOfFile:(NSString*)path;  // nil if it cannot be read
- (instancetype)initWithBytes:(const void*)bytes length:(NSUInteger)length;
- (instancetype)initWithBytesNoCopy:(void*)bytes length:(NSUInteger)length;
- (instancetype)initWithBytesNoCopy:(void*)bytes length:(NSUInteger)length freeWhenDone:(BOOL)free_when_done;
- (instancetype)initWithBytesNoCopy:(void*)bytes
                             length:(NSUInteger)length
                        deallocator:(void (^)(void* bytes, NSUInteger length))deallocator;
- (instancetype)initWithData:(NSData*)data;
@property(readonly) NSUInteger length;
@property(readonly) const void* bytes NS_RETURNS_INNER_POINTER;
- (void)getBytes:(void*)buffer length:(NSUInteger)length;
- (void)getBytes:(void*)buffer range:(NSRange)range;
- (BOOL)isEqualToData:(NSData*)data;
- (NSData*)subdataWithRange:(NSRange)range;
@end

@interface NSMutableData : NSData
+ (instancetype)dataWithLength:(NSUInteger)length;
+ (instancetype)dataWithCapacity:(NSUInteger)capacity;
- (instancetype)initWithLength:(NSUInteger)length;
@property(readonly) void* mutableBytes NS_RETURNS_INNER_POINTER;
- (void)setLength:(NSUInteger)length;
- (void)appendBytes:(const void*)bytes length:(NSUInteger)length;
- (void)appendData:(NSData*)data;
@end
#endif
