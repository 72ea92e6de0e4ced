// What a function of the pool cannot do. It becomes -1 and a text at the C ABI.
#pragma once

#include <stdexcept>

namespace mpsforge::pool {

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace mpsforge::pool
