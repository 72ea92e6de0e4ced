#pragma once

#include <cstdint>

namespace schedule {

// splitmix64 (Steele, Lea and Flood, 2014): small, and any seed is a good one. Seeds in reports replay by it.
constexpr uint64_t kGamma = 0x9e3779b97f4a7c15u;

constexpr uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static_assert(mix(kGamma) == 0xe220a8397b1dcdafu, "the first number of seed 0, as published");

// The next number of the sequence that began with the seed.
constexpr uint64_t splitmix64(uint64_t& state) { return mix(state += kGamma); }

}  // namespace schedule
