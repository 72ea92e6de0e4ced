// macho OLD OWN IMAGE... [later IMAGE...]: a process of macOS as far as the rebinder sees one, with Mach-O files as its
// images. OLD plays torch's copy and OWN the overlay's; the other images are bound to OLD and led to OWN, the later
// ones when they are loaded. Says what changed. An image FILE:FORGED is FILE, with header and symbol tables of FORGED.
//
// macho fuzz COUNT SEED OLD OWN IMAGE...: the same with bytes of headers, tables and files changed at random.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <sstream>

#include "macho/rebind.h"

using namespace mpsforge::overlay;

namespace {

std::string content(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(stream)), {});
}

template <typename T>
T at(const std::string& file, size_t place) {
  T value;
  if (place + sizeof value > file.size()) throw std::runtime_error("the file ends early");
  std::memcpy(&value, file.data() + place, sizeof value);
  return value;
}

struct Segment {
  uint64_t address, size, offset, in_file;
  uint32_t protection;
  bool constant;
};

std::vector<Segment> segments_of(const std::string& file) {
  std::vector<Segment> all;
  size_t place = 32;
  for (uint32_t i = 0; i < at<uint32_t>(file, 16); ++i, place += at<uint32_t>(file, place + 4)) {
    if (at<uint32_t>(file, place) != 0x19) continue;
    all.push_back({at<uint64_t>(file, place + 24), at<uint64_t>(file, place + 32), at<uint64_t>(file, place + 40),
                   at<uint64_t>(file, place + 48), at<uint32_t>(file, place + 60),
                   (at<uint32_t>(file, place + 68) & 0x10) != 0});  // SG_READ_ONLY
  }
  return all;
}

struct Mapped {
  LoadedImage loaded;
  char* memory = nullptr;
  size_t size = 0;
  std::string file;
  std::vector<Segment> segments;
  std::map<uintptr_t, std::pair<std::string, int64_t>> bound;  // by place: symbol and addend
};

class Double : public Process {
 public:
  std::vector<Mapped> mapped;

  std::vector<LoadedImage> images() const override {
    std::vector<LoadedImage> all;
    for (const auto& one : mapped) all.push_back(one.loaded);
    return all;
  }
  Region region(uintptr_t address) const override {
    if (regions_.empty()) {
      std::ifstream maps("/proc/self/maps");
      for (std::string line; std::getline(maps, line);) {
        unsigned long from = 0, to = 0;
        char how[5] = {};
        std::sscanf(line.c_str(), "%lx-%lx %4s", &from, &to, how);
        const int protection =
            (how[0] == 'r' ? PROT_READ : 0) | (how[1] == 'w' ? PROT_WRITE : 0) | (how[2] == 'x' ? PROT_EXEC : 0);
        regions_.push_back({from, to, protection});
      }
    }
    for (const auto& one : regions_) {
      if (address >= one.start && address < one.end) return one;
    }
    return {};
  }
  void protect(uintptr_t start, size_t size, int protection) const override {
    regions_.clear();
    if (mprotect(reinterpret_cast<void*>(start), size, protection) != 0) throw std::runtime_error("mprotect");
  }

