// Autorelease pools: one stack of objects a thread, in which a pool is a place.
#include <pthread.h>

#include <cstdlib>
#include <vector>

#include "support.h"

namespace {

struct Stack {
  std::vector<id> objects;
};

// Plain data, not an object with a destructor: static destructors autorelease, and come after those of thread_local
// objects.
thread_local Stack* stack = nullptr;

void drain(Stack& of, size_t depth) {
  // An object's end may autorelease others: they lie above and go first.
  while (of.objects.size() > depth) {
    id object = of.objects.back();
    of.objects.pop_back();
    [object release];
  }
}

// As on macOS, what no pool took is released when the thread ends.
void end_thread(void* argument) {
  auto* ended = static_cast<Stack*>(argument);
  drain(*ended, 0);
  stack = nullptr;
  delete ended;
}

pthread_key_t key() {
  static const pthread_key_t made = [] {
    pthread_key_t key;
    pthread_key_create(&key, end_thread);
    return key;
  }();
  return made;
}

Stack& this_stack() {
  if (!stack) {
    stack = new Stack;
    pthread_setspecific(key(), stack);
  }
  return *stack;
}

}  // namespace

void mpsforge::objc::add_to_pool(id object) { this_stack().objects.push_back(object); }

extern "C" {

void* objc_autoreleasePoolPush(void) { return reinterpret_cast<void*>(this_stack().objects.size()); }

void objc_autoreleasePoolPop(void* pool) { drain(this_stack(), reinterpret_cast<size_t>(pool)); }

}  // extern "C"

@implementation NSAutoreleasePool

- (instancetype)init {
  if ((self = [super init])) token_ = objc_autoreleasePoolPush();
  return self;
}

+ (void)addObject:(id)object {
  mpsforge::objc::add_to_pool(object);
}

- (void)drain {
  [self release];
}

- (void)dealloc {
  objc_autoreleasePoolPop(token_);
  [super dealloc];
}

@end
