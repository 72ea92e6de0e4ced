#include "races.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace mpsforge::shaders {

void place_in_grid(const Run& run, uint32_t thread, const uint32_t (&position)[3], uint32_t (&out)[3]) {
  for (int d = 0; d < 3; ++d) {
    const uint32_t first = position[d] * run.group[d];
    const uint32_t size = std::min(run.group[d], run.threads[d] - first);
    out[d] = first + thread % size;
    thread /= size;
  }
}

void Races::Free::operator()(Byte* bytes) const { std::free(bytes); }

void Races::begin_group() {
  ++group_;
  std::fill(std::begin(steps_), std::end(steps_), 0);
  for (auto& lanes : lanes_steps_) std::fill(std::begin(lanes), std::end(lanes), 0);
}

void Races::group_met(uint32_t memory) {
  for (uint32_t space = 0; space < kSpaces; ++space) steps_[space] += memory >> space & 1;
}

void Races::lanes_met(uint32_t simd, uint32_t memory) {
  for (uint32_t space = 0; space < kSpaces; ++space) lanes_steps_[space][simd] += memory >> space & 1;
}

Races::Seen Races::now(uint32_t space) const {
  const uint32_t thread = *run_.thread;
  return {
      group_, steps_[space], lanes_steps_[space][thread / kSimdWidth], static_cast<uint16_t>(thread), Spread::One, 0,
      0};
}

// of_group: what another threadgroup did was in other memory.
bool Races::ordered(const Seen& before, const Seen& now, bool of_group) {
  if (before.group == 0 || (before.group != now.group && of_group)) return true;
  if (before.group != now.group || before.spread == Spread::Grid) return false;
  if (before.step < now.step || (before.spread == Spread::One && before.thread == now.thread)) return true;
  return before.spread <= Spread::Lanes && before.thread / kSimdWidth == now.thread / kSimdWidth &&
         before.lanes_step < now.lanes_step;
}

void Races::note(Seen& seen, const Seen& now, bool of_group) {
  if (ordered(seen, now, of_group)) {
    seen = now;
    return;
  }
  if (seen.group != now.group || seen.thread != now.thread) {
    seen.last_group = now.group;
    seen.last_thread = now.thread;
  }
  if (seen.group != now.group) {
    seen.spread = Spread::Grid;
  } else if (seen.thread / kSimdWidth != now.thread / kSimdWidth) {
    seen.spread = std::max(seen.spread, Spread::Group);
  } else {
    seen.spread = std::max(seen.spread, Spread::Lanes);
  }
}

void Races::access(uint32_t slot, uint64_t offset, uint64_t size, uint32_t access) {
  const Slot& reached = run_.slots[slot];
  if (slot >= memory_.size()) memory_.resize(slot + 1);
  Memory& memory = memory_[slot];
  if (!memory.bytes) {
    memory.bytes.reset(static_cast<Byte*>(std::calloc(reached.length, sizeof(Byte))));
    if (!memory.bytes) {
      std::fprintf(stderr, "mpsforge: no memory to look for races inside a kernel\n");
      std::abort();
    }
  }
  const bool of_group = reached.of_group, atomic = access & kAtomic, writes = access & kWrite;
  const Seen current = now(of_group ? 1 : 0);
  for (uint64_t i = offset; i < offset + size; ++i) {
    Byte& byte = memory.bytes[i];
    const auto check = [&](const Seen& before, uint32_t before_access) {
      if (memory.reported || ordered(before, current, of_group)) return;
      memory.reported = true;
      report(slot, offset, size, access, before, before_access);
    };
    check(byte.written, kWrite);
    if (writes) check(byte.read, kRead);
    if (!atomic) check(byte.atomic, kRead | kWrite | kAtomic);
    if (atomic) {
      if (writes) note(byte.atomic, current, of_group);
    } else {
      note(writes ? byte.written : byte.read, current, of_group);
    }
  }
}

void Races::report(uint32_t slot, uint64_t offset, uint64_t size, uint32_t access, const Seen& before,
                   uint32_t before_access) const {
  Refused what{Problem::Race, slot, offset, size, access, {}, {}, before_access};
  const bool itself = before.group == group_ && before.thread == *run_.thread;
  const uint32_t group = (itself ? before.last_group : before.group) - 1;
  const uint32_t position[3] = {group % run_.groups[0], group / run_.groups[0] % run_.groups[1],
                                group / run_.groups[0] / run_.groups[1]};
  place_in_grid(run_, *run_.thread, run_.position, what.thread);
  place_in_grid(run_, itself ? before.last_thread : before.thread, position, what.other);
  run_.refuse(run_.owner, what);
}

}  // namespace mpsforge::shaders
