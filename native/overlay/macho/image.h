// Symbol pointers of a Mach-O image in memory, found by the image's own load commands. No header of Apple's is used, so
// that it is tried on Linux, on the bytes of PyTorch's wheel (fork/overlay/macho_test.go). Not run on a Mac.
#ifndef MPSFORGE_OVERLAY_MACHO_IMAGE_H
#define MPSFORGE_OVERLAY_MACHO_IMAGE_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mpsforge::overlay {

struct MachoSegment {
  std::string name;
  uintptr_t start = 0;
  size_t size = 0;
  int protection = 0;  // once the dynamic linker has bound the image
  bool bindable = false;
};

struct MachoPointer {
  std::string symbol;
  const MachoSegment* segment = nullptr;
  uintptr_t at = 0;
  int64_t addend = 0;
};

struct MachoImage {
  MachoImage() = default;
  MachoImage(MachoImage&&) = default;  // and no copy, whose pointers would lead to segments of this one

  std::vector<MachoSegment> segments;
  std::vector<MachoPointer> pointers;  // lazy, non-lazy and weak ones
};

// Reads the image whose header is there. Throws std::runtime_error at what is not a 64-bit image with classic binding
// (LC_DYLD_INFO), and at whatever leads out of it.
MachoImage read_macho(const void* header);

// Writes the pointers that are given a new value for their symbol and what they hold, and restores the protection of
// their memory. Gives how many.
using NewValue = std::function<std::optional<uintptr_t>(const MachoPointer& pointer, uintptr_t now)>;
size_t rebind_macho(const MachoImage& image, const NewValue& value);

}  // namespace mpsforge::overlay

#endif
