// Tests what the software Metal has for the Objective-C classes over it: grids, addresses, memory of others, what a
// command buffer keeps, times, the observer. One scenario a function. Prints how many ran; exit status 1 if one failed.
#include "../metal/metal.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "scenarios.h"

namespace {

using mpsforge::expect;

const mpsforge_metal_api& metal = *mpsforge_metal_software();

// A device that records violations, a queue, and a command buffer with a compute encoder.
struct World {
  World() {
    mpsforge_metal_config config{};
    config.seed = 1;
    config.check_order = 1;
    config.macos = 1505;
    device = metal.device_create(&config);
    if (!device) std::abort();
  }
  ~World() {
    if (encoder) metal.encoder_release(encoder);
    if (buffer) metal.command_buffer_release(buffer);
    if (queue) metal.queue_release(queue);
    metal.device_release(device);
  }
  void open() {
    if (!queue) queue = metal.queue_create(device, "q");
    buffer = metal.command_buffer(queue);
    encoder = metal.compute_encoder(buffer);
  }
  void finish() {
    metal.end_encoding(encoder);
    metal.encoder_release(encoder);
    encoder = nullptr;
    metal.commit(buffer);
    metal.wait_until_completed(buffer);
  }
  void add(const char* name, void (*host)(mpsforge_metal_call*), void* context = nullptr) {
    const mpsforge_metal_kernel kernel{name, host, nullptr};
    metal.add_context_kernel(device, &kernel, context);
  }
  // Whether a finding has the text.
  bool found(const char* text) const {
    std::vector<mpsforge_metal_finding> all(metal.findings(device, nullptr, 0));
    metal.findings(device, all.data(), all.size());
    for (const auto& one : all) {
      if (std::strstr(one.message, text)) return true;
    }
    return false;
  }
  size_t findings() const { return metal.findings(device, nullptr, 0); }

