// The C ABI of a stream pool over the software Metal (native/pool/pool.h): an input is the pool's settings and a list
// of calls by one thread. Nothing ends the process or keeps it from ending; while the thread keeps to one stream its
// tensors have the values that a plain loop gives.
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "../metal/metal.h"
#include "../pool/pool.h"
#include "../script/choices.h"

namespace {

using mpsforge::script::Choices;
using mpsforge::script::demand;

const mpsforge_metal_api& metal = *mpsforge_metal_software();
const mpsforge_pool_api& api = *mpsforge_pool_reference();

constexpr size_t kObjects = 4;
constexpr int kDepth = 3;

struct Tensor {
  mpsforge_pool_tensor* handle = nullptr;
  std::vector<uint32_t> values;  // not known: empty
  size_t elements = 0;
};

class Session {
 public:
  explicit Session(Choices choices) : choices_(choices) {
    static const char* const settings[] = {
        "PYTORCH_MPS_STREAM_POOL_SIZE=", "PYTORCH_MPS_STREAM_POOL_EXHAUSTED=",
        "PYTORCH_MPS_STREAM_POOL_EXHAUSTED=wait:", "PYTORCH_MPS_STREAM_PER_THREAD=", "PYTORCH_MPS_GRAPH_CACHE_SIZE="};
    std::string environment;
    for (auto count = choices_.below(3); count > 0; --count) {
      environment += settings[choices_.below(5)];
      environment += choices_.text(choices_.below(4)) + "\n";
    }
    mpsforge_metal_config config{};
    config.check_order = choices_.below(2);
    config.watchdog_ms = 5000;  // a deadlock is the pool's fault
    config.models = MPSFORGE_METAL_MODEL_ALL;
    device_ = metal.device_create(&config);
    const mpsforge_pool_config pool{&metal, device_, environment.c_str(), nullptr, nullptr};
    pool_ = api.create(&pool);
    demand(pool_ != nullptr, "there is a pool");
  }

  void run() {
    while (choices_.more()) step();
    for (Tensor& tensor : tensors_) api.free_tensor(tensor.handle);
    for (mpsforge_pool_event* event : events_) {
      if (event) api.event_destroy(event);
    }
    api.destroy(pool_);
    metal.device_close(device_);
    mpsforge_metal_finding found;
    if (metal.findings(device_, &found, 1) > 0 && found.kind == MPSFORGE_METAL_DEADLOCK) demand(false, found.message);
    metal.device_release(device_);
  }

 private:
  Tensor& tensor() { return tensors_[choices_.below(kObjects)]; }
  // The default one, a worker's, an explicit one, and one that there is not.
  uint32_t stream() { return choices_.below(80); }
  static void deeper(void* self) {
    auto* session = static_cast<Session*>(self);
    ++session->depth_;
    for (auto steps = session->choices_.below(6); steps > 0; --steps) session->step();
    --session->depth_;
  }
  static void nothing(void*) {}
  void check(int result) {
    if (result != 0) demand(std::strlen(api.last_error()) > 0, "a failure has a text");
  }
  // From now on the order between streams decides.
  void forget() {
    one_stream_ = false;
    for (Tensor& each : tensors_) each.values.clear();
  }

  void operate() {
    static const char* const names[] = {"fill", "copy", "add", "multiply", "scale", "increment", "none"};
    static constexpr size_t inputs[] = {0, 1, 2, 2, 1, 0, 0};
    const auto which = choices_.below(7);
    Tensor *const first = &tensor(), *const second = &tensor(), *const out = &tensor();
    if (!first->handle || !second->handle || !out->handle) return;
    mpsforge_pool_tensor* const handles[] = {first->handle, second->handle};
    mpsforge_pool_operator op{choices_.below(5), names[which], handles,
                              inputs[which],     out->handle,  static_cast<int32_t>(choices_.byte() * 0x01010101u),
                              choices_.below(3)};
    if (choices_.below(16) == 0) op.input_count = 2;
    const int result = api.operate(pool_, &op);
    check(result);
    if (result != 0 || !one_stream_) return;
    const auto value = static_cast<uint32_t>(op.value);
    if (which != 0 && ((which != 5 && first->values.empty()) || (op.input_count == 2 && second->values.empty()) ||
                       (which == 5 && out->values.empty()))) {
      out->values.clear();
      return;
    }
    std::vector<uint32_t> values(out->elements);
    for (size_t i = 0; i < values.size(); ++i) {
      switch (which) {
        case 0:
          values[i] = value;
          break;
        case 1:
          values[i] = first->values[i];
          break;
        case 2:
          values[i] = first->values[i] + second->values[i];
          break;
        case 3:
          values[i] = first->values[i] * second->values[i];
          break;
        case 4:
          values[i] = first->values[i] * value;
          break;
        default:
          values[i] = out->values[i] + value;
      }
    }
    out->values = std::move(values);
  }

  void read() {
    Tensor& from = tensor();
    if (!from.handle) return;
    if (choices_.below(8) == 0) {  // goes while the copy is under way
      mpsforge_pool_host* const host = api.host_create(pool_, choices_.below(4) == 0 ? 4 : from.elements);
      check(host ? api.copy_to_host(from.handle, host) : -1);
      api.host_destroy(host);
    }
    std::vector<int32_t> values(from.elements);
    const int result = api.read(from.handle, values.data());
    check(result);
    if (result != 0 || from.values.empty()) return;
    demand(std::memcmp(values.data(), from.values.data(), values.size() * sizeof(int32_t)) == 0,
           "a tensor has the values of a plain loop");
  }

