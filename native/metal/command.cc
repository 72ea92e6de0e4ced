#include "command.h"

#include <cstring>

#include "command_buffer.h"
#include "queue.h"

namespace mpsforge::metal {

void perform(const Command& command, const CommandBuffer& buffer, uint32_t number, Actor actor) {
  Checker& checker = buffer.device().checker;
  const auto access = [&](const Buffer& memory, size_t offset, size_t length, bool write, const char* call) {
    checker.access(actor, memory.shadow(), offset, length, write,
                   {call, command.thread->interned(), buffer.queue->interned, buffer.number, number});
  };
  if (const auto* fill = std::get_if<Fill>(&command.what)) {
    access(*fill->buffer, fill->offset, fill->length, true, "fill");
    std::memset(fill->buffer->bytes() + fill->offset, fill->value, fill->length);
  } else if (const auto* copy = std::get_if<Copy>(&command.what)) {
    access(*copy->from, copy->from_offset, copy->length, false, "copy");
    access(*copy->to, copy->to_offset, copy->length, true, "copy");
    std::memmove(copy->to->bytes() + copy->to_offset, copy->from->bytes() + copy->from_offset, copy->length);
  } else if (const auto* dispatch = std::get_if<Dispatch>(&command.what)) {
    const char* call_name = dispatch->kernel->call;
    mpsforge_metal_call call{*dispatch,
                             buffer,
                             {"dispatch", command.thread, buffer.number, buffer.queue->name},
                             actor,
                             {call_name, command.thread->interned(), buffer.queue->interned, buffer.number, number}};
    dispatch->kernel->host(&call);
  }
}

}  // namespace mpsforge::metal

using namespace mpsforge::metal;

void* mpsforge_metal_call::refuse(Rule rule, const std::string& what, const std::string& detail) const {
  buffer.device().findings.violation(rule, call.text(), what + " of " + dispatch.kernel->name, detail);
  return nullptr;
}

void* mpsforge_metal_call::access(const Buffer& memory, size_t offset, size_t length, bool write) const {
  // A write conflicts with all that a read conflicts with.
  buffer.device().checker.access(actor, memory.shadow(), offset, length, write, site);
  return memory.bytes() + offset;
}

void* mpsforge_metal_call::argument(uint32_t index, size_t offset, size_t length, uint32_t access_bits) const {
  const std::string what = "argument " + std::to_string(index);
  if (index >= dispatch.arguments.size() || !dispatch.arguments[index].buffer) {
    return refuse(Rule::UnboundArgument, what, "");
  }
  if (!(access_bits & (MPSFORGE_METAL_READ | MPSFORGE_METAL_WRITE))) return refuse(Rule::UndeclaredAccess, what, "");
  const Argument& bound = dispatch.arguments[index];
  const Buffer& memory = *bound.buffer;
  // set_buffer saw to it that the binding's own offset lies in the buffer.
  if (offset > memory.length() - bound.offset || !memory.contains(bound.offset + offset, length)) {
    return refuse(Rule::OutOfRange, what, memory.describe(bound.offset + offset, length));
  }
  return access(memory, bound.offset + offset, length, access_bits & MPSFORGE_METAL_WRITE);
}

size_t mpsforge_metal_call::argument_length(uint32_t index) const {
  if (index >= dispatch.arguments.size() || !dispatch.arguments[index].buffer) return 0;
  return dispatch.arguments[index].buffer->length() - dispatch.arguments[index].offset;
}

void* mpsforge_metal_call::address_argument(uint64_t address, size_t length, uint32_t access_bits) const {
  const std::string what = "address " + std::to_string(address);
  const uint32_t both = MPSFORGE_METAL_READ | MPSFORGE_METAL_WRITE;
  if (!(access_bits & both)) return refuse(Rule::UndeclaredAccess, what, "");
  const auto find = [&](const std::shared_ptr<Buffer>& memory, uint32_t allowed) -> void* {
    if (!memory || (access_bits & ~allowed & both)) return nullptr;
    const auto first = reinterpret_cast<uint64_t>(memory->bytes());
    if (address < first || !memory->contains(address - first, length)) return nullptr;
    return access(*memory, address - first, length, access_bits & MPSFORGE_METAL_WRITE);
  };
  for (const Used& used : dispatch.used) {
    if (void* found = find(used.buffer, used.access)) return found;
  }
  for (const Argument& argument : dispatch.arguments) {
    if (void* found = find(argument.buffer, both)) return found;
  }
  return refuse(Rule::NotResident, what, std::to_string(length) + " bytes");
}

bool mpsforge_metal_call::reach(size_t n, mpsforge_metal_reach& out) const {
  const auto fill = [&](const std::shared_ptr<Buffer>& memory, size_t offset, uint32_t allowed) {
    out = {};
    if (memory) out = {reinterpret_cast<uint64_t>(memory->bytes()) + offset, memory->length() - offset, allowed};
    return true;
  };
  if (n < MPSFORGE_METAL_ARGUMENTS) {
    if (n >= dispatch.arguments.size()) return fill(nullptr, 0, 0);
    const Argument& bound = dispatch.arguments[n];
    return fill(bound.buffer, bound.offset, MPSFORGE_METAL_READ | MPSFORGE_METAL_WRITE);
  }
  n -= MPSFORGE_METAL_ARGUMENTS;
  return n < dispatch.used.size() && fill(dispatch.used[n].buffer, 0, dispatch.used[n].access);
}

void mpsforge_metal_call::refuse(uint32_t problem, const std::string& what, const std::string& detail) const {
  const Rule rule = problem == MPSFORGE_METAL_DIVERGENCE    ? Rule::Divergence
                    : problem == MPSFORGE_METAL_KERNEL_RACE ? Rule::KernelRace
                                                            : Rule::OutOfRange;
  refuse(rule, what, detail);
}

const void* mpsforge_metal_call::bytes(uint32_t index, size_t* length) const {
  if (length) *length = 0;
  if (index >= dispatch.arguments.size() || !dispatch.arguments[index].bytes) return nullptr;
  const auto& data = *dispatch.arguments[index].bytes;
  if (length) *length = data.size();
  return data.data();
}