  // Maps a file at an address that is not its own, behind it and before it nothing.
  Mapped& map(const std::string& argument) {
    const size_t colon = argument.find(':');
    Mapped one;
    one.file = content(argument.substr(0, colon));
    one.segments = segments_of(one.file);
    for (const auto& s : one.segments) one.size = std::max<size_t>(one.size, s.address + s.size);
    const size_t page = sysconf(_SC_PAGESIZE);
    auto* room = static_cast<char*>(
        mmap(nullptr, one.size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (room == MAP_FAILED) throw std::runtime_error("mmap");
    one.memory = room + page;
    one.loaded = {reinterpret_cast<uintptr_t>(one.memory), argument.substr(colon == std::string::npos ? 0 : colon + 1)};
    for (const auto& s : one.segments) {
      protect(one.loaded.header + s.address, s.size, PROT_READ | PROT_WRITE);
      std::memcpy(one.memory + s.address, one.file.data() + s.offset, s.in_file);
    }
    mapped.push_back(std::move(one));
    return mapped.back();
  }

  void end_loading(const Mapped& one) const {
    for (const auto& s : one.segments) {
      const int how = static_cast<int>(s.constant ? s.protection & ~PROT_WRITE : s.protection);
      protect(one.loaded.header + s.address, s.size, how);
    }
  }

 private:
  mutable std::vector<Region> regions_;
};

// Torch's own, or an address of nothing for a symbol of others.
using Addresses = std::map<std::string, uintptr_t>;

Addresses exports_of(const Process& process, const LoadedImage& image) {
  Addresses all;
  each_symbol(read_macho(process, image), [&](const MachoSymbol& one) {
    if (one.exported) all[one.name] = one.address;
  });
  return all;
}

// Binds as dyld does: chains by the file, since it writes over them. Of lazy pointers each second one is left unbound.
void bind_pointers(const Process& process, Mapped& one, const Addresses& old) {
  const auto set = [&](uintptr_t place, const std::string& symbol, int64_t addend, bool unbound) {
    const auto found = old.find(symbol);
    const uintptr_t value = unbound ? one.loaded.header + 64 : (found == old.end() ? 0x1000 : found->second) + addend;
    std::memcpy(reinterpret_cast<void*>(place), &value, sizeof value);
    one.bound[place] = {symbol, addend};
  };
  const MachoImage image = read_macho(process, one.loaded);
  if (image.classic) {
    size_t lazy = 0;
    for (const auto& p : classic_pointers(image, [](const std::string&) { return true; })) {
      set(p.at, p.symbol, p.addend, p.lazy && ++lazy % 2);
      std::cout << "pointer\t" << p.symbol << '\t' << p.at - one.loaded.header << '\n';
    }
    return;
  }
  size_t place = 32, chains = 0;
  for (; at<uint32_t>(one.file, place) != 0x80000034;) place += at<uint32_t>(one.file, place + 4);
  chains = at<uint32_t>(one.file, place + 8);
  const size_t starts = chains + at<uint32_t>(one.file, chains + 4),
               imports = chains + at<uint32_t>(one.file, chains + 8),
               names = chains + at<uint32_t>(one.file, chains + 12);
  for (size_t s = 0; s < at<uint32_t>(one.file, starts); ++s) {
    const auto offset = at<uint32_t>(one.file, starts + 4 + 4 * s);
    if (!offset) continue;
    for (size_t page = 0; page < at<uint16_t>(one.file, starts + offset + 20); ++page) {
      size_t in_page = at<uint16_t>(one.file, starts + offset + 22 + 2 * page);
      if (in_page == 0xffff) continue;
      for (uint64_t next = 1; next; in_page += next * 4) {
        const uint64_t in_segment = page * at<uint16_t>(one.file, starts + offset + 4) + in_page;
        const auto link = at<uint64_t>(one.file, one.segments[s].offset + in_segment);
        next = link >> 51 & 0xfff;
        const uintptr_t here = one.loaded.header + one.segments[s].address + in_segment;
        if (link >> 63) {
          const auto import = at<uint32_t>(one.file, imports + 4 * (link & 0xffffff));
          set(here, one.file.c_str() + names + (import >> 9), link >> 24 & 0xff, false);
        } else {
          const uintptr_t value = one.loaded.header + (link & 0xfffffffff);
          std::memcpy(reinterpret_cast<void*>(here), &value, sizeof value);
        }
      }
    }
  }
}

// Puts header and tables of the forged file over those of the image.
void forge(const Mapped& one) {
  const std::string forged = content(one.loaded.path);
  if (forged.size() != one.file.size()) return;  // one for several processors, with this one in it
  for (const auto& s : one.segments) {
    const size_t size = s.offset == 0 ? std::min<size_t>(s.in_file, 32 + at<uint32_t>(one.file, 20)) : s.in_file;
    if (!(s.protection & PROT_WRITE)) std::memcpy(one.memory + s.address, forged.data() + s.offset, size);
  }
}

struct Snapshot {
  std::vector<std::string> bytes;
  std::string protections;
};

Snapshot take(const Double& process) {
  Snapshot snapshot;
  std::ostringstream protections;
  for (const auto& one : process.mapped) {
    std::string bytes;
    for (const auto& s : one.segments) bytes.append(one.memory + s.address, s.size);
    snapshot.bytes.push_back(std::move(bytes));
    for (uintptr_t at = one.loaded.header; at < one.loaded.header + one.size;) {
      const Region region = process.region(at);
      protections << region.start << '-' << region.end << ' ' << region.protection << '\n';
      at = region.end;
    }
  }
  snapshot.protections = protections.str();
  return snapshot;
}

// Counts what an image's pointers hold now, and what else differs from before.
void compare(const Double& process, const Snapshot& before, const Addresses& old, const Addresses& own, size_t from,
             const std::string& name) {
  size_t led = 0, stale = 0, elsewhere = 0;
  const Snapshot now = take(process);
  for (size_t i = 0; i < process.mapped.size(); ++i) {
    const Mapped& one = process.mapped[i];
    size_t place = 0;
    for (const auto& s : one.segments) {
      for (size_t at = 0; at < s.size; at += 4) {
        const auto bound = one.bound.find(one.loaded.header + s.address + at);
        const bool replaced =
            i >= from && bound != one.bound.end() && old.count(bound->second.first) && own.count(bound->second.first);
        if (replaced) {
          uintptr_t value = 0;
          std::memcpy(&value, now.bytes[i].data() + place + at, sizeof value);
          ++(value == own.at(bound->second.first) + bound->second.second ? led : stale);
          at += 4;
        } else if (at + 4 <= s.size && std::memcmp(&now.bytes[i][place + at], &before.bytes[i][place + at], 4) != 0) {
          ++elsewhere;
        }
      }
      place += s.size;
    }
  }
  std::cout << name << "\tled\t" << led << "\n"
            << name << "\tstale\t" << stale << "\n"
            << name << "\telsewhere\t" << elsewhere << "\n"
            << name << "\tprotections\t" << (now.protections == before.protections ? "restored" : "changed") << '\n';
}

void unchanged(const Double& process, const Snapshot& before, const std::string& name) {
  const Snapshot now = take(process);
  std::cout << name << '\t'
            << (now.bytes == before.bytes && now.protections == before.protections ? "nothing changed" : "CHANGED")
            << '\n';
}

int run(const std::vector<std::string>& arguments) {
  Double process;
  const LoadedImage old = process.map(arguments.at(0)).loaded;
  const auto theirs = exports_of(process, old);
  forge(process.mapped[0]);
  process.end_loading(process.mapped[0]);
  const auto load = [&](const std::string& argument) {
    Mapped& one = process.map(argument);
    bind_pointers(process, one, theirs);
    forge(one);
    process.end_loading(one);
    return one.loaded;
  };
  size_t next = 1;
  for (; next < arguments.size() && arguments[next] != "later"; ++next) load(arguments[next]);
  const LoadedImage own = process.mapped[1].loaded;
  Snapshot before = take(process);
  try {
    MachoRebinding rebinding(process, old, own);
    rebinding.check();
    unchanged(process, before, "check");
    const auto ours = exports_of(process, own);
    for (const auto& image : process.images()) rebinding.lead(image);
    compare(process, before, theirs, ours, 2, "first");
    before = take(process);
    for (const auto& image : process.images()) rebinding.lead(image);
    unchanged(process, before, "again");
    for (++next; next < arguments.size(); ++next) {
      const size_t from = process.mapped.size();
      const LoadedImage later = load(arguments[next]);
      before = take(process);
      rebinding.lead(later);
      compare(process, before, theirs, ours, from, "later");
    }
    const Rebound result = rebinding.result();
    for (const auto& [image, count] : result.pointers) std::cout << "rebound\t" << image << '\t' << count << '\n';
    for (const auto& name : result.gone) std::cout << "gone\t" << name << '\n';
    for (const auto& pointer : rebinding.left()) std::cout << "left\t" << pointer << '\n';
  } catch (const std::runtime_error& error) {
    std::cout << "refused\t" << error.what() << '\n';
    unchanged(process, before, "after that");
    return 1;
  }
  return 0;
}

// Changes bytes in the part of the memory that a header or a table is in, and in the file.
int fuzz(const std::vector<std::string>& arguments) {
  std::mt19937 random(std::stoul(arguments.at(1)));
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  Double process;
  for (size_t i = 2; i < arguments.size(); ++i) {
    Mapped& one = process.map(arguments[i]);
    one.loaded.path += ".fuzzed";
  }
  size_t refused = 0;
  const size_t count = std::stoul(arguments.at(0));
  for (size_t i = 0; i < count; ++i) {
    Mapped& one = process.mapped[below(process.mapped.size())];
    std::string changed = one.file;
    for (size_t n = below(4) + 1; n > 0; --n) {
      const Segment& s = one.segments[below(3) == 0 ? 0 : below(one.segments.size())];
      const size_t size = s.offset == 0 ? 32 + at<uint32_t>(one.file, 20) : s.in_file;
      if (size == 0) continue;
      const size_t place = s.offset + below(size);
      const char values[] = {0, 1, 0x7f, static_cast<char>(0x80), static_cast<char>(0xff), static_cast<char>(random())};
      changed[place] = values[below(sizeof values)];
    }
    for (auto& other : process.mapped) {
      const std::string& text = &other == &one ? changed : other.file;
      std::ofstream(other.loaded.path, std::ios::binary) << text;
      for (const auto& s : other.segments) std::memcpy(other.memory + s.address, text.data() + s.offset, s.in_file);
    }
    try {
      MachoRebinding rebinding(process, process.mapped[0].loaded, process.mapped[1].loaded);
      for (const auto& image : process.images()) rebinding.lead(image);
      rebinding.left();
    } catch (const std::runtime_error&) {
      ++refused;
    }
  }
  std::cout << "refused\t" << refused << '\n';
  return 0;
}

}  // namespace

int main(int count, char** words) {
  std::vector<std::string> arguments(words + 1, words + count);
  try {
    if (arguments.at(0) != "fuzz") return run(arguments);
    arguments.erase(arguments.begin());
    return fuzz(arguments);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
