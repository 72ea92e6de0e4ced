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

void* mpsforge_metal_call::argument(uint32_t index, size_t offset, size_t length, uint32_t access) const {
  Device& device = buffer.device();
  const auto refuse = [&](Rule rule, const std::string& detail) {
    device.findings.violation(rule, call.text(), "argument " + std::to_string(index) + " of " + dispatch.kernel->name,
                              detail);
    return nullptr;
  };
  if (index >= dispatch.arguments.size() || !dispatch.arguments[index].buffer) return refuse(Rule::UnboundArgument, "");
  if (!(access & (MPSFORGE_METAL_READ | MPSFORGE_METAL_WRITE))) return refuse(Rule::UndeclaredAccess, "");
  const Argument& bound = dispatch.arguments[index];
  const Buffer& memory = *bound.buffer;
  // set_buffer saw to it that the binding's own offset lies in the buffer.
  if (offset > memory.length() - bound.offset || !memory.contains(bound.offset + offset, length)) {
    return refuse(Rule::OutOfRange, memory.describe(bound.offset + offset, length));
  }
  // A write conflicts with all that a read conflicts with.
  device.checker.access(actor, memory.shadow(), bound.offset + offset, length, access & MPSFORGE_METAL_WRITE, site);
  return memory.bytes() + bound.offset + offset;
}

const void* mpsforge_metal_call::bytes(uint32_t index, size_t* length) const {
  if (length) *length = 0;
  if (index >= dispatch.arguments.size() || !dispatch.arguments[index].bytes) return nullptr;
  const auto& data = *dispatch.arguments[index].bytes;
  if (length) *length = data.size();
  return data.data();
}
