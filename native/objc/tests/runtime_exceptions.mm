// @throw, @catch, @finally and @synchronized, among C++ exceptions.
#import <Foundation/Foundation.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "harness.h"

using namespace mpsforge::objc::test;

@interface Special : NSException
@end
@implementation Special
@end

namespace {

void raise_special() { [Special raise:@"Special" format:@"number %d", 7]; }
void raise_cxx() { throw std::runtime_error("from C++"); }

struct Guard {
  ~Guard() { ++ended; }
  static int ended;
};
int Guard::ended = 0;

CASE(catch_by_class) {
  int way = 0;
  @try {
    Guard guard;
    raise_special();
  } @catch (NSString*) {
    way = 1;
  } @catch (NSException* exception) {
    way = 2;
    CHECK([[exception reason] isEqual:@"number 7"] && [exception isKindOfClass:[Special class]]);
  }
  CHECK(way == 2 && Guard::ended == 1);
  @try {
    @throw @"text";
  } @catch (NSException*) {
    way = 3;
  } @catch (id object) {
    way = 4;
    CHECK([object isEqual:@"text"]);
  }
  CHECK(way == 4);
}

CASE(finally_and_again) {
  int finished = 0;
  int caught = 0;
  @try {
    @try {
      raise_special();
    } @catch (Special*) {
      ++caught;
      @throw;
    } @finally {
      ++finished;
    }
  } @catch (NSException*) {
    ++caught;
  } @finally {
    ++finished;
  }
  CHECK(caught == 2 && finished == 2);
  // Only @finally, left by an exception of C++, and by none.
  try {
    @try {
      raise_cxx();
    } @finally {
      ++finished;
    }
  } catch (const std::runtime_error& error) {
    CHECK(std::string(error.what()) == "from C++");
    ++caught;
  } @
  try {
    ++caught;
  } @finally {
    ++finished;
  }
  CHECK(caught == 4 && finished == 4);
}

// One function with clauses of both languages.
int which(void (*thrower)()) {
  try {
    @try {
      thrower();
    } @catch (Special*) {
      return 1;
    }
  } catch (const std::logic_error&) {
    return 2;
  } catch (const std::exception& error) {
    return std::string(error.what()) == "from C++" ? 3 : 4;
  } catch (int number) {
    return number;
  } catch (const char* text) {
    return text[0];
  } catch (...) {
    return 5;
  }
  return 0;
}

CASE(both_languages) {
  CHECK(which(raise_special) == 1);
  CHECK(which([] { throw std::logic_error("x"); }) == 2);
  CHECK(which(raise_cxx) == 3);
  CHECK(which([] { throw 77; }) == 77);
  CHECK(which([] { throw "A"; }) == 'A');
  CHECK(which([] { [NSException raise:@"Other" format:@"x"]; }) == 5);
  CHECK(which([] {}) == 0);
}

CASE(kept_and_thrown_again) {
  for (void (*thrower)() : {raise_special, raise_cxx}) {
    std::exception_ptr kept;
    try {
      thrower();
    } catch (...) {
      kept = std::current_exception();
    }
    CHECK(kept != nullptr);
    const auto again = [&] { std::rethrow_exception(kept); };
    int way = 0;
    try {
      @try {
        again();
      } @catch (Special* special) {
        CHECK([[special reason] isEqual:@"number 7"]);
        way = 1;
      }
    } catch (const std::runtime_error&) {
      way = 2;
    }
    CHECK(way == (thrower == raise_special ? 1 : 2));
  }
}

// What PyTorch does with blocks that throw.
CASE(through_a_queue) {
  dispatch_queue_t queue = dispatch_queue_create("throws", nullptr);
  __block std::exception_ptr kept;
  dispatch_sync(queue, ^{
    try {
      raise_cxx();
    } catch (...) {
      kept = std::current_exception();
    }
  });
  try {
    std::rethrow_exception(kept);
  } catch (const std::runtime_error& error) {
    CHECK(std::string(error.what()) == "from C++");
    dispatch_release(queue);
    return;
  }
  CHECK(false);
}

CASE(synchronized) {
  NSObject* lock = [[[NSObject alloc] init] autorelease];
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([lock, &count] {
      for (int j = 0; j < 500; ++j) {
        @try {
          @synchronized(lock) {
            @synchronized(lock) {
              if (++count % 3 == 0) [NSException raise:@"Left" format:@"by exception"];
            }
          }
        } @catch (NSException*) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(count == 2000);
}

DIES(uncaught, "uncaught exception 'NSGenericException', reason: 'nobody minds (") {
  [NSException raise:NSGenericException format:@"nobody minds %@", @[ @1 ]];
}
DIES(uncaught_object, "uncaught exception 'NSConstantString'") { @throw @"text"; }
DIES(out_of_queue, "uncaught exception 'Special', reason: 'number 7'") {
  dispatch_sync(dispatch_queue_create("leaves", nullptr), ^{
    raise_special();
  });
}

}  // namespace
