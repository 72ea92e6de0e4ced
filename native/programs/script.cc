// Runs programs of the script language (../script/script.h) on the software Metal and the reference pool, outside of
// Go, so that a sanitizer can watch. Prints each result as a line of JSON. Exit status 0, or 2 for wrong use; what a
// result says is the caller's to judge.
//
// Usage: script free|drawn|search|SCHEDULE SEED RUNS DEVIATIONS MAX_DELAY_US STALL_MS FILE...
#include "../script/script.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

int main(int argc, char** argv) {
  if (argc < 8) {
    std::fprintf(stderr, "usage: %s free|drawn|search|SCHEDULE SEED RUNS DEVIATIONS MAX_DELAY_US STALL_MS FILE...\n",
                 argv[0]);
    return 2;
  }
  const std::string mode = argv[1];
  mpsforge_script_options options{};
  options.metal = mpsforge_metal_software();
  options.pool = mpsforge_pool_reference();
  options.mode = mode == "free"     ? MPSFORGE_SCRIPT_FREE
                 : mode == "drawn"  ? MPSFORGE_SCRIPT_DRAWN
                 : mode == "search" ? MPSFORGE_SCRIPT_SEARCH
                                    : MPSFORGE_SCRIPT_REPLAY;
  options.seed = std::strtoull(argv[2], nullptr, 10);
  options.runs = std::strtoull(argv[3], nullptr, 10);
  options.deviations = std::atoi(argv[4]);
  options.max_delay_us = static_cast<uint32_t>(std::atoi(argv[5]));
  options.stall_ms = static_cast<uint32_t>(std::atoi(argv[6]));
  options.schedule = argv[1];
  for (int i = 7; i < argc; ++i) {
    std::ifstream file(argv[i]);
    if (!file) {
      std::perror(argv[i]);
      return 2;
    }
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    char* result = mpsforge_script_run(text.c_str(), &options);
    if (!result) {
      std::fprintf(stderr, "%s: no memory\n", argv[i]);
      return 2;
    }
    std::puts(result);
    std::fflush(stdout);
    mpsforge_script_free(result);
  }
  return 0;
}
