#include "encoder.h"

#include <utility>

#include "queue.h"

using namespace mpsforge::metal;
using mpsforge::sync::Lock;

namespace {

// Argument tables of Metal have 31 entries for buffers (Metal feature set tables, "Maximum number of entries in the
// buffer argument table").
constexpr uint32_t kArguments = 31;
// Apple's page on setBytes:length:atIndex:.
constexpr size_t kBytes = 4096;
// The feature set tables' "Maximum threads per threadgroup" of every GPU that PyTorch runs on.
constexpr uint64_t kGroup = 1024;

}  // namespace

mpsforge_metal_encoder::mpsforge_metal_encoder(std::shared_ptr<CommandBuffer> buffer, bool compute)
    : Handle(HandleKind::Encoder), buffer(std::move(buffer)), compute(compute) {}

mpsforge_metal_encoder* mpsforge_metal_encoder::create(const std::shared_ptr<CommandBuffer>& buffer, bool compute,
                                                       const ThreadPointer& thread) {
  std::unique_ptr<mpsforge_metal_encoder> made(new mpsforge_metal_encoder(buffer, compute));
  if (!buffer->open(made.get(), compute, thread, compute ? "compute_encoder" : "blit_encoder")) return nullptr;
  buffer->hold();
  return buffer->device().handles.add(made.release());
}

std::string mpsforge_metal_encoder::label() const {
  return std::string(compute ? "compute" : "blit") + " encoder of " + buffer->describe();
}

bool mpsforge_metal_encoder::may_encode(bool on_compute, const ThreadPointer& thread, const char* call) const {
  Findings& findings = buffer->device().findings;
  std::lock_guard<std::mutex> lock(mutex_);
  if (ended_.thread) {
    findings.violation(Rule::EncodedAfterEnd, ended_.text(), buffer->call(call, thread).text());
    return false;
  }
  if (compute != on_compute) {
    findings.violation(compute ? Rule::BlitOnComputeEncoder : Rule::DispatchOnBlitEncoder, "",
                       buffer->call(call, thread).text());
    return false;
  }
  return true;
}

void mpsforge_metal_encoder::end() {
  const ThreadPointer thread = current_thread(buffer->device());
  const Call call = buffer->call("end_encoding", thread);
  Dispatch ended;  // Goes after the locks: its buffers may go with it.
  Lock device_lock(buffer->device().mutex);
  std::lock_guard<std::mutex> lock(mutex_);
  if (ended_.thread) {
    buffer->device().findings.violation(Rule::EndedTwice, ended_.text(), call.text());
    return;
  }
  ended_ = call;
  // A thread without an autorelease pool never releases its encoders; what they had bound must not stay with them.
  std::swap(ended, state_);
  buffer->close();
}

void mpsforge_metal_encoder::release() {
  Device& device = buffer->device();
  const ThreadPointer thread = current_thread(device);
  device.handles.remove(this);
  Lock device_lock(device.mutex);
  if (buffer->open_encoder() == this) {
    device.findings.violation(Rule::EncoderReleasedOpen, buffer->opened().text(),
                              buffer->call("encoder_release", thread).text());
    buffer->close();
  }
  buffer->let_go();
}

void mpsforge_metal_encoder::fill(const mpsforge_metal_buffer& to, size_t offset, size_t length, uint8_t value) {
  const ThreadPointer thread = current_thread(buffer->device());
  Lock device_lock(buffer->device().mutex);
  if (!may_encode(false, thread, "fill") || !buffer->accepts(*to.object, thread, "fill")) return;
  if (!to.object->contains(offset, length)) {
    buffer->device().findings.violation(Rule::OutOfRange, "", buffer->call("fill", thread).text(),
                                        to.object->describe(offset, length));
    return;
  }
  buffer->add({Fill{to.object, offset, length, value}, thread});
}

void mpsforge_metal_encoder::copy(const mpsforge_metal_buffer& from, size_t from_offset,
                                  const mpsforge_metal_buffer& to, size_t to_offset, size_t length) {
  const ThreadPointer thread = current_thread(buffer->device());
  Lock device_lock(buffer->device().mutex);
  if (!may_encode(false, thread, "copy")) return;
  if (!buffer->accepts(*from.object, thread, "copy") || !buffer->accepts(*to.object, thread, "copy")) return;
  const bool from_right = from.object->contains(from_offset, length);
  if (!from_right || !to.object->contains(to_offset, length)) {
    buffer->device().findings.violation(
        Rule::OutOfRange, "", buffer->call("copy", thread).text(),
        from_right ? to.object->describe(to_offset, length) : from.object->describe(from_offset, length));
    return;
  }
  buffer->add({Copy{from.object, from_offset, to.object, to_offset, length}, thread});
}

Argument& mpsforge_metal_encoder::argument(uint32_t index) {
  if (index >= state_.arguments.size()) state_.arguments.resize(index + 1);
  return state_.arguments[index];
}

