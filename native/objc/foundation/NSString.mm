// Strings: constant ones as the compiler lays them out, all others over std::string. UTF-8 inside.
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string>

#include "../engine.h"
#include "support.h"

@interface MPSForgeString : NSString {
 @public
  std::string bytes_;
}
@end

@interface MPSForgeMutableString : NSMutableString {
 @public
  std::string bytes_;
}
@end

namespace {

std::string bytes(NSString* string) { return string ? std::string([string UTF8String]) : std::string(); }

bool is_ascii(const std::string& text) {
  for (const char byte : text) {
    if (byte & 0x80) return false;
  }
  return true;
}

// Of a string whose indices are asked for.
std::string ascii(NSString* string, SEL selector) {
  std::string text = bytes(string);
  if (!is_ascii(text)) {
    mpsforge::objc::fail("-[%s %s] is for ASCII strings only here", object_getClassName(string), sel_getName(selector));
  }
  return text;
}

void check_encoding(NSStringEncoding encoding, const char* selector) {
  if (encoding != NSASCIIStringEncoding && encoding != NSUTF8StringEncoding) {
    mpsforge::objc::fail("-[NSString %s]: encoding %lu is not implemented", selector, encoding);
  }
}

// UTF-16 units: one for each character, two for those that take four bytes.
NSUInteger count_units(const char* text) {
  NSUInteger units = 0;
  for (; *text; ++text) {
    const auto byte = static_cast<unsigned char>(*text);
    if ((byte & 0xc0) != 0x80) units += byte >= 0xf0 ? 2 : 1;
  }
  return units;
}

NSString* changed(NSString* string, int (*change)(int)) {
  std::string text = bytes(string);
  for (char& byte : text) {
    if (!(byte & 0x80)) byte = static_cast<char>(change(byte));
  }
  return mpsforge::objc::text(text);
}

}  // namespace

NSString* mpsforge::objc::text(const std::string& bytes) { return [NSString stringWithUTF8String:bytes.c_str()]; }

@implementation NSString

+ (instancetype)alloc {
  if (self == [NSString class]) return [MPSForgeString alloc];
  return [super alloc];
}

+ (instancetype)string {
  return [[[self alloc] init] autorelease];
}

+ (instancetype)stringWithString:(NSString*)string {
  return [[[self alloc] initWithString:string] autorelease];
}

+ (instancetype)stringWithUTF8String:(const char*)text {
  return [[[self alloc] initWithUTF8String:text] autorelease];
}

+ (instancetype)stringWithCString:(const char*)text encoding:(NSStringEncoding)encoding {
  return [[[self alloc] initWithCString:text encoding:encoding] autorelease];
}

+ (instancetype)stringWithFormat:(NSString*)format, ... {
  va_list arguments;
  va_start(arguments, format);
  id made = [[[self alloc] initWithFormat:format arguments:arguments] autorelease];
  va_end(arguments);
  return made;
}

- (instancetype)initWithUTF8String:(const char*)text {
  if (!text) mpsforge::objc::invalid_argument(self, _cmd, "NULL cString");
  return [self initWithBytes:text length:std::strlen(text) encoding:NSUTF8StringEncoding];
}

- (instancetype)initWithCString:(const char*)text encoding:(NSStringEncoding)encoding {
  if (!text) mpsforge::objc::invalid_argument(self, _cmd, "NULL cString");
  return [self initWithBytes:text length:std::strlen(text) encoding:encoding];
}

// Each kind of string has its own.
- (instancetype)initWithBytes:(const void*)bytes length:(NSUInteger)length encoding:(NSStringEncoding)encoding {
  [self doesNotRecognizeSelector:_cmd];
  return nil;
}

- (instancetype)initWithData:(NSData*)data encoding:(NSStringEncoding)encoding {
  return [self initWithBytes:[data bytes] length:[data length] encoding:encoding];
}

- (instancetype)initWithString:(NSString*)string {
  return [self initWithUTF8String:[string UTF8String]];
}

- (instancetype)initWithFormat:(NSString*)format, ... {
  va_list arguments;
  va_start(arguments, format);
  self = [self initWithFormat:format arguments:arguments];
  va_end(arguments);
  return self;
}

