// A source as small as one can be of which an overlay's library is made: an initializer, a name that is exported,
// others of libtorch_cpu, of libc10 and of a framework. Tests change it, each for one thing that a check finds.
#include <Foundation/Foundation.h>
#include <Metal/Metal.h>

extern "C" __attribute__((used)) const char mpsforge_stamp[] = "mpsforge-stamp:planted";

namespace c10 {
struct AutogradState {
  static AutogradState& get_tls_state();
};
}  // namespace c10

namespace at {
int get_num_threads();
}

namespace at::mps {
void* state = &c10::AutogradState::get_tls_state();
int use(MTLCompileOptions* options) {
  options.fastMathEnabled = YES;
  return at::get_num_threads();
}
template <typename T>
int instance() {
  static int calls = 0;
  return ++calls;
}
template int instance<int>();
}  // namespace at::mps
