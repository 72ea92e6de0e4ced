// Tests of runtime, Foundation and dispatch. Usage: runtime_test [SCENARIO...]
#import <Foundation/Foundation.h>

#include "harness.h"

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

CASE(dispatch_at_exit) { at_exit.queue = dispatch_queue_create("at exit", nullptr); }

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv); }