  mpsforge_metal_device* device = nullptr;
  mpsforge_metal_queue* queue = nullptr;
  mpsforge_metal_command_buffer* buffer = nullptr;
  mpsforge_metal_encoder* encoder = nullptr;
};

struct Seen {
  mpsforge_metal_grid grid{};
  size_t memory = 0, length = 0;
  int calls = 0;
};

void look(mpsforge_metal_call* call) {
  auto* seen = static_cast<Seen*>(metal.context(call));
  metal.grid(call, &seen->grid);
  seen->memory = metal.threadgroup_memory(call, 2);
  seen->length = metal.argument_length(call, 0);
  ++seen->calls;
}

SCENARIO(a_kernel_sees_its_grid_and_context) {
  World world;
  Seen seen;
  world.add("look", look, &seen);
  mpsforge_metal_buffer* memory = metal.buffer_create(world.device, 64, MPSFORGE_METAL_PRIVATE, "b");
  world.open();
  metal.set_kernel(world.encoder, "look");
  metal.set_buffer(world.encoder, 0, memory, 24);
  metal.set_threadgroup_memory(world.encoder, 2, 48);
  const mpsforge_metal_grid grid{{7, 5, 3}, {4, 2, 1}};
  metal.dispatch_grid(world.encoder, &grid);
  world.finish();
  expect(seen.calls == 1 && std::memcmp(&seen.grid, &grid, sizeof grid) == 0, "the grid");
  expect(seen.memory == 48, "threadgroup memory");
  expect(seen.length == 40, "length of the argument");
  expect(world.findings() == 0, "findings");
  metal.buffer_release(memory);
}

SCENARIO(groups_are_1_to_1024_threads) {
  World world;
  Seen seen;
  world.add("look", look, &seen);
  world.open();
  metal.set_kernel(world.encoder, "look");
  const mpsforge_metal_grid empty{{8, 1, 1}, {0, 1, 1}}, large{{8, 1, 1}, {32, 33, 1}}, full{{8, 1, 1}, {32, 32, 1}};
  metal.dispatch_grid(world.encoder, &empty);
  expect(world.found("threadgroup that has not 1 to 1024 threads: 0 x 1 x 1"), "an empty group");
  metal.dispatch_grid(world.encoder, &large);
  expect(world.found("threadgroup that has not 1 to 1024 threads: 32 x 33 x 1"), "a large group");
  const mpsforge_metal_grid nothing{{0, 1, 1}, {0, 1, 1}};
  metal.dispatch_grid(world.encoder, &nothing);
  metal.dispatch_grid(world.encoder, &full);
  expect(world.findings() == 2, "a full group is allowed, and so is any group of a grid without threads");
  world.finish();
  expect(seen.calls == 1, "what was refused does not run");
}

SCENARIO(bytes_are_4096_at_most) {
  World world;
  world.open();
  const std::vector<uint8_t> bytes(4097);
  metal.set_bytes(world.encoder, 0, bytes.data(), 4096);
  expect(world.findings() == 0, "4096 bytes");
  metal.set_bytes(world.encoder, 0, bytes.data(), 4097);
  expect(world.found("more than 4096 bytes"), "4097 bytes");
  world.finish();
}

void follow(mpsforge_metal_call* call) {
  const auto* address = static_cast<const uint64_t*>(metal.argument(call, 0, 0, 8, MPSFORGE_METAL_READ));
  const auto access = static_cast<uint32_t>(metal.threads(call));
  auto* target = address ? static_cast<uint8_t*>(metal.address_argument(call, *address, 4, access)) : nullptr;
  if (target && (access & MPSFORGE_METAL_WRITE)) std::memset(target, 9, 4);
}

// What becomes of a write through an address of a buffer that the encoder uses so, or not at all (0).
std::pair<uint8_t, bool> write_by_address(uint32_t usage, uint64_t beyond) {
  World world;
  world.add("follow", follow);
  mpsforge_metal_buffer* table = metal.buffer_create(world.device, 8, MPSFORGE_METAL_SHARED, "table");
  mpsforge_metal_buffer* data = metal.buffer_create(world.device, 16, MPSFORGE_METAL_SHARED, "data");
  const uint64_t address = metal.gpu_address(data) + beyond;
  metal.cpu_write(table, 0, sizeof address, &address);
  world.open();
  metal.set_kernel(world.encoder, "follow");
  metal.set_buffer(world.encoder, 0, table, 0);
  if (usage) metal.use_buffer(world.encoder, data, usage);
  metal.dispatch(world.encoder, MPSFORGE_METAL_WRITE);
  world.finish();
  uint8_t byte = 0;
  metal.cpu_read(data, 12, 1, &byte);
  metal.buffer_release(table);
  metal.buffer_release(data);
  return {byte, world.found("address outside of the buffers that the encoder binds or uses")};
}

SCENARIO(addresses_reach_the_buffers_that_are_used) {
  expect(write_by_address(MPSFORGE_METAL_READ | MPSFORGE_METAL_WRITE, 12) == std::make_pair(uint8_t{9}, false), "used");
  expect(write_by_address(0, 12) == std::make_pair(uint8_t{0}, true), "not used");
  expect(write_by_address(MPSFORGE_METAL_READ, 12) == std::make_pair(uint8_t{0}, true), "used for reads alone");
  expect(write_by_address(MPSFORGE_METAL_WRITE, 13) == std::make_pair(uint8_t{0}, true), "over the end");
}

SCENARIO(a_race_by_address_is_a_race) {
  World world;
  world.add("follow", follow);
  mpsforge_metal_buffer* table = metal.buffer_create(world.device, 8, MPSFORGE_METAL_SHARED, "table");
  mpsforge_metal_buffer* data = metal.buffer_create(world.device, 16, MPSFORGE_METAL_SHARED, "data");
  const uint64_t address = metal.gpu_address(data);
  metal.cpu_write(table, 0, sizeof address, &address);
  world.open();
  metal.set_kernel(world.encoder, "follow");
  metal.set_buffer(world.encoder, 0, table, 0);
  metal.use_buffer(world.encoder, data, MPSFORGE_METAL_READ);
  metal.dispatch(world.encoder, MPSFORGE_METAL_READ);
  metal.end_encoding(world.encoder);
  metal.commit(world.buffer);
  metal.cpu_write(data, 0, 4, "abc");
  metal.wait_until_completed(world.buffer);
  expect(world.found("of buffer data"), "the race");
  metal.buffer_release(table);
  metal.buffer_release(data);
}

SCENARIO(a_buffer_over_memory_is_that_memory) {
  World world;
  uint8_t memory[32];
  std::memset(memory, 1, sizeof memory);
  mpsforge_metal_buffer* over = metal.buffer_over(world.device, memory, sizeof memory, MPSFORGE_METAL_SHARED, "over");
  expect(metal.buffer_contents(over) == memory && metal.buffer_length(over) == sizeof memory, "contents");
  expect(metal.gpu_address(over) == reinterpret_cast<uint64_t>(memory), "address");
  world.queue = metal.queue_create(world.device, "q");
  world.buffer = metal.command_buffer(world.queue);
  mpsforge_metal_encoder* blit = metal.blit_encoder(world.buffer);
  metal.fill(blit, over, 4, 8, 7);
  metal.fill(blit, over, 30, 3, 7);
  expect(world.found("range outside of the buffer"), "its length is a limit");
  metal.end_encoding(blit);
  metal.encoder_release(blit);
  metal.commit(world.buffer);
  metal.wait_until_completed(world.buffer);
  expect(memory[3] == 1 && memory[4] == 7 && memory[11] == 7 && memory[12] == 1, "the fill");
  metal.buffer_release(over);
  expect(memory[4] == 7, "the memory outlives the buffer");
  expect(!metal.buffer_over(world.device, nullptr, 4, MPSFORGE_METAL_SHARED, "") &&
             !metal.buffer_over(world.device, memory, 0, MPSFORGE_METAL_SHARED, ""),
         "no memory, no buffer");
}

// What was given back and called, in order.
std::mutex log_mutex;
std::string log_text;

void log_context(void* context) {
  std::lock_guard<std::mutex> lock(log_mutex);
  log_text += static_cast<const char*>(context);
}

void log_handler(void* context, mpsforge_metal_command_buffer*) { log_context(context); }

std::string logged() {
  std::lock_guard<std::mutex> lock(log_mutex);
  return std::exchange(log_text, "");
}

char work[] = "w", handler[] = "h", after[] = "a", encoded[] = "e";

SCENARIO(a_command_buffer_keeps_until_it_has_ended) {
  World world;
  world.open();
  expect(metal.keep(world.buffer, work, log_context, 0) == 1, "kept");
  expect(metal.keep(world.buffer, work, log_context, 0) == 0, "kept once");
  expect(metal.keep(world.buffer, after, log_context, 1) == 1, "kept for the handlers");
  metal.add_completed_handler(world.buffer, log_handler, handler);
  expect(logged().empty(), "nothing is given back before the end");
  world.finish();
  metal.device_close(world.device);
  expect(logged() == "wha", "work, handlers, after");
  expect(metal.keep(world.buffer, work, log_context, 0) == 0, "an ended buffer keeps nothing");
  mpsforge_metal_statistics statistics;
  metal.statistics(world.device, &statistics);
  expect(statistics.handlers == 1, "what is given back is no handler");
}

SCENARIO(an_encoder_keeps_for_its_root) {
  World world;
  world.queue = metal.queue_create(world.device, "q");
  world.buffer = metal.mps_command_buffer(world.queue);
  mpsforge_metal_encoder* blit = metal.blit_encoder(world.buffer);
  expect(metal.encoder_keep(blit, encoded, log_context) == 1, "kept");
  metal.end_encoding(blit);
  metal.encoder_release(blit);
  mpsforge_metal_command_buffer* root = metal.root_command_buffer(world.buffer);
  metal.commit_and_continue(world.buffer);
  metal.keep(world.buffer, work, log_context, 0);
  metal.wait_until_completed(root);
  metal.command_buffer_release(root);
  // The new root is not committed: it gives back when it is released.
  metal.command_buffer_release(world.buffer);
  world.buffer = nullptr;
  metal.device_close(world.device);
  const std::string text = logged();
  expect(text == "ew" || text == "we", "each root gives back what it kept");
}

SCENARIO(an_ended_encoder_keeps_no_buffers) {
  World world;
  world.open();
  world.add("look", look);
  mpsforge_metal_buffer* bound = metal.buffer_create(world.device, 64, MPSFORGE_METAL_SHARED, "bound");
  metal.set_kernel(world.encoder, "look");
  metal.set_buffer(world.encoder, 0, bound, 0);
  metal.buffer_release(bound);
  mpsforge_metal_statistics statistics;
  metal.statistics(world.device, &statistics);
  expect(statistics.checker_ranges > 0, "while it is open");
  metal.end_encoding(world.encoder);
  metal.statistics(world.device, &statistics);
  expect(statistics.checker_ranges == 0, "after its end, though nothing has released it");
}

SCENARIO(times_are_in_order) {
  World world;
  world.open();
  mpsforge_metal_times times;
  metal.times(world.buffer, &times);
  expect(times.gpu_start == 0 && times.gpu_end == 0, "not yet");
  world.finish();
  metal.times(world.buffer, &times);
  expect(0 < times.kernel_start && times.kernel_start <= times.kernel_end && times.kernel_end <= times.gpu_start &&
             times.gpu_start <= times.gpu_end,
         "in order");
}

struct Edges {
  std::mutex mutex;
  std::multiset<std::pair<const void*, std::thread::id>> released, acquired;
  int threads = 0;
} edges;

void thread_begins() {
  std::lock_guard<std::mutex> lock(edges.mutex);
  ++edges.threads;
}

void release(const void* object) {
  std::lock_guard<std::mutex> lock(edges.mutex);
  edges.released.insert({object, std::this_thread::get_id()});
}

void acquire(const void* object) {
  std::lock_guard<std::mutex> lock(edges.mutex);
  edges.acquired.insert({object, std::this_thread::get_id()});
}

// How many objects one side released on this thread, or on others, and the other acquired on the other kind of thread.
size_t handed(const std::multiset<std::pair<const void*, std::thread::id>>& from,
              const std::multiset<std::pair<const void*, std::thread::id>>& to, bool from_here) {
  const auto here = std::this_thread::get_id();
  std::set<const void*> objects;
  for (const auto& [object, by] : from) {
    if ((by == here) != from_here) continue;
    for (const auto& [other, thread] : to) {
      if (other == object && (thread == here) != from_here) objects.insert(object);
    }
  }
  return objects.size();
}

SCENARIO(an_observer_sees_the_edges) {
  {
    World world;
    const mpsforge_metal_observer observer{thread_begins, release, acquire};
    metal.observe(world.device, &observer);
    mpsforge_metal_event* event = metal.event_create(world.device, "e");
    metal.event_notify(event, 1, log_context, work);
    world.open();
    metal.add_completed_handler(world.buffer, log_handler, handler);
    metal.end_encoding(world.encoder);
    metal.encode_signal(world.buffer, event, 1);
    metal.commit(world.buffer);
    metal.event_wait(event, 1, -1);
    metal.wait_until_completed(world.buffer);
    metal.device_close(world.device);
    metal.event_release(event);
  }
  std::lock_guard<std::mutex> lock(edges.mutex);
  // The executor, the handlers' thread and the listeners'.
  expect(edges.threads == 3, "three threads begin");
  // The command buffer at its commit, and the contexts of the handler and of the listener.
  expect(handed(edges.released, edges.acquired, true) == 3, "from the program to the engine's threads");
  // The event, and the command buffer's end.
  expect(handed(edges.released, edges.acquired, false) == 2, "from the engine's threads to the program");
  logged();
}

}  // namespace

int main() { return mpsforge::run_scenarios(); }
