// Writes what a program does with the software Metal, a line for each call that orders or touches memory, so that
// somebody else can judge the order: docs/dev/trace.md has the lines. Knows nothing of what the engine concludes.
//
// What others learn of (a commit, a signal, a release of a token) is written before the call, what learns of others (a
// wait, an acquire) after it, so that in the trace nobody learns of what is not there yet.
#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <unordered_map>
#include <utility>
#include <vector>

#include "metal.h"
#include "software.h"
#include "trace_file.h"

namespace mpsforge::metal {
namespace {

using trace::line;

const mpsforge_metal_api& engine() { return untraced(); }

// What the program is to be called back with.
struct Callback {
  mpsforge_metal_function function;
  mpsforge_metal_handler handler;
  void* context;
  mpsforge_metal_serial_queue* queue;
  bool completed;  // a completed handler
};

// Of an MPSCommandBuffer, whose root changes.
struct Root {
  mpsforge_metal_queue* queue;
  uint64_t newest;
};

// What the recorder remembers, under the file's mutex. Never destroyed, as that is not.
struct Memory {
  mpsforge_metal_device* device = nullptr;  // whose findings at its end have not been written
  uintptr_t callbacks = 0;
  std::unordered_map<uintptr_t, Callback> waiting;  // by their numbers, which are the engine's contexts
  std::unordered_map<mpsforge_metal_command_buffer*, Root> roots;
};
Memory& memory() {
  static auto& made = *new Memory;
  return made;
}

void write_found(mpsforge_metal_device* device) {
  std::vector<mpsforge_metal_finding> found(engine().findings(device, nullptr, 0));
  found.resize(std::min(found.size(), engine().findings(device, found.data(), found.size())));
  // After a call that had no effect, or a wait that was given up, the trace says more than what happened.
  size_t races = 0, undone = 0;
  for (const auto& finding : found) {
    races += finding.kind == MPSFORGE_METAL_RACE ? 1 : 0;
    undone += finding.kind == MPSFORGE_METAL_VIOLATION || finding.kind == MPSFORGE_METAL_DEADLOCK ? 1 : 0;
  }
  line("found %zu %zu", races, undone);
  trace::flush();
}

// A host build never closes its device. The engine's threads may go on meanwhile: what they still do is left out.
void end_process() {
  mpsforge_metal_device* device = nullptr;
  {
    const std::lock_guard<std::mutex> lock(trace::mutex());
    std::swap(device, memory().device);
  }
  if (device) write_found(device);
  trace::open(nullptr);
}

const char* access_word(uint32_t access) {
  const bool reads = access & MPSFORGE_METAL_READ;
  if (!(access & MPSFORGE_METAL_WRITE)) return reads ? "r" : "-";
  return reads ? "rw" : "w";
}

// Of the root that calls go to now. Whoever sees a new root first says so: the thread that made it may be late.
uint64_t number(mpsforge_metal_command_buffer* buffer) {
  const uint64_t now = engine().number(buffer);
  const std::lock_guard<std::mutex> lock(trace::mutex());
  const auto found = memory().roots.find(buffer);
  if (found != memory().roots.end() && now > found->second.newest) {
    found->second.newest = now;
    trace::line_locked("cb %" PRIu64 " %p", now, static_cast<void*>(found->second.queue));
  }
  return now;
}

// Where the GPU is known to have ended the command buffer; one that failed has executed nothing.
void note_ended(mpsforge_metal_command_buffer* buffer, uint64_t ended) {
  line("completed %" PRIu64, ended);
  if (engine().number(buffer) == ended && engine().status(buffer) == MPSFORGE_METAL_ERROR)
    line("failed %" PRIu64, ended);
}

// --- callbacks

uintptr_t keep(const Callback& made) {
  const std::lock_guard<std::mutex> lock(trace::mutex());
  memory().waiting.emplace(++memory().callbacks, made);
  return memory().callbacks;
}

void* context_of(uintptr_t number) { return reinterpret_cast<void*>(number); }

// Around what a callback runs.
class Running {
 public:
  explicit Running(void* context) : number_(reinterpret_cast<uintptr_t>(context)) {
    {
      const std::lock_guard<std::mutex> lock(trace::mutex());
      const auto found = memory().waiting.find(number_);
      callback = found->second;
      memory().waiting.erase(found);
    }
    line("begin %" PRIuPTR, number_);
  }
  ~Running() { line("leave %" PRIuPTR, number_); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  Callback callback{};

 private:
  const uintptr_t number_;
};

void run_handler(void* context, mpsforge_metal_command_buffer* buffer) {
  const Running running(context);
  if (running.callback.completed) note_ended(buffer, number(buffer));
  running.callback.handler(running.callback.context, buffer);
}

void run_notification(void* context) {
  const Running running(context);
  running.callback.function(running.callback.context);
}

void run_block(const Callback& callback) {
  line("enter %p", static_cast<void*>(callback.queue));
  callback.function(callback.context);
  line("exit %p", static_cast<void*>(callback.queue));
}

void run_sync(void* context) { run_block(*static_cast<Callback*>(context)); }

void run_async(void* context) { run_block(Running(context).callback); }

// --- device, and order that the program declares

mpsforge_metal_device* device_create(const mpsforge_metal_config* config) noexcept {
  line("device");
  mpsforge_metal_device* made = engine().device_create(config);
  const std::lock_guard<std::mutex> lock(trace::mutex());
  memory().device = made;
  return made;
}

void device_close(mpsforge_metal_device* device) noexcept {
  engine().device_close(device);
  {
    const std::lock_guard<std::mutex> lock(trace::mutex());
    if (!device || memory().device != device) return;
    memory().device = nullptr;
  }
  write_found(device);
}

// The program may be about to end by _exit.
size_t findings(mpsforge_metal_device* device, mpsforge_metal_finding* out, size_t capacity) noexcept {
  if (device) write_found(device);
  return engine().findings(device, out, capacity);
}

void device_release(mpsforge_metal_device* device) noexcept {
  device_close(device);
  engine().device_release(device);
}

void order_release(mpsforge_metal_device* device, const void* object) noexcept {
  line("release %p", object);
  engine().order_release(device, object);
}

void order_acquire(mpsforge_metal_device* device, const void* object) noexcept {
  engine().order_acquire(device, object);
  line("acquire %p", object);
}

// --- buffers

mpsforge_metal_buffer* note_buffer(mpsforge_metal_buffer* made) {
  if (made) {
    line("buffer %p %" PRIu64 " %zu", static_cast<void*>(made), engine().gpu_address(made),
         engine().buffer_length(made));
  }
  return made;
}

mpsforge_metal_buffer* buffer_create(mpsforge_metal_device* device, size_t length, uint32_t storage,
                                     const char* label) noexcept {
  return note_buffer(engine().buffer_create(device, length, storage, label));
}

mpsforge_metal_buffer* buffer_over(mpsforge_metal_device* device, void* memory, size_t length, uint32_t storage,
                                   const char* label) noexcept {
  return note_buffer(engine().buffer_over(device, memory, length, storage, label));
}

void note_cpu(mpsforge_metal_buffer* buffer, size_t offset, size_t length, uint32_t access) {
  line("cpu %p %zu %zu %s", static_cast<void*>(buffer), offset, length, access_word(access));
}

void cpu_access(mpsforge_metal_buffer* buffer, size_t offset, size_t length, uint32_t access) noexcept {
  note_cpu(buffer, offset, length, access);
  engine().cpu_access(buffer, offset, length, access);
}

void cpu_read(mpsforge_metal_buffer* buffer, size_t offset, size_t length, void* to) noexcept {
  note_cpu(buffer, offset, length, MPSFORGE_METAL_READ);
  engine().cpu_read(buffer, offset, length, to);
}

void cpu_write(mpsforge_metal_buffer* buffer, size_t offset, size_t length, const void* from) noexcept {
  note_cpu(buffer, offset, length, MPSFORGE_METAL_WRITE);
  engine().cpu_write(buffer, offset, length, from);
}

// --- queues and command buffers

mpsforge_metal_queue* queue_create(mpsforge_metal_device* device, const char* label) noexcept {
  mpsforge_metal_queue* made = engine().queue_create(device, label);
  line("queue %p", static_cast<void*>(made));
  return made;
}

mpsforge_metal_command_buffer* command_buffer(mpsforge_metal_queue* queue) noexcept {
  mpsforge_metal_command_buffer* made = engine().command_buffer(queue);
  if (made) line("cb %" PRIu64 " %p", engine().number(made), static_cast<void*>(queue));
  return made;
}

mpsforge_metal_command_buffer* mps_command_buffer(mpsforge_metal_queue* queue) noexcept {
  mpsforge_metal_command_buffer* made = engine().mps_command_buffer(queue);
  if (made) {
    const std::lock_guard<std::mutex> lock(trace::mutex());
    memory().roots[made] = {queue, 0};
  }
  number(made);
  return made;
}

mpsforge_metal_command_buffer* root_command_buffer(mpsforge_metal_command_buffer* buffer) noexcept {
  number(buffer);
  return engine().root_command_buffer(buffer);
}

void command_buffer_release(mpsforge_metal_command_buffer* buffer) noexcept {
  {
    const std::lock_guard<std::mutex> lock(trace::mutex());
    memory().roots.erase(buffer);
  }
  engine().command_buffer_release(buffer);
}

uint32_t status(mpsforge_metal_command_buffer* buffer) noexcept {
  const uint64_t asked = number(buffer);
  const uint32_t found = engine().status(buffer);
  if (found >= MPSFORGE_METAL_COMPLETED) note_ended(buffer, asked);
  return found;
}

const char* error(mpsforge_metal_command_buffer* buffer) noexcept {
  const uint64_t asked = number(buffer);
  const char* found = engine().error(buffer);
  if (*found) note_ended(buffer, asked);
  return found;
}

void times(mpsforge_metal_command_buffer* buffer, mpsforge_metal_times* out) noexcept {
  const uint64_t asked = number(buffer);
  engine().times(buffer, out);
  if (out && out->gpu_end > 0) note_ended(buffer, asked);
}

void enqueue(mpsforge_metal_command_buffer* buffer) noexcept {
  line("enqueue %" PRIu64, number(buffer));
  engine().enqueue(buffer);
}

void commit(mpsforge_metal_command_buffer* buffer) noexcept {
  line("commit %" PRIu64, number(buffer));
  engine().commit(buffer);
}

void commit_and_continue(mpsforge_metal_command_buffer* buffer) noexcept {
  line("commit %" PRIu64, number(buffer));
  engine().commit_and_continue(buffer);
}

void wait_until_scheduled(mpsforge_metal_command_buffer* buffer) noexcept {
  const uint64_t waited = number(buffer);
  engine().wait_until_scheduled(buffer);
  line("scheduled %" PRIu64, waited);
}

void wait_until_completed(mpsforge_metal_command_buffer* buffer) noexcept {
  const uint64_t waited = number(buffer);
  engine().wait_until_completed(buffer);
  note_ended(buffer, waited);
}

void* note_handler(const char* verb, mpsforge_metal_command_buffer* buffer, const Callback& callback) {
  const uintptr_t kept = keep(callback);
  line("%s %" PRIu64 " %" PRIuPTR, verb, number(buffer), kept);
  return context_of(kept);
}

void add_scheduled_handler(mpsforge_metal_command_buffer* buffer, mpsforge_metal_handler handler,
                           void* context) noexcept {
  if (!buffer || !handler) return;
  engine().add_scheduled_handler(buffer, run_handler,
                                 note_handler("on_scheduled", buffer, {nullptr, handler, context, nullptr, false}));
}

void add_completed_handler(mpsforge_metal_command_buffer* buffer, mpsforge_metal_handler handler,
                           void* context) noexcept {
  if (!buffer || !handler) return;
  engine().add_completed_handler(buffer, run_handler,
                                 note_handler("on_completed", buffer, {nullptr, handler, context, nullptr, true}));
}

void encode_signal(mpsforge_metal_command_buffer* buffer, mpsforge_metal_event* event, uint64_t value) noexcept {
  line("signal %" PRIu64 " %p %" PRIu64, number(buffer), static_cast<void*>(event), value);
  engine().encode_signal(buffer, event, value);
}

void encode_wait(mpsforge_metal_command_buffer* buffer, mpsforge_metal_event* event, uint64_t value) noexcept {
  line("wait %" PRIu64 " %p %" PRIu64, number(buffer), static_cast<void*>(event), value);
  engine().encode_wait(buffer, event, value);
}

// --- encoders

mpsforge_metal_encoder* note_encoder(mpsforge_metal_encoder* made, mpsforge_metal_command_buffer* buffer) {
  if (made) line("encoder %p %" PRIu64, static_cast<void*>(made), number(buffer));
  return made;
}

mpsforge_metal_encoder* blit_encoder(mpsforge_metal_command_buffer* buffer) noexcept {
  return note_encoder(engine().blit_encoder(buffer), buffer);
}

mpsforge_metal_encoder* compute_encoder(mpsforge_metal_command_buffer* buffer) noexcept {
  return note_encoder(engine().compute_encoder(buffer), buffer);
}

void fill(mpsforge_metal_encoder* encoder, mpsforge_metal_buffer* buffer, size_t offset, size_t length,
          uint8_t value) noexcept {
  line("fill %p %p %zu %zu", static_cast<void*>(encoder), static_cast<void*>(buffer), offset, length);
  engine().fill(encoder, buffer, offset, length, value);
}

void copy(mpsforge_metal_encoder* encoder, mpsforge_metal_buffer* from, size_t from_offset, mpsforge_metal_buffer* to,
          size_t to_offset, size_t length) noexcept {
  line("copy %p %p %zu %p %zu %zu", static_cast<void*>(encoder), static_cast<void*>(from), from_offset,
       static_cast<void*>(to), to_offset, length);
  engine().copy(encoder, from, from_offset, to, to_offset, length);
}

void set_buffer(mpsforge_metal_encoder* encoder, uint32_t index, mpsforge_metal_buffer* buffer,
                size_t offset) noexcept {
  line("bind %p %" PRIu32 " %p %zu", static_cast<void*>(encoder), index, static_cast<void*>(buffer), offset);
  engine().set_buffer(encoder, index, buffer, offset);
}

void use_buffer(mpsforge_metal_encoder* encoder, mpsforge_metal_buffer* buffer, uint32_t access) noexcept {
  line("use %p %p", static_cast<void*>(encoder), static_cast<void*>(buffer));
  engine().use_buffer(encoder, buffer, access);
}

void dispatch(mpsforge_metal_encoder* encoder, uint64_t threads) noexcept {
  line("dispatch %p", static_cast<void*>(encoder));
  engine().dispatch(encoder, threads);
}

void dispatch_grid(mpsforge_metal_encoder* encoder, const mpsforge_metal_grid* grid) noexcept {
  // A grid of no threads is no command.
  if (grid && grid->threads[0] * grid->threads[1] * grid->threads[2] != 0)
    line("dispatch %p", static_cast<void*>(encoder));
  engine().dispatch_grid(encoder, grid);
}

void mps_encode(mpsforge_metal_mps_kernel* kernel, mpsforge_metal_command_buffer* buffer,
                mpsforge_metal_encoder* encoder, const char* name, const mpsforge_metal_binding* bindings, size_t count,
                const void* bytes, size_t length, uint64_t threads) noexcept {
  const uint64_t root = number(buffer);
  std::ostringstream words;
  for (size_t i = 0; i < count; ++i)
    words << ' ' << static_cast<const void*>(bindings[i].buffer) << ' ' << bindings[i].offset;
  line("encode %" PRIu64 "%s", root, words.str().c_str());
  engine().mps_encode(kernel, buffer, encoder, name, bindings, count, bytes, length, threads);
  if (number(buffer) != root) line("commit %" PRIu64, root);  // an MPSGraph may
}

// --- what kernels touch

struct Place {
  explicit Place(mpsforge_metal_call* call) { engine().command(call, &buffer, &command); }
  uint64_t buffer = 0;
  uint32_t command = 0;
};

void* argument(mpsforge_metal_call* call, uint32_t index, size_t offset, size_t length, uint32_t access) noexcept {
  const Place at(call);
  line("touch %" PRIu64 " %" PRIu32 " %" PRIu32 " %zu %zu %s", at.buffer, at.command, index, offset, length,
       access_word(access));
  return engine().argument(call, index, offset, length, access);
}

void* address_argument(mpsforge_metal_call* call, uint64_t address, size_t length, uint32_t access) noexcept {
  const Place at(call);
  line("reach %" PRIu64 " %" PRIu32 " %" PRIu64 " %zu %s", at.buffer, at.command, address, length, access_word(access));
  return engine().address_argument(call, address, length, access);
}

// --- events

mpsforge_metal_event* event_create(mpsforge_metal_device* device, const char* label) noexcept {
  mpsforge_metal_event* made = engine().event_create(device, label);
  line("event %p", static_cast<void*>(made));
  return made;
}

void event_set(mpsforge_metal_event* event, uint64_t value) noexcept {
  line("set %p %" PRIu64, static_cast<void*>(event), value);
  engine().event_set(event, value);
}

uint64_t event_value(mpsforge_metal_event* event) noexcept {
  const uint64_t found = engine().event_value(event);
  line("reached %p %" PRIu64, static_cast<void*>(event), found);
  return found;
}

int event_wait(mpsforge_metal_event* event, uint64_t value, int64_t timeout_ms) noexcept {
  const int reached = engine().event_wait(event, value, timeout_ms);
  if (reached) line("reached %p %" PRIu64, static_cast<void*>(event), value);
  return reached;
}

void event_notify(mpsforge_metal_event* event, uint64_t value, mpsforge_metal_function function,
                  void* context) noexcept {
  if (!event || !function) return;
  const uintptr_t kept = keep({function, nullptr, context, nullptr, false});
  line("notify %p %" PRIu64 " %" PRIuPTR, static_cast<void*>(event), value, kept);
  engine().event_notify(event, value, run_notification, context_of(kept));
}

// --- serial queues

mpsforge_metal_serial_queue* serial_create(mpsforge_metal_device* device, const char* label) noexcept {
  mpsforge_metal_serial_queue* made = engine().serial_create(device, label);
  line("serial %p", static_cast<void*>(made));
  return made;
}

void serial_sync(mpsforge_metal_serial_queue* queue, mpsforge_metal_function function, void* context) noexcept {
  if (!function) return;
  Callback callback{function, nullptr, context, queue, false};
  engine().serial_sync(queue, run_sync, &callback);
}

void serial_async(mpsforge_metal_serial_queue* queue, mpsforge_metal_function function, void* context) noexcept {
  if (!queue || !function) return;
  const uintptr_t kept = keep({function, nullptr, context, queue, false});
  line("async %p %" PRIuPTR, static_cast<void*>(queue), kept);
  engine().serial_async(queue, run_async, context_of(kept));
}

mpsforge_metal_api make_table() {
  mpsforge_metal_api table = engine();
  table.device_create = device_create;
  table.device_close = device_close;
  table.device_release = device_release;
  table.findings = findings;
  table.order_release = order_release;
  table.order_acquire = order_acquire;
  table.buffer_create = buffer_create;
  table.buffer_over = buffer_over;
  table.cpu_access = cpu_access;
  table.cpu_read = cpu_read;
  table.cpu_write = cpu_write;
  table.queue_create = queue_create;
  table.command_buffer = command_buffer;
  table.mps_command_buffer = mps_command_buffer;
  table.root_command_buffer = root_command_buffer;
  table.command_buffer_release = command_buffer_release;
  table.status = status;
  table.error = error;
  table.times = times;
  table.enqueue = enqueue;
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
  table.fill = fill;
  table.copy = copy;
  table.set_buffer = set_buffer;
  table.use_buffer = use_buffer;
  table.dispatch = dispatch;
  table.dispatch_grid = dispatch_grid;
  table.mps_encode = mps_encode;
  table.argument = argument;
  table.address_argument = address_argument;
  table.event_create = event_create;
  table.event_set = event_set;
  table.event_value = event_value;
  table.event_wait = event_wait;
  table.event_notify = event_notify;
  table.serial_create = serial_create;
  table.serial_sync = serial_sync;
  table.serial_async = serial_async;
  return table;
}

}  // namespace

const mpsforge_metal_api* traced() {
  if (!trace::is_open()) return nullptr;
  static const mpsforge_metal_api table = make_table();
  return &table;
}

}  // namespace mpsforge::metal

int mpsforge_metal_trace(const char* path) {
  static const int at_exit = std::atexit(mpsforge::metal::end_process);
  return at_exit != 0 ? ENOMEM : mpsforge::metal::trace::open(path);
}