void mpsforge_metal_encoder::set_kernel(const char* name) {
  Device& device = buffer->device();
  const ThreadPointer thread = current_thread(device);
  if (!may_encode(true, thread, "set_kernel")) return;
  const auto kernel = device.kernel(name);
  if (!kernel) {
    device.findings.violation(Rule::UnknownKernel, "", buffer->call("set_kernel", thread).text(), name);
    return;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  state_.kernel = kernel;
}

void mpsforge_metal_encoder::set_buffer(uint32_t index, const mpsforge_metal_buffer* to_bind, size_t offset) {
  Device& device = buffer->device();
  const ThreadPointer thread = current_thread(device);
  if (!may_encode(true, thread, "set_buffer")) return;
  if (to_bind && !buffer->accepts(*to_bind->object, thread, "set_buffer")) return;
  if (index >= kArguments || (to_bind && !to_bind->object->contains(offset, 0))) {
    device.findings.violation(Rule::OutOfRange, "", buffer->call("set_buffer", thread).text(),
                              index >= kArguments ? "argument " + std::to_string(index) + " of " +
                                                        std::to_string(kArguments) + " that there are"
                                                  : to_bind->object->describe(offset, 0));
    return;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  argument(index) = to_bind ? Argument{to_bind->object, offset, nullptr} : Argument();
}

void mpsforge_metal_encoder::set_bytes(uint32_t index, const void* data, size_t length) {
  Device& device = buffer->device();
  const ThreadPointer thread = current_thread(device);
  if (!may_encode(true, thread, "set_bytes")) return;
  if (index >= kArguments) {
    device.findings.violation(
        Rule::OutOfRange, "", buffer->call("set_bytes", thread).text(),
        "argument " + std::to_string(index) + " of " + std::to_string(kArguments) + " that there are");
    return;
  }
  if (length > kBytes) {
    device.findings.violation(Rule::BytesTooLong, "", buffer->call("set_bytes", thread).text(),
                              std::to_string(length) + " as argument " + std::to_string(index));
    return;
  }
  const auto* first = static_cast<const uint8_t*>(data);
  auto bytes = std::make_shared<const std::vector<uint8_t>>(first, first + length);
  std::lock_guard<std::mutex> lock(mutex_);
  argument(index) = Argument{nullptr, 0, std::move(bytes)};
}

void mpsforge_metal_encoder::dispatch(uint64_t threads, const mpsforge_metal_grid& grid) {
  const ThreadPointer thread = current_thread(buffer->device());
  Lock device_lock(buffer->device().mutex);
  if (!may_encode(true, thread, "dispatch")) return;
  std::unique_lock<std::mutex> lock(mutex_);
  Dispatch made = state_;
  lock.unlock();
  if (!made.kernel) {
    buffer->device().findings.violation(Rule::DispatchWithoutKernel, "", buffer->call("dispatch", thread).text());
    return;
  }
  made.threads = threads;
  made.grid = grid;
  buffer->add({std::move(made), thread});
}

void mpsforge_metal_encoder::dispatch_grid(const mpsforge_metal_grid& grid) {
  const uint64_t threads = grid.threads[0] * grid.threads[1] * grid.threads[2];
  if (threads == 0) {  // PyTorch dispatches kernels over empty tensors so, with threadgroups of no threads, too
    may_encode(true, current_thread(buffer->device()), "dispatch_grid");
    return;
  }
  uint64_t group = 1;
  bool fits = true;
  for (const uint64_t size : grid.group) {
    fits = fits && size >= 1 && size <= kGroup;
    group = fits ? group * size : kGroup + 1;
  }
  if (!fits || group > kGroup) {
    buffer->device().findings.violation(
        Rule::GroupSize, "", buffer->call("dispatch_grid", current_thread(buffer->device())).text(),
        std::to_string(grid.group[0]) + " x " + std::to_string(grid.group[1]) + " x " + std::to_string(grid.group[2]));
    return;
  }
  dispatch(threads, grid);
}

void mpsforge_metal_encoder::set_threadgroup_memory(uint32_t index, size_t length) {
  Device& device = buffer->device();
  const ThreadPointer thread = current_thread(device);
  if (!may_encode(true, thread, "set_threadgroup_memory")) return;
  if (index >= kArguments) {
    device.findings.violation(
        Rule::OutOfRange, "", buffer->call("set_threadgroup_memory", thread).text(),
        "argument " + std::to_string(index) + " of " + std::to_string(kArguments) + " that there are");
    return;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (index >= state_.threadgroup_memory.size()) state_.threadgroup_memory.resize(index + 1);
  state_.threadgroup_memory[index] = length;
}

void mpsforge_metal_encoder::use(const mpsforge_metal_buffer* resource, uint32_t access) {
  const ThreadPointer thread = current_thread(buffer->device());
  if (!may_encode(true, thread, "use_buffer") || !buffer->accepts(*resource->object, thread, "use_buffer")) return;
  std::lock_guard<std::mutex> lock(mutex_);
  for (Used& used : state_.used) {
    if (used.buffer != resource->object) continue;
    used.access |= access;
    return;
  }
  state_.used.push_back({resource->object, access});
}

bool mpsforge_metal_encoder::keep(void* object, mpsforge_metal_function give_back) {
  Lock device_lock(buffer->device().mutex);
  return buffer->keep(object, give_back, false);
}
