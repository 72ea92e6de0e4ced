// A shader's source, which a user gives, becomes C++ (native/msl/rewrite.h): no text ends the process, what is refused
// has a line, lines stay what they are, and no entry of a kernel is lost.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "../msl/rewrite.h"

namespace {

void demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string source = "# 1 \"program_source\"\n" + std::string(reinterpret_cast<const char*>(data), size);
  const auto result = mpsforge::msl::rewrite(source, "/headers");
  if (!result.error.empty()) {
    demand(result.text.empty(), "what is refused has no text");
    demand(result.error.rfind("program_source:", 0) == 0, "an error has its place");
    return 0;
  }
  const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
  demand(lines(result.text) == lines(source) + 1, "lines stay what they are");
  if (source.find("mpsforge_entry_") != std::string::npos) return 0;
  // Entries are numbered from 0 on, so one that is lost leaves a gap.
  size_t entries = 0, numbers = 0;
  for (size_t at = 0; (at = result.text.find("> mpsforge_entry_", at)) != std::string::npos; ++entries) {
    at += std::strlen("> mpsforge_entry_");
    numbers = std::max<size_t>(numbers, std::strtoul(result.text.c_str() + at, nullptr, 10) + 1);
  }
  demand(entries == numbers, "each kernel has its entry");
  return 0;
}
