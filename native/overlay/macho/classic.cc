// Pointers that opcodes bind (LC_DYLD_INFO): what they mean is in dyld's BindOpcodes.
#include "image.h"

namespace mpsforge::overlay {
namespace {

// LEB128. Of a signed one the highest bit that is there fills those above it.
uint64_t number(Bytes& opcodes, bool is_signed = false) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = opcodes.next<uint8_t>();
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte & 0x80) continue;
    if (is_signed && (byte & 0x40) && shift + 7 < 64) value |= ~uint64_t{0} << (shift + 7);
    return value;
  }
  throw std::runtime_error("a number in binding opcodes is too long");
}

// Runs opcodes. In those of lazy pointers an end follows each one.
void run(Bytes opcodes, bool lazy, const MachoImage& image, const WantedSymbol& wanted,
         std::vector<MachoPointer>& found) {
  MachoPointer next;
  next.lazy = lazy;
  const MachoSegment* segment = nullptr;
  bool wanted_now = false;
  uint64_t offset = 0;
  const auto bind = [&] {
    next.at = segment ? segment->start + offset : 0;
    if (!image.holds_pointer(next.at)) {
      throw std::runtime_error("a pointer to " + next.symbol + " is bound outside of the image's data");
    }
    if (wanted_now) found.push_back(next);
    offset += sizeof(uintptr_t);
  };
  while (!opcodes.empty()) {
    const auto byte = opcodes.next<uint8_t>();
    const uint8_t low = byte & 0x0f;
    switch (byte & 0xf0) {
      case 0x00:  // end
        if (!lazy) return;
        break;
      case 0x10:  // which library, in the opcode
      case 0x30:  // a special one
        break;
      case 0x20:  // which library
        number(opcodes);
        break;
      case 0x40:
        next.symbol = opcodes.text(0);
        opcodes = opcodes.from(next.symbol.size() + 1);
        wanted_now = wanted(next.symbol);
        break;
      case 0x50:
        if (low != 1) throw std::runtime_error(next.symbol + " is bound otherwise than as a pointer");
        break;
      case 0x60:
        next.addend = static_cast<int64_t>(number(opcodes, true));
        break;
      case 0x70:
        if (low >= image.segments.size()) throw std::runtime_error("a pointer is bound in a segment that is not there");
        segment = &image.segments[low];
        offset = number(opcodes);
        break;
      case 0x80:
        offset += number(opcodes);
        break;
      case 0x90:
        bind();
        break;
      case 0xa0:
        bind();
        offset += number(opcodes);
        break;
      case 0xb0:
        bind();
        offset += low * sizeof(uintptr_t);
        break;
      case 0xc0: {
        const uint64_t count = number(opcodes), skip = number(opcodes);
        if (segment && count > segment->size) throw std::runtime_error("pointers are bound more often than they fit");
        for (uint64_t i = 0; i < count; ++i) {
          bind();
          offset += skip;
        }
        break;
      }
      default:
        throw std::runtime_error("an unknown binding opcode");
    }
  }
}

}  // namespace

std::vector<MachoPointer> classic_pointers(const MachoImage& image, const WantedSymbol& wanted) {
  std::vector<MachoPointer> found;
  for (int i = 0; i < 3; ++i) run(image.opcodes[i], i == 2, image, wanted, found);
  return found;
}

}  // namespace mpsforge::overlay
