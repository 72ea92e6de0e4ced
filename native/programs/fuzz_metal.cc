// The C ABI of the software Metal (native/metal/metal.h): an input is a list of calls, each with objects that are
// there, that are NULL, or whose device has been closed, and with ranges at which sums overflow. Whatever Metal forbids
// is a finding; nothing ends the process or keeps it from ending.
#include <array>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "../metal/metal.h"
#include "../script/choices.h"

namespace {

using mpsforge::script::Choices;
using mpsforge::script::demand;

const mpsforge_metal_api& api = *mpsforge_metal_software();

constexpr size_t kObjects = 4;  // of a kind
constexpr size_t kMemory = 4096;
constexpr int kDepth = 3;  // of blocks of serial queues in each other

template <class Object>
struct Set {
  void (*release)(Object*);
  std::array<Object*, kObjects> objects{};

  Object* operator[](size_t index) const { return index < kObjects ? objects[index] : nullptr; }
  void put(size_t index, Object* object) {
    release(objects[index]);
    objects[index] = object;
  }
  void clear() {
    for (Object*& object : objects) release(std::exchange(object, nullptr));
  }
};

void reads_and_writes(mpsforge_metal_call* call) {
  const size_t edges[] = {0, 1, 4, 63, 64, SIZE_MAX, SIZE_MAX - 3};
  size_t length = 0;
  const void* bytes = api.bytes(call, 0, &length);
  demand(bytes || length == 0, "no bytes have no length");
  const auto* const read = static_cast<const uint8_t*>(bytes);
  const auto sum = std::accumulate(read, read + length, uint32_t{0});
  for (const size_t offset : edges) {
    for (const size_t wanted : edges) {
      void* memory = api.argument(call, static_cast<uint32_t>(offset % 3), offset, wanted, MPSFORGE_METAL_WRITE);
      if (memory) std::memset(memory, 1, wanted);
    }
  }
  mpsforge_metal_reach reach;
  for (size_t n = 0; api.reach(call, n, &reach) != 0; ++n) {
    for (const size_t wanted : edges) {
      const uint64_t address = reach.address + wanted;
      void* memory = api.address_argument(call, address, wanted, MPSFORGE_METAL_READ | MPSFORGE_METAL_WRITE);
      if (memory) std::memset(memory, 2, wanted);
    }
    if (reach.length > 0 && (reach.access & MPSFORGE_METAL_WRITE)) {
      std::memset(reinterpret_cast<void*>(reach.address), 3, reach.length);
    }
  }
  demand(api.argument_length(call, 30) <= kMemory, "an argument's length is its buffer's at most");
  mpsforge_metal_grid grid;
  api.grid(call, &grid);
  (void)api.threads(call);
  (void)api.threadgroup_memory(call, 31);
  api.refuse(call, sum, "what", "detail");
}

void nothing(void*) {}

class Session {
 public:
  explicit Session(Choices choices) : choices_(choices) {
    mpsforge_metal_config config{};
    config.seed = choices_.byte();
    config.max_delay_us = choices_.below(2) * 20;
    config.macos = choices_.below(2) * 1300;
    config.check_order = choices_.below(2);
    config.watchdog_ms = 2;  // so that what waits for ever goes on
    config.models = choices_.below(32);
    config.max_uncompleted = 3;
    config.wait_covers_handlers = choices_.below(3);
    config.graph_split = choices_.below(3);
    device_ = api.device_create(&config);
    demand(device_ != nullptr, "there is a device");
    static const mpsforge_metal_kernel kernel = {"kernel", reads_and_writes, ""};
    api.add_kernel(device_, &kernel);
    queues_.put(0, api.queue_create(device_, "q"));
    buffers_.put(0, api.buffer_create(device_, 64, MPSFORGE_METAL_SHARED, "b"));
  }

  void run() {
    while (choices_.more()) step();
    const bool closed_first = choices_.below(2) != 0;
    if (closed_first) api.device_close(device_);
    encoders_.clear();
    command_buffers_.clear();
    serial_queues_.clear();
    kernels_.clear();
    events_.clear();
    buffers_.clear();
    queues_.clear();
    api.device_close(device_);
    std::vector<mpsforge_metal_finding> found(2);
    api.findings(device_, found.data(), found.size());
    api.device_release(device_);
  }

