// Verbs over Metal. Objects are named by their creation.
// clang-format off
//   queue Q | shared_event E | buffer B LENGTH [private] | serial S | mps K matrix|graph|other
//   cb C Q | mps_cb C Q | root R C | blit X C | compute X C
//   fill X B OFFSET LENGTH VALUE
//   copy X FROM OFFSET TO OFFSET LENGTH
//   dispatch X set B OFFSET LENGTH VALUE | dispatch X look B OFFSET LENGTH
//   dispatch X move FROM OFFSET TO OFFSET LENGTH
//   work C fill|copy|set|look|move ...        the same on an encoder of its own, which it ends
//   encode K C [X] set B OFFSET LENGTH VALUE  an MPS kernel or graph, on encoder X or one of its own
//   signal C E VALUE | wait C E VALUE | end_encoding X | enqueue C | commit C | continue C
//   scheduled C | completed C | status C [= N]
//   on_scheduled C BLOCK | on_completed C BLOCK | notify E VALUE BLOCK
//   event.set E VALUE | event.value E [= N] | attain E VALUE [MILLISECONDS] [= 0|1]
//   peek B OFFSET LENGTH [= BYTE] | poke B OFFSET LENGTH BYTE | note B OFFSET LENGTH TEXT
//   sync S BLOCK | async S BLOCK | inject Q error|hang N | resume Q
// clang-format on
#include <cstring>

#include "world.h"