  void write() {
    Tensor& to = tensor();
    if (!to.handle) return;
    std::vector<uint32_t> values(to.elements, choices_.byte());
    const int result = api.write(to.handle, reinterpret_cast<const int32_t*>(values.data()));
    check(result);
    if (one_stream_) to.values = result == 0 ? std::move(values) : std::vector<uint32_t>();
  }

  void make(Tensor& place) {
    if (depth_ == 0 || !place.handle) {
      api.free_tensor(place.handle);
      place = {};
      place.elements = choices_.below(4) == 0 ? choices_.size() : 4;
      if (place.elements > 4096 && place.elements < SIZE_MAX / 4) place.elements = 4;  // memory that there is
      place.handle = api.empty(pool_, place.elements, static_cast<int>(choices_.below(2)));
      check(place.handle ? 0 : -1);
    }
  }

  void events() {
    mpsforge_pool_event*& event = events_[choices_.below(2)];
    mpsforge_pool_event* const other = events_[choices_.below(2)];
    if (!event) {
      event = api.event_create(pool_, static_cast<int>(choices_.below(2)));
      return;
    }
    int complete = 0;
    double milliseconds = 0;
    switch (choices_.below(6)) {
      case 0:
        return check(api.event_record(event, stream()));
      case 1:
        return check(api.event_wait(event, stream()));
      case 2:
        return check(api.event_query(event, &complete));
      case 3:
        return check(api.event_synchronize(event));
      case 4:
        return check(other ? api.event_elapsed(event, other, &milliseconds) : 0);
      default:
        if (depth_ == 0) api.event_destroy(std::exchange(event, nullptr));
    }
  }

  void step() {
    switch (choices_.below(25)) {
      case 0:
      case 1:
        return make(tensor());
      case 2:
      case 3:
      case 4:
      case 5:
        return operate();
      case 6:
        return read();
      case 7:
        return write();
      case 8:
        forget();
        return check(api.set_current_stream(pool_, stream(), choices_.below(2) != 0, &token_));
      case 9:
        forget();
        switch (choices_.below(3)) {
          case 0:
            return check(api.reset_stream(pool_));
          case 1:
            return check(api.restore_stream(pool_, token_, 1));
          default:
            return check(api.restore_stream(pool_, 2 * stream() + choices_.below(2), 1));
        }
      case 10: {
        uint32_t given = 0;
        (void)api.stream_from_pool(pool_);
        (void)api.current_stream(pool_);
        (void)api.has_stream(pool_);
        return check(api.working_stream(pool_, &given));
      }
      case 11:
        return check(api.release_stream_slot(pool_));
      case 12: {
        Tensor& freed = tensor();
        if (depth_ > 0) return;  // what is around may use it
        api.free_tensor(freed.handle);
        freed = {};
        return;
      }
      case 13: {
        const Tensor& used = tensor();
        return check(used.handle ? api.record_stream(used.handle, stream()) : 0);
      }
      case 14: {
        if (depth_ >= kDepth) return;
        const mpsforge_pool_use uses[] = {{tensor().handle, static_cast<int>(choices_.below(2))}, {tensor().handle, 0}};
        const size_t count = !uses[0].tensor ? 0 : !uses[1].tensor ? 1 : 2;
        return check((choices_.below(2) != 0 ? api.guard : api.fallback)(pool_, uses, count, deeper, this));
      }
      case 15:
        return check(depth_ < kDepth ? api.suspended(pool_, deeper, this) : 0);
      case 16:
        if (depth_ >= kDepth) return;
        forget();
        return check(api.on_queue(pool_, stream(), deeper, this));
      case 17:
        return check(api.synchronize(pool_, stream()));
      case 18:
        return check(api.synchronize_device(pool_));
      case 19:
        return check(api.commit(pool_, stream()));
      case 20: {
        int complete = 0;
        (void)api.stream_commits(pool_, stream());
        return check(api.query_stream(pool_, stream(), &complete));
      }
      case 21:
        forget();
        (void)api.command_buffer(pool_, stream());
        (void)api.command_encoder(pool_, stream());
        return;
      case 22:
        return check(api.add_completed_handler(pool_, stream(), nothing, nullptr));
      case 23:
        return events();
      default: {
        mpsforge_pool_statistics statistics;
        char text[64];
        api.statistics(pool_, &statistics);
        (void)api.warnings(pool_, text, choices_.below(64));
        check(api.profiler(pool_, static_cast<int>(choices_.below(2))));
        return check(api.empty_cache(pool_));
      }
    }
  }

  Choices choices_;
  int depth_ = 0;
  bool one_stream_ = true;
  uint32_t token_ = 0;
  mpsforge_metal_device* device_;
  mpsforge_pool* pool_;
  std::array<Tensor, kObjects> tensors_;
  std::array<mpsforge_pool_event*, 2> events_{};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 512) return 0;
  Session(Choices(data, size)).run();
  return 0;
}
