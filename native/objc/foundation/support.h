// What the files of this folder share.
#pragma once

#import <Foundation/Foundation.h>

#include <cstdarg>
#include <string>

namespace mpsforge::objc {

// Of Foundation's formats: printf's, and %@.
std::string format(NSString* format, va_list arguments);
NSString* text(const std::string& bytes);  // autoreleased

// NSRangeException and NSInvalidArgumentException, as Foundation words them: which method, then what is wrong.
[[noreturn]] void out_of_range(id object, SEL selector, NSUInteger index, NSUInteger count);
[[noreturn]] void invalid_argument(id object, SEL selector, const char* what);

// What has been autoreleased since the pool's start, or if there is no pool, until the thread ends.
void add_to_pool(id object);

struct Hash {
  size_t operator()(id object) const { return [object hash]; }
};
struct Equal {
  bool operator()(id first, id second) const { return first == second || [first isEqual:second]; }
};

}  // namespace mpsforge::objc
