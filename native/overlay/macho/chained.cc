// Pointers that chains bind (LC_DYLD_CHAINED_FIXUPS). dyld writes an address over each link of a chain, so that where
// the pointers are is read from the image's file.
#include <fstream>

#include "image.h"

namespace mpsforge::overlay {
namespace {

constexpr uint16_t kPlain = 2, kPlainOffset = 6;  // DYLD_CHAINED_PTR_64, DYLD_CHAINED_PTR_64_OFFSET
constexpr uint16_t kNone = 0xffff;                // DYLD_CHAINED_PTR_START_NONE

struct Import {
  std::string symbol;
  int64_t addend = 0;
  bool wanted = false;
};

std::vector<Import> imports_of(const Bytes& chains, const WantedSymbol& wanted) {
  const auto count = chains.read<uint32_t>(16), format = chains.read<uint32_t>(20);
  if (chains.read<uint32_t>(0) != 0 || chains.read<uint32_t>(24) != 0 || format < 1 || format > 3) {
    throw std::runtime_error("chained fixups of an unknown version");
  }
  Bytes table = chains.from(chains.read<uint32_t>(8));
  const Bytes names = chains.from(chains.read<uint32_t>(12));
  std::vector<Import> imports;
  for (uint32_t i = 0; i < count; ++i) {
    Import one;
    if (format == 3) {
      one.symbol = names.text(table.next<uint64_t>() >> 32);
      one.addend = table.next<int64_t>();
    } else {
      one.symbol = names.text(table.next<uint32_t>() >> 9);
      if (format == 2) one.addend = table.next<int32_t>();
    }
    one.wanted = wanted(one.symbol);
    imports.push_back(std::move(one));
  }
  return imports;
}

std::vector<uint8_t> content_of(const MachoImage& image, const MachoSegment& segment, uint64_t begin) {
  std::vector<uint8_t> content(segment.in_file);
  std::ifstream file(image.loaded.path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(begin + segment.offset));
  if (!file.read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(content.size()))) {
    throw std::runtime_error("its file ends early");
  }
  return content;
}

}  // namespace

std::vector<MachoPointer> chained_pointers(const MachoImage& image, const WantedSymbol& wanted) {
  std::vector<MachoPointer> found;
  const auto imports = imports_of(image.chains, wanted);
  bool any = false;
  for (const auto& one : imports) any = any || one.wanted;
  if (!any) return found;
  const uint64_t begin = place_in_file(image);
  const Bytes starts = image.chains.from(image.chains.read<uint32_t>(4));
  const auto count = starts.read<uint32_t>(0);
  if (count > image.segments.size()) throw std::runtime_error("pointers are bound in a segment that is not there");
  for (uint32_t i = 0; i < count; ++i) {
    const auto offset = starts.read<uint32_t>(4 + 4 * uint64_t{i});
    if (offset == 0) continue;
    const MachoSegment& segment = image.segments[i];
    const Bytes pages = starts.from(offset);
    const auto page_size = pages.read<uint16_t>(4), format = pages.read<uint16_t>(6),
               page_count = pages.read<uint16_t>(20);
    if (format != kPlain && format != kPlainOffset) {
      throw std::runtime_error("pointers of form " + std::to_string(format) + ", signed ones of arm64e among them");
    }
    if (!segment.data || pages.read<uint64_t>(8) != segment.start - image.loaded.header) {
      throw std::runtime_error("pointers are bound outside of the image's data");
    }
    const auto content = content_of(image, segment, begin);
    const Bytes links(content.data(), content.size());
    for (uint16_t page = 0; page < page_count; ++page) {
      const auto first = pages.read<uint16_t>(22 + 2 * uint64_t{page});
      if (first == kNone) continue;
      uint64_t at = uint64_t{page} * page_size + first;
      for (uint64_t next = 1; next != 0; at += next * 4) {
        const auto link = links.read<uint64_t>(at);
        next = link >> 51 & 0xfff;
        if (!(link >> 63)) continue;  // leads into the image itself
        const uint64_t ordinal = link & 0xffffff;
        if (ordinal >= imports.size()) throw std::runtime_error("a pointer is bound to an import that is not there");
        const Import& one = imports[ordinal];
        const int64_t addend = one.addend + static_cast<int64_t>(link >> 24 & 0xff);
        if (one.wanted) found.push_back({one.symbol, segment.start + at, addend, false});
      }
    }
  }
  return found;
}

}  // namespace mpsforge::overlay
