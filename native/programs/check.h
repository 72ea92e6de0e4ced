// CHECK for the programs that test one part of native/ by itself: it prints what does not hold and goes on; main() asks
// failures().
#ifndef MPSFORGE_NATIVE_PROGRAMS_CHECK_H
#define MPSFORGE_NATIVE_PROGRAMS_CHECK_H

#include <cstdio>

namespace mpsforge {

inline int& failures() {
  static int count = 0;
  return count;
}

}  // namespace mpsforge

#define CHECK(...)                                                          \
  do {                                                                      \
    if (!(__VA_ARGS__)) {                                                   \
      std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #__VA_ARGS__); \
      ++mpsforge::failures();                                               \
    }                                                                       \
  } while (false)

#endif
