// Tests how threads of translated Metal kernels take turns (native/shaders/fibers.h), with kernels written here.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "programs/scenarios.h"
#include "shaders/run.h"

using namespace mpsforge::shaders;

extern "C" {
void mpsforge_shader_group_barrier(const Run* run, uint32_t place, uint32_t memory);
void mpsforge_shader_simd_barrier(const Run* run, uint32_t place, uint32_t memory);
float mpsforge_shader_simd_sum_f32(const Run* run, uint32_t place, float value);
void mpsforge_shader_simd_shuffle(const Run* run, uint32_t place, void* value, void* result, uint64_t size,
                                  int32_t distance);
float mpsforge_shader_simd_max_f32(const Run* run, uint32_t place, float value);
void mpsforge_shader_simd_take(const Run* run, uint32_t place, void* value, void* result, uint64_t size, int32_t lane);
void mpsforge_shader_simd_fill_up(const Run* run, uint32_t place, void* value, void* filling, void* result,
                                  uint64_t size, int32_t distance, int32_t modulo);
void mpsforge_shader_matrix_multiply(const Run* run, uint32_t place, const float* a, const float* b, float* sum);
uint32_t mpsforge_shader_matrix_diagonal(const Run* run);
void* mpsforge_shader_variable(Run* run, uint32_t number, uint64_t size);
float mpsforge_shader_sinpi(float x);
void* mpsforge_shader_read(const Run* run, uint64_t root, uint64_t address, uint64_t size, uint64_t touched);
void* mpsforge_shader_write(const Run* run, uint64_t root, uint64_t address, uint64_t size);
void* mpsforge_shader_atomic(const Run* run, uint64_t address, uint64_t size, uint32_t access);
}

