// A Mach-O image in memory: where its load commands say that its segments, symbols and bound pointers are. No header of
// Apple's is used, so that it is tried on Linux, on the bytes of PyTorch's wheel
// (validate/stages/overlay/macho_test.go). The numbers are those of <mach-o/loader.h>, <mach-o/nlist.h> and
// <mach-o/fixup-chains.h>. Not run on a Mac.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace mpsforge::overlay {

// Memory with one protection (PROT_*); nothing is there if it is empty.
struct Region {
  uintptr_t start = 0, end = 0;
  int protection = 0;
};

struct LoadedImage {
  uintptr_t header = 0;
  std::string path;
};

// What is asked of the process: macOS's (dyld.cc), or a test's.
class Process {
 public:
  virtual ~Process() = default;
  virtual std::vector<LoadedImage> images() const = 0;
  virtual Region region(uintptr_t address) const = 0;
  virtual void protect(uintptr_t start, size_t size, int protection) const = 0;  // throws std::runtime_error
};

inline uintptr_t pointer_at(uintptr_t address) {
  uintptr_t value = 0;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

struct MachoSegment {
  std::string name;
  uintptr_t start = 0;
  uint64_t size = 0, offset = 0, in_file = 0;
  bool data = false;  // may be written while the image is bound
};

// Bytes that are read in order or by their place, and never past their end.
class Bytes {
 public:
  Bytes() = default;
  Bytes(const uint8_t* at, size_t size) : at_(at), size_(size) {}
  bool empty() const { return size_ == 0; }
  Bytes from(uint64_t offset) const {
    if (offset > size_) throw std::runtime_error("a table ends early");
    return Bytes(at_ + offset, size_ - offset);
  }
  template <typename T>
  T read(uint64_t offset) const {
    T value;
    if (from(offset).size_ < sizeof value) throw std::runtime_error("a table ends early");
    std::memcpy(&value, at_ + offset, sizeof value);
    return value;
  }
  template <typename T>
  T next() {
    const T value = read<T>(0);
    *this = from(sizeof value);
    return value;
  }
  std::string text(uint64_t offset) const {
    const Bytes rest = from(offset);
    const size_t length = strnlen(reinterpret_cast<const char*>(rest.at_), rest.size_);
    if (length == rest.size_) throw std::runtime_error("a name does not end");
    return std::string(reinterpret_cast<const char*>(rest.at_), length);
  }
  const uint8_t* data() const { return at_; }
  size_t size() const { return size_; }

 private:
  const uint8_t* at_ = nullptr;
  size_t size_ = 0;
};

struct MachoImage {
  LoadedImage loaded;
  uintptr_t slide = 0;
  Bytes header;                  // with the load commands, LC_UUID among them
  bool signed_pointers = false;  // arm64e
  bool in_shared_cache = false;  // Apple's own, which know nothing of torch
  std::vector<MachoSegment> segments;
  bool classic = false, chained = false;
  Bytes opcodes[3];  // of pointers that are bound at once, of weak ones, of lazy ones
  Bytes chains;
  Bytes symbols, names;

  bool holds(uintptr_t address) const;
  bool holds_pointer(uintptr_t address) const;  // in its data
};

// Reads the image whose header is there. Throws std::runtime_error at what is not a 64-bit image, and at whatever leads
// out of it.
MachoImage read_macho(const Process& process, const LoadedImage& loaded);

struct MachoSymbol {
  std::string name;
  uintptr_t address = 0;
  bool exported = false;
};

// The symbols that an image defines.
void each_symbol(const MachoImage& image, const std::function<void(const MachoSymbol&)>& found);

struct MachoPointer {
  std::string symbol;
  uintptr_t at = 0;
  int64_t addend = 0;
  bool lazy = false;
};

using WantedSymbol = std::function<bool(const std::string& name)>;

// The pointers of an image that are bound to wanted symbols: lazy, non-lazy and weak ones. Throws at binding that is
// not understood.
std::vector<MachoPointer> pointers_of(const MachoImage& image, const WantedSymbol& wanted);
std::vector<MachoPointer> classic_pointers(const MachoImage& image, const WantedSymbol& wanted);
std::vector<MachoPointer> chained_pointers(const MachoImage& image, const WantedSymbol& wanted);

// The initializers of an image that dyld has not run: their section has another type than dyld looks for. Throws if it
// has run some.
std::vector<uintptr_t> held_initializers(const MachoImage& image);

// Where in the file at the image's path the image begins. Throws if the file there is another one now.
uint64_t place_in_file(const MachoImage& image);

}  // namespace mpsforge::overlay
