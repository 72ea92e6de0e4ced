#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../engine.h"
#include "support.h"

namespace {

unsigned char* get_memory(NSUInteger length) {
  // One byte at least, so that bytes is never NULL for an object that owns memory.
  auto* memory = static_cast<unsigned char*>(std::calloc(1, length ? length : 1));
  if (!memory) mpsforge::objc::fail("no memory for NSData of %lu bytes", length);
  return memory;
}

}  // namespace

@implementation NSData

+ (instancetype)data {
  return [[[self alloc] initWithBytes:nullptr length:0] autorelease];
}

+ (instancetype)dataWithBytes:(const void*)bytes length:(NSUInteger)length {
  return [[[self alloc] initWithBytes:bytes length:length] autorelease];
}

+ (instancetype)dataWithBytesNoCopy:(void*)bytes length:(NSUInteger)length {
  return [[[self alloc] initWithBytesNoCopy:bytes length:length freeWhenDone:YES] autorelease];
}

+ (instancetype)dataWithBytesNoCopy:(void*)bytes length:(NSUInteger)length freeWhenDone:(BOOL)free_when_done {
  return [[[self alloc] initWithBytesNoCopy:bytes length:length freeWhenDone:free_when_done] autorelease];
}

+ (instancetype)dataWithData:(NSData*)data {
  return [[[self alloc] initWithData:data] autorelease];
}

+ (instancetype)dataWithContentsOfFile:(NSString*)path {
  std::FILE* file = path ? std::fopen([path UTF8String], "rb") : nullptr;
  if (!file) return nil;
  std::vector<char> content;
  char part[4096];
  size_t got = 0;
  while ((got = std::fread(part, 1, sizeof part, file)) > 0) content.insert(content.end(), part, part + got);
  const bool failed = std::ferror(file);
  std::fclose(file);
  return failed ? nil : [self dataWithBytes:content.data() length:content.size()];
}

- (instancetype)init {
  return [self initWithBytes:nullptr length:0];
}

- (instancetype)initWithBytes:(const void*)bytes length:(NSUInteger)length {
  if (!(self = [super init])) return nil;
  bytes_ = get_memory(length);
  length_ = length;
  owned_ = YES;
  if (length > 0) std::memcpy(bytes_, bytes, length);
  return self;
}

- (instancetype)initWithBytesNoCopy:(void*)bytes length:(NSUInteger)length {
  return [self initWithBytesNoCopy:bytes length:length freeWhenDone:YES];
}

- (instancetype)initWithBytesNoCopy:(void*)bytes length:(NSUInteger)length freeWhenDone:(BOOL)free_when_done {
  if (!(self = [super init])) return nil;
  bytes_ = static_cast<unsigned char*>(bytes);
  length_ = length;
  owned_ = free_when_done;
  return self;
}

- (instancetype)initWithBytesNoCopy:(void*)bytes
                             length:(NSUInteger)length
                        deallocator:(void (^)(void* bytes, NSUInteger length))deallocator {
  if ((self = [self initWithBytesNoCopy:bytes length:length freeWhenDone:NO])) deallocator_ = [deallocator copy];
  return self;
}

- (instancetype)initWithData:(NSData*)data {
  return [self initWithBytes:[data bytes] length:[data length]];
}

- (void)dealloc {
  if (deallocator_) deallocator_(bytes_, length_);
  [deallocator_ release];
  if (owned_) std::free(bytes_);
  [super dealloc];
}

- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}

- (id)mutableCopyWithZone:(NSZone*)zone {
  return [[NSMutableData alloc] initWithData:self];
}

- (NSUInteger)length {
  return length_;
}

- (const void*)bytes {
  return bytes_;
}

- (void)getBytes:(void*)buffer length:(NSUInteger)length {
  std::memcpy(buffer, bytes_, MIN(length, length_));
}

- (void)getBytes:(void*)buffer range:(NSRange)range {
  if (range.location > length_ || range.length > length_ - range.location) {
    mpsforge::objc::out_of_range(self, _cmd, NSMaxRange(range), length_);
  }
  std::memcpy(buffer, bytes_ + range.location, range.length);
}

- (BOOL)isEqualToData:(NSData*)data {
  return data && length_ == data->length_ && std::memcmp(bytes_, data->bytes_, length_) == 0;
}

- (BOOL)isEqual:(id)object {
  return self == object || ([object isKindOfClass:[NSData class]] && [self isEqualToData:object]);
}

- (NSUInteger)hash {
  return std::hash<std::string>()(std::string(reinterpret_cast<const char*>(bytes_), length_));
}

- (NSData*)subdataWithRange:(NSRange)range {
  if (range.location > length_ || range.length > length_ - range.location) {
    mpsforge::objc::out_of_range(self, _cmd, NSMaxRange(range), length_);
  }
  return [NSData dataWithBytes:bytes_ + range.location length:range.length];
}

- (NSString*)description {
  return [NSString stringWithFormat:@"<%s: %p, %lu bytes>", object_getClassName(self), self, length_];
}

@end

// Always owns its memory.
@implementation NSMutableData

+ (instancetype)dataWithLength:(NSUInteger)length {
  return [[[self alloc] initWithLength:length] autorelease];
}

+ (instancetype)dataWithCapacity:(NSUInteger)capacity {
  return [self data];
}

- (instancetype)initWithLength:(NSUInteger)length {
  if ((self = [self init])) [self setLength:length];
  return self;
}

- (instancetype)initWithBytesNoCopy:(void*)bytes length:(NSUInteger)length freeWhenDone:(BOOL)free_when_done {
  if ((self = [self initWithBytes:bytes length:length]) && free_when_done) std::free(bytes);
  return self;
}

- (id)copyWithZone:(NSZone*)zone {
  return [[NSData alloc] initWithData:self];
}

- (void*)mutableBytes {
  return bytes_;
}

- (void)setLength:(NSUInteger)length {
  unsigned char* memory = get_memory(length);
  std::memcpy(memory, bytes_, MIN(length, length_));
  std::free(bytes_);
  bytes_ = memory;
  length_ = length;
}

- (void)appendBytes:(const void*)bytes length:(NSUInteger)length {
  const NSUInteger before = length_;
  [self setLength:before + length];
  if (length > 0) std::memcpy(bytes_ + before, bytes, length);
}

- (void)appendData:(NSData*)data {
  [self appendBytes:[data bytes] length:[data length]];
}

@end
