// What command buffers hold: the commands, and kernels with their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "buffer.h"
#include "event.h"
#include "metal.h"
#include "order.h"
#include "threads.h"

namespace mpsforge::metal {

class CommandBuffer;

struct Kernel {
  std::string name;
  void (*host)(mpsforge_metal_call* call);
  const char* call;  // interned, "dispatch NAME"
  void* context;     // for the host function
};

struct Argument {
  std::shared_ptr<Buffer> buffer;
  size_t offset = 0;
  std::shared_ptr<const std::vector<uint8_t>> bytes;  // where there is no buffer
};

// A buffer that kernels may reach by address.
struct Used {
  std::shared_ptr<Buffer> buffer;
  uint32_t access;
};

struct Fill {
  std::shared_ptr<Buffer> buffer;
  size_t offset, length;
  uint8_t value;
};

struct Copy {
  std::shared_ptr<Buffer> from;
  size_t from_offset;
  std::shared_ptr<Buffer> to;
  size_t to_offset, length;
};

struct Dispatch {
  std::shared_ptr<const Kernel> kernel;
  std::vector<Argument> arguments;
  uint64_t threads = 0;
  mpsforge_metal_grid grid{{1, 1, 1}, {1, 1, 1}};
  std::vector<size_t> threadgroup_memory;
  std::vector<Used> used;
};

struct Signal {
  std::shared_ptr<Event> event;
  uint64_t value;
};

struct Wait {
  std::shared_ptr<Event> event;
  uint64_t value;
};

struct Command {
  std::variant<Fill, Copy, Dispatch, Signal, Wait> what;
  ThreadPointer thread;  // that encoded it
};

// Executes a fill, copy or dispatch as command number of the buffer, without the device's mutex.
void perform(const Command& command, const CommandBuffer& buffer, uint32_t number, Actor actor);

}  // namespace mpsforge::metal

// One execution of a kernel's host function.
struct mpsforge_metal_call {
  const mpsforge::metal::Dispatch& dispatch;
  const mpsforge::metal::CommandBuffer& buffer;
  mpsforge::metal::Call call;
  mpsforge::metal::Actor actor;
  mpsforge::metal::Site site;

  void* argument(uint32_t index, size_t offset, size_t length, uint32_t access) const;
  const void* bytes(uint32_t index, size_t* length) const;
  size_t argument_length(uint32_t index) const;
  void* address_argument(uint64_t address, size_t length, uint32_t access) const;
  bool reach(size_t n, mpsforge_metal_reach& out) const;
  void refuse(uint32_t problem, const std::string& what, const std::string& detail) const;

 private:
  void* refuse(mpsforge::metal::Rule rule, const std::string& what, const std::string& detail) const;
  void* access(const mpsforge::metal::Buffer& memory, size_t offset, size_t length, bool write) const;
};