namespace {

constexpr uint32_t kDevice = 1, kGroup = 2;  // Metal's mem_flags
constexpr uint32_t kThreads = 70;            // two SIMD groups and a part of one
std::vector<float> memory(kThreads), results(kThreads);
std::vector<Refused> refused;

// Runs the kernel over threadgroups of 70 threads, and looks for races if there is memory for them to be in.
void run(void (*one)(Run*, uint32_t), uint32_t groups = 1, bool check_races = false) {
  static void (*body)(Run*, uint32_t);
  body = one;
  refused.clear();
  memory.assign(kThreads, -1);
  results.assign(kThreads, -1);
  const Kernel kernel{"test", [](Run* run, uint32_t first, uint32_t) { body(run, first); }, 1, 0, nullptr};
  static Run run;
  for (int d = 0; d < 3; ++d) run.threads[d] = run.group[d] = d == 0 ? kThreads : 1;
  run.threads[0] *= groups;
  run.check_races = check_races;
  run.refuse = [](void*, const Refused& what) { refused.push_back(what); };
  mpsforge_shaders_run(&kernel, &run);
}

SCENARIO(barrier_shows_what_others_wrote) {
  run([](Run* run, uint32_t thread) {
    memory[thread] = static_cast<float>(thread);
    mpsforge_shader_group_barrier(run, 1, kDevice | kGroup);
    results[thread] = memory[kThreads - 1 - thread];
  });
  for (uint32_t i = 0; i < kThreads; ++i) CHECK(results[i] == static_cast<float>(kThreads - 1 - i));
  CHECK(refused.empty());
}

SCENARIO(two_barriers_at_once_are_found) {
  run([](Run* run, uint32_t thread) { mpsforge_shader_group_barrier(run, thread < 5 ? 1 : 2, kDevice | kGroup); });
  CHECK(refused.size() == 1 && refused[0].problem == Problem::Divergence);
}

SCENARIO(end_without_a_barrier_is_found) {
  run([](Run* run, uint32_t thread) {
    if (thread != 3) mpsforge_shader_group_barrier(run, 1, kDevice | kGroup);
  });
  CHECK(refused.size() == 1 && refused[0].problem == Problem::Divergence);
}

SCENARIO(sum_is_of_the_simd_group) {
  run([](Run* run, uint32_t thread) { results[thread] = mpsforge_shader_simd_sum_f32(run, 1, 1); });
  for (uint32_t i = 0; i < kThreads; ++i) CHECK(results[i] == (i < 64 ? 32 : 6));
}

// Lanes that went into the branch add up alone, and all of them afterwards.
SCENARIO(lanes_of_a_branch_are_active_alone) {
  run([](Run* run, uint32_t thread) {
    float inside = 0;
    if (thread % 4 == 0) inside = mpsforge_shader_simd_sum_f32(run, 1, 1);
    results[thread] = inside + 100 * mpsforge_shader_simd_sum_f32(run, 2, 1);
  });
  for (uint32_t i = 0; i < 64; ++i) CHECK(results[i] == 3200 + (i % 4 == 0 ? 8 : 0));
  CHECK(refused.empty());
}

SCENARIO(shuffle_keeps_what_comes_from_beyond) {
  run([](Run* run, uint32_t thread) {
    auto mine = static_cast<float>(thread);
    mpsforge_shader_simd_shuffle(run, 1, &mine, &results[thread], sizeof mine, 4);
  });
  for (uint32_t i = 0; i < 64; ++i) CHECK(results[i] == static_cast<float>(i % 32 < 28 ? i + 4 : i));
}

SCENARIO(largest_is_of_the_simd_group) {
  run([](Run* run, uint32_t thread) {
    results[thread] = mpsforge_shader_simd_max_f32(run, 1, -static_cast<float>(thread) - 1);
  });
  for (uint32_t i = 0; i < kThreads; ++i) CHECK(results[i] == -static_cast<float>(i / 32 * 32) - 1);
}

SCENARIO(take_is_from_the_named_lane) {
  run([](Run* run, uint32_t thread) {
    auto mine = static_cast<float>(thread);
    mpsforge_shader_simd_take(run, 1, &mine, &results[thread], sizeof mine, 5);
  });
  for (uint32_t i = 0; i < kThreads; ++i) CHECK(results[i] == static_cast<float>(i / 32 * 32 + 5));
}

// In parts of 16 lanes, the first 3 of which get the fillings of the last 3.
SCENARIO(fill_up_takes_fillings_of_the_last_lanes) {
  run([](Run* run, uint32_t thread) {
    auto mine = static_cast<float>(thread), filling = mine + 1000;
    mpsforge_shader_simd_fill_up(run, 1, &mine, &filling, &results[thread], sizeof mine, 3, 16);
  });
  for (uint32_t i = 0; i < 64; ++i) {
    CHECK(results[i] == (i % 16 < 3 ? static_cast<float>(i + 1013) : static_cast<float>(i - 3)));
  }
}

// Twice the unit matrix, times one of whose elements all differ, plus 1.
SCENARIO(matrices_are_multiplied_over_lanes) {
  run([](Run* run, uint32_t thread) {
    if (thread >= kSimdWidth) return;
    const uint32_t diagonal = mpsforge_shader_matrix_diagonal(run);
    const float a[2] = {diagonal & 1 ? 2.0f : 0, diagonal & 2 ? 2.0f : 0};
    const float b[2] = {static_cast<float>(2 * thread), static_cast<float>(2 * thread + 1)};
    float sum[2] = {1, 1};
    mpsforge_shader_matrix_multiply(run, 1, a, b, sum);
    results[thread] = sum[0];
    memory[thread] = sum[1];
  });
  for (uint32_t i = 0; i < kSimdWidth; ++i) {
    CHECK(results[i] == static_cast<float>(4 * i + 1) && memory[i] == static_cast<float>(4 * i + 3));
  }
}

SCENARIO(variables_are_checked_and_shared_by_the_group) {
  run([](Run* run, uint32_t thread) {
    const auto tile = reinterpret_cast<uint64_t>(mpsforge_shader_variable(run, 3, kThreads * 4));
    CHECK(reinterpret_cast<uint64_t>(mpsforge_shader_variable(run, 4, 4)) >> kTagShift == kOwnMemory - 4);
    auto* own = static_cast<float*>(mpsforge_shader_write(run, tile, tile + 4 * uint64_t{thread}, 4));
    CHECK(*own != *own);  // nothing is there yet
    *own = static_cast<float>(thread);
    mpsforge_shader_group_barrier(run, 1, kGroup);
    const uint64_t other = tile + 4 * uint64_t{kThreads - 1 - thread};
    results[thread] = *static_cast<float*>(mpsforge_shader_read(run, tile, other, 4, 4));
    if (thread == 0) mpsforge_shader_read(run, tile, tile + 4 * uint64_t{kThreads}, 4, 4);
  });
  for (uint32_t i = 0; i < kThreads; ++i) CHECK(results[i] == static_cast<float>(kThreads - 1 - i));
  CHECK(refused.size() == 1 && refused[0].slot == kOwnMemory - 3 && refused[0].offset == uint64_t{4} * kThreads);
}

SCENARIO(sine_of_whole_numbers_is_zero) {
  for (const float x : {-3.0f, 0.0f, 1.0f, 1000001.0f}) CHECK(mpsforge_shader_sinpi(x) == 0);
  CHECK(mpsforge_shader_sinpi(0.5f) == 1 && mpsforge_shader_sinpi(1.5f) == -1 && mpsforge_shader_sinpi(-0.5f) == -1);
}

SCENARIO(read_beyond_a_buffer_gives_zeros) {
  static uint32_t bytes[2] = {7, 7};
  run([](Run* run, uint32_t thread) {
    run->slots[1].base = uint64_t{1} << kTagShift | reinterpret_cast<uint64_t>(bytes);
    run->slots[1].length = sizeof bytes;
    if (thread == 0) {
      for (int64_t offset : {-4, 0, 4, 5, 8}) {
        uint32_t value;
        std::memcpy(
            &value,
            mpsforge_shader_read(run, run->slots[1].base, run->slots[1].base + static_cast<uint64_t>(offset), 4, 4), 4);
        CHECK(value == (offset == 0 || offset == 4 ? 7u : 0u));
      }
    }
  });
  CHECK(refused.size() == 3 && refused[0].offset == static_cast<uint64_t>(-4) && refused[2].offset == 8);
}

// A kernel that is looked at for races. Slot 1 is a buffer, slot 2 memory of each threadgroup.
struct Grid {
  Run* run;
  uint32_t thread;

