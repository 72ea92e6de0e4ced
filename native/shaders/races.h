// Races inside one dispatch: two threads of the grid that touch one byte, at least one of them to write it, where
// nothing orders them.
//
// What orders two accesses of different threads:
//  - A threadgroup barrier between them, for threads of that threadgroup and the memory (device, threadgroup) that its
//    flags name. Nothing orders two threadgroups of a grid.
//  - A SIMD group's barrier, for its threads. Values that lanes exchange order nothing. That lanes in other branches
//    were not at the barrier is not looked at, so that a race of such lanes can be missed.
//  - Atomic operations do not race with each other, and order nothing else: Metal has but the relaxed ones.
#pragma once

#include <memory>
#include <vector>

#include "run.h"

namespace mpsforge::shaders {

// Where a thread of the threadgroup at that position is in the grid.
void place_in_grid(const Run& run, uint32_t thread, const uint32_t (&position)[3], uint32_t (&out)[3]);

struct Races {
  explicit Races(const Run& run) : run_(run) {}

  // The threadgroup at run.position is next.
  void begin_group();
  // All threads of the threadgroup, or the lanes of a SIMD group, have met; memory is bits of Metal's mem_flags.
  void group_met(uint32_t memory);
  void lanes_met(uint32_t simd, uint32_t memory);

  // By the thread that runs.
  void access(uint32_t slot, uint64_t offset, uint64_t size, uint32_t access);

 private:
  static constexpr uint32_t kSpaces = 2;  // device memory, and a threadgroup's
  static constexpr uint32_t kSimds = 32;

  enum class Spread : uint8_t { One, Lanes, Group, Grid };
  // The accesses of one kind since the last barrier that ordered all of them.
  struct Seen {
    uint32_t group;       // of the threads, from 1 on; 0: none
    uint32_t step;        // how many barriers of the threadgroup were before
    uint32_t lanes_step;  // and of the SIMD group
    uint16_t thread;      // the first one
    Spread spread;
    uint16_t last_thread;  // another one, if there are several
    uint32_t last_group;
  };
  struct Byte {
    Seen read, written, atomic;
  };
  struct Free {
    void operator()(Byte* bytes) const;
  };
  struct Memory {
    std::unique_ptr<Byte[], Free> bytes;
    bool reported = false;
  };

  Seen now(uint32_t space) const;
  static bool ordered(const Seen& before, const Seen& now, bool of_group);
  static void note(Seen& seen, const Seen& now, bool of_group);
  void report(uint32_t slot, uint64_t offset, uint64_t size, uint32_t access, const Seen& before,
              uint32_t before_access) const;

  const Run& run_;
  uint32_t group_ = 0;
  uint32_t steps_[kSpaces] = {};
  uint32_t lanes_steps_[kSpaces][kSimds] = {};
  std::vector<Memory> memory_;  // by slot
};

}  // namespace mpsforge::shaders
