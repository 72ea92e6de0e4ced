// Measures the happens-before checker by itself: time of an access of a warm range, and time and memory of random ones.
// Prints one line of JSON; times in nanoseconds for each access.
//
// Usage: order_bench ACCESSES    of random ranges
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "../metal/order.h"

namespace {

using namespace mpsforge::metal;

void measure(uint64_t accesses) {
  using clock = std::chrono::steady_clock;
  const auto nanoseconds = [](clock::time_point from) {
    return static_cast<double>(std::chrono::nanoseconds(clock::now() - from).count());
  };
  constexpr bool kRead = false;
  constexpr bool kWrite = true;
  Site site;
  site.call = "dispatch add";
  site.queue = "queue";

  {
    // A warm range: ten actors by turns, each ordered after the one before, as a chain of command buffers is.
    Order order;
    std::vector<Actor> actors;
    for (int i = 0; i < 10; ++i) actors.push_back(order.add({}));
    const auto buffer = order.buffer("tensor", 1 << 20);
    for (size_t i = 0; i < 1000; ++i) order.access(actors[0], *buffer, i * 1024, 512, kWrite, site);
    for (const bool write : {kWrite, kRead}) {
      for (const Actor actor : actors) order.acquire(actor, order.release(actors[0]));
      const uint64_t count = 2'000'000;
      const auto start = clock::now();
      for (uint64_t i = 0; i < count; ++i) {
        if (write) order.acquire(actors[i % 10], order.release(actors[(i + 9) % 10]));
        order.access(actors[i % 10], *buffer, i % 1000 * 1024, 512, write, site);
      }
      std::printf("%s\"warm_%s\":%.0f", write ? "{" : ",", write ? "write" : "read",
                  nanoseconds(start) / static_cast<double>(count));
    }
    if (order.count() != 0) std::fprintf(stderr, "unexpected races: %" PRIu64 "\n", order.count());
  }

  Order order;
  std::mt19937_64 random(1);
  std::vector<Actor> actors;
  std::vector<std::shared_ptr<Shadow>> buffers;
  for (int i = 0; i < 10; ++i) actors.push_back(order.add({}));
  for (int i = 0; i < 64; ++i) buffers.push_back(order.buffer("buffer " + std::to_string(i), 1 << 20));
  uint64_t most_ranges = 0;
  uint64_t most_bytes = 0;
  double looking = 0;  // time of the statistics themselves
  const auto start = clock::now();
  for (uint64_t i = 0; i < accesses; ++i) {
    const uint64_t draw = random();
    const size_t offset = draw % (1 << 20);
    const size_t length = 1 + (draw >> 20) % (1 << 14);
    order.access(actors[(draw >> 40) % 10], *buffers[(draw >> 44) % 64], offset, length, draw >> 63, site);
    if (i % 16 == 0) order.acquire(actors[(draw >> 50) % 10], order.release(actors[(draw >> 54) % 10]));
    if (i % 100'000 != 0) continue;
    const auto look = clock::now();
    most_ranges = std::max(most_ranges, order.ranges());
    most_bytes = std::max(most_bytes, order.bytes());
    looking += nanoseconds(look);
  }
  const double each = (nanoseconds(start) - looking) / static_cast<double>(accesses);
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(",\"random\":%.0f,\"ranges\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"peak_kilobytes\":%ld}\n", each,
              most_ranges, most_bytes, usage.ru_maxrss);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s ACCESSES\n", argv[0]);
    return 2;
  }
  measure(std::strtoull(argv[1], nullptr, 10));
  return 0;
}
