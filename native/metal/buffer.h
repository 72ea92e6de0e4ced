// Memory that commands and the CPU access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "device.h"
#include "handle.h"
#include "metal.h"

namespace mpsforge::metal {

// Needs no lock: nothing of it changes but the bytes, which the program must order.
class Buffer {
 public:
  // nullptr: no memory, or length 0.
  static std::shared_ptr<Buffer> create(const std::shared_ptr<Device>& device, size_t length, uint32_t storage,
                                        const std::string& label);
  // Over memory that outlives it; nullptr as above.
  static std::shared_ptr<Buffer> over(const std::shared_ptr<Device>& device, void* memory, size_t length,
                                      uint32_t storage, const std::string& label);

  // By the calling thread. False, after a finding, if the range or the buffer's memory does not allow it.
  bool cpu_access(const char* call, size_t offset, size_t length, bool read, bool write);
  bool contains(size_t offset, size_t length) const { return offset <= length_ && length <= length_ - offset; }
  // "bytes 4 to 8 of buffer b, which has 4".
  std::string describe(size_t offset, size_t length) const;

  const std::shared_ptr<Device> device;
  const std::string label;
  size_t length() const { return length_; }
  uint8_t* bytes() const { return bytes_.get(); }
  bool is_private() const { return private_; }
  Shadow* shadow() const { return shadow_.get(); }

 private:
  struct Free {
    bool owned;
    void operator()(uint8_t* bytes) const {
      if (owned) std::free(bytes);
    }
  };

  Buffer(const std::shared_ptr<Device>& device, std::unique_ptr<uint8_t, Free> bytes, size_t length, uint32_t storage,
         const std::string& label);

  const std::unique_ptr<uint8_t, Free> bytes_;
  const size_t length_;
  const bool private_;
  const std::shared_ptr<Shadow> shadow_;
};

}  // namespace mpsforge::metal

struct mpsforge_metal_buffer : mpsforge::metal::Handle {
  explicit mpsforge_metal_buffer(std::shared_ptr<mpsforge::metal::Buffer> object)
      : Handle(mpsforge::metal::HandleKind::Buffer), object(std::move(object)) {}
  std::string label() const override { return object->label; }
  const std::shared_ptr<mpsforge::metal::Buffer> object;
};
