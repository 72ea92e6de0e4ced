#include "image.h"

#include <sys/mman.h>

#include <algorithm>
#include <fstream>

namespace mpsforge::overlay {
namespace {

constexpr uint32_t kMagic = 0xfeedfacf, kArm64 = 0x0100000c, kArm64e = 2, kInSharedCache = 0x80000000;
constexpr uint32_t kSymbolTable = 0x2, kSegment = 0x19, kDyldInfo = 0x22, kDyldInfoOnly = 0x80000022,
                   kChainedFixups = 0x80000034;
constexpr size_t kHeaderSize = 32, kSymbolSize = 16;

bool readable(const Process& process, uintptr_t start, uint64_t size) {
  if (size > UINTPTR_MAX - start) return false;
  for (uintptr_t at = start; at < start + size;) {
    const Region region = process.region(at);
    if (region.end <= at || !(region.protection & PROT_READ)) return false;
    at = region.end;
  }
  return true;
}

Bytes header_of(const Process& process, uintptr_t at) {
  if (!readable(process, at, kHeaderSize)) throw std::runtime_error("its header is not in memory");
  const Bytes fixed(reinterpret_cast<const uint8_t*>(at), kHeaderSize);
  if (fixed.read<uint32_t>(0) != kMagic) throw std::runtime_error("this is not a 64-bit Mach-O image");
  const uint64_t size = kHeaderSize + uint64_t{fixed.read<uint32_t>(20)};
  if (!readable(process, at, size)) throw std::runtime_error("its load commands are not in memory");
  return Bytes(reinterpret_cast<const uint8_t*>(at), size);
}

// Calls found with each load command.
void each_command(const Bytes& header, const std::function<void(uint32_t kind, const Bytes& command)>& found) {
  Bytes rest = header.from(kHeaderSize);
  for (uint32_t i = 0; i < header.read<uint32_t>(16); ++i) {
    if (rest.size() < 8) throw std::runtime_error("a load command leads out of the header");
    const auto size = rest.read<uint32_t>(4);
    if (size < 8 || size > rest.size()) throw std::runtime_error("a load command leads out of the header");
    found(rest.read<uint32_t>(0), Bytes(rest.data(), size));
    rest = rest.from(size);
  }
}

std::string name_at(const Bytes& command, uint64_t offset) {
  const char* name = reinterpret_cast<const char*>(command.from(offset).data());
  return std::string(name, strnlen(name, std::min<size_t>(16, command.size() - offset)));
}

void add_segment(const Bytes& command, MachoImage& image) {
  MachoSegment segment;
  segment.name = name_at(command, 8);
  segment.start = command.read<uint64_t>(24);
  segment.size = command.read<uint64_t>(32);
  segment.offset = command.read<uint64_t>(40);
  segment.in_file = command.read<uint64_t>(48);
  segment.data = command.read<uint32_t>(60) & 2;  // VM_PROT_WRITE
  if (segment.in_file > segment.size || segment.size > UINTPTR_MAX - segment.start) {
    throw std::runtime_error("segment " + segment.name + " is larger than its memory");
  }
  for (const auto& other : image.segments) {
    if (segment.start < other.start + other.size && other.start < segment.start + segment.size) {
      throw std::runtime_error("segments " + other.name + " and " + segment.name + " overlap");
    }
  }
  image.segments.push_back(segment);
}

// Part of __LINKEDIT, by its place in the file.
Bytes linked(const Process& process, const MachoImage& image, uint64_t offset, uint64_t size, const char* what) {
  if (size == 0) return {};
  for (const auto& segment : image.segments) {
    if (segment.name != "__LINKEDIT" || offset < segment.offset || size > segment.in_file ||
        offset - segment.offset > segment.in_file - size) {
      continue;
    }
    const uintptr_t start = segment.start + (offset - segment.offset);
    if (readable(process, start, size)) return Bytes(reinterpret_cast<const uint8_t*>(start), size);
  }
  throw std::runtime_error(std::string(what) + " are outside of __LINKEDIT");
}

}  // namespace

MachoImage read_macho(const Process& process, const LoadedImage& loaded) {
  MachoImage image;
  image.loaded = loaded;
  image.header = header_of(process, loaded.header);
  image.signed_pointers =
      image.header.read<uint32_t>(4) == kArm64 && (image.header.read<uint32_t>(8) & 0xffffff) == kArm64e;
  image.in_shared_cache = image.header.read<uint32_t>(24) & kInSharedCache;
  if (image.in_shared_cache) return image;
  each_command(image.header, [&](uint32_t kind, const Bytes& command) {
    if (kind != kSegment) return;
    add_segment(command, image);
    const MachoSegment& segment = image.segments.back();
    if (segment.offset == 0 && segment.in_file > 0) image.slide = loaded.header - segment.start;
  });
  for (auto& segment : image.segments) {
    segment.start += image.slide;
    if (segment.size > UINTPTR_MAX - segment.start ||
        (segment.data && !readable(process, segment.start, segment.size))) {
      throw std::runtime_error("segment " + segment.name + " is not in memory");
    }
  }
  each_command(image.header, [&](uint32_t kind, const Bytes& command) {
    const auto table = [&](uint64_t at, uint64_t element, const char* what) {
      return linked(process, image, command.read<uint32_t>(at), command.read<uint32_t>(at + 4) * element, what);
    };
    if (kind == kDyldInfo || kind == kDyldInfoOnly) {
      image.classic = true;
      image.opcodes[0] = table(16, 1, "binding opcodes");
      image.opcodes[1] = table(24, 1, "binding opcodes");
      image.opcodes[2] = table(32, 1, "binding opcodes");
    } else if (kind == kChainedFixups) {
      image.chained = true;
      image.chains = table(8, 1, "chained fixups");
    } else if (kind == kSymbolTable) {
      image.symbols = table(8, kSymbolSize, "symbols");
      image.names = table(16, 1, "symbols' names");
    }
  });
  return image;
}

bool MachoImage::holds(uintptr_t address) const {
  return std::any_of(segments.begin(), segments.end(),
                     [&](const auto& one) { return address >= one.start && address - one.start < one.size; });
}

bool MachoImage::holds_pointer(uintptr_t address) const {
  return std::any_of(segments.begin(), segments.end(), [&](const auto& one) {
    return one.data && address >= one.start && one.size >= sizeof address &&
           address - one.start <= one.size - sizeof address;
  });
}

void each_symbol(const MachoImage& image, const std::function<void(const MachoSymbol&)>& found) {
  for (Bytes rest = image.symbols; !rest.empty(); rest = rest.from(kSymbolSize)) {
    const auto type = rest.read<uint8_t>(4);
    if ((type & 0xe0) != 0 || (type & 0x0e) != 0x0e) continue;  // for debuggers, or defined in no section
    found({image.names.text(rest.read<uint32_t>(0)), rest.read<uint64_t>(8) + image.slide, (type & 0x11) == 0x01});
  }
}

std::vector<MachoPointer> pointers_of(const MachoImage& image, const WantedSymbol& wanted) {
  if (image.in_shared_cache) return {};
  if (!image.classic && !image.chained) throw std::runtime_error("it does not say how it is bound");
  auto found = image.chained ? chained_pointers(image, wanted) : classic_pointers(image, wanted);
  if (image.signed_pointers && !found.empty()) {
    throw std::runtime_error(found.front().symbol + " is bound to a signed pointer of arm64e");
  }
  return found;
}

std::vector<uintptr_t> held_initializers(const MachoImage& image) {
  std::vector<uintptr_t> found;
  each_command(image.header, [&](uint32_t kind, const Bytes& command) {
    if (kind != kSegment) return;
    for (uint32_t i = 0; i < command.read<uint32_t>(64); ++i) {
      const Bytes section = command.from(72 + 80 * uint64_t{i});
      const uint32_t type = section.read<uint32_t>(64) & 0xff;
      if (type == 0x9 || type == 0x16) {  // S_MOD_INIT_FUNC_POINTERS, S_INIT_FUNC_OFFSETS
        throw std::runtime_error("the dynamic linker has run initializers of " + image.loaded.path);
      }
      if (name_at(section, 0) != "__mpsforge_init") continue;
      const uintptr_t start = section.read<uint64_t>(32) + image.slide;
      for (uint64_t at = 0; at < section.read<uint64_t>(40); at += sizeof(uintptr_t)) {
        if (!image.holds_pointer(start + at)) throw std::runtime_error("initializers are outside of the image");
        found.push_back(pointer_at(start + at));
      }
    }
  });
  return found;
}

uint64_t place_in_file(const MachoImage& image) {
  std::ifstream file(image.loaded.path, std::ios::binary);
  const auto read = [&](uint64_t at, void* to, size_t size) {
    file.clear();
    file.seekg(static_cast<std::streamoff>(at));
    return static_cast<bool>(file.read(static_cast<char*>(to), static_cast<std::streamsize>(size)));
  };
  std::vector<uint64_t> places = {0};
  uint8_t fat[8 + 20 * 16] = {};  // one for several processors: 0xcafebabe, in big-endian order
  const auto big = [&](size_t at) {
    return uint32_t{fat[at]} << 24 | fat[at + 1] << 16 | fat[at + 2] << 8 | fat[at + 3];
  };
  if (read(0, fat, 8) && big(0) == 0xcafebabe && big(4) <= 16 && read(8, fat + 8, 20 * big(4))) {
    for (uint32_t i = 0; i < big(4); ++i) places.push_back(big(8 + 20 * i + 8));
  }
  std::vector<uint8_t> header(image.header.size());
  for (const uint64_t place : places) {
    if (read(place, header.data(), header.size()) &&
        std::memcmp(header.data(), image.header.data(), header.size()) == 0) {
      return place;
    }
  }
  throw std::runtime_error(image.loaded.path + " is another file than the image that was loaded");
}

}  // namespace mpsforge::overlay