- (instancetype)initWithFormat:(NSString*)format arguments:(va_list)arguments {
  if (!format) mpsforge::objc::invalid_argument(self, _cmd, "nil format");
  const std::string text = mpsforge::objc::format(format, arguments);
  return [self initWithBytes:text.data() length:text.size() encoding:NSUTF8StringEncoding];
}

- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}

- (id)mutableCopyWithZone:(NSZone*)zone {
  return [[NSMutableString alloc] initWithString:self];
}

- (const char*)UTF8String {
  [self doesNotRecognizeSelector:_cmd];
  return nullptr;
}

- (NSUInteger)length {
  return count_units([self UTF8String]);
}

- (unichar)characterAtIndex:(NSUInteger)index {
  const std::string text = ascii(self, _cmd);
  if (index >= text.size()) mpsforge::objc::out_of_range(self, _cmd, index, text.size());
  return static_cast<unichar>(text[index]);
}

- (const char*)cStringUsingEncoding:(NSStringEncoding)encoding {
  check_encoding(encoding, "cStringUsingEncoding:");
  if (encoding == NSASCIIStringEncoding && !is_ascii(bytes(self))) return nullptr;
  return [self UTF8String];
}

- (NSUInteger)lengthOfBytesUsingEncoding:(NSStringEncoding)encoding {
  const char* text = [self cStringUsingEncoding:encoding];
  return text ? std::strlen(text) : 0;
}

- (NSData*)dataUsingEncoding:(NSStringEncoding)encoding {
  const char* text = [self cStringUsingEncoding:encoding];
  return text ? [NSData dataWithBytes:text length:std::strlen(text)] : nil;
}

- (BOOL)isEqualToString:(NSString*)string {
  return string && std::strcmp([self UTF8String], [string UTF8String]) == 0;
}

- (BOOL)isEqual:(id)object {
  return self == object || ([object isKindOfClass:[NSString class]] && [self isEqualToString:object]);
}

- (NSUInteger)hash {
  return std::hash<std::string>()(bytes(self));
}

- (NSComparisonResult)compare:(NSString*)string {
  const int order = bytes(self).compare(bytes(string));
  return order < 0 ? NSOrderedAscending : order > 0 ? NSOrderedDescending : NSOrderedSame;
}

- (BOOL)hasPrefix:(NSString*)prefix {
  const std::string wanted = bytes(prefix);
  return bytes(self).compare(0, wanted.size(), wanted) == 0;
}

- (BOOL)hasSuffix:(NSString*)suffix {
  const std::string own = bytes(self);
  const std::string wanted = bytes(suffix);
  return own.size() >= wanted.size() && own.compare(own.size() - wanted.size(), wanted.size(), wanted) == 0;
}

- (BOOL)containsString:(NSString*)string {
  return bytes(self).find(bytes(string)) != std::string::npos;
}

- (NSRange)rangeOfString:(NSString*)string {
  const std::string wanted = bytes(string);
  const size_t found = ascii(self, _cmd).find(wanted);
  if (wanted.empty() || found == std::string::npos) return NSMakeRange(static_cast<NSUInteger>(NSNotFound), 0);
  return NSMakeRange(found, wanted.size());
}

- (NSString*)substringFromIndex:(NSUInteger)index {
  const std::string text = ascii(self, _cmd);
  if (index > text.size()) mpsforge::objc::out_of_range(self, _cmd, index, text.size());
  return mpsforge::objc::text(text.substr(index));
}

- (NSString*)substringToIndex:(NSUInteger)index {
  return [self substringWithRange:NSMakeRange(0, index)];
}

- (NSString*)substringWithRange:(NSRange)range {
  const std::string text = ascii(self, _cmd);
  if (range.location > text.size() || range.length > text.size() - range.location) {
    mpsforge::objc::out_of_range(self, _cmd, NSMaxRange(range), text.size());
  }
  return mpsforge::objc::text(text.substr(range.location, range.length));
}

- (NSString*)stringByAppendingString:(NSString*)string {
  if (!string) mpsforge::objc::invalid_argument(self, _cmd, "nil argument");
  return mpsforge::objc::text(bytes(self) + bytes(string));
}

