// Runs histories on the subject that it is linked with, for sanitizer builds. Prints one line of JSON to standard
// output. Exit status: 0, 1 if a history broke a promise, 2 for wrong use; a sanitizer exits with its own (66 for
// ThreadSanitizer under TSAN_OPTIONS="halt_on_error=1 exitcode=66").
//
// Usage: stress SEED OPERATIONS ROUNDS STALL_MS   (operations per thread; a history in which nothing moves for STALL_MS
// counts as stalled)
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../slots/harness.h"

namespace {

// What went wrong in a history; empty if nothing did.
std::string violation(const std::vector<mpsforge_history_record>& records, const mpsforge_history_result& result) {
  if (result.stalled) return std::string("stalled: ") + result.stuck;
  if (result.overlaps) return std::to_string(result.overlaps) + " times two holders on one slot";
  if (result.torn) return std::to_string(result.torn) + " times statistics that are of no single moment";
  uint64_t leases = 0;
  for (size_t i = 0; i < result.records; ++i) {
    const auto& record = records[i];
    if (record.kind == MPSFORGE_HISTORY_ACQUIRE) {
      leases += record.outcome == MPSFORGE_SLOTS_LEASED;
    } else if (record.outcome != record.valid) {
      return record.valid ? "a valid release was refused" : "a stale release was accepted";
    }
  }
  if (result.statistics.leases != leases) return "the statistics count another number of leases";
  if (result.statistics.live != 0) return "leases are live after all were released";
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s SEED OPERATIONS ROUNDS STALL_MS\n", argv[0]);
    return 2;
  }
  const uint64_t seed = std::strtoull(argv[1], nullptr, 10);
  const auto operations = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));
  const uint64_t rounds = std::strtoull(argv[3], nullptr, 10);
  const auto stall_ms = static_cast<uint32_t>(std::strtoul(argv[4], nullptr, 10));

  struct Shape {
    mpsforge_slots_config config;
    uint32_t threads, max_held;
  };
  const std::vector<Shape> shapes = {
      {{3, MPSFORGE_SLOTS_SHARE, -1}, 6, 2},   {{40, MPSFORGE_SLOTS_SHARE, -1}, 4, 12},
      {{2, MPSFORGE_SLOTS_WAIT, -1}, 5, 1},    {{1, MPSFORGE_SLOTS_WAIT, -1}, 3, 1},
      {{2, MPSFORGE_SLOTS_WAIT, 0}, 4, 2},     {{2, MPSFORGE_SLOTS_WAIT, 1}, 4, 1},
      {{2, MPSFORGE_SLOTS_ERROR, -1}, 4, 1},   {{33, MPSFORGE_SLOTS_WAIT, 0}, 4, 10},
      {{70, MPSFORGE_SLOTS_SHARE, -1}, 4, 20},
  };
  uint64_t histories = 0;
  uint64_t total = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    for (const Shape& shape : shapes) {
      const mpsforge_history_options options = {
          shape.config, seed + histories, shape.threads, operations, shape.max_held, 10, 3, stall_ms};
      std::vector<mpsforge_history_record> records(mpsforge_history_capacity(&options));
      mpsforge_history_result result;
      std::string wrong = "the history could not run";
      if (mpsforge_history_run(mpsforge_slots_subject(), &options, records.data(), records.size(), &result) == 0) {
        wrong = violation(records, result);
      }
      ++histories;
      total += result.records;
      if (!wrong.empty()) {
        std::printf("{\"histories\":%" PRIu64 ",\"operations\":%" PRIu64 ",\"violation\":\"%s\",\"seed\":%" PRIu64
                    ",\"threads\":%" PRIu32 ",\"slots\":%" PRIu32 ",\"policy\":%" PRIu32 "}\n",
                    histories, total, wrong.c_str(), options.seed, shape.threads, shape.config.worker_slots,
                    shape.config.policy);
        std::fflush(stdout);
        std::_Exit(1);  // a stalled history has left threads behind, so no destructor may run
      }
    }
  }
  std::printf("{\"histories\":%" PRIu64 ",\"operations\":%" PRIu64 "}\n", histories, total);
  return 0;
}
