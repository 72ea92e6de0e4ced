// Classes, messages, reference counts, properties and blocks.
#import <Foundation/Foundation.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "harness.h"

using namespace mpsforge::objc::test;

@protocol Named
- (NSString*)title;
@end
@protocol Priced <Named>
@end

struct Big {
  long values[5];
};

@interface Base : NSObject {
  char first_;
}
@property(retain) NSObject* kept;
@property(nonatomic, copy) NSString* text;
@property(nonatomic, assign) int number;
@property NSRange range;
- (int)answer;
- (Big)big;
- (double)real;
- (NSRange)span;
@end

// Variables that a subclass's compilation would not see if it were elsewhere: the offsets are put right at run time.
@interface Base () {
  short second_;
}
@end

std::atomic<int> destroyed{0};  // threads end objects too
int loaded = 0;
int initialized = 0;

@implementation Base
+ (void)load {
  ++loaded;
}
+ (void)initialize {
  if (self == [Base class]) ++initialized;
}
- (int)answer {
  return 42;
}
- (Big)big {
  return {{1, 2, 3, 4, 5}};
}
- (double)real {
  return 2.5;
}
- (NSRange)span {
  return NSMakeRange(3, 4);
}
- (void)dealloc {
  ++destroyed;
  [_kept release];
  [_text release];
  [super dealloc];
}
@end

struct Counted {
  Counted() { ++alive; }
  Counted(const Counted& other) : text(other.text) { ++alive; }
  ~Counted() { --alive; }
  static std::atomic<int> alive;
  std::string text = "a text that is longer than any short string is";
};
std::atomic<int> Counted::alive{0};

@interface Derived : Base <Priced> {
 @public
  Counted counted_;
  std::unique_ptr<int> owned_;
  long double wide_;
}
+ (NSString*)kind;
@end
@implementation Derived
+ (NSString*)kind {
  return @"derived";
}
- (instancetype)init {
  if ((self = [super init])) owned_ = std::make_unique<int>(7);
  return self;
}
- (int)answer {
  return [super answer] + 1;
}
- (NSString*)title {
  return @"a title";
}
@end

@interface NSString (Shout)
- (NSString*)shout;
@end
@implementation NSString (Shout)
- (NSString*)shout {
  return [[self uppercaseString] stringByAppendingString:@"!"];
}
@end

