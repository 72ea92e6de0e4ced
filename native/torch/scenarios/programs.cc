// Programs of the reference pool (native/script/script.h) on PyTorch's sources. A process has one device and one pool,
// so what a program says of either must hold for the process.
#import <Metal/Metal.h>
#include <mpsforge/host.h>

#include <fstream>
#include <sstream>

#include "scenarios.h"
#include "script/json.h"
#include "script/world.h"

extern "C" const mpsforge_pool_api* mpsforge_hostmps_pool();

namespace mpsforge::script {
namespace {

const mpsforge_metal_api& process_metal() {
  static mpsforge_metal_api api{};
  api.abi = MPSFORGE_METAL_ABI;
  // There is one, which differs from another by its configuration alone.
  api.device_create = [](const mpsforge_metal_config* config) -> mpsforge_metal_device* {
    static char device;
    const bool as_it_is = config->max_uncompleted == 0 && config->macos == 0 && config->graph_split == 0;
    return as_it_is ? reinterpret_cast<mpsforge_metal_device*>(&device) : nullptr;
  };
  api.device_close = api.device_release = [](mpsforge_metal_device*) {};
  api.findings = [](mpsforge_metal_device*, mpsforge_metal_finding*, size_t) -> size_t { return 0; };  // main.cc's
  api.statistics = [](mpsforge_metal_device*, mpsforge_metal_statistics*) {};
  api.name_thread = [](mpsforge_metal_device*, const char* name) { mpsforge_host_name_thread(name); };
  api.order_release = [](mpsforge_metal_device*, const void* object) { mpsforge_host_order_release(object); };
  api.order_acquire = [](mpsforge_metal_device*, const void* object) { mpsforge_host_order_acquire(object); };
  api.encode_wait = [](mpsforge_metal_command_buffer* buffer, mpsforge_metal_event* event, uint64_t value) {
    [reinterpret_cast<id<MTLCommandBuffer>>(buffer) encodeWaitForEvent:reinterpret_cast<id<MTLSharedEvent>>(event)
                                                                 value:value];
  };
  return api;
}

}  // namespace

// Those that programs over a pool need.
const std::map<std::string, Verb>& metal_verbs() {
  static const std::map<std::string, Verb> verbs = {
      {"shared_event",
       [](Context& c, Arguments& a) {
         const std::string& name = a.word();
         c.world.put(name, {"shared event", [MTLCreateSystemDefaultDevice() newSharedEvent],
                            [](World&, void* event) { [static_cast<id<MTLSharedEvent>>(event) release]; }});
       }},
      {"event.set",
       [](Context& c, Arguments& a) {
         auto event = static_cast<id<MTLSharedEvent>>(c.world.get<void>(a.word(), "shared event"));
         event.signaledValue = a.number();
       }},
  };
  return verbs;
}

}  // namespace mpsforge::script

namespace mpsforge::hostmps {

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw std::runtime_error(path + " cannot be read");
  return text.str();
}

void run_program(const std::string& path, ProgramResults& results, bool record) {
  script::Program program;
  if (const std::string wrong = script::parse(read_file(path), program); !wrong.empty()) {
    throw std::runtime_error(path + ", " + wrong);
  }
  mpsforge_script_options options{};
  options.metal = &script::process_metal();
  options.pool = mpsforge_hostmps_pool();
  options.record = record;
  script::World world(program, options, /*seed=*/1);
  world.run();
  for (const std::string& failure : world.failures) {
    results.errors += (results.errors.empty() ? "" : ",") + quoted(failure);
  }
  results.steps += world.progress;
  for (const auto& [thread, steps] : world.records) {
    for (const script::Record& step : steps) {
      results.records += (results.records.empty() ? "" : ",") + std::string("{\"thread\":") + quoted(thread) +
                         ",\"line\":" + std::to_string(step.line) + ",\"start\":" + std::to_string(step.start) +
                         ",\"end\":" + std::to_string(step.end) + ",\"value\":" + std::to_string(step.value) + "}";
    }
  }
}

}  // namespace

ProgramResults run_programs(const std::vector<std::string>& paths, bool record) {
  if (!mpsforge_hostmps_pool()) throw std::runtime_error("these sources have no guards, so there is no pool");
  ProgramResults results;
  for (const std::string& path : paths) run_program(path, results, record);
  return results;
}

}  // namespace mpsforge::hostmps
