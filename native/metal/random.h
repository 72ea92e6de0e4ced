// Numbers from a seed: the same for the same seed and the same count of draws.
#ifndef MPSFORGE_NATIVE_METAL_RANDOM_H
#define MPSFORGE_NATIVE_METAL_RANDOM_H

#include <cstdint>

namespace mpsforge::metal {

// The n-th number of one of many independent sequences of a seed, by splitmix64 (Steele, Lea and Flood, 2014).
inline uint64_t draw(uint64_t seed, uint64_t sequence, uint64_t n) {
  const auto mix = [](uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  constexpr uint64_t kGamma = 0x9e3779b97f4a7c15u;
  return mix(mix(mix(seed + kGamma) + (sequence + 1) * kGamma) + (n + 1) * kGamma);
}

}  // namespace mpsforge::metal

#endif