namespace {

CASE(classes) {
  CHECK(loaded == 1);
  Derived* object = [[Derived alloc] init];
  CHECK(initialized == 1);
  CHECK([object answer] == 43);
  CHECK([object big].values[4] == 5);
  CHECK([object real] == 2.5);
  CHECK([object span].length == 4);
  CHECK([[Derived kind] isEqualToString:@"derived"]);
  CHECK([object isKindOfClass:[Base class]] && ![object isMemberOfClass:[Base class]]);
  CHECK([Derived isSubclassOfClass:[NSObject class]] && [Derived superclass] == [Base class]);
  CHECK([object conformsToProtocol:@protocol(Named)] && ![[Base class] conformsToProtocol:@protocol(Named)]);
  CHECK([object respondsToSelector:@selector(title)] && ![object respondsToSelector:@selector(shout)]);
  CHECK([NSString instancesRespondToSelector:@selector(shout)]);
  CHECK(![NSString instancesRespondToSelector:NSSelectorFromString(@"noSuchThing:")]);
  CHECK([Derived respondsToSelector:@selector(kind)] && ![object respondsToSelector:@selector(kind)]);
  CHECK([[object performSelector:@selector(title)] isEqual:@"a title"]);
  CHECK([[@"a" performSelector:@selector(stringByAppendingString:) withObject:@"b"] isEqual:@"ab"]);
  CHECK([[@"hey" shout] isEqualToString:@"HEY!"]);
  CHECK(NSClassFromString(@"Derived") == [Derived class] && NSClassFromString(@"Nothing") == nil);
  CHECK([NSStringFromSelector(@selector(performSelector:withObject:)) isEqual:@"performSelector:withObject:"]);
  CHECK(sel_isEqual(@selector(answer), NSSelectorFromString(@"answer")));
  CHECK([[object description] hasPrefix:@"<Derived: 0x"]);
  CHECK([[object valueForKey:@"title"] isEqual:@"a title"]);
  CHECK([[Derived class] isKindOfClass:[NSObject class]]);
  [object release];
}

CASE(variables) {
  CHECK(Counted::alive == 0);
  Derived* object = [Derived new];
  CHECK(Counted::alive == 1 && object->counted_.text.size() > 16 && *object->owned_ == 7);
  CHECK(reinterpret_cast<uintptr_t>(&object->owned_) % alignof(void*) == 0);
  object->wide_ = 1.5L;
  object.number = 5;
  CHECK(object->wide_ == 1.5L && object.number == 5);
  destroyed = 0;
  [object release];
  CHECK(Counted::alive == 0 && destroyed == 1);
}

CASE(messages_to_nil) {
  Base* nobody = nil;
  CHECK([nobody answer] == 0);
  CHECK([nobody real] == 0.0);
  CHECK([nobody text] == nil);
  CHECK([nobody big].values[0] == 0);
  CHECK([nobody span].location == 0 && [nobody span].length == 0);
  [nobody release];
}

CASE(reference_counts) {
  destroyed = 0;
  Base* object = [[Base alloc] init];
  CHECK([object retainCount] == 1);
  CHECK([object retain] == object && [object retainCount] == 2);
  [object release];
  @autoreleasepool {
    [[object retain] autorelease];
    @autoreleasepool {
      [[object retain] autorelease];
      CHECK([object retainCount] == 3);
    }
    CHECK([object retainCount] == 2);
  }
  CHECK([object retainCount] == 1 && destroyed == 0);
  NSAutoreleasePool* pool = [[NSAutoreleasePool alloc] init];
  [object autorelease];
  [pool drain];
  CHECK(destroyed == 1);
  CHECK([@"constant" retainCount] == NSUIntegerMax && [[@"constant" retain] autorelease] != nil);
}

CASE(pool_of_a_thread) {
  destroyed = 0;
  std::thread([] { [[[Base alloc] init] autorelease]; }).join();
  CHECK(destroyed == 1);
}

CASE(properties) {
  Base* object = [[[Base alloc] init] autorelease];
  NSObject* kept = [[NSObject alloc] init];
  object.kept = kept;
  CHECK([kept retainCount] == 2);
  @autoreleasepool {
    CHECK(object.kept == kept && [kept retainCount] == 3);
  }
  object.kept = nil;
  CHECK([kept retainCount] == 1 && object.kept == nil);
  NSMutableString* text = [NSMutableString stringWithUTF8String:"before"];
  object.text = text;
  [text setString:@"after"];
  CHECK([object.text isEqualToString:@"before"]);
  object.range = NSMakeRange(5, 6);
  CHECK(NSEqualRanges(object.range, NSMakeRange(5, 6)));
  [kept release];
}

CASE(initialize_is_awaited) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([] {
      for (int j = 0; j < 100; ++j) CHECK([[[[Derived alloc] init] autorelease] answer] == 43);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(initialized == 1);
}

int (^make_adder(int by))(int) {
  return [[^(int to) {
    return to + by;
  } copy] autorelease];
}

CASE(blocks) {
  CHECK(make_adder(3)(4) == 7);
  destroyed = 0;
  Base* object = [[Base alloc] init];
  __block int changed = 1;
  __block Counted counted;
  int (^block)(void) = Block_copy(^{
    ++changed;
    return [object answer] + static_cast<int>(counted.text.size());
  });
  CHECK([object retainCount] == 2 && Counted::alive == 2);
  const int sum = block();
  CHECK(sum == 42 + static_cast<int>(counted.text.size()) && changed == 2);
  int (^again)(void) = Block_copy(block);
  CHECK(again == block);
  Block_release(again);
  [object release];
  CHECK(destroyed == 0);
  // A block within a block, in a collection.
  @autoreleasepool {
    NSArray* all = @[ [[^{
      return block();
    } copy] autorelease] ];
    int (^first)(void) = all[0];
    CHECK(first() == sum && changed == 3);
  }
  Block_release(block);
  CHECK(destroyed == 1);
  void (^global)(void) = ^{
  };
  CHECK(Block_copy(global) == global && [global isKindOfClass:[NSObject class]]);
}

// The runtime's lock is another thread's at most of these forks, and not in the child.
CASE(child_of_a_fork_uses_the_runtime, nullptr, Case::kPlain) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) NSClassFromString(@"Base");
  });
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // instead of spinning for ever
      _exit(NSClassFromString(@"Base") == [Base class] ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  stop = true;
  other.join();
}

DIES(unknown_selector, "-[Base shout]: unrecognized selector sent to instance 0x") { [(id)[Base new] shout]; }
DIES(unknown_class_selector, "+[Base shout]: unrecognized selector sent to class 0x") { [(id)[Base class] shout]; }
DIES(released_too_often, "-[NSObject release]: message sent to deallocated instance 0x", nullptr, Case::kPlain) {
  NSObject* object = [[NSObject alloc] init];
  [object release];
  [object release];
}
ALSO(zombie_released_too_often, released_too_often, "-[NSObject release]: message sent to deallocated instance 0x",
     "MPSFORGE_OBJC_ZOMBIES=1");
DIES(used_after_release, "-[Base answer]: message sent to deallocated instance 0x", nullptr, Case::kPlain) {
  Base* object = [[Base alloc] init];
  [object release];
  [object answer];
}
ALSO(zombie_used_after_release, used_after_release, "-[Base answer]: message sent to deallocated instance 0x",
     "MPSFORGE_OBJC_ZOMBIES=1");
DIES(unknown_key, "no method named number returns an object") { [[Base new] valueForKey:@"number"]; }

}  // namespace
