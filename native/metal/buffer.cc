#include "buffer.h"

#include <utility>

namespace mpsforge::metal {

Buffer::Buffer(const std::shared_ptr<Device>& device, std::unique_ptr<uint8_t, Free> bytes, size_t length,
               uint32_t storage, const std::string& label)
    : device(device),
      label(label.empty() ? std::to_string(device->next_object()) : label),
      bytes_(std::move(bytes)),
      length_(length),
      private_(storage == MPSFORGE_METAL_PRIVATE),
      shadow_(device->checker.buffer(this->label, length)) {}

std::shared_ptr<Buffer> Buffer::create(const std::shared_ptr<Device>& device, size_t length, uint32_t storage,
                                       const std::string& label) {
  if (length == 0) return nullptr;
  std::unique_ptr<uint8_t, Free> bytes(static_cast<uint8_t*>(std::calloc(length, 1)), Free{true});
  if (!bytes) return nullptr;
  return std::shared_ptr<Buffer>(new Buffer(device, std::move(bytes), length, storage, label));
}

std::shared_ptr<Buffer> Buffer::over(const std::shared_ptr<Device>& device, void* memory, size_t length,
                                     uint32_t storage, const std::string& label) {
  if (length == 0 || !memory) return nullptr;
  std::unique_ptr<uint8_t, Free> bytes(static_cast<uint8_t*>(memory), Free{false});
  return std::shared_ptr<Buffer>(new Buffer(device, std::move(bytes), length, storage, label));
}

std::string Buffer::describe(size_t offset, size_t length) const {
  return std::to_string(length) + " bytes from " + std::to_string(offset) + " of buffer " + label + ", which has " +
         std::to_string(length_);
}

bool Buffer::cpu_access(const char* call, size_t offset, size_t length, bool read, bool write) {
  const ThreadPointer thread = current_thread(*device);
  const auto refuse = [&](Rule rule) {
    device->findings.violation(rule, "", Call{call, thread, 0, nullptr}.text(), describe(offset, length));
    return false;
  };
  if (private_) return refuse(Rule::PrivateMemory);
  if (!contains(offset, length)) return refuse(Rule::OutOfRange);
  if (!read && !write) return refuse(Rule::UndeclaredAccess);
  // A write conflicts with all that a read conflicts with.
  device->checker.access(thread->actor, shadow(), offset, length, write, {call, thread->interned(), "", 0, 0});
  return true;
}

}  // namespace mpsforge::metal
