// NSObject, and the reference counts of all objects.
#include <cstdio>
#include <cstdlib>

#include "../runtime/runtime.h"
#include "support.h"

using mpsforge::objc::Header;

extern "C" void* objc_autoreleasePoolPush(void);

namespace {

enum : unsigned long { kDeallocating = 1 };

Header* header_of(id object) { return mpsforge::objc::header(static_cast<void*>(object)); }

mpsforge::objc::Object* raw(id object) { return static_cast<mpsforge::objc::Object*>(static_cast<void*>(object)); }

IMP method(id object, SEL selector) { return class_getMethodImplementation(object_getClass(object), selector); }

}  // namespace

@implementation NSObject

+ (void)load {
}

+ (void)initialize {
}

+ (instancetype)alloc {
  return static_cast<id>(
      static_cast<void*>(mpsforge::objc::allocate(static_cast<mpsforge::objc::Class*>(static_cast<void*>(self)), 0)));
}

+ (instancetype)allocWithZone:(NSZone*)zone {
  return [self alloc];
}

+ (instancetype)new {
  return [[self alloc] init];
}

- (instancetype)init {
  return self;
}

- (void)dealloc {
  mpsforge::objc::destroy(raw(self));
}

// --- reference counts. As on macOS, taking a reference orders nothing; giving one back does, with the object's end.

- (instancetype)retain {
  header_of(self)->extra_references.fetch_add(1, std::memory_order_relaxed);
  return self;
}

- (oneway void)release {
  Header* header = header_of(self);
  const long before = header->extra_references.fetch_sub(1, std::memory_order_release);
  if (before > 0) return;
  if (before < 0) {
    std::fprintf(stderr, "*** -[%s release]: object %p is released more often than it is retained\n",
                 object_getClassName(self), static_cast<void*>(self));
    std::abort();
  }
  // References taken and given back within dealloc do not end the object again.
  if (header->state & kDeallocating) return;
  header->extra_references.load(std::memory_order_acquire);
  header->state |= kDeallocating;
  [self dealloc];
}

- (instancetype)autorelease {
  mpsforge::objc::add_to_pool(self);
  return self;
}

- (NSUInteger)retainCount {
  return static_cast<NSUInteger>(header_of(self)->extra_references.load(std::memory_order_relaxed) + 1);
}

// Classes are not counted.

+ (instancetype)retain {
  return static_cast<id>(self);
}

+ (oneway void)release {
}

+ (instancetype)autorelease {
  return static_cast<id>(self);
}

+ (NSUInteger)retainCount {
  return NSUIntegerMax;
}

// --- copies

- (id)copy {
  return [(id<NSCopying>)self copyWithZone:nullptr];
}

- (id)mutableCopy {
  return [(id<NSMutableCopying>)self mutableCopyWithZone:nullptr];
}

+ (id)copyWithZone:(NSZone*)zone {
  return self;
}

+ (id)copy {
  return self;
}

// --- introspection. Instance methods serve classes too, so they begin at the receiver's own class.

+ (Class)class {
  return self;
}

- (Class)class {
  return object_getClass(self);
}

+ (Class)superclass {
  return class_getSuperclass(self);
}

- (Class)superclass {
  return class_getSuperclass(object_getClass(self));
}

- (instancetype)self {
  return self;
}

- (BOOL)isProxy {
  return NO;
}

- (BOOL)isKindOfClass:(Class)cls {
  for (Class each = object_getClass(self); each; each = class_getSuperclass(each)) {
    if (each == cls) return YES;
  }
  return NO;
}

- (BOOL)isMemberOfClass:(Class)cls {
  return object_getClass(self) == cls;
}

+ (BOOL)isSubclassOfClass:(Class)cls {
  for (Class each = self; each; each = class_getSuperclass(each)) {
    if (each == cls) return YES;
  }
  return NO;
}

+ (BOOL)conformsToProtocol:(Protocol*)protocol {
  for (Class each = self; each; each = class_getSuperclass(each)) {
    if (class_conformsToProtocol(each, protocol)) return YES;
  }
  return NO;
}

- (BOOL)conformsToProtocol:(Protocol*)protocol {
  return [object_getClass(self) conformsToProtocol:protocol];
}

- (BOOL)respondsToSelector:(SEL)selector {
  return class_respondsToSelector(object_getClass(self), selector);
}

+ (BOOL)instancesRespondToSelector:(SEL)selector {
  return class_respondsToSelector(self, selector);
}

- (IMP)methodForSelector:(SEL)selector {
  return method(self, selector);
}

+ (IMP)instanceMethodForSelector:(SEL)selector {
  return class_getMethodImplementation(self, selector);
}

- (void)doesNotRecognizeSelector:(SEL)selector {
  mpsforge::objc::unrecognized_selector(raw(self), sel_getName(selector));
}

- (id)performSelector:(SEL)selector {
  return reinterpret_cast<id (*)(id, SEL)>(method(self, selector))(self, selector);
}

- (id)performSelector:(SEL)selector withObject:(id)object {
  return reinterpret_cast<id (*)(id, SEL, id)>(method(self, selector))(self, selector, object);
}

- (id)performSelector:(SEL)selector withObject:(id)first withObject:(id)second {
  return reinterpret_cast<id (*)(id, SEL, id, id)>(method(self, selector))(self, selector, first, second);
}

// --- equality and description

- (BOOL)isEqual:(id)object {
  return self == object;
}

- (NSUInteger)hash {
  return reinterpret_cast<NSUInteger>(self) >> 4;
}

+ (NSString*)description {
  return NSStringFromClass(self);
}

- (NSString*)description {
  return [NSString stringWithFormat:@"<%s: %p>", object_getClassName(self), self];
}

- (NSString*)debugDescription {
  return [self description];
}

@end

@implementation NSObject (NSKeyValueCoding)

- (id)valueForKey:(NSString*)key {
  SEL selector = NSSelectorFromString(key);
  const char* types = mpsforge::objc::method_types(
      static_cast<mpsforge::objc::Class*>(static_cast<void*>(object_getClass(self))), sel_getName(selector));
  if (!types || types[0] != '@') {
    [NSException raise:NSInvalidArgumentException
                format:@"-[%s valueForKey:]: no method named %@ returns an object", object_getClassName(self), key];
  }
  return [self performSelector:selector];
}

@end

extern "C" {

id NSAllocateObject(Class cls, NSUInteger extra_bytes, NSZone*) {
  return static_cast<id>(static_cast<void*>(
      mpsforge::objc::allocate(static_cast<mpsforge::objc::Class*>(static_cast<void*>(cls)), extra_bytes)));
}

Class NSClassFromString(NSString* name) { return name ? objc_lookUpClass([name UTF8String]) : nil; }
NSString* NSStringFromClass(Class cls) { return cls ? [NSString stringWithUTF8String:class_getName(cls)] : nil; }
SEL NSSelectorFromString(NSString* name) { return name ? sel_registerName([name UTF8String]) : nullptr; }
NSString* NSStringFromSelector(SEL selector) {
  return selector ? [NSString stringWithUTF8String:sel_getName(selector)] : nil;
}

}  // extern "C"
