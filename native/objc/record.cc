#include "record.h"

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "engine.h"

namespace mpsforge::objc {
namespace {

const mpsforge_metal_api& engine() { return *mpsforge_metal_software(); }

// Objects have numbers in the order in which they are made.
struct Record {
  std::mutex mutex;
  std::string lines;
  uint64_t queues = 0, events = 0;
  std::unordered_map<const void*, uint64_t> numbers;  // of queues and events, and of command buffers their queue's
};

// Never destroyed: static objects of the program call Metal until the process ends.
Record& all() {
  static auto& made = *new Record;
  return made;
}

void add(const std::string& line) {
  const std::lock_guard<std::mutex> lock(all().mutex);
  all().lines += line + '\n';
}

std::string number(const void* object) {
  const std::lock_guard<std::mutex> lock(all().mutex);
  const auto found = all().numbers.find(object);
  return std::to_string(found == all().numbers.end() ? 0 : found->second);
}

template <class Object>
Object* of_queue(Object* buffer, const void* of) {
  const std::lock_guard<std::mutex> lock(all().mutex);
  const auto queue = all().numbers.find(of);
  if (buffer && queue != all().numbers.end()) all().numbers[buffer] = queue->second;
  return buffer;
}

std::string text(const char* word, uint64_t value) { return std::string(word) + ' ' + std::to_string(value); }

std::string text(const mpsforge_metal_grid& grid) {
  std::string made;
  for (const auto* sizes : {grid.threads, grid.group}) {
    for (int i = 0; i < 3; ++i) made += (i == 0 ? ' ' : 'x') + std::to_string(sizes[i]);
  }
  return made;
}

// --- what is made

mpsforge_metal_queue* queue_create(mpsforge_metal_device* device, const char* label) {
  add("make queue");
  auto* made = engine().queue_create(device, label);
  const std::lock_guard<std::mutex> lock(all().mutex);
  all().numbers[made] = ++all().queues;
  return made;
}

mpsforge_metal_event* event_create(mpsforge_metal_device* device, const char* label) {
  add("make event");
  auto* made = engine().event_create(device, label);
  const std::lock_guard<std::mutex> lock(all().mutex);
  all().numbers[made] = ++all().events;
  return made;
}

mpsforge_metal_mps_kernel* mps_create(mpsforge_metal_device* device, uint32_t mps_class, const char* label) {
  if (mps_class == MPSFORGE_METAL_MPS_GRAPH) add("make graph");
  return engine().mps_create(device, mps_class, label);
}

mpsforge_metal_buffer* buffer_create(mpsforge_metal_device* device, size_t length, uint32_t storage,
                                     const char* label) {
  add(text("buffer", length));
  return engine().buffer_create(device, length, storage, label);
}

mpsforge_metal_buffer* buffer_over(mpsforge_metal_device* device, void* memory, size_t length, uint32_t storage,
                                   const char* label) {
  add(text("over", length));
  return engine().buffer_over(device, memory, length, storage, label);
}

mpsforge_metal_command_buffer* command_buffer(mpsforge_metal_queue* queue) {
  return of_queue(engine().command_buffer(queue), queue);
}

mpsforge_metal_command_buffer* mps_command_buffer(mpsforge_metal_queue* queue) {
  return of_queue(engine().mps_command_buffer(queue), queue);
}

mpsforge_metal_command_buffer* root_command_buffer(mpsforge_metal_command_buffer* buffer) {
  return of_queue(engine().root_command_buffer(buffer), buffer);
}

// --- command buffers

// A handler of its own has a wait come after what the command buffer kept has been given back, too.
void prepare_step(mpsforge_metal_command_buffer* buffer) {
  if (!environment().in_step) return;
  engine().add_completed_handler(buffer, [](void*, mpsforge_metal_command_buffer*) {}, nullptr);
}

void step(mpsforge_metal_command_buffer* buffer) {
  if (environment().in_step) engine().wait_until_completed(buffer);
}

void commit(mpsforge_metal_command_buffer* buffer) {
  add("commit " + number(buffer));
  prepare_step(buffer);
  engine().commit(buffer);
  step(buffer);
}

void commit_and_continue(mpsforge_metal_command_buffer* buffer) {
  add("commit " + number(buffer) + ", continue");
  mpsforge_metal_command_buffer* root = engine().root_command_buffer(buffer);
  prepare_step(buffer);
  engine().commit_and_continue(buffer);
  step(root);
  engine().command_buffer_release(root);
}

void wait_until_scheduled(mpsforge_metal_command_buffer* buffer) {
  add("wait until scheduled " + number(buffer));
  engine().wait_until_scheduled(buffer);
}

void wait_until_completed(mpsforge_metal_command_buffer* buffer) {
  add("wait until completed " + number(buffer));
  engine().wait_until_completed(buffer);
}

void add_scheduled_handler(mpsforge_metal_command_buffer* buffer, mpsforge_metal_handler handler, void* context) {
  add("scheduled handler " + number(buffer));
  engine().add_scheduled_handler(buffer, handler, context);
}

void add_completed_handler(mpsforge_metal_command_buffer* buffer, mpsforge_metal_handler handler, void* context) {
  add("completed handler " + number(buffer));
  engine().add_completed_handler(buffer, handler, context);
}

void encode_signal(mpsforge_metal_command_buffer* buffer, mpsforge_metal_event* event, uint64_t value) {
  add("signal " + number(event) + text(" to", value) + " on " + number(buffer));
  engine().encode_signal(buffer, event, value);
}

void encode_wait(mpsforge_metal_command_buffer* buffer, mpsforge_metal_event* event, uint64_t value) {
  add("wait of the GPU " + number(event) + text(" for", value) + " on " + number(buffer));
  engine().encode_wait(buffer, event, value);
}

// --- encoders

mpsforge_metal_encoder* blit_encoder(mpsforge_metal_command_buffer* buffer) {
  add("blit encoder " + number(buffer));
  return engine().blit_encoder(buffer);
}

mpsforge_metal_encoder* compute_encoder(mpsforge_metal_command_buffer* buffer) {
  add("compute encoder " + number(buffer));
  return engine().compute_encoder(buffer);
}

void end_encoding(mpsforge_metal_encoder* encoder) {
  add("end encoding");
  engine().end_encoding(encoder);
}

void fill(mpsforge_metal_encoder* encoder, mpsforge_metal_buffer* buffer, size_t offset, size_t length, uint8_t value) {
  add(text("fill", length));
  engine().fill(encoder, buffer, offset, length, value);
}

void copy(mpsforge_metal_encoder* encoder, mpsforge_metal_buffer* from, size_t from_offset, mpsforge_metal_buffer* to,
          size_t to_offset, size_t length) {
  add(text("copy", length));
  engine().copy(encoder, from, from_offset, to, to_offset, length);
}

void set_kernel(mpsforge_metal_encoder* encoder, const char* name) {
  add(std::string("kernel ") + name);
  engine().set_kernel(encoder, name);
}

void set_buffer(mpsforge_metal_encoder* encoder, uint32_t index, mpsforge_metal_buffer* buffer, size_t offset) {
  add(text("argument", index) + text(":", engine().buffer_length(buffer)) + text(" from", offset));
  engine().set_buffer(encoder, index, buffer, offset);
}

void dispatch_grid(mpsforge_metal_encoder* encoder, const mpsforge_metal_grid* grid) {
  add("dispatch" + text(*grid));
  engine().dispatch_grid(encoder, grid);
}

// --- events on the CPU

void event_set(mpsforge_metal_event* event, uint64_t value) {
  add("signal of the CPU " + number(event) + text(" to", value));
  engine().event_set(event, value);
}

int event_wait(mpsforge_metal_event* event, uint64_t value, int64_t timeout_ms) {
  add("wait of the CPU " + number(event) + text(" for", value));
  return engine().event_wait(event, value, timeout_ms);
}

void event_notify(mpsforge_metal_event* event, uint64_t value, mpsforge_metal_function function, void* context) {
  add("notify " + number(event) + text(" at", value));
  engine().event_notify(event, value, function, context);
}

mpsforge_metal_api make_table() {
  mpsforge_metal_api table = engine();
  table.queue_create = queue_create;
  table.event_create = event_create;
  table.mps_create = mps_create;
  table.buffer_create = buffer_create;
  table.buffer_over = buffer_over;
  table.command_buffer = command_buffer;
  table.mps_command_buffer = mps_command_buffer;
  table.root_command_buffer = root_command_buffer;
  table.commit = commit;
  table.commit_and_continue = commit_and_continue;
  table.wait_until_scheduled = wait_until_scheduled;
  table.wait_until_completed = wait_until_completed;
  table.add_scheduled_handler = add_scheduled_handler;
  table.add_completed_handler = add_completed_handler;
  table.encode_signal = encode_signal;
  table.encode_wait = encode_wait;
  table.blit_encoder = blit_encoder;
  table.compute_encoder = compute_encoder;
  table.end_encoding = end_encoding;
  table.fill = fill;
  table.copy = copy;
  table.set_kernel = set_kernel;
  table.set_buffer = set_buffer;
  table.dispatch_grid = dispatch_grid;
  table.event_set = event_set;
  table.event_wait = event_wait;
  table.event_notify = event_notify;
  return table;
}

}  // namespace

const mpsforge_metal_api& recording_api() {
  static const mpsforge_metal_api table = make_table();
  return table;
}

void record(const std::string& line) {
  if (!environment().record) return;
  const EngineCall blind;
  add(line);
}

std::string recorded() {
  const EngineCall blind;
  const std::lock_guard<std::mutex> lock(all().mutex);
  return all().lines;
}

}  // namespace mpsforge::objc
