// Blit and compute encoders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "command.h"
#include "command_buffer.h"
#include "handle.h"
#include "metal.h"

// Without the device's mutex, except where a lock is an argument.
struct mpsforge_metal_encoder : mpsforge::metal::Handle {
  // Opens one; nullptr if Metal does not allow it now. With the device's mutex held.
  static mpsforge_metal_encoder* create(const std::shared_ptr<mpsforge::metal::CommandBuffer>& buffer, bool compute,
                                        const mpsforge::metal::ThreadPointer& thread);
  std::string label() const override;

  void end();
  void release();  // the caller deletes it
  void fill(const mpsforge_metal_buffer& to, size_t offset, size_t length, uint8_t value);
  void copy(const mpsforge_metal_buffer& from, size_t from_offset, const mpsforge_metal_buffer& to, size_t to_offset,
            size_t length);
  void set_kernel(const char* name);
  void set_buffer(uint32_t index, const mpsforge_metal_buffer* to_bind, size_t offset);
  void set_bytes(uint32_t index, const void* data, size_t length);
  void dispatch(uint64_t threads, const mpsforge_metal_grid& grid);
  void dispatch_grid(const mpsforge_metal_grid& grid);
  void set_threadgroup_memory(uint32_t index, size_t length);
  void use(const mpsforge_metal_buffer* resource, uint32_t access);
  bool keep(void* object, mpsforge_metal_function give_back);

  const std::shared_ptr<mpsforge::metal::CommandBuffer> buffer;
  const bool compute;

 private:
  mpsforge_metal_encoder(std::shared_ptr<mpsforge::metal::CommandBuffer> buffer, bool compute);
  bool may_encode(bool on_compute, const mpsforge::metal::ThreadPointer& thread, const char* call) const;
  mpsforge::metal::Argument& argument(uint32_t index);

  // Guards the rest. Setting state needs nothing else, so that it is no scheduling point: the next dispatch is one.
  mutable std::mutex mutex_;
  mpsforge::metal::Call ended_;
  mpsforge::metal::Dispatch state_{};
};
