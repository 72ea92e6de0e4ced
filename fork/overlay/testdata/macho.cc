// macho FILE PART: maps a Mach-O library as the dynamic linker does, binds its pointers to made-up addresses, and leads
// those whose symbols' names have PART elsewhere. Prints the pointers that it found, and what else has changed.
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>

#include "image.h"

using namespace mpsforge::overlay;

namespace {

template <typename T>
T read(const std::string& file, size_t at) {
  T value;
  if (at + sizeof value > file.size()) throw std::runtime_error("the file ends early");
  std::memcpy(&value, file.data() + at, sizeof value);
  return value;
}

struct Segment {
  uint64_t address, size, offset, in_file;
};

std::vector<Segment> segments(const std::string& file) {
  std::vector<Segment> all;
  size_t at = 32;
  for (uint32_t i = 0; i < read<uint32_t>(file, 16); ++i, at += read<uint32_t>(file, at + 4)) {
    if (read<uint32_t>(file, at) != 0x19) continue;
    all.push_back({read<uint64_t>(file, at + 24), read<uint64_t>(file, at + 32), read<uint64_t>(file, at + 40),
                   read<uint64_t>(file, at + 48)});
  }
  return all;
}

// The protections of memory from start on.
std::string protections(uintptr_t start, size_t size) {
  std::ifstream maps("/proc/self/maps");
  std::ostringstream found;
  for (std::string line; std::getline(maps, line);) {
    unsigned long from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &from, &to) == 2 && to > start && from < start + size)
      found << line << '\n';
  }
  return found.str();
}

int run(const std::string& path, const std::string& part) {
  std::ifstream stream(path, std::ios::binary);
  const std::string file((std::istreambuf_iterator<char>(stream)), {});
  size_t size = 0;
  for (const auto& s : segments(file)) size = std::max<size_t>(size, s.address + s.size);
  auto* memory = static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) throw std::runtime_error("mmap");
  for (const auto& s : segments(file)) std::memcpy(memory + s.address, file.data() + s.offset, s.in_file);
  const MachoImage image = read_macho(memory);
  constexpr uintptr_t kOld = 0x1000, kOther = 0x2000, kNew = 0x3000;
  std::set<uintptr_t> expected;
  for (const auto& pointer : image.pointers) {
    const bool wanted = pointer.symbol.find(part) != std::string::npos;
    const uintptr_t value = wanted ? kOld : kOther;
    std::memcpy(reinterpret_cast<void*>(pointer.at), &value, sizeof value);
    if (wanted) expected.insert(pointer.at);
    std::cout << "pointer\t" << pointer.symbol << '\t' << pointer.at - reinterpret_cast<uintptr_t>(memory) << '\n';
  }
  for (const auto& s : image.segments) mprotect(reinterpret_cast<void*>(s.start), s.size, s.protection);
  const auto start = reinterpret_cast<uintptr_t>(memory);
  const std::string before(memory, size), protected_before = protections(start, size);
  const size_t written =
      rebind_macho(image, [&](const MachoPointer& pointer, uintptr_t now) -> std::optional<uintptr_t> {
        if (now != kOld || pointer.symbol.find(part) == std::string::npos) return std::nullopt;
        return kNew;
      });
  size_t elsewhere = 0;
  for (size_t at = 0; at < size; at += 8) {
    uintptr_t now = 0;
    std::memcpy(&now, memory + at, 8);
    const bool pointed = expected.count(start + at);
    if (pointed ? now != kNew : std::memcmp(memory + at, before.data() + at, 8) != 0) ++elsewhere;
  }
  std::cout << "written\t" << written << "\nexpected\t" << expected.size() << "\nelsewhere\t" << elsewhere
            << "\nprotections\t" << (protected_before == protections(start, size) ? "restored" : "changed") << '\n';
  return 0;
}

}  // namespace

int main(int, char** arguments) {
  try {
    return run(arguments[1], arguments[2]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