namespace mpsforge::script {

namespace {

constexpr const char* kQueue = "queue";
constexpr const char* kCommandBuffer = "command buffer";
constexpr const char* kEncoder = "encoder";
constexpr const char* kBuffer = "buffer";
constexpr const char* kEvent = "shared event";
constexpr const char* kSerial = "serial queue";
constexpr const char* kMps = "MPS kernel";

// What a script's kernels are given beside their buffers; kSource has the same.
struct Ranges {
  uint64_t offset;
  uint64_t length;
  uint64_t to_offset;
  uint8_t value;
};

const Ranges* ranges_of(mpsforge_metal_call* call, uint32_t index) {
  size_t length = 0;
  const void* bytes = mpsforge_metal_software()->bytes(call, index, &length);
  return length == sizeof(Ranges) ? static_cast<const Ranges*>(bytes) : nullptr;
}

void set_host(mpsforge_metal_call* call) {
  const Ranges* ranges = ranges_of(call, 1);
  void* to = mpsforge_metal_software()->argument(call, 0, ranges->offset, ranges->length, MPSFORGE_METAL_WRITE);
  if (to) std::memset(to, ranges->value, ranges->length);
}

void look_host(mpsforge_metal_call* call) {
  const Ranges* ranges = ranges_of(call, 1);
  mpsforge_metal_software()->argument(call, 0, ranges->offset, ranges->length, MPSFORGE_METAL_READ);
}

void move_host(mpsforge_metal_call* call) {
  const Ranges* ranges = ranges_of(call, 2);
  const auto* metal = mpsforge_metal_software();
  const void* from = metal->argument(call, 0, ranges->offset, ranges->length, MPSFORGE_METAL_READ);
  void* to = metal->argument(call, 1, ranges->to_offset, ranges->length, MPSFORGE_METAL_WRITE);
  if (from && to) std::memmove(to, from, ranges->length);
}

// The same for Apple's Metal, a thread a byte.
constexpr const char* kSource = R"(#include <metal_stdlib>
struct Ranges { ulong offset; ulong length; ulong to_offset; uchar value; };
kernel void set(device uchar* to [[buffer(0)]], constant Ranges& ranges [[buffer(1)]], uint place [[thread_position_in_grid]]) {
  to[ranges.offset + place] = ranges.value;
}
kernel void look(volatile device uchar* from [[buffer(0)]], constant Ranges& ranges [[buffer(1)]], uint place [[thread_position_in_grid]]) {
  uchar seen = from[ranges.offset + place];
  (void)seen;
}
kernel void move(device const uchar* from [[buffer(0)]], device uchar* to [[buffer(1)]], constant Ranges& ranges [[buffer(2)]],
                 uint place [[thread_position_in_grid]]) {
  to[ranges.to_offset + place] = from[ranges.offset + place];
}
)";

constexpr mpsforge_metal_kernel kKernels[] = {
    {"set", set_host, kSource}, {"look", look_host, kSource}, {"move", move_host, kSource}};

template <class T>
T* get(Context& context, Arguments& arguments, const char* type) {
  return context.world.get<T>(arguments.word(), type);
}
mpsforge_metal_queue* queue(Context& c, Arguments& a) { return get<mpsforge_metal_queue>(c, a, kQueue); }
mpsforge_metal_command_buffer* command_buffer(Context& c, Arguments& a) {
  return get<mpsforge_metal_command_buffer>(c, a, kCommandBuffer);
}
mpsforge_metal_encoder* encoder(Context& c, Arguments& a) { return get<mpsforge_metal_encoder>(c, a, kEncoder); }
mpsforge_metal_buffer* buffer(Context& c, Arguments& a) { return get<mpsforge_metal_buffer>(c, a, kBuffer); }
mpsforge_metal_event* event(Context& c, Arguments& a) { return get<mpsforge_metal_event>(c, a, kEvent); }
mpsforge_metal_serial_queue* serial(Context& c, Arguments& a) {
  return get<mpsforge_metal_serial_queue>(c, a, kSerial);
}

template <class T>
void put(Context& context, const std::string& name, const char* type, T* pointer, void (*release)(World&, void*)) {
  context.world.put(name, {type, pointer, release});
}

void make_queue(Context& c, Arguments& a) {
  const std::string& name = a.word();
  put(c, name, kQueue, c.world.metal().queue_create(c.world.device(), name.c_str()),
      [](World& world, void* pointer) { world.metal().queue_release(static_cast<mpsforge_metal_queue*>(pointer)); });
}

void make_event(Context& c, Arguments& a) {
  const std::string& name = a.word();
  put(c, name, kEvent, c.world.metal().event_create(c.world.device(), name.c_str()),
      [](World& world, void* pointer) { world.metal().event_release(static_cast<mpsforge_metal_event*>(pointer)); });
}

void make_buffer(Context& c, Arguments& a) {
  const std::string& name = a.word();
  const uint64_t length = a.number();
  const bool is_private = a.more() && a.word() == "private";
  put(c, name, kBuffer,
      c.world.metal().buffer_create(c.world.device(), length,
                                    is_private ? MPSFORGE_METAL_PRIVATE : MPSFORGE_METAL_SHARED, name.c_str()),
      [](World& world, void* pointer) { world.metal().buffer_release(static_cast<mpsforge_metal_buffer*>(pointer)); });
}

void make_serial(Context& c, Arguments& a) {
  const std::string& name = a.word();
  put(c, name, kSerial, c.world.metal().serial_create(c.world.device(), name.c_str()), [](World& world, void* pointer) {
    world.metal().serial_release(static_cast<mpsforge_metal_serial_queue*>(pointer));
  });
}

void make_mps(Context& c, Arguments& a) {
  const std::string& name = a.word();
  const std::string& kind = a.word();
  const uint32_t mps_class = kind == "matrix"  ? MPSFORGE_METAL_MPS_MATRIX
                             : kind == "graph" ? MPSFORGE_METAL_MPS_GRAPH
                                               : MPSFORGE_METAL_MPS_OTHER;
  if (mps_class == MPSFORGE_METAL_MPS_OTHER && kind != "other") throw Wrong("mps: no class " + kind);
  put(c, name, kMps, c.world.metal().mps_create(c.world.device(), mps_class, name.c_str()),
      [](World& world, void* pointer) { world.metal().mps_release(static_cast<mpsforge_metal_mps_kernel*>(pointer)); });
}

void put_command_buffer(Context& c, const std::string& name, mpsforge_metal_command_buffer* made) {
  put(c, name, kCommandBuffer, made, [](World& world, void* pointer) {
    world.metal().command_buffer_release(static_cast<mpsforge_metal_command_buffer*>(pointer));
  });
}

void make_command_buffer(Context& c, Arguments& a) {
  const std::string& name = a.word();
  put_command_buffer(c, name, c.world.metal().command_buffer(queue(c, a)));
}

void make_mps_command_buffer(Context& c, Arguments& a) {
  const std::string& name = a.word();
  put_command_buffer(c, name, c.world.metal().mps_command_buffer(queue(c, a)));
}

void make_root(Context& c, Arguments& a) {
  const std::string& name = a.word();
  put_command_buffer(c, name, c.world.metal().root_command_buffer(command_buffer(c, a)));
}

void put_encoder(Context& c, const std::string& name, mpsforge_metal_encoder* made) {
  put(c, name, kEncoder, made, [](World& world, void* pointer) {
    world.metal().encoder_release(static_cast<mpsforge_metal_encoder*>(pointer));
  });
}

void make_blit(Context& c, Arguments& a) {
  const std::string& name = a.word();
  put_encoder(c, name, c.world.metal().blit_encoder(command_buffer(c, a)));
}

void make_compute(Context& c, Arguments& a) {
  const std::string& name = a.word();
  put_encoder(c, name, c.world.metal().compute_encoder(command_buffer(c, a)));
}

void fill(Context& c, Arguments& a, mpsforge_metal_encoder* on) {
  auto* into = buffer(c, a);
  const uint64_t offset = a.number();
  const uint64_t length = a.number();
  c.world.metal().fill(on, into, offset, length, static_cast<uint8_t>(a.number()));
}

void copy(Context& c, Arguments& a, mpsforge_metal_encoder* on) {
  auto* from = buffer(c, a);
  const uint64_t from_offset = a.number();
  auto* to = buffer(c, a);
  const uint64_t to_offset = a.number();
  c.world.metal().copy(on, from, from_offset, to, to_offset, a.number());
}

void add_kernels(World& world) {
  for (const auto& kernel : kKernels) world.metal().add_kernel(world.device(), &kernel);
}

void dispatch(Context& c, Arguments& a, mpsforge_metal_encoder* on, const std::string& name) {
  const auto& metal = c.world.metal();
  add_kernels(c.world);
  Ranges ranges{};
  auto* first = buffer(c, a);
  ranges.offset = a.number();
  uint32_t count = 1;
  metal.set_kernel(on, name.c_str());
  metal.set_buffer(on, 0, first, 0);
  if (name == "move") {
    metal.set_buffer(on, count++, buffer(c, a), 0);
    ranges.to_offset = a.number();
  }
  ranges.length = a.number();
  if (name == "set") ranges.value = static_cast<uint8_t>(a.number());
  metal.set_bytes(on, count, &ranges, sizeof ranges);
  metal.dispatch(on, ranges.length);
}

void work(Context& c, Arguments& a) {
  const auto& metal = c.world.metal();
  auto* in = command_buffer(c, a);
  const std::string& what = a.word();
  const bool is_blit = what == "fill" || what == "copy";
  auto* on = is_blit ? metal.blit_encoder(in) : metal.compute_encoder(in);
  if (what == "fill") {
    fill(c, a, on);
  } else if (what == "copy") {
    copy(c, a, on);
  } else {
    dispatch(c, a, on, what);
  }
  metal.end_encoding(on);
  metal.encoder_release(on);
}

void encode(Context& c, Arguments& a) {
  add_kernels(c.world);
  auto* kernel = get<mpsforge_metal_mps_kernel>(c, a, kMps);
  auto* on = command_buffer(c, a);
  std::string name = a.word();
  mpsforge_metal_encoder* inside = nullptr;
  if (name != "set") {
    inside = c.world.get<mpsforge_metal_encoder>(name, kEncoder);
    name = a.word();
  }
  const mpsforge_metal_binding binding = {buffer(c, a), 0};
  Ranges ranges{};
  ranges.offset = a.number();
  ranges.length = a.number();
  ranges.value = static_cast<uint8_t>(a.number());
  c.world.metal().mps_encode(kernel, on, inside, name.c_str(), &binding, 1, &ranges, sizeof ranges, ranges.length);
}

void signal(Context& c, Arguments& a) {
  auto* in = command_buffer(c, a);
  auto* of = event(c, a);
  c.world.metal().encode_signal(in, of, a.number());
}

void wait(Context& c, Arguments& a) {
  auto* in = command_buffer(c, a);
  auto* of = event(c, a);
  c.world.metal().encode_wait(in, of, a.number());
}

// A handler, listener or serial queue runs a block of the program.
void run_handler(void* callback, mpsforge_metal_command_buffer*) { run_callback(callback); }

Callback* callback(Context& c, Arguments& a) { return c.world.callback(a.word()); }

void notify(Context& c, Arguments& a) {
  auto* of = event(c, a);
  const uint64_t value = a.number();
  c.world.metal().event_notify(of, value, run_callback, callback(c, a));
}

void attain(Context& c, Arguments& a) {
  auto* of = event(c, a);
  const uint64_t value = a.number();
  const int64_t timeout = a.more() ? a.integer() : -1;
  c.observe(a, c.world.metal().event_wait(of, value, timeout));
}

void peek(Context& c, Arguments& a) {
  auto* from = buffer(c, a);
  const uint64_t offset = a.number();
  std::vector<uint8_t> bytes(a.number());
  c.world.metal().cpu_read(from, offset, bytes.size(), bytes.data());
  int64_t found = bytes.empty() ? -1 : bytes[0];
  for (const uint8_t byte : bytes) {
    if (byte != found) found = -1;  // not all the same
  }
  c.observe(a, found);
}

void poke(Context& c, Arguments& a) {
  auto* to = buffer(c, a);
  const uint64_t offset = a.number();
  const uint64_t length = a.number();
  const std::vector<uint8_t> bytes(length, static_cast<uint8_t>(a.number()));
  c.world.metal().cpu_write(to, offset, length, bytes.data());
}

void note(Context& c, Arguments& a) {
  auto* on = buffer(c, a);
  const uint64_t offset = a.number();
  const uint64_t length = a.number();
  c.world.metal().buffer_note(on, offset, length, a.word().c_str());
}

void inject(Context& c, Arguments& a) {
  auto* into = queue(c, a);
  const std::string& kind = a.word();
  if (kind != "error" && kind != "hang") throw Wrong("inject: error or hang");
  c.world.metal().inject(into, kind == "error" ? MPSFORGE_METAL_INJECT_ERROR : MPSFORGE_METAL_INJECT_HANG,
                         static_cast<uint32_t>(a.number()));
}

}  // namespace

