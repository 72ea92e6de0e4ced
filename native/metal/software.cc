// The C ABI of the software Metal: looks after null pointers and handles, and calls the objects.
#include "software.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "buffer.h"
#include "command.h"
#include "command_buffer.h"
#include "device.h"
#include "encoder.h"
#include "event.h"
#include "metal.h"
#include "models.h"
#include "queue.h"
#include "serial_queue.h"

struct mpsforge_metal_device {
  std::shared_ptr<mpsforge::metal::Device> object;
};

namespace mpsforge::metal {
namespace {

std::string text(const char* label) { return label ? label : ""; }

const char* identity() noexcept { return "software Metal"; }

// --- device

mpsforge_metal_device* device_create(const mpsforge_metal_config* config) noexcept {
  if (!config || !in_range(*config)) return nullptr;
  auto device = std::make_shared<Device>(*config);
  device->start();
  return new mpsforge_metal_device{std::move(device)};
}

void device_close(mpsforge_metal_device* device) noexcept {
  if (device) device->object->close();
}

void device_release(mpsforge_metal_device* device) noexcept {
  device_close(device);
  delete device;
}

size_t findings(mpsforge_metal_device* device, mpsforge_metal_finding* out, size_t capacity) noexcept {
  return device ? device->object->findings.copy(out, capacity) : 0;
}

void statistics(mpsforge_metal_device* device, mpsforge_metal_statistics* out) noexcept {
  if (out) *out = device ? device->object->statistics() : mpsforge_metal_statistics{};
}

void name_thread(mpsforge_metal_device* device, const char* name) noexcept {
  if (device && name) current_thread(*device->object)->rename(name, device->object->checker.intern(name));
}

void add_context_kernel(mpsforge_metal_device* device, const mpsforge_metal_kernel* kernel, void* context) noexcept {
  if (device && kernel && kernel->name && kernel->host) device->object->add_kernel(*kernel, context);
}

void add_kernel(mpsforge_metal_device* device, const mpsforge_metal_kernel* kernel) noexcept {
  add_context_kernel(device, kernel, nullptr);
}

void observe(mpsforge_metal_device* device, const mpsforge_metal_observer* observer) noexcept {
  if (device && observer) device->object->observe(*observer);
}

void order_release(mpsforge_metal_device* device, const void* token) noexcept {
  if (!device || !device->object->checker.on()) return;
  device->object->checker.token_release(current_thread(*device->object)->actor, token);
}

void order_acquire(mpsforge_metal_device* device, const void* token) noexcept {
  if (!device || !device->object->checker.on()) return;
  device->object->checker.token_acquire(current_thread(*device->object)->actor, token);
}

// --- buffers

mpsforge_metal_buffer* buffer_create(mpsforge_metal_device* device, size_t length, uint32_t storage,
                                     const char* label) noexcept {
  if (!device) return nullptr;
  auto object = Buffer::create(device->object, length, storage, text(label));
  return object ? device->object->handles.add(new mpsforge_metal_buffer(std::move(object))) : nullptr;
}

mpsforge_metal_buffer* buffer_over(mpsforge_metal_device* device, void* memory, size_t length, uint32_t storage,
                                   const char* label) noexcept {
  if (!device) return nullptr;
  auto object = Buffer::over(device->object, memory, length, storage, text(label));
  return object ? device->object->handles.add(new mpsforge_metal_buffer(std::move(object))) : nullptr;
}

uint64_t gpu_address(mpsforge_metal_buffer* buffer) noexcept {
  return buffer ? reinterpret_cast<uint64_t>(buffer->object->bytes()) : 0;
}

void buffer_release(mpsforge_metal_buffer* buffer) noexcept {
  if (!buffer) return;
  buffer->object->device->handles.remove(buffer);
  delete buffer;
}

size_t buffer_length(mpsforge_metal_buffer* buffer) noexcept { return buffer ? buffer->object->length() : 0; }

void* buffer_contents(mpsforge_metal_buffer* buffer) noexcept {
  return buffer && !buffer->object->is_private() ? buffer->object->bytes() : nullptr;
}

void cpu_access(mpsforge_metal_buffer* buffer, size_t offset, size_t length, uint32_t access) noexcept {
  if (!buffer) return;
  buffer->object->cpu_access("cpu_access", offset, length, access & MPSFORGE_METAL_READ, access & MPSFORGE_METAL_WRITE);
}

void cpu_read(mpsforge_metal_buffer* buffer, size_t offset, size_t length, void* to) noexcept {
  if (!buffer || !buffer->object->cpu_access("cpu_read", offset, length, true, false)) return;
  if (length > 0) std::memcpy(to, buffer->object->bytes() + offset, length);
}

void cpu_write(mpsforge_metal_buffer* buffer, size_t offset, size_t length, const void* from) noexcept {
  if (!buffer || !buffer->object->cpu_access("cpu_write", offset, length, false, true)) return;
  if (length > 0) std::memcpy(buffer->object->bytes() + offset, from, length);
}

void buffer_note(mpsforge_metal_buffer* buffer, size_t offset, size_t length, const char* what) noexcept {
  if (!buffer) return;
  buffer->object->device->checker.note(buffer->object->shadow(), offset, length, text(what));
}

// --- queues

mpsforge_metal_queue* queue_create(mpsforge_metal_device* device, const char* label) noexcept {
  if (!device) return nullptr;
  auto queue = std::make_shared<Queue>(device->object, text(label));
  {
    sync::Lock lock(device->object->mutex);
    device->object->add_queue(queue);
    device->object->reap(lock);
  }
  return device->object->handles.add(new mpsforge_metal_queue(std::move(queue)));
}

void queue_release(mpsforge_metal_queue* queue) noexcept {
  if (!queue) return;
  queue->object->device->handles.remove(queue);
  {
    sync::Lock lock(queue->object->device->mutex);
    queue->object->release();
  }
  delete queue;
}

void inject(mpsforge_metal_queue* queue, uint32_t kind, uint32_t n) noexcept {
  if (!queue) return;
  sync::Lock lock(queue->object->device->mutex);
  queue->object->inject(kind, n);
}

void resume(mpsforge_metal_queue* queue) noexcept {
  if (!queue) return;
  sync::Lock lock(queue->object->device->mutex);
  queue->object->resume();
}

// --- command buffers

mpsforge_metal_command_buffer* create(mpsforge_metal_queue* queue, bool mps, const char* call) {
  if (!queue) return nullptr;
  Device& device = *queue->object->device;
  const ThreadPointer thread = current_thread(device);
  std::shared_ptr<CommandBuffer> root;
  {
    sync::Lock lock(device.mutex);
    root = queue->object->create(lock, thread, call);
    if (!root) return nullptr;
    root->hold();
  }
  return device.handles.add(new mpsforge_metal_command_buffer(std::move(root), mps));
}

mpsforge_metal_command_buffer* command_buffer(mpsforge_metal_queue* queue) noexcept {
  return create(queue, false, "command_buffer");
}

mpsforge_metal_command_buffer* mps_command_buffer(mpsforge_metal_queue* queue) noexcept {
  return create(queue, true, "mps_command_buffer");
}

// Calls function(root, lock, thread) with the device's mutex held, if there is a root.
template <class Function>
void with_root(mpsforge_metal_command_buffer* buffer, Function function) {
  if (!buffer) return;
  const ThreadPointer thread = current_thread(*buffer->device);
  sync::Lock lock(buffer->device->mutex);
  const std::shared_ptr<CommandBuffer> root = buffer->root;
  if (root) function(*root, lock, thread);
}

void command_buffer_release(mpsforge_metal_command_buffer* buffer) noexcept {
  if (!buffer) return;
  if (buffer->borrowed) {
    const Call call = buffer->root->call("command_buffer_release", current_thread(*buffer->device));
    buffer->device->findings.add(MPSFORGE_METAL_LIFETIME, 0, "a handler released the command buffer that it borrowed",
                                 "", call.text());
    return;
  }
  buffer->device->handles.remove(buffer);
  with_root(buffer, [](auto& root, auto&, auto&) { root.let_go(); });
  delete buffer;
}

uint64_t number(mpsforge_metal_command_buffer* buffer) noexcept {
  uint64_t result = 0;
  with_root(buffer, [&](auto& root, auto&, auto&) { result = root.number; });
  return result;
}

uint32_t status(mpsforge_metal_command_buffer* buffer) noexcept {
  uint32_t result = MPSFORGE_METAL_NOT_ENQUEUED;
  with_root(buffer, [&](auto& root, auto&, auto& thread) { result = root.status(*thread); });
  return result;
}

const char* error(mpsforge_metal_command_buffer* buffer) noexcept {
  const char* result = "";
  with_root(buffer, [&](auto& root, auto&, auto& thread) {
    result = root.error(*thread);
    buffer->told = root.shared_from_this();
  });
  return result;
}

void enqueue(mpsforge_metal_command_buffer* buffer) noexcept {
  with_root(buffer, [](auto& root, auto&, auto& thread) { root.enqueue(thread); });
}

void commit(mpsforge_metal_command_buffer* buffer) noexcept {
  with_root(buffer, [](auto& root, auto&, auto& thread) { root.commit(thread); });
}

void commit_and_continue(mpsforge_metal_command_buffer* buffer) noexcept {
  with_root(buffer, [buffer](auto&, auto& lock, auto& thread) {
    buffer->commit_and_continue(lock, thread, "commit_and_continue");
  });
}

mpsforge_metal_command_buffer* root_command_buffer(mpsforge_metal_command_buffer* buffer) noexcept {
  std::shared_ptr<CommandBuffer> found;
  with_root(buffer, [&](auto& root, auto&, auto&) {
    root.hold();
    found = root.shared_from_this();
  });
  if (!found) return nullptr;
  return buffer->device->handles.add(new mpsforge_metal_command_buffer(std::move(found), false));
}

int is_root(mpsforge_metal_command_buffer* buffer, mpsforge_metal_command_buffer* other) noexcept {
  bool same = false;
  with_root(buffer, [&](auto& root, auto&, auto&) { same = other && other->root.get() == &root; });
  return same ? 1 : 0;
}

void wait_until_scheduled(mpsforge_metal_command_buffer* buffer) noexcept {
  with_root(buffer, [](auto& root, auto& lock, auto& thread) { root.wait_until_scheduled(lock, thread); });
}

void wait_until_completed(mpsforge_metal_command_buffer* buffer) noexcept {
  with_root(buffer, [](auto& root, auto& lock, auto& thread) { root.wait_until_completed(lock, thread); });
}

void add_handler(mpsforge_metal_command_buffer* buffer, bool completed, mpsforge_metal_handler handler, void* context) {
  if (!handler) return;
  with_root(buffer, [&](auto& root, auto&, auto& thread) { root.add_handler(completed, thread, handler, context); });
}

void add_scheduled_handler(mpsforge_metal_command_buffer* buffer, mpsforge_metal_handler handler,
                           void* context) noexcept {
  add_handler(buffer, false, handler, context);
}

void add_completed_handler(mpsforge_metal_command_buffer* buffer, mpsforge_metal_handler handler,
                           void* context) noexcept {
  add_handler(buffer, true, handler, context);
}

void encode_signal(mpsforge_metal_command_buffer* buffer, mpsforge_metal_event* event, uint64_t value) noexcept {
  if (!event) return;
  with_root(buffer, [&](auto& root, auto&, auto& thread) { root.signal(thread, event->object, value); });
}

void encode_wait(mpsforge_metal_command_buffer* buffer, mpsforge_metal_event* event, uint64_t value) noexcept {
  if (!event) return;
  with_root(buffer, [&](auto& root, auto&, auto& thread) { root.wait(thread, event->object, value); });
}

int keep(mpsforge_metal_command_buffer* buffer, void* object, mpsforge_metal_function give_back,
         int after_handlers) noexcept {
  bool kept = false;
  with_root(buffer,
            [&](auto& root, auto&, auto&) { kept = give_back && root.keep(object, give_back, after_handlers != 0); });
  return kept ? 1 : 0;
}

void times(mpsforge_metal_command_buffer* buffer, mpsforge_metal_times* out) noexcept {
  if (!out) return;
  *out = {};
  with_root(buffer, [&](auto& root, auto&, auto& thread) { *out = root.times(*thread); });
}

// --- encoders

mpsforge_metal_encoder* open(mpsforge_metal_command_buffer* buffer, bool compute) {
  mpsforge_metal_encoder* encoder = nullptr;
  with_root(buffer, [&](auto& root, auto&, auto& thread) {
    encoder = mpsforge_metal_encoder::create(root.shared_from_this(), compute, thread);
  });
  return encoder;
}

mpsforge_metal_encoder* blit_encoder(mpsforge_metal_command_buffer* buffer) noexcept { return open(buffer, false); }

mpsforge_metal_encoder* compute_encoder(mpsforge_metal_command_buffer* buffer) noexcept { return open(buffer, true); }

void encoder_release(mpsforge_metal_encoder* encoder) noexcept {
  if (!encoder) return;
  encoder->release();
  delete encoder;
}

void end_encoding(mpsforge_metal_encoder* encoder) noexcept {
  if (encoder) encoder->end();
}

void fill(mpsforge_metal_encoder* encoder, mpsforge_metal_buffer* buffer, size_t offset, size_t length,
          uint8_t value) noexcept {
  if (encoder && buffer) encoder->fill(*buffer, offset, length, value);
}

void copy(mpsforge_metal_encoder* encoder, mpsforge_metal_buffer* from, size_t from_offset, mpsforge_metal_buffer* to,
          size_t to_offset, size_t length) noexcept {
  if (encoder && from && to) encoder->copy(*from, from_offset, *to, to_offset, length);
}

void set_kernel(mpsforge_metal_encoder* encoder, const char* name) noexcept {
  if (encoder && name) encoder->set_kernel(name);
}

void set_buffer(mpsforge_metal_encoder* encoder, uint32_t index, mpsforge_metal_buffer* buffer,
                size_t offset) noexcept {
  if (encoder) encoder->set_buffer(index, buffer, offset);
}

void set_bytes(mpsforge_metal_encoder* encoder, uint32_t index, const void* data, size_t length) noexcept {
  if (encoder && (data || length == 0)) encoder->set_bytes(index, data, length);
}

void dispatch(mpsforge_metal_encoder* encoder, uint64_t threads) noexcept {
  if (encoder) encoder->dispatch(threads, {{threads, 1, 1}, {1, 1, 1}});
}

void dispatch_grid(mpsforge_metal_encoder* encoder, const mpsforge_metal_grid* grid) noexcept {
  if (encoder && grid) encoder->dispatch_grid(*grid);
}

void set_threadgroup_memory(mpsforge_metal_encoder* encoder, uint32_t index, size_t length) noexcept {
  if (encoder) encoder->set_threadgroup_memory(index, length);
}

void use_buffer(mpsforge_metal_encoder* encoder, mpsforge_metal_buffer* buffer, uint32_t access) noexcept {
  if (encoder && buffer) encoder->use(buffer, access);
}

int encoder_keep(mpsforge_metal_encoder* encoder, void* object, mpsforge_metal_function give_back) noexcept {
  return encoder && give_back && encoder->keep(object, give_back) ? 1 : 0;
}

// --- kernels

void* argument(mpsforge_metal_call* call, uint32_t index, size_t offset, size_t length, uint32_t access) noexcept {
  return call ? call->argument(index, offset, length, access) : nullptr;
}

const void* bytes(mpsforge_metal_call* call, uint32_t index, size_t* length) noexcept {
  return call ? call->bytes(index, length) : nullptr;
}

uint64_t threads(mpsforge_metal_call* call) noexcept { return call ? call->dispatch.threads : 0; }

void* context(mpsforge_metal_call* call) noexcept { return call ? call->dispatch.kernel->context : nullptr; }

void grid(mpsforge_metal_call* call, mpsforge_metal_grid* out) noexcept {
  if (out) *out = call ? call->dispatch.grid : mpsforge_metal_grid{};
}

size_t threadgroup_memory(mpsforge_metal_call* call, uint32_t index) noexcept {
  if (!call || index >= call->dispatch.threadgroup_memory.size()) return 0;
  return call->dispatch.threadgroup_memory[index];
}

size_t argument_length(mpsforge_metal_call* call, uint32_t index) noexcept {
  return call ? call->argument_length(index) : 0;
}

void* address_argument(mpsforge_metal_call* call, uint64_t address, size_t length, uint32_t access) noexcept {
  return call ? call->address_argument(address, length, access) : nullptr;
}

int reach(mpsforge_metal_call* call, size_t n, mpsforge_metal_reach* out) noexcept {
  return call && out && call->reach(n, *out) ? 1 : 0;
}

void command(mpsforge_metal_call* call, uint64_t* command_buffer, uint32_t* number) noexcept {
  if (command_buffer) *command_buffer = call ? call->buffer.number : 0;
  if (number) *number = call ? call->site.command : 0;
}

void refuse(mpsforge_metal_call* call, uint32_t problem, const char* what, const char* detail) noexcept {
  if (call) call->refuse(problem, what ? what : "", detail ? detail : "");
}

mpsforge_metal_mps_kernel* mps_create(mpsforge_metal_device* device, uint32_t mps_class, const char* label) noexcept {
  if (!device || mps_class > MPSFORGE_METAL_MPS_OTHER) return nullptr;
  return device->object->handles.add(new mpsforge_metal_mps_kernel(device->object, mps_class, text(label)));
}

void mps_release(mpsforge_metal_mps_kernel* kernel) noexcept {
  if (!kernel) return;
  kernel->device->handles.remove(kernel);
  delete kernel;
}

void mps_encode(mpsforge_metal_mps_kernel* kernel, mpsforge_metal_command_buffer* buffer,
                mpsforge_metal_encoder* encoder, const char* name, const mpsforge_metal_binding* bindings, size_t count,
                const void* bytes, size_t length, uint64_t threads) noexcept {
  if (!kernel || !buffer || !name) return;
  std::vector<Argument> arguments(count);
  for (size_t i = 0; i < count; ++i) {
    if (bindings[i].buffer) arguments[i] = {bindings[i].buffer->object, bindings[i].offset, nullptr};
  }
  if (bytes) {
    const auto* first = static_cast<const uint8_t*>(bytes);
    arguments.push_back({nullptr, 0, std::make_shared<const std::vector<uint8_t>>(first, first + length)});
  }
  kernel->encode(*buffer, encoder, name, std::move(arguments), threads);
}

// --- events

mpsforge_metal_event* event_create(mpsforge_metal_device* device, const char* label) noexcept {
  if (!device) return nullptr;
  auto event = std::make_shared<Event>(device->object, text(label));
  return device->object->handles.add(new mpsforge_metal_event(std::move(event)));
}

void event_release(mpsforge_metal_event* event) noexcept {
  if (!event) return;
  event->object->device->handles.remove(event);
  event->object->release();
  delete event;
}

uint64_t event_value(mpsforge_metal_event* event) noexcept { return event ? event->object->value() : 0; }

void event_set(mpsforge_metal_event* event, uint64_t value) noexcept {
  if (event) event->object->set(value);
}

int event_wait(mpsforge_metal_event* event, uint64_t value, int64_t timeout_ms) noexcept {
  return event ? event->object->wait(value, timeout_ms) : 0;
}

void event_notify(mpsforge_metal_event* event, uint64_t value, mpsforge_metal_function function,
                  void* context) noexcept {
  if (event && function) event->object->notify(value, function, context);
}

// --- serial queues

mpsforge_metal_serial_queue* serial_create(mpsforge_metal_device* device, const char* label) noexcept {
  if (!device) return nullptr;
  auto queue = std::make_shared<SerialQueue>(device->object, text(label));
  {
    sync::Lock lock(device->object->mutex);
    device->object->add_serial_queue(queue);
  }
  return device->object->handles.add(new mpsforge_metal_serial_queue(std::move(queue)));
}

void serial_release(mpsforge_metal_serial_queue* queue) noexcept {
  if (!queue) return;
  queue->object->device->handles.remove(queue);
  queue->object->release();
  delete queue;
}

void serial_sync(mpsforge_metal_serial_queue* queue, mpsforge_metal_function function, void* context) noexcept {
  if (queue && function) queue->object->dispatch_sync(function, context);
}

void serial_async(mpsforge_metal_serial_queue* queue, mpsforge_metal_function function, void* context) noexcept {
  if (queue && function) queue->object->dispatch_async(function, context);
}

int serial_is_current(mpsforge_metal_serial_queue* queue) noexcept {
  return queue && queue->object->is_current() ? 1 : 0;
}

// In the order of metal.h.
// clang-format off: one name a line would be a page
constexpr mpsforge_metal_api kApi = {
    MPSFORGE_METAL_ABI, identity, device_create, device_close, device_release, findings, statistics, name_thread,
    add_kernel, order_release, order_acquire, buffer_create, buffer_release, buffer_length, buffer_contents,
    cpu_access, cpu_read, cpu_write, buffer_note, queue_create, queue_release, inject, resume, command_buffer,
    mps_command_buffer, command_buffer_release, status, error, enqueue, commit, commit_and_continue,
    root_command_buffer, wait_until_scheduled, wait_until_completed, add_scheduled_handler, add_completed_handler,
    encode_signal, encode_wait, blit_encoder, compute_encoder, encoder_release, end_encoding, fill, copy, set_kernel,
    set_buffer, set_bytes, dispatch, argument, bytes, threads, mps_create, mps_release, mps_encode, event_create,
    event_release, event_value, event_set, event_wait, event_notify, serial_create, serial_release, serial_sync,
    serial_async, serial_is_current, observe, add_context_kernel, buffer_over, gpu_address, keep, encoder_keep, times,
    is_root, number, dispatch_grid, set_threadgroup_memory, use_buffer, context, grid, threadgroup_memory,
    argument_length, address_argument, reach, refuse, command,
};
// clang-format on

}  // namespace

const mpsforge_metal_api& untraced() { return kApi; }

}  // namespace mpsforge::metal

const mpsforge_metal_api* mpsforge_metal_software(void) {
  const mpsforge_metal_api* traced = mpsforge::metal::traced();
  return traced ? traced : &mpsforge::metal::kApi;
}

#ifndef __APPLE__
const mpsforge_metal_api* mpsforge_metal_framework(void) { return nullptr; }
#endif
