// Numbers from a seed: the same for the same seed and the same count of draws.
#pragma once

#include <cstdint>

#include "../schedule/random.h"

namespace mpsforge::metal {

// The n-th number of one of many independent sequences of a seed, by splitmix64.
inline uint64_t draw(uint64_t seed, uint64_t sequence, uint64_t n) {
  using schedule::kGamma;
  using schedule::mix;
  return mix(mix(mix(seed + kGamma) + (sequence + 1) * kGamma) + (n + 1) * kGamma);
}

}  // namespace mpsforge::metal
