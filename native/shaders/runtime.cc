// What translated kernels call: the rare end of a check, barriers and functions of SIMD groups, and the loop over a
// dispatch's threadgroups.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>

#include "fibers.h"
#include "races.h"
#include "run.h"

using namespace mpsforge::shaders;

extern "C" void* mpsforge_shader_refuse(const Run* run, uint32_t slot, uint64_t offset, uint64_t size, uint32_t access);

namespace {

// Reads of what is not there give zeros, and writes go here. Larger than any access.
constexpr size_t kNowhere = 512;
alignas(64) thread_local char nowhere[kNowhere];

template <class T>
void sum_lanes(const Run*, void* const (&data)[kSimdWidth]) {
  T sum = 0;
  for (void* lane : data) {
    if (lane) sum += *static_cast<T*>(lane);
  }
  for (void* lane : data) {
    if (lane) *static_cast<T*>(lane) = sum;
  }
}

// A value that goes from lane to lane.
struct Shuffled {
  void* value;
  void* result;
  uint64_t size;
  int32_t distance;  // to the lane that it is taken from
};

// A lane that would take from beyond the group, or from one that is not active, keeps its own.
void shuffle_lanes(const Run*, void* const (&data)[kSimdWidth]) {
  for (int32_t i = 0; i < static_cast<int32_t>(kSimdWidth); ++i) {
    const auto* lane = static_cast<Shuffled*>(data[i]);
    if (!lane) continue;
    const int32_t from = i + lane->distance;
    const auto* other =
        from >= 0 && from < static_cast<int32_t>(kSimdWidth) ? static_cast<Shuffled*>(data[from]) : nullptr;
    std::memcpy(lane->result, other ? other->value : lane->value, lane->size);
  }
}

// Rows of 8 elements between memory and the lanes' copies of a matrix. All lanes have the whole matrix.
struct MatrixMoved {
  char* matrix;
  uint64_t address;
  uint64_t element;  // bytes
  uint64_t row;      // elements from one row to the next
  uint64_t column, line;
  bool transposed;
  bool store;
};

void move_matrix(const Run* run, void* const (&data)[kSimdWidth]) {
  const MatrixMoved* first = nullptr;
  for (void* lane : data) {
    const auto* move = static_cast<MatrixMoved*>(lane);
    if (!move) continue;
    if (first && !move->store) {
      std::memcpy(move->matrix, first->matrix, 64 * move->element);
      continue;
    }
    if (first) continue;
    first = move;
    for (uint64_t i = 0; i < 64; ++i) {
      const uint64_t x = i % 8 + move->column, y = i / 8 + move->line;
      const uint64_t place = move->transposed ? x * move->row + y : y * move->row + x;
      const uint64_t address = move->address + place * move->element;
      char* element = move->matrix + i * move->element;
      const uint32_t number = (address >> kTagShift) % kSlots, access = move->store ? kWrite : kRead;
      const Slot& slot = run->slots[number];
      const uint64_t offset = address - slot.base;
      if (offset >= slot.length || offset + move->element > slot.length) {
        mpsforge_shader_refuse(run, number, offset, move->element, access);
        continue;
      }
      const Touched& touched = move->store ? slot.written : slot.read;
      if (touched.bits) touched.add(offset, move->element);
      if (run->races) run->races->access(number, offset, move->element, access);
      auto* memory = reinterpret_cast<char*>(address & kAddress);
      if (move->store) {
        std::memcpy(memory, element, move->element);
      } else {
        std::memcpy(element, memory, move->element);
      }
    }
  }
}

}  // namespace

extern "C" {

void* mpsforge_shader_refuse(const Run* run, uint32_t slot, uint64_t offset, uint64_t size, uint32_t access) {
  Refused what{Problem::OutOfRange, slot, offset, size, access, {}, {}, 0};
  place_in_grid(*run, *run->thread, run->position, what.thread);
  run->refuse(run->owner, what);
  std::memset(nowhere, 0, sizeof nowhere);
  return nowhere;
}

// Returns where the bytes are.
void* mpsforge_shader_order(const Run* run, uint32_t slot, uint64_t offset, uint64_t size, uint32_t access) {
  run->races->access(slot, offset, size, access);
  return reinterpret_cast<void*>((run->slots[slot].base + offset) & kAddress);
}

uint64_t mpsforge_shader_adopt(const Run* run, uint64_t address) {
  if (address == 0) return 0;
  const uint32_t slot = run->resolve(run->owner, address);
  return address | static_cast<uint64_t>(slot) << kTagShift;
}

void mpsforge_shader_group_barrier(const Run* run, uint32_t place, uint32_t memory) {
  run->fibers->wait_for_group(place, memory);
}

void mpsforge_shader_simd_barrier(const Run* run, uint32_t place, uint32_t memory) {
  run->fibers->wait_for_lanes(place, nullptr, nullptr, memory);
}

float mpsforge_shader_simd_sum_f32(const Run* run, uint32_t place, float value) {
  run->fibers->wait_for_lanes(place, sum_lanes<float>, &value);
  return value;
}

void mpsforge_shader_simd_shuffle(const Run* run, uint32_t place, void* value, void* result, uint64_t size,
                                  int32_t distance) {
  Shuffled shuffled{value, result, size, distance};
  run->fibers->wait_for_lanes(place, shuffle_lanes, &shuffled);
}

void mpsforge_shader_matrix_move(const Run* run, uint32_t place, void* matrix, uint64_t address, uint64_t element,
                                 uint64_t row, uint64_t column, uint64_t line, uint32_t transposed, uint32_t store) {
  MatrixMoved move{static_cast<char*>(matrix), address, element, row, column, line, transposed != 0, store != 0};
  run->fibers->wait_for_lanes(place, move_matrix, &move);
}

// result = a * b + c, all of 8 x 8.
void mpsforge_shader_matrix_multiply(float* result, const float* a, const float* b, const float* c) {
  float made[64];
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) {
      float sum = c[8 * i + j];
      for (int k = 0; k < 8; ++k) sum += a[8 * i + k] * b[8 * k + j];
      made[8 * i + j] = sum;
    }
  }
  std::memcpy(result, made, sizeof made);
}

__attribute__((visibility("default"))) void mpsforge_shaders_run(const Kernel* kernel, Run* run) {
  // Kept for the thread's next dispatch: stacks are mapped once.
  static thread_local Fibers* fibers = nullptr;
  static thread_local struct Owner {
    ~Owner() { delete fibers; }
  } owner;
  (void)owner;
  if (kernel->waits && !fibers) fibers = new Fibers();
  uint32_t thread = 0;
  run->thread = &thread;
  run->fibers = kernel->waits ? fibers : nullptr;
  for (int d = 0; d < 3; ++d) run->groups[d] = (run->threads[d] + run->group[d] - 1) / run->group[d];
  std::unique_ptr<Races> races(run->check_races ? new Races(*run) : nullptr);
  run->races = races.get();
  uint32_t(&at)[3] = run->position;
  for (at[2] = 0; at[2] < run->groups[2]; ++at[2]) {
    for (at[1] = 0; at[1] < run->groups[1]; ++at[1]) {
      for (at[0] = 0; at[0] < run->groups[0]; ++at[0]) {
        for (int d = 0; d < 3; ++d) {
          run->this_group[d] = std::min(run->group[d], run->threads[d] - at[d] * run->group[d]);
        }
        if (races) races->begin_group();
        if (kernel->waits) {
          fibers->run_group(kernel, run);
        } else {
          kernel->threads(run, 0, run->this_group[0] * run->this_group[1] * run->this_group[2]);
        }
      }
    }
  }
}
}
