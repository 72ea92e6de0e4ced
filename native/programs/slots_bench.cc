// Measures lease and return of a slot in <ATen/mps/MPSStreamSlots.h> against what a thread's life costs without them,
// from start to join, in turn in one run: a thread leases once. Prints one line of JSON; times in nanoseconds for each
// pair of lease and return, and for each thread.
//
// Usage: slots_bench THREADS PAIRS    PAIRS: of each thread and round
#include <ATen/mps/MPSStreamSlots.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

// The pool's default number of worker streams, or one for each thread if there are more: no thread shares.
uint32_t slots_for(uint32_t threads) { return threads > 31 ? threads : 31; }

// Nanoseconds for a pair, by the time of all threads together.
template <class Pair>
double measure(uint32_t threads, uint64_t pairs, Pair pair) {
  std::atomic<uint32_t> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> workers;
  for (uint32_t i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      ready.fetch_add(1);
      while (!go.load()) std::this_thread::yield();
      for (uint64_t n = 0; n < pairs; ++n) pair();
    });
  }
  while (ready.load() < threads) std::this_thread::yield();
  const auto start = std::chrono::steady_clock::now();
  go.store(true);
  for (auto& worker : workers) worker.join();
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
  return time.count() / static_cast<double>(pairs * threads);
}

// Nanoseconds from the start of a thread that does nothing to its join.
double measure_threads(uint32_t count) {
  const auto start = std::chrono::steady_clock::now();
  for (uint32_t i = 0; i < count; ++i) std::thread([] {}).join();
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
  return time.count() / count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s THREADS PAIRS\n", argv[0]);
    return 2;
  }
  const auto threads = static_cast<uint32_t>(std::atoi(argv[1]));
  const uint64_t pairs = std::strtoull(argv[2], nullptr, 10);
  at::mps::MPSStreamSlots slots({slots_for(threads), at::mps::MPSStreamSlots::Policy::Share, -1});
  double thread = 0;
  double lease = 0;
  constexpr int rounds = 5;
  for (int round = 0; round < rounds; ++round) {
    thread += measure_threads(1000) / rounds;
    lease += measure(threads, pairs, [&] { slots.release(slots.acquire().lease); }) / rounds;
  }
  std::printf("{\"thread\":%.1f,\"lease\":%.1f}\n", thread, lease);
  return 0;
}
