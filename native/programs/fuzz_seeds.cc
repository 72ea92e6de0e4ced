// Runs a fuzz target without libFuzzer: fuzz_seeds CHANGES FILE... runs each file, and as many changed forms of it, the
// same ones each time. The input that a sanitizer or a check ends it with is printed.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" void __sanitizer_set_death_callback(void (*)());
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::vector<uint8_t> input;

void print_input() {
  std::fputs("input (hexadecimal): ", stderr);
  for (const uint8_t byte : input) std::fprintf(stderr, "%02x", byte);
  std::fputc('\n', stderr);
}

void change(std::mt19937& random) {
  for (auto edits = 1 + random() % 4; edits > 0 && !input.empty(); --edits) {
    const auto place = input.begin() + static_cast<std::ptrdiff_t>(random() % input.size());
    switch (random() % 4) {
      case 0:
        *place = static_cast<uint8_t>(random());
        break;
      case 1:
        input.insert(place, static_cast<uint8_t>(random()));
        break;
      case 2:
        input.erase(place);
        break;
      default: {  // a part once more, elsewhere
        const std::vector<uint8_t> part(place,
                                        std::min(input.end(), place + 1 + static_cast<std::ptrdiff_t>(random() % 8)));
        input.insert(input.begin() + static_cast<std::ptrdiff_t>(random() % input.size()), part.begin(), part.end());
      }
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  __sanitizer_set_death_callback(print_input);
  long runs = 0;
  for (int i = 2; i < count; ++i) {
    std::ifstream file(arguments[i], std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "cannot read %s\n", arguments[i]);
      return 1;
    }
    const std::vector<uint8_t> seed{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::mt19937 random(static_cast<std::mt19937::result_type>(i));
    for (long n = 0; n <= std::atol(arguments[1]); ++n, ++runs) {
      input = seed;
      if (n > 0) change(random);
      LLVMFuzzerTestOneInput(input.data(), input.size());
    }
  }
  std::printf("%ld inputs\n", runs);
  return 0;
}
