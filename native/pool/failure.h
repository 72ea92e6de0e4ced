// What a function of the pool cannot do. It becomes -1 and a text at the C ABI.
#ifndef MPSFORGE_NATIVE_POOL_FAILURE_H
#define MPSFORGE_NATIVE_POOL_FAILURE_H

#include <stdexcept>

namespace mpsforge::pool {

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace mpsforge::pool

#endif