const std::map<std::string, Verb>& metal_verbs() {
  static const std::map<std::string, Verb> verbs = {
      {"queue", make_queue},
      {"shared_event", make_event},
      {"buffer", make_buffer},
      {"serial", make_serial},
      {"mps", make_mps},
      {"cb", make_command_buffer},
      {"mps_cb", make_mps_command_buffer},
      {"root", make_root},
      {"blit", make_blit},
      {"compute", make_compute},
      {"fill", [](Context& c, Arguments& a) { fill(c, a, encoder(c, a)); }},
      {"copy", [](Context& c, Arguments& a) { copy(c, a, encoder(c, a)); }},
      {"dispatch",
       [](Context& c, Arguments& a) {
         auto* on = encoder(c, a);
         dispatch(c, a, on, a.word());
       }},
      {"work", work},
      {"encode", encode},
      {"signal", signal},
      {"wait", wait},
      {"end_encoding", [](Context& c, Arguments& a) { c.world.metal().end_encoding(encoder(c, a)); }},
      {"enqueue", [](Context& c, Arguments& a) { c.world.metal().enqueue(command_buffer(c, a)); }},
      {"commit", [](Context& c, Arguments& a) { c.world.metal().commit(command_buffer(c, a)); }},
      {"continue", [](Context& c, Arguments& a) { c.world.metal().commit_and_continue(command_buffer(c, a)); }},
      {"scheduled", [](Context& c, Arguments& a) { c.world.metal().wait_until_scheduled(command_buffer(c, a)); }},
      {"completed", [](Context& c, Arguments& a) { c.world.metal().wait_until_completed(command_buffer(c, a)); }},
      {"status", [](Context& c, Arguments& a) { c.observe(a, c.world.metal().status(command_buffer(c, a))); }},
      {"on_scheduled",
       [](Context& c, Arguments& a) {
         auto* in = command_buffer(c, a);
         c.world.metal().add_scheduled_handler(in, run_handler, callback(c, a));
       }},
      {"on_completed",
       [](Context& c, Arguments& a) {
         auto* in = command_buffer(c, a);
         c.world.metal().add_completed_handler(in, run_handler, callback(c, a));
       }},
      {"notify", notify},
      {"event.set",
       [](Context& c, Arguments& a) {
         auto* of = event(c, a);
         c.world.metal().event_set(of, a.number());
       }},
      {"event.value",
       [](Context& c, Arguments& a) { c.observe(a, static_cast<int64_t>(c.world.metal().event_value(event(c, a)))); }},
      {"attain", attain},
      {"peek", peek},
      {"poke", poke},
      {"note", note},
      {"sync",
       [](Context& c, Arguments& a) {
         auto* on = serial(c, a);
         c.world.metal().serial_sync(on, run_callback, callback(c, a));
       }},
      {"async",
       [](Context& c, Arguments& a) {
         auto* on = serial(c, a);
         c.world.metal().serial_async(on, run_callback, callback(c, a));
       }},
      {"inject", inject},
      {"resume", [](Context& c, Arguments& a) { c.world.metal().resume(queue(c, a)); }},
  };
  return verbs;
}

}  // namespace mpsforge::script
