// Tests how threads of translated Metal kernels take turns (native/shaders/fibers.h), with kernels written here.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "shaders/run.h"

using namespace mpsforge::shaders;

extern "C" {
void mpsforge_shader_group_barrier(const Run* run, uint32_t place);
void mpsforge_shader_simd_barrier(const Run* run, uint32_t place);
float mpsforge_shader_simd_sum_f32(const Run* run, uint32_t place, float value);
void mpsforge_shader_simd_shuffle(const Run* run, uint32_t place, void* value, void* result, uint64_t size,
                                  int32_t distance);
void* mpsforge_shader_read(const Run* run, uint64_t address, uint64_t size);
}

namespace {

int failures = 0;

#define CHECK(...)                                                          \
  do {                                                                      \
    if (!(__VA_ARGS__)) {                                                   \
      std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #__VA_ARGS__); \
      ++failures;                                                           \
    }                                                                       \
  } while (false)

constexpr uint32_t kThreads = 70;  // two SIMD groups and a part of one
std::vector<float> memory(kThreads), results(kThreads);
std::vector<Refused> refused;

// Runs the kernel over one threadgroup.
void run(void (*one)(Run*, uint32_t)) {
  static void (*body)(Run*, uint32_t);
  body = one;
  refused.clear();
  memory.assign(kThreads, -1);
  results.assign(kThreads, -1);
  const Kernel kernel{"test", [](Run* run, uint32_t first, uint32_t) { body(run, first); }, 1, 0, nullptr};
  static Run run;
  for (int d = 0; d < 3; ++d) run.threads[d] = run.group[d] = d == 0 ? kThreads : 1;
  run.refuse = [](void*, const Refused& what) { refused.push_back(what); };
  mpsforge_shaders_run(&kernel, &run);
}

void barrier_shows_what_others_wrote() {
  run([](Run* run, uint32_t thread) {
    memory[thread] = static_cast<float>(thread);
    mpsforge_shader_group_barrier(run, 1);
    results[thread] = memory[kThreads - 1 - thread];
  });
  for (uint32_t i = 0; i < kThreads; ++i) CHECK(results[i] == static_cast<float>(kThreads - 1 - i));
  CHECK(refused.empty());
}

void two_barriers_at_once_are_found() {
  run([](Run* run, uint32_t thread) { mpsforge_shader_group_barrier(run, thread < 5 ? 1 : 2); });
  CHECK(refused.size() == 1 && refused[0].problem == Problem::Divergence);
}

void end_without_a_barrier_is_found() {
  run([](Run* run, uint32_t thread) {
    if (thread != 3) mpsforge_shader_group_barrier(run, 1);
  });
  CHECK(refused.size() == 1 && refused[0].problem == Problem::Divergence);
}

void sum_is_of_the_simd_group() {
  run([](Run* run, uint32_t thread) { results[thread] = mpsforge_shader_simd_sum_f32(run, 1, 1); });
  for (uint32_t i = 0; i < kThreads; ++i) CHECK(results[i] == (i < 64 ? 32 : 6));
}

// Lanes that went into the branch add up alone, and all of them afterwards.
void lanes_of_a_branch_are_active_alone() {
  run([](Run* run, uint32_t thread) {
    float inside = 0;
    if (thread % 4 == 0) inside = mpsforge_shader_simd_sum_f32(run, 1, 1);
    results[thread] = inside + 100 * mpsforge_shader_simd_sum_f32(run, 2, 1);
  });
  for (uint32_t i = 0; i < 64; ++i) CHECK(results[i] == 3200 + (i % 4 == 0 ? 8 : 0));
  CHECK(refused.empty());
}

void shuffle_keeps_what_comes_from_beyond() {
  run([](Run* run, uint32_t thread) {
    auto mine = static_cast<float>(thread);
    mpsforge_shader_simd_shuffle(run, 1, &mine, &results[thread], sizeof mine, 4);
  });
  for (uint32_t i = 0; i < 64; ++i) CHECK(results[i] == static_cast<float>(i % 32 < 28 ? i + 4 : i));
}

void read_beyond_a_buffer_gives_zeros() {
  static uint32_t bytes[2] = {7, 7};
  run([](Run* run, uint32_t thread) {
    run->slots[1].base = uint64_t{1} << kTagShift | reinterpret_cast<uint64_t>(bytes);
    run->slots[1].length = sizeof bytes;
    if (thread == 0) {
      for (int64_t offset : {-4, 0, 4, 5, 8}) {
        uint32_t value;
        std::memcpy(&value, mpsforge_shader_read(run, run->slots[1].base + static_cast<uint64_t>(offset), 4), 4);
        CHECK(value == (offset == 0 || offset == 4 ? 7u : 0u));
      }
    }
  });
  CHECK(refused.size() == 3 && refused[0].offset == static_cast<uint64_t>(-4) && refused[2].offset == 8);
}

}  // namespace

int main() {
  barrier_shows_what_others_wrote();
  two_barriers_at_once_are_found();
  end_without_a_barrier_is_found();
  sum_is_of_the_simd_group();
  lanes_of_a_branch_are_active_alone();
  shuffle_keeps_what_comes_from_beyond();
  read_beyond_a_buffer_gives_zeros();
  return failures == 0 ? 0 : 1;
}
