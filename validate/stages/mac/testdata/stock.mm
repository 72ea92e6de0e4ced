// A source as small as one can be that the wheel's backend has something of: a function that it exports, a table of
// virtual functions, and a name that it gives. Tests change it, each for one check of the stage mac.
#include <Foundation/Foundation.h>
#include <Metal/Metal.h>

namespace at::native::mps {
struct MPSCachedGraph {
  virtual ~MPSCachedGraph();
};
MPSCachedGraph::~MPSCachedGraph() {}
}  // namespace at::native::mps

namespace at::mps {
bool is_available();
class MPSStream;
MPSStream* getDefaultMPSStream();
MPSStream* getCurrentMPSStream() { return nullptr; }
__attribute__((nonnull)) void take(void* value);
void take(void*) {}

bool use(MTLCompileOptions* options) {
  options.fastMathEnabled = YES;
  return is_available();
}
}  // namespace at::mps
