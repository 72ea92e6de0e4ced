// What translated kernels call: the rare end of a check, barriers and functions of SIMD groups, and the loop over a
// dispatch's threadgroups.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "fibers.h"
#include "races.h"
#include "run.h"

using namespace mpsforge::shaders;

extern "C" void* mpsforge_shader_refuse(const Run* run, uint32_t slot, uint64_t offset, uint64_t size, uint32_t access);

namespace {

// Reads of what is not there give zeros, and writes go here. Larger than any access.
constexpr size_t kNowhere = 512;
alignas(64) thread_local char nowhere[kNowhere];

float sum_of(float a, float b) { return a + b; }
float larger_of(float a, float b) { return std::fmax(a, b); }

// Every active lane gets what combine makes of all their numbers.
template <float (*combine)(float, float)>
void reduce_lanes(const Run*, void* const (&data)[kSimdWidth]) {
  float result = 0;
  bool first = true;
  for (void* lane : data) {
    if (!lane) continue;
    const float value = *static_cast<float*>(lane);
    result = first ? value : combine(result, value);
    first = false;
  }
  for (void* lane : data) {
    if (lane) *static_cast<float*>(lane) = result;
  }
}

// A value that goes from lane to lane.
struct Shuffled {
  void* value;
  void* filling;  // what the lane gives those that take a filling
  void* result;
  uint64_t size;
  int32_t from;  // the lane that it is taken from
  bool fills;    // it takes that lane's filling
};

// A lane that would take from beyond the group, or from one that is not active, keeps its own.
void shuffle_lanes(const Run*, void* const (&data)[kSimdWidth]) {
  for (void* each : data) {
    const auto* lane = static_cast<Shuffled*>(each);
    if (!lane) continue;
    const bool inside = lane->from >= 0 && lane->from < static_cast<int32_t>(kSimdWidth);
    const auto* other = inside ? static_cast<Shuffled*>(data[lane->from]) : nullptr;
    if (!other) other = lane;
    std::memcpy(lane->result, lane->fills ? other->filling : other->value, lane->size);
  }
}

int32_t own_lane(const Run* run) { return static_cast<int32_t>(*run->thread % kSimdWidth); }

// Which two elements of an 8 x 8 matrix a lane has, in one row. Kernels that change them by themselves compute the same
// (get_coord of ATen/native/mps/kernels/Attention.metal, which has it from MLX).
struct Place {
  explicit Place(uint32_t lane) : row((lane / 4 & 4) + lane / 2 % 4), column((lane / 4 & 2) * 2 + lane % 2 * 2) {}
  uint32_t row, column;  // the second one's column is the next
};

// Rows of 8 elements between memory and the lanes.
struct MatrixMoved {
  char* two;  // elements of the lane
  uint64_t address;
  uint64_t element;  // bytes
  uint64_t row;      // elements from one row to the next
  uint64_t column, line;
  bool transposed;
  bool store;
};

void move_matrix(const Run* run, void* const (&data)[kSimdWidth]) {
  for (uint32_t i = 0; i < 2 * kSimdWidth; ++i) {
    const auto* move = static_cast<MatrixMoved*>(data[i / 2]);
    if (!move) continue;
    const Place lane(i / 2);
    const uint64_t x = lane.column + i % 2 + move->column, y = lane.row + move->line;
    const uint64_t place = move->transposed ? x * move->row + y : y * move->row + x;
    const uint64_t address = move->address + place * move->element;
    char* element = move->two + i % 2 * move->element;
    const uint32_t number = (address >> kTagShift) % kSlots, access = move->store ? kWrite : kRead;
    const Slot& slot = run->slots[number];
    const uint64_t offset = address - slot.base;
    if (offset >= slot.length || offset + move->element > slot.length) {
      mpsforge_shader_refuse(run, number, offset, move->element, access);
      if (!move->store) std::memset(element, 0, move->element);
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

// Elements of the lane in three matrices; sum becomes a * b + sum.
struct MatrixProduct {
  const float *a, *b;
  float* sum;
};

void multiply_matrices(const Run*, void* const (&data)[kSimdWidth]) {
  float a[8][8] = {}, b[8][8] = {};
  for (uint32_t i = 0; i < 2 * kSimdWidth; ++i) {
    const auto* product = static_cast<MatrixProduct*>(data[i / 2]);
    if (!product) continue;
    const Place lane(i / 2);
    a[lane.row][lane.column + i % 2] = product->a[i % 2];
    b[lane.row][lane.column + i % 2] = product->b[i % 2];
  }
  for (uint32_t i = 0; i < 2 * kSimdWidth; ++i) {
    const auto* product = static_cast<MatrixProduct*>(data[i / 2]);
    if (!product) continue;
    const Place lane(i / 2);
    for (int k = 0; k < 8; ++k) product->sum[i % 2] += a[lane.row][k] * b[k][lane.column + i % 2];
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
  run->fibers->wait_for_lanes(place, reduce_lanes<sum_of>, &value);
  return value;
}

float mpsforge_shader_simd_max_f32(const Run* run, uint32_t place, float value) {
  run->fibers->wait_for_lanes(place, reduce_lanes<larger_of>, &value);
  return value;
}

void mpsforge_shader_simd_shuffle(const Run* run, uint32_t place, void* value, void* result, uint64_t size,
                                  int32_t distance) {
  Shuffled shuffled{value, nullptr, result, size, own_lane(run) + distance, false};
  run->fibers->wait_for_lanes(place, shuffle_lanes, &shuffled);
}

void mpsforge_shader_simd_take(const Run* run, uint32_t place, void* value, void* result, uint64_t size, int32_t lane) {
  Shuffled shuffled{value, nullptr, result, size, lane, false};
  run->fibers->wait_for_lanes(place, shuffle_lanes, &shuffled);
}

// Within each part of modulo lanes values go up by distance; the first lanes get the fillings of the last ones.
void mpsforge_shader_simd_fill_up(const Run* run, uint32_t place, void* value, void* filling, void* result,
                                  uint64_t size, int32_t distance, int32_t modulo) {
  const int32_t lane = own_lane(run);
  const bool fills = lane % modulo < distance;
  Shuffled shuffled{value, filling, result, size, lane - distance + (fills ? modulo : 0), fills};
  run->fibers->wait_for_lanes(place, shuffle_lanes, &shuffled);
}

void mpsforge_shader_matrix_move(const Run* run, uint32_t place, void* two, uint64_t address, uint64_t element,
                                 uint64_t row, uint64_t column, uint64_t line, uint32_t transposed, uint32_t store) {
  MatrixMoved move{static_cast<char*>(two), address, element, row, column, line, transposed != 0, store != 0};
  run->fibers->wait_for_lanes(place, move_matrix, &move);
}

void mpsforge_shader_matrix_multiply(const Run* run, uint32_t place, const float* a, const float* b, float* sum) {
  MatrixProduct product{a, b, sum};
  run->fibers->wait_for_lanes(place, multiply_matrices, &product);
}

// Which of the lane's two elements are on the diagonal, as bits.
uint32_t mpsforge_shader_matrix_diagonal(const Run* run) {
  const Place lane(static_cast<uint32_t>(own_lane(run)));
  return lane.row == lane.column ? 1 : lane.row == lane.column + 1 ? 2 : 0;
}

// Exact for whole numbers, as Metal's is.
float mpsforge_shader_sinpi(float x) {
  const float whole = std::rint(x);
  const double sine = std::sin(M_PI * (static_cast<double>(x) - whole));
  return static_cast<float>(std::fmod(whole, 2.0f) != 0 ? -sine : sine);
}

// A variable in the threadgroup's memory, by its number in the library's part; the same memory for all threadgroups.
void* mpsforge_shader_variable(Run* run, uint32_t number, uint64_t size) {
  static thread_local std::vector<std::vector<uint64_t>> memory;  // kept for the thread's next dispatch
  const uint32_t slot = kOwnMemory - number;
  if (run->slots[slot].length == 0) {
    if (memory.size() <= number) memory.resize(number + 1);
    memory[number].assign((size + 7) / 8, ~uint64_t{0});  // not a number, in any type
    run->slots[slot] = {
        uint64_t{slot} << kTagShift | reinterpret_cast<uint64_t>(memory[number].data()), size, {}, {}, true};
    run->own = std::min(run->own, slot);
  }
  return reinterpret_cast<void*>(run->slots[slot].base);
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
  for (; run->own < kSlots; ++run->own) run->slots[run->own] = {};
  run->own = kOwnMemory;
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
