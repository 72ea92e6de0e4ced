// Numbers keep the kind they were made with, as NSNumber's objCType shows.
#include <cmath>
#include <cstdio>

#include "support.h"

@interface MPSForgePlainValue : NSValue {
 @public
  NSRange range_;
  const void* pointer_;
  BOOL is_range_;
}
@end

@implementation NSValue

+ (NSValue*)valueWithPointer:(const void*)pointer {
  MPSForgePlainValue* value = [[[MPSForgePlainValue alloc] init] autorelease];
  value->pointer_ = pointer;
  return value;
}

+ (NSValue*)valueWithRange:(NSRange)range {
  MPSForgePlainValue* value = [[[MPSForgePlainValue alloc] init] autorelease];
  value->range_ = range;
  value->is_range_ = YES;
  return value;
}

- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}

// Of the kinds of value that have no such thing.
- (void*)pointerValue {
  [self doesNotRecognizeSelector:_cmd];
  return nullptr;
}

- (NSRange)rangeValue {
  [self doesNotRecognizeSelector:_cmd];
  return NSMakeRange(0, 0);
}

- (const char*)objCType {
  [self doesNotRecognizeSelector:_cmd];
  return nullptr;
}

@end

@implementation MPSForgePlainValue

- (void*)pointerValue {
  if (is_range_) mpsforge::objc::invalid_argument(self, _cmd, "the value is a range");
  return const_cast<void*>(pointer_);
}

- (NSRange)rangeValue {
  if (!is_range_) mpsforge::objc::invalid_argument(self, _cmd, "the value is a pointer");
  return range_;
}

- (const char*)objCType {
  return is_range_ ? @encode(NSRange) : @encode(void*);
}

- (NSUInteger)hash {
  return is_range_ ? range_.location * 31 + range_.length : reinterpret_cast<NSUInteger>(pointer_);
}

- (BOOL)isEqual:(id)object {
  if (![object isKindOfClass:[MPSForgePlainValue class]]) return NO;
  auto* other = static_cast<MPSForgePlainValue*>(object);
  if (is_range_ != other->is_range_) return NO;
  return is_range_ ? NSEqualRanges(range_, other->range_) : pointer_ == other->pointer_;
}

@end

// One method each way for every C type. The letter is the type's @encode.
#define MAKE(selector, initializer, type, member, letter)  \
  +(NSNumber*)selector : (type)value {                     \
    return [[[self alloc] initializer:value] autorelease]; \
  }                                                        \
  -(NSNumber*)initializer : (type)value {                  \
    if ((self = [super init])) {                           \
      value_.member = value;                               \
      type_ = letter;                                      \
    }                                                      \
    return self;                                           \
  }
#define GET(selector, type)                                            \
  -(type)selector {                                                    \
    return [self real]    ? static_cast<type>(value_.real)             \
           : [self above] ? static_cast<type>(value_.unsigned_integer) \
                          : static_cast<type>(value_.integer);         \
  }

@interface NSNumber (MPSForge)
- (BOOL)real;   // not an integer
- (BOOL)above;  // an unsigned type of 64 bits
@end

namespace {

template <typename T>
NSComparisonResult order(T first, T second) {
  if (first < second) return NSOrderedAscending;
  return first > second ? NSOrderedDescending : NSOrderedSame;
}

// Not-a-number comes before all numbers, so that there is one order of them all.
NSComparisonResult order_reals(double first, double second) {
  if (std::isnan(first) || std::isnan(second)) return order(!std::isnan(first), !std::isnan(second));
  return order(first, second);
}

}  // namespace

@implementation NSNumber