 private:
  size_t any() { return choices_.below(kObjects + 1); }  // the last is NULL
  size_t place() { return choices_.below(kObjects); }
  mpsforge_metal_command_buffer* command_buffer() { return command_buffers_[any()]; }
  mpsforge_metal_encoder* encoder() { return encoders_[any()]; }
  mpsforge_metal_buffer* buffer() { return buffers_[any()]; }
  mpsforge_metal_event* event() { return events_[any()]; }

  static void completed(void*, mpsforge_metal_command_buffer* borrowed) {
    (void)api.status(borrowed);
    api.command_buffer_release(borrowed);  // a finding
  }
  static void deeper(void* self) { static_cast<Session*>(self)->nested(); }
  void nested() {
    ++depth_;
    for (auto steps = choices_.below(8); steps > 0; --steps) step();
    --depth_;
  }

  void step() {
    switch (choices_.below(52)) {
      case 0:
        return buffers_.put(place(), api.buffer_create(device_, choices_.below(64), choices_.below(3), "buffer"));
      case 1:
        return buffers_.put(place(), api.buffer_create(device_, SIZE_MAX - choices_.byte(), 0, nullptr));
      case 2:
        return buffers_.put(place(), api.buffer_over(device_, memory_.data(), kMemory, choices_.below(3), "over"));
      case 3:
        return buffers_.put(place(), nullptr);
      case 4: {
        const size_t offset = choices_.size();
        return api.cpu_access(buffer(), offset, choices_.size(), choices_.below(4));
      }
      case 5: {
        const size_t offset = choices_.size();
        return api.cpu_read(buffer(), offset, choices_.size(), read_.data());
      }
      case 6: {
        const size_t offset = choices_.size();
        return api.cpu_write(buffer(), offset, choices_.size(), read_.data());
      }
      case 7: {
        const size_t offset = choices_.size();
        return api.buffer_note(buffer(), offset, choices_.size(), "freed");
      }
      case 8: {
        mpsforge_metal_buffer* const one = buffer();
        if (void* bytes = api.buffer_contents(one)) std::memset(bytes, 4, api.buffer_length(one));
        (void)api.gpu_address(one);
        return;
      }
      case 9:
        return queues_.put(place(), api.queue_create(device_, choices_.below(2) != 0 ? "queue" : nullptr));
      case 10:
        return queues_.put(place(), nullptr);
      case 11: {
        const uint32_t kind = choices_.below(4);
        return api.inject(queues_[any()], kind, choices_.below(4));
      }
      case 12:
        return api.resume(queues_[any()]);
      case 13:
      case 14:
        return command_buffers_.put(place(), api.command_buffer(queues_[any()]));
      case 15:
        return command_buffers_.put(place(), api.mps_command_buffer(queues_[any()]));
      case 16:
        return command_buffers_.put(place(), nullptr);
      case 17:
        (void)api.status(command_buffer());
        (void)std::strlen(api.error(command_buffer()));
        return;
      case 18:
        return api.enqueue(command_buffer());
      case 19:
      case 20:
        return api.commit(command_buffer());
      case 21:
        return api.commit_and_continue(command_buffer());
      case 22:
        return command_buffers_.put(place(), api.root_command_buffer(command_buffer()));
      case 23:
        return api.wait_until_scheduled(command_buffer());
      case 24:
        return api.wait_until_completed(command_buffer());
      case 25:
        return api.add_scheduled_handler(command_buffer(), completed, nullptr);
      case 26:
        return api.add_completed_handler(command_buffer(), completed, nullptr);
      case 27:
      case 28: {
        mpsforge_metal_command_buffer* const one = command_buffer();
        mpsforge_metal_event* const other = event();
        return (choices_.below(2) != 0 ? api.encode_signal : api.encode_wait)(one, other, choices_.below(4));
      }
      case 29:
        return encoders_.put(place(), api.blit_encoder(command_buffer()));
      case 30:
      case 31:
        return encoders_.put(place(), api.compute_encoder(command_buffer()));
      case 32:
        return encoders_.put(place(), nullptr);
      case 33:
        return api.end_encoding(encoder());
      case 34: {
        mpsforge_metal_encoder* const one = encoder();
        mpsforge_metal_buffer* const to = buffer();
        const size_t offset = choices_.size();
        return api.fill(one, to, offset, choices_.size(), choices_.byte());
      }
      case 35: {
        mpsforge_metal_encoder* const one = encoder();
        mpsforge_metal_buffer *const from = buffer(), *const to = buffer();
        const size_t first = choices_.size(), second = choices_.size();
        return api.copy(one, from, first, to, second, choices_.size());
      }
      case 36:
        return api.set_kernel(encoder(), choices_.below(8) != 0 ? "kernel" : "none");
      case 37: {
        mpsforge_metal_encoder* const one = encoder();
        mpsforge_metal_buffer* const bound = buffer();
        const auto index = static_cast<uint32_t>(choices_.size());
        return api.set_buffer(one, choices_.below(2) != 0 ? index : index % 3, bound, choices_.size());
      }
      case 38: {
        mpsforge_metal_encoder* const one = encoder();
        const auto index = static_cast<uint32_t>(choices_.size());
        return api.set_bytes(one, index % 33, read_.data(), choices_.size());
      }
      case 39:
        return api.dispatch(encoder(), choices_.size());
      case 40: {
        mpsforge_metal_grid grid;
        for (uint64_t& size : grid.threads) size = choices_.size();
        for (uint64_t& size : grid.group) size = choices_.size();
        return api.dispatch_grid(encoder(), &grid);
      }
      case 41: {
        mpsforge_metal_encoder* const one = encoder();
        return api.set_threadgroup_memory(one, static_cast<uint32_t>(choices_.size()), choices_.size());
      }
      case 42: {
        mpsforge_metal_encoder* const one = encoder();
        return api.use_buffer(one, buffer(), choices_.below(4));
      }
      case 43:
        return kernels_.put(place(), api.mps_create(device_, choices_.below(4), "kernel"));
      case 44: {
        mpsforge_metal_mps_kernel* const kernel = kernels_[any()];
        mpsforge_metal_command_buffer* const one = command_buffer();
        mpsforge_metal_encoder* const on = encoder();
        const mpsforge_metal_binding bindings[] = {{buffer(), choices_.size()}, {buffer(), 0}};
        const size_t length = choices_.size();
        return api.mps_encode(kernel, one, on, "kernel", bindings, 2, read_.data(), length, 1);
      }
      case 45:
        return events_.put(place(), choices_.below(4) != 0 ? api.event_create(device_, "event") : nullptr);
      case 46: {
        mpsforge_metal_event* const one = event();
        (void)api.event_value(one);
        return api.event_set(one, choices_.below(4));
      }
      case 47: {
        mpsforge_metal_event* const one = event();
        (void)api.event_wait(one, choices_.below(4), static_cast<int64_t>(choices_.below(3)) - 1);
        return;
      }
      case 48: {
        mpsforge_metal_event* const one = event();
        return api.event_notify(one, choices_.below(4), nothing, nullptr);
      }
      case 49:
        // What the thread is inside of is not to be released by itself.
        if (depth_ > 0) return;
        return serial_queues_.put(place(), choices_.below(4) != 0 ? api.serial_create(device_, "serial") : nullptr);
      case 50: {
        mpsforge_metal_serial_queue* const queue = serial_queues_[any()];
        (void)api.serial_is_current(queue);
        api.serial_async(queue, nothing, nullptr);
        if (depth_ < kDepth) api.serial_sync(queue, deeper, this);
        return;
      }
      default: {
        mpsforge_metal_command_buffer* const one = command_buffer();
        mpsforge_metal_times times;
        api.times(one, &times);
        (void)api.is_root(one, command_buffer());
        (void)api.keep(one, read_.data(), nothing, static_cast<int>(choices_.below(2)));
        (void)api.encoder_keep(encoder(), read_.data(), nothing);
      }
    }
  }

  Choices choices_;
  int depth_ = 0;
  mpsforge_metal_device* device_;
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(kMemory), read_ = memory_;
  Set<mpsforge_metal_buffer> buffers_{api.buffer_release};
  Set<mpsforge_metal_queue> queues_{api.queue_release};
  Set<mpsforge_metal_command_buffer> command_buffers_{api.command_buffer_release};
  Set<mpsforge_metal_encoder> encoders_{api.encoder_release};
  Set<mpsforge_metal_mps_kernel> kernels_{api.mps_release};
  Set<mpsforge_metal_event> events_{api.event_release};
  Set<mpsforge_metal_serial_queue> serial_queues_{api.serial_release};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 512) return 0;
  Session(Choices(data, size)).run();
  return 0;
}