- (NSString*)stringByAppendingFormat:(NSString*)format, ... {
  va_list arguments;
  va_start(arguments, format);
  const std::string added = mpsforge::objc::format(format, arguments);
  va_end(arguments);
  return mpsforge::objc::text(bytes(self) + added);
}

- (NSString*)stringByReplacingOccurrencesOfString:(NSString*)target withString:(NSString*)replacement {
  const std::string wanted = bytes(target);
  const std::string put = bytes(replacement);
  std::string text = bytes(self);
  for (size_t at = 0; !wanted.empty() && (at = text.find(wanted, at)) != std::string::npos; at += put.size()) {
    text.replace(at, wanted.size(), put);
  }
  return mpsforge::objc::text(text);
}

- (NSArray<NSString*>*)componentsSeparatedByString:(NSString*)separator {
  const std::string text = bytes(self);
  const std::string between = bytes(separator);
  if (between.empty()) mpsforge::objc::invalid_argument(self, _cmd, "empty separator");
  NSMutableArray<NSString*>* parts = [NSMutableArray array];
  size_t begin = 0;
  for (size_t end = 0; (end = text.find(between, begin)) != std::string::npos; begin = end + between.size()) {
    [parts addObject:mpsforge::objc::text(text.substr(begin, end - begin))];
  }
  [parts addObject:mpsforge::objc::text(text.substr(begin))];
  return parts;
}

- (NSString*)lowercaseString {
  return changed(self, std::tolower);
}

- (NSString*)uppercaseString {
  return changed(self, std::toupper);
}

- (double)doubleValue {
  return std::strtod([self UTF8String], nullptr);
}

- (float)floatValue {
  return std::strtof([self UTF8String], nullptr);
}

- (int)intValue {
  return static_cast<int>([self integerValue]);
}

- (NSInteger)integerValue {
  return std::strtol([self UTF8String], nullptr, 10);
}

- (long long)longLongValue {
  return std::strtoll([self UTF8String], nullptr, 10);
}

- (BOOL)boolValue {
  const char* text = [self UTF8String];
  text += std::strspn(text, " \t+-0");
  return *text && std::strchr("YyTt123456789", *text);
}

- (NSString*)description {
  return self;
}

@end

// Lives as long as the program, so it is not counted.
@implementation NSConstantString

- (const char*)UTF8String {
  return bytes_;
}

- (instancetype)retain {
  return self;
}

- (oneway void)release {
}

- (instancetype)autorelease {
  return self;
}

- (NSUInteger)retainCount {
  return NSUIntegerMax;
}

@end

@implementation MPSForgeString

- (instancetype)initWithBytes:(const void*)bytes length:(NSUInteger)length encoding:(NSStringEncoding)encoding {
  check_encoding(encoding, "initWithBytes:length:encoding:");
  if ((self = [super init])) bytes_.assign(static_cast<const char*>(bytes), length);
  return self;
}

- (const char*)UTF8String {
  return bytes_.c_str();
}

@end

@implementation NSMutableString

+ (instancetype)alloc {
  if (self == [NSMutableString class]) return [MPSForgeMutableString alloc];
  return [super alloc];
}

- (id)copyWithZone:(NSZone*)zone {
  return [[NSString alloc] initWithString:self];
}

- (void)appendString:(NSString*)string {
  if (!string) mpsforge::objc::invalid_argument(self, _cmd, "nil argument");
  [self setString:mpsforge::objc::text(bytes(self) + bytes(string))];
}

- (void)appendFormat:(NSString*)format, ... {
  va_list arguments;
  va_start(arguments, format);
  const std::string added = mpsforge::objc::format(format, arguments);
  va_end(arguments);
  [self setString:mpsforge::objc::text(bytes(self) + added)];
}

- (void)setString:(NSString*)string {
  [self doesNotRecognizeSelector:_cmd];
}

@end

@implementation MPSForgeMutableString

- (instancetype)initWithBytes:(const void*)bytes length:(NSUInteger)length encoding:(NSStringEncoding)encoding {
  check_encoding(encoding, "initWithBytes:length:encoding:");
  if ((self = [super init])) bytes_.assign(static_cast<const char*>(bytes), length);
  return self;
}

- (const char*)UTF8String {
  return bytes_.c_str();
}

- (void)setString:(NSString*)string {
  bytes_ = bytes(string);
}

@end