  uint32_t in_grid() const { return run->position[0] * kThreads + thread; }
  float* read(uint32_t slot, uint32_t i) const {
    return at([](const Run* run, uint64_t root, uint64_t address,
                 uint64_t size) { return mpsforge_shader_read(run, root, address, size, size); },
              slot, i);
  }
  float* write(uint32_t slot, uint32_t i) const { return at(mpsforge_shader_write, slot, i); }
  void add_atomically(uint32_t slot, uint32_t i) const {
    mpsforge_shader_atomic(run, run->slots[slot].base + 4 * i, 4, kRead | kWrite);
  }
  void barrier(uint32_t place, uint32_t memory = kDevice | kGroup) const {
    mpsforge_shader_group_barrier(run, place, memory);
  }

 private:
  float* at(void* (*reach)(const Run*, uint64_t, uint64_t, uint64_t), uint32_t slot, uint32_t i) const {
    const uint64_t base = run->slots[slot].base;
    return static_cast<float*>(reach(run, base, base + 4 * uint64_t{i}, 4));
  }
};

template <void (*kernel)(const Grid&)>
bool races() {
  static float buffer[4 * kThreads], group[kThreads];
  run(
      [](Run* run, uint32_t thread) {
        run->slots[1] = {uint64_t{1} << kTagShift | reinterpret_cast<uint64_t>(buffer), sizeof buffer, {}, {}, false};
        run->slots[2] = {uint64_t{2} << kTagShift | reinterpret_cast<uint64_t>(group), sizeof group, {}, {}, true};
        kernel({run, thread});
      },
      2, true);
  for (const Refused& what : refused) CHECK(what.problem == Problem::Race);
  return !refused.empty();
}

// Halves are added up in threadgroup memory; a thread reads what another one has written.
template <uint32_t memory>
void reduction(const Grid& grid) {
  *grid.write(2, grid.thread) = 1;
  for (uint32_t half = 64; half > 0; half /= 2) {
    if (memory != 0) grid.barrier(1, memory);
    if (grid.thread < half && grid.thread + half < kThreads) {
      *grid.write(2, grid.thread) += *grid.read(2, grid.thread + half);
    }
  }
}

void threads_write_their_own(const Grid& grid) { *grid.write(1, grid.in_grid()) = 1; }
void threads_write_one_byte(const Grid& grid) { *grid.write(1, 3) = 1; }
void groups_write_one_byte(const Grid& grid) {
  if (grid.thread == 5) *grid.write(1, 3) = 1;
}
void groups_read_what_others_write(const Grid& grid) {
  if (grid.run->position[0] == 0) *grid.write(1, grid.thread) = 1;
  grid.barrier(1);
  if (grid.run->position[0] == 1) grid.read(1, grid.thread);
}
void write_after_a_barrier(const Grid& grid) {
  if (grid.run->position[0] == 0) grid.read(1, 3);
  grid.barrier(1);
  if (grid.in_grid() == 4) *grid.write(1, 3) = 1;
}
void write_after_others_have_read(const Grid& grid) {
  grid.read(1, 3);
  if (grid.in_grid() == kThreads - 1) *grid.write(1, 3) = 1;
}
void first_thread_writes_what_all_read(const Grid& grid) {
  if (grid.run->position[0] != 0 || grid.thread > 1) return;
  grid.read(1, 3);
  mpsforge_shader_simd_barrier(grid.run, 1, 0);
  if (grid.thread == 0) *grid.write(1, 3) = 1;
}
void atomic_sums(const Grid& grid) { grid.add_atomically(1, 3); }
void atomic_and_plain(const Grid& grid) {
  grid.add_atomically(1, 3);
  grid.read(1, 3);
}
void lanes_exchange_values(const Grid& grid) {
  mpsforge_shader_simd_sum_f32(grid.run, 1, 1);
  *grid.write(1, grid.in_grid()) = 1;
}
template <uint32_t memory>
void lanes_meet(const Grid& grid) {
  *grid.write(2, grid.thread) = 1;
  mpsforge_shader_simd_barrier(grid.run, 1, memory);
  grid.read(2, grid.thread / kSimdWidth * kSimdWidth);
}
void next_simd_group_reads(const Grid& grid) {
  *grid.write(2, grid.thread) = 1;
  mpsforge_shader_simd_barrier(grid.run, 1, kGroup);
  grid.read(2, (grid.thread + kSimdWidth) % kThreads);
}

SCENARIO(races_of_threads_are_found) {
  CHECK(!races<threads_write_their_own>());
  CHECK(races<threads_write_one_byte>());
  CHECK(races<groups_write_one_byte>());
  CHECK(races<groups_read_what_others_write>());
  CHECK(!races<write_after_a_barrier>());
  CHECK(races<write_after_others_have_read>());
  CHECK(!races<reduction<kGroup>>());
  CHECK(!races<reduction<kDevice | kGroup>>());
  CHECK(races<reduction<kDevice>>());  // flags of other memory
  CHECK(races<reduction<0>>());
  CHECK(!races<atomic_sums>());
  CHECK(races<atomic_and_plain>());
  CHECK(!races<lanes_exchange_values>());
  CHECK(!races<lanes_meet<kGroup>>());
  CHECK(races<lanes_meet<0>>());
  CHECK(races<next_simd_group_reads>());
}

SCENARIO(a_race_names_both_threads) {
  CHECK(races<groups_write_one_byte>());
  CHECK(refused.size() == 1 && refused[0].slot == 1 && refused[0].offset == 12 && refused[0].access == kWrite);
  CHECK(refused[0].thread[0] == kThreads + 5 && refused[0].other[0] == 5 && refused[0].other_access == kWrite);
  // The writer has read the byte itself, before another thread has.
  CHECK(races<first_thread_writes_what_all_read>());
  CHECK(refused.size() == 1 && refused[0].thread[0] == 0 && refused[0].other[0] == 1);
}

}  // namespace

int main() { return mpsforge::run_scenarios(); }
