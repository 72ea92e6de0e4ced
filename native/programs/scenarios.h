// Scenarios of a program that tests one part of native/ by itself. Each is a function; they run one after another, in
// the order of the file.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace mpsforge {

struct Scenario {
  const char* name;
  void (*run)();
};

inline std::vector<Scenario>& scenarios() {
  static std::vector<Scenario> all;
  return all;
}

// Called before main begins. Always true.
inline bool add_scenario(const char* name, void (*run)()) {
  scenarios().push_back({name, run});
  return true;
}

// Of the scenario that runs.
inline const char* scenario = "";
inline bool failed = false;

inline void expect(bool holds, const std::string& what) {
  if (holds) return;
  failed = true;
  std::printf("FAIL %s: %s\n", scenario, what.c_str());
}

// The result is main's.
inline int run_scenarios() {
  int bad = 0;
  for (const auto& [name, run] : scenarios()) {
    scenario = name;
    failed = false;
    run();
    bad += failed;
  }
  std::printf("%zu scenarios ran, %d failed\n", scenarios().size(), bad);
  return bad == 0 ? 0 : 1;
}

}  // namespace mpsforge

// Prints what does not hold, and goes on.
#define CHECK(...)                                                                                                 \
  do {                                                                                                             \
    if (!(__VA_ARGS__)) {                                                                                          \
      mpsforge::expect(false, std::string(__FILE__) + ":" + std::to_string(__LINE__) + ": not so: " #__VA_ARGS__); \
    }                                                                                                              \
  } while (false)

#define SCENARIO(name)                                                                   \
  static void name();                                                                    \
  [[maybe_unused]] static const bool name##_added = mpsforge::add_scenario(#name, name); \
  static void name()
