// Random programs of accesses and order edges, run on the happens-before checker and on a brute-force oracle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mpsforge::order_random {

struct Shape {
  size_t events;  // at most 4,096
  size_t buffers, length;
  size_t live;      // actors at a time, at most
  size_t actors;    // ever; below 256, from where on the checker may forget removed ones
  unsigned locked;  // percent of the accesses that are made under one lock
  bool forget;      // actors forget; then none is removed
  bool churn;       // actors start with what another knows now, so that nothing below the floor is a surprise to them
};

struct Result {
  std::string wrong;  // what checker and oracle differ in; empty if nothing
  uint64_t races = 0;
};

// Runs one program on both and compares what the checker reports with the oracle, byte by byte.
Result run(uint64_t seed, const Shape& shape);

}  // namespace mpsforge::order_random
