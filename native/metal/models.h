// Models of what Apple's kernel classes do not bear when several threads encode them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "handle.h"
#include "metal.h"
#include "threads.h"

struct mpsforge_metal_mps_kernel;

namespace mpsforge::metal {

struct Argument;

// The encodes that are under way on a device. Has its own lock: the device's is taken inside of a window, which makes
// that a scheduling point where another thread can enter its own.
class Windows {
 public:
  struct Window {
    const mpsforge_metal_mps_kernel* kernel;
    ThreadPointer thread;
  };
  using Place = std::list<Window>::iterator;

  // False, after a finding, if a model forbids it while the others are under way.
  bool enter(const mpsforge_metal_mps_kernel& kernel, const ThreadPointer& thread, Place* place);
  void leave(Place place);
  // Whether MPSGraph splits the command buffer at this encode; every as graph_split of mpsforge_metal_config.
  bool splits(uint32_t every, uint64_t seed);

 private:
  std::mutex mutex_;
  std::list<Window> open_;
  uint64_t graphs_ = 0;
};

}  // namespace mpsforge::metal

struct mpsforge_metal_mps_kernel : mpsforge::metal::Handle {
  mpsforge_metal_mps_kernel(std::shared_ptr<mpsforge::metal::Device> device, uint32_t mps_class,
                            const std::string& name);
  std::string label() const override { return name; }
  // What metal.h's mps_encode does. The buffer has a root; encoder may be nullptr.
  void encode(mpsforge_metal_command_buffer& buffer, mpsforge_metal_encoder* encoder, const char* kernel_name,
              std::vector<mpsforge::metal::Argument> arguments, uint64_t threads);

  const std::shared_ptr<mpsforge::metal::Device> device;
  const uint32_t mps_class;
  const std::string name;

 private:
  const std::shared_ptr<mpsforge::metal::Shadow> uses_;  // null: the model is off
  std::atomic<uint64_t> encodes_{0};                     // of delays
  void encode_in_window(mpsforge_metal_command_buffer& buffer, mpsforge_metal_encoder* encoder, const char* kernel_name,
                        std::vector<mpsforge::metal::Argument> arguments, uint64_t threads,
                        const mpsforge::metal::ThreadPointer& thread);
};
