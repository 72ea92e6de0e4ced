// The numbers are those of <mach-o/loader.h>, and what they mean is in dyld's BindOpcodes.
#include "image.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace mpsforge::overlay {
namespace {

constexpr uint32_t kMagic = 0xfeedfacf, kSegment = 0x19, kDyldInfo = 0x22, kDyldInfoOnly = 0x80000022,
                   kChainedFixups = 0x80000034, kReadOnlyAfterBinding = 0x10;

template <typename T>
T read(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Bytes that are read in order, and never past their end.
class Bytes {
 public:
  Bytes(const uint8_t* at, size_t size) : at_(at), end_(at + size) {}
  bool empty() const { return at_ == end_; }
  uint8_t next() {
    if (empty()) throw std::runtime_error("binding opcodes end in the middle");
    return *at_++;
  }
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = next();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80)) return value;
    }
    throw std::runtime_error("a number in binding opcodes is too long");
  }
  int64_t signed_number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = next();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte & 0x80) continue;
      if ((byte & 0x40) && shift + 7 < 64) value |= ~uint64_t{0} << (shift + 7);
      return static_cast<int64_t>(value);
    }
    throw std::runtime_error("a number in binding opcodes is too long");
  }
  std::string text() {
    std::string value;
    while (const uint8_t byte = next()) value += static_cast<char>(byte);
    return value;
  }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

