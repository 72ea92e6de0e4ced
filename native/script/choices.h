// An input's bytes as choices, for fuzz targets that make calls of them (native/programs/fuzz_metal.cc, fuzz_pool.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace mpsforge::script {

// An input that is used up gives zeros.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : at_(data), left_(size) {}

  bool more() const { return left_ > 0; }
  uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *at_++;
  }
  uint32_t below(uint32_t n) { return byte() % n; }
  // One of the sizes at which ranges end, wrap or are empty, or a small one.
  size_t size() {
    static constexpr size_t edges[] = {0,
                                       1,
                                       3,
                                       4,
                                       63,
                                       64,
                                       65,
                                       4096,
                                       4097,
                                       SIZE_MAX,
                                       SIZE_MAX - 3,
                                       SIZE_MAX / 2,
                                       SIZE_MAX - 63,
                                       size_t{1} << 31,
                                       UINT32_MAX,
                                       SIZE_MAX / 4};
    const uint8_t choice = byte();
    return choice < 16 ? edges[choice] : choice % 64;
  }
  std::string text(size_t length) {
    std::string result;
    while (result.size() < length && more()) result += static_cast<char>(byte());
    return result;
  }

 private:
  const uint8_t* at_;
  size_t left_;
};

// Ends the process unless it is so.
inline void demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

}  // namespace mpsforge::script
