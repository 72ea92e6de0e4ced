// Tests of runtime, Foundation and dispatch. Usage: runtime_test [SCENARIO...]
#import <Foundation/Foundation.h>

#include "runtime_cases.h"

using namespace mpsforge::objc::test;

namespace {

// PyTorch's static destructors dispatch and autorelease, after thread_local objects have ended. Every scenario that
// ends well passes here.
struct AtExit {
  ~AtExit() {
    if (!queue) return;
    __block int ran = 0;
    dispatch_sync(queue, ^{
      ++ran;
      [NSString stringWithFormat:@"%d", ran];
    });
    CHECK(ran == 1);
    dispatch_release(queue);
  }
  dispatch_queue_t queue = nullptr;
} at_exit;

}  // namespace

namespace mpsforge::objc::test {

void dispatch_at_exit() { at_exit.queue = dispatch_queue_create("at exit", nullptr); }

}  // namespace mpsforge::objc::test

int main(int argc, char** argv) {
  std::vector<Case> all = {{"dispatch_at_exit", dispatch_at_exit}};
  for (const auto& more : {object_cases(), exception_cases(), foundation_cases(), dispatch_cases(), order_cases()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return run_cases(all, argc, argv);
}