// Runs opcodes. In those of lazy pointers an end stands behind each one.
void run(Bytes opcodes, bool lazy, MachoImage& image) {
  MachoPointer next;
  uint64_t offset = 0;
  const auto bind = [&] {
    if (!next.segment || !next.segment->bindable || next.segment->size < sizeof(uintptr_t) ||
        offset > next.segment->size - sizeof(uintptr_t)) {
      throw std::runtime_error("a pointer to " + next.symbol + " is bound outside of the image's data");
    }
    next.at = next.segment->start + offset;
    image.pointers.push_back(next);
    offset += sizeof(uintptr_t);
  };
  while (!opcodes.empty()) {
    const uint8_t byte = opcodes.next(), low = byte & 0x0f;
    switch (byte & 0xf0) {
      case 0x00:  // end
        if (!lazy) return;
        break;
      case 0x10:  // which library, in the opcode
      case 0x30:  // a special one
        break;
      case 0x20:  // which library
        opcodes.number();
        break;
      case 0x40:
        next.symbol = opcodes.text();
        break;
      case 0x50:
        if (low != 1) throw std::runtime_error(next.symbol + " is bound otherwise than as a pointer");
        break;
      case 0x60:
        next.addend = opcodes.signed_number();
        break;
      case 0x70:
        if (low >= image.segments.size()) throw std::runtime_error("a pointer is bound in a segment that is not there");
        next.segment = &image.segments[low];
        offset = opcodes.number();
        break;
      case 0x80:
        offset += opcodes.number();
        break;
      case 0x90:
        bind();
        break;
      case 0xa0:
        bind();
        offset += opcodes.number();
        break;
      case 0xb0:
        bind();
        offset += low * sizeof(uintptr_t);
        break;
      case 0xc0: {
        const uint64_t count = opcodes.number(), skip = opcodes.number();
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

int protection_of(uint32_t bits) {
  return (bits & 1 ? PROT_READ : 0) | (bits & 2 ? PROT_WRITE : 0) | (bits & 4 ? PROT_EXEC : 0);
}

// Memory that may be written until the end of the scope.
class Writable {
 public:
  explicit Writable(const MachoPointer& pointer) : protection_(pointer.segment->protection) {
    if (protection_ & PROT_WRITE) return;
    const uintptr_t page = sysconf(_SC_PAGESIZE);
    start_ = pointer.at & ~(page - 1);
    size_ = ((pointer.at + sizeof(uintptr_t) + page - 1) & ~(page - 1)) - start_;
    if (mprotect(reinterpret_cast<void*>(start_), size_, PROT_READ | PROT_WRITE) != 0) {
      throw std::runtime_error("mprotect in " + pointer.segment->name + ": " + std::strerror(errno));
    }
  }
  ~Writable() {
    if (size_) mprotect(reinterpret_cast<void*>(start_), size_, protection_);
  }
  Writable(const Writable&) = delete;
  Writable& operator=(const Writable&) = delete;

 private:
  int protection_;
  uintptr_t start_ = 0;
  size_t size_ = 0;
};

}  // namespace

MachoImage read_macho(const void* header) {
  const auto* start = static_cast<const uint8_t*>(header);
  if (read<uint32_t>(start) != kMagic) throw std::runtime_error("this is not a 64-bit Mach-O image");
  const uint32_t count = read<uint32_t>(start + 16);
  const uint8_t* command = start + 32;
  const uint8_t* const end = command + read<uint32_t>(start + 20);

  MachoImage image;
  uintptr_t slide = 0, linkedit = 0;  // linkedit: where the file's first byte would be
  uint64_t linkedit_offset = 0, linkedit_end = 0;
  const uint8_t* info = nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    if (end - command < 8 || read<uint32_t>(command + 4) < 8 || end - command < read<uint32_t>(command + 4)) {
      throw std::runtime_error("a load command leads out of the header");
    }
    const uint32_t kind = read<uint32_t>(command), size = read<uint32_t>(command + 4);
    if (kind == kChainedFixups) throw std::runtime_error("the image is bound by chained fixups");
    if (kind == kSegment && size >= 72) {
      const auto* name = reinterpret_cast<const char*>(command + 8);
      MachoSegment segment;
      segment.name.assign(name, strnlen(name, 16));
      segment.start = read<uint64_t>(command + 24);
      segment.size = read<uint64_t>(command + 32);
      const uint64_t offset = read<uint64_t>(command + 40), in_file = read<uint64_t>(command + 48);
      const uint32_t initial = read<uint32_t>(command + 60);
      segment.protection = protection_of(initial);
      segment.bindable = segment.protection & PROT_WRITE;
      if (read<uint32_t>(command + 68) & kReadOnlyAfterBinding) segment.protection &= ~PROT_WRITE;
      if (offset == 0 && in_file > 0) slide = reinterpret_cast<uintptr_t>(start) - segment.start;
      if (segment.name == "__LINKEDIT") {
        linkedit = segment.start - offset;
        linkedit_offset = offset;
        linkedit_end = offset + in_file;
      }
      image.segments.push_back(segment);
    }
    if ((kind == kDyldInfo || kind == kDyldInfoOnly) && size >= 48) info = command;
    command += size;
  }
  for (auto& segment : image.segments) segment.start += slide;
  if (!info) throw std::runtime_error("the image does not say how it is bound");
  for (const int at : {16, 24, 32}) {  // of pointers at once, weak ones, lazy ones
    const uint64_t offset = read<uint32_t>(info + at), size = read<uint32_t>(info + at + 4);
    if (size == 0) continue;
    if (offset < linkedit_offset || offset + size > linkedit_end) {
      throw std::runtime_error("binding opcodes are outside of __LINKEDIT");
    }
    run(Bytes(reinterpret_cast<const uint8_t*>(linkedit + slide + offset), size), at == 32, image);
  }
  return image;
}

size_t rebind_macho(const MachoImage& image, const NewValue& value) {
  size_t written = 0;
  for (const auto& pointer : image.pointers) {
    uintptr_t now = 0;
    std::memcpy(&now, reinterpret_cast<const void*>(pointer.at), sizeof now);
    const auto wanted = value(pointer, now);
    if (!wanted) continue;
    const Writable writable(pointer);
    std::memcpy(reinterpret_cast<void*>(pointer.at), &*wanted, sizeof *wanted);
    ++written;
  }
  return written;
}

}  // namespace mpsforge::overlay
