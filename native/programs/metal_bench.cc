// Measures what the software Metal adds to the work itself: fills and copies through command buffers, against memset
// and memcpy of the same bytes in a plain loop, in turn in one run. Prints one line of JSON; times in nanoseconds.
//
// Usage: metal_bench COMMANDS BYTES CHECK    CHECK: 1 with the happens-before checker, 0 without
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../metal/metal.h"

namespace {

using Clock = std::chrono::steady_clock;

// PyTorch's streams commit after some hundred kernels at the latest; the number hardly matters.
constexpr uint64_t kPerCommandBuffer = 500;
constexpr uint64_t kRounds = 5;

int64_t since(Clock::time_point start) { return std::chrono::nanoseconds(Clock::now() - start).count(); }

int64_t plain(uint64_t commands, size_t bytes, void* a, void* b) {
  const auto start = Clock::now();
  for (uint64_t i = 0; i < commands; ++i) {
    if (i % 2 == 0) {
      std::memset(a, static_cast<int>(i & 0xff), bytes);
    } else {
      std::memcpy(b, a, bytes);
    }
    __asm__ volatile("" : : "r"(a), "r"(b) : "memory");  // the work must not be left out
  }
  return since(start);
}

int64_t engine(const mpsforge_metal_api& metal, mpsforge_metal_queue* queue, uint64_t commands, size_t bytes,
               mpsforge_metal_buffer* a, mpsforge_metal_buffer* b) {
  const auto start = Clock::now();
  for (uint64_t done = 0; done < commands;) {
    auto* buffer = metal.command_buffer(queue);
    auto* encoder = metal.blit_encoder(buffer);
    for (const uint64_t end = std::min(commands, done + kPerCommandBuffer); done < end; ++done) {
      if (done % 2 == 0) {
        metal.fill(encoder, a, 0, bytes, static_cast<uint8_t>(done & 0xff));
      } else {
        metal.copy(encoder, a, 0, b, 0, bytes);
      }
    }
    metal.end_encoding(encoder);
    metal.encoder_release(encoder);
    metal.commit(buffer);
    if (done == commands) metal.wait_until_completed(buffer);
    metal.command_buffer_release(buffer);
  }
  return since(start);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s COMMANDS BYTES CHECK\n", argv[0]);
    return 2;
  }
  const uint64_t commands = std::strtoull(argv[1], nullptr, 10);
  const size_t bytes = std::strtoull(argv[2], nullptr, 10);
  const auto& metal = *mpsforge_metal_software();
  mpsforge_metal_config config{};
  config.check_order = argv[3][0] == '1';
  auto* device = metal.device_create(&config);
  // The same memory for both, so that where it lies makes no difference.
  auto* queue = metal.queue_create(device, "queue");
  auto* a = metal.buffer_create(device, bytes, MPSFORGE_METAL_SHARED, "a");
  auto* b = metal.buffer_create(device, bytes, MPSFORGE_METAL_SHARED, "b");
  int64_t plain_time = 0;
  int64_t engine_time = 0;
  for (uint64_t round = 0; round < kRounds; ++round) {
    plain_time += plain(commands / kRounds, bytes, metal.buffer_contents(a), metal.buffer_contents(b));
    engine_time += engine(metal, queue, commands / kRounds, bytes, a, b);
  }
  metal.buffer_release(a);
  metal.buffer_release(b);
  metal.queue_release(queue);
  metal.device_close(device);
  mpsforge_metal_statistics statistics{};
  metal.statistics(device, &statistics);
  const size_t findings = metal.findings(device, nullptr, 0);
  metal.device_release(device);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("{\"commands\":%" PRIu64 ",\"plain\":%" PRId64 ",\"engine\":%" PRId64 ",\"checker_bytes\":%" PRIu64
              ",\"peak_kilobytes\":%ld,\"findings\":%zu}\n",
              statistics.commands, plain_time, engine_time, statistics.checker_bytes, usage.ru_maxrss, findings);
  return findings == 0 ? 0 : 1;
}
