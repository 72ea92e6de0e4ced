// The environment variables of rules 7, 8, 16 and 19, read once and checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mpsforge::pool {

// PYTORCH_MPS_STREAM_POOL_EXHAUSTED.
enum class Exhausted { Share, Wait, Error };

struct Configuration {
  uint32_t worker_streams = 31;  // rule 7: 32 streams less the default one
  Exhausted exhausted = Exhausted::Share;
  int64_t wait_ms = -1;           // for Wait only; negative: for ever
  bool stream_per_thread = true;  // rule 16: 0 turns automatic leasing off
  size_t graph_cache_size = 512;  // graphs, and as many kernels; 0: no bound
};

// Reads lines NAME=VALUE; NULL is an empty environment. Each malformed value adds one warning and leaves the default.
Configuration parse_environment(const char* lines, std::vector<std::string>* warnings);

}  // namespace mpsforge::pool
