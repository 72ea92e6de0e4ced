// Threads of one threadgroup that take turns on one thread of the CPU, so that a barrier is a switch.
//
// The rule for barriers and lanes:
//  - A thread runs until it waits or ends. When all have, the first of these that fits is done, and again:
//  - In each SIMD group of 32 whose threads wait at functions of SIMD groups, those at the first place in the program
//    are let go: they are the active lanes. So lanes that took another branch wait for those that have not come so far.
//  - All threads that have not ended wait at threadgroup barriers: they are let go. It is a finding if they wait at
//    different ones, or if others have ended without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "run.h"

namespace mpsforge::shaders {

// What the lanes of a SIMD group do together when all active ones are there: data has what each gave, nullptr for a
// lane that is not active.
using Together = void (*)(const Run* run, void* const (&data)[kSimdWidth]);

struct Fibers {
  Fibers();
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // All threads of the threadgroup that run describes.
  void run_group(const Kernel* kernel, Run* run);

  // Called on a fiber.
  // memory is what a barrier orders, bits of Metal's mem_flags.
  void wait_for_group(uint32_t place, uint32_t memory);
  void wait_for_lanes(uint32_t place, Together together, void* data, uint32_t memory = 0);

 private:
  enum class State : uint8_t { Ready, Group, Lanes, Ended };
  struct Fiber {
    void* stack_pointer;
    State state;
    uint32_t place;
    uint32_t memory;
    Together together;
    void* data;
  };

  static void main(Fibers* self);
  void switch_away(State state, uint32_t place, uint32_t memory);
  bool release_lanes();
  bool release_group();
  void diverged(uint32_t thread);

  char* stacks_;
  std::vector<Fiber> fibers_;
  uint32_t count_ = 0, current_ = 0;
  void* scheduler_ = nullptr;
  const Kernel* kernel_ = nullptr;
  Run* run_ = nullptr;
};

}  // namespace mpsforge::shaders
