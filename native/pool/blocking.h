// Rule 12: nothing waits with the GIL held.
#pragma once

#include "pool.h"

namespace mpsforge::pool {

// Lets the GIL go, if the thread holds it, for as long as this lives.
class Blocking {
 public:
  explicit Blocking(const mpsforge_pool_config& config) : config_(config) {
    if (config_.blocking) config_.blocking(config_.context, 1);
  }
  ~Blocking() {
    if (config_.blocking) config_.blocking(config_.context, 0);
  }
  Blocking(const Blocking&) = delete;
  Blocking& operator=(const Blocking&) = delete;

 private:
  const mpsforge_pool_config& config_;
};

}  // namespace mpsforge::pool