MAKE(numberWithChar, initWithChar, char, integer, 'c')
MAKE(numberWithUnsignedChar, initWithUnsignedChar, unsigned char, integer, 'C')
MAKE(numberWithShort, initWithShort, short, integer, 's')
MAKE(numberWithUnsignedShort, initWithUnsignedShort, unsigned short, integer, 'S')
MAKE(numberWithInt, initWithInt, int, integer, 'i')
MAKE(numberWithUnsignedInt, initWithUnsignedInt, unsigned int, integer, 'I')
MAKE(numberWithLong, initWithLong, long, integer, 'q')
MAKE(numberWithUnsignedLong, initWithUnsignedLong, unsigned long, unsigned_integer, 'Q')
MAKE(numberWithLongLong, initWithLongLong, long long, integer, 'q')
MAKE(numberWithUnsignedLongLong, initWithUnsignedLongLong, unsigned long long, unsigned_integer, 'Q')
MAKE(numberWithFloat, initWithFloat, float, real, 'f')
MAKE(numberWithDouble, initWithDouble, double, real, 'd')
MAKE(numberWithBool, initWithBool, BOOL, integer, 'B')
MAKE(numberWithInteger, initWithInteger, NSInteger, integer, 'q')
MAKE(numberWithUnsignedInteger, initWithUnsignedInteger, NSUInteger, unsigned_integer, 'Q')

GET(charValue, char)
GET(unsignedCharValue, unsigned char)
GET(shortValue, short)
GET(unsignedShortValue, unsigned short)
GET(intValue, int)
GET(unsignedIntValue, unsigned int)
GET(longValue, long)
GET(unsignedLongValue, unsigned long)
GET(longLongValue, long long)
GET(unsignedLongLongValue, unsigned long long)
GET(floatValue, float)
GET(doubleValue, double)
GET(integerValue, NSInteger)
GET(unsignedIntegerValue, NSUInteger)

- (BOOL)boolValue {
  return [self real] ? value_.real != 0 : value_.integer != 0;
}

- (BOOL)real {
  return type_ == 'f' || type_ == 'd';
}

- (BOOL)above {
  return type_ == 'Q';
}

- (const char*)objCType {
  switch (type_) {
    case 'c':
    case 'B':
      return "c";
    case 'C':
      return "C";
    case 's':
      return "s";
    case 'S':
      return "S";
    case 'i':
      return "i";
    case 'I':
      return "I";
    case 'Q':
      return "Q";
    case 'f':
      return "f";
    case 'd':
      return "d";
    default:
      return "q";
  }
}

- (NSComparisonResult)compare:(NSNumber*)number {
  if (!number) mpsforge::objc::invalid_argument(self, _cmd, "nil argument");
  if ([self real] || [number real]) return order_reals([self doubleValue], [number doubleValue]);
  // Integers of the two signs: one above the signed range is greater than every signed one.
  const bool own_above = [self above] && value_.integer < 0;
  const bool other_above = [number above] && number->value_.integer < 0;
  if (own_above != other_above) return order(own_above, other_above);
  if (own_above) return order(value_.unsigned_integer, number->value_.unsigned_integer);
  return order(value_.integer, number->value_.integer);
}

- (BOOL)isEqualToNumber:(NSNumber*)number {
  return number && [self compare:number] == NSOrderedSame;
}

- (BOOL)isEqual:(id)object {
  return self == object || ([object isKindOfClass:[NSNumber class]] && [self isEqualToNumber:object]);
}

// Equal numbers of different kinds have one hash.
- (NSUInteger)hash {
  return std::hash<double>()([self doubleValue]);
}

- (NSString*)stringValue {
  char text[64];
  if (type_ == 'f') {
    std::snprintf(text, sizeof text, "%0.7g", value_.real);
  } else if (type_ == 'd') {
    std::snprintf(text, sizeof text, "%0.16g", value_.real);
  } else if ([self above]) {
    std::snprintf(text, sizeof text, "%llu", value_.unsigned_integer);
  } else {
    std::snprintf(text, sizeof text, "%lld", value_.integer);
  }
  return [NSString stringWithUTF8String:text];
}

- (NSString*)description {
  return [self stringValue];
}

@end
