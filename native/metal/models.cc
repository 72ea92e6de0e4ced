#include "models.h"

#include <utility>

#include "command_buffer.h"
#include "device.h"
#include "encoder.h"
#include "queue.h"
#include "random.h"

namespace mpsforge::metal {
namespace {

constexpr uint64_t kSplits = uint64_t{1} << 63;

struct Observation {
  uint32_t bit;
  uint32_t signature;
  const char* message;
};

// Metal rule 29, from a field report (a table of crashes of PyTorch layers used by several threads, and its causes);
// signature 10: the class as a whole does not bear it, whichever instance, command buffer or queue. The assertion's
// method is not public.
constexpr Observation kMatrix = {MPSFORGE_METAL_MODEL_MATRIX, 10,
                                 "-[MPSNDArrayMatrixMultiplication encode]: failed assertion `A and B index not "
                                 "found'"};
// Metal rule 30, from the same report ("MPS Graph Compiler: not thread-safe"); signature 11.
constexpr Observation kGraph = {MPSFORGE_METAL_MODEL_GRAPH, 11, "Invalid KernelDAG, Number of core ops should be 1"};
// Metal rule 31, after Apple's header MPSCore/MPSKernel.h: an MPSKernel is not entirely thread-safe,
// and one on several command buffers must be treated as immutable. No text is known.
constexpr Observation kObject = {MPSFORGE_METAL_MODEL_KERNEL_OBJECT, 0, "one MPSKernel encoded by two threads at once"};

std::string describe(const mpsforge_metal_mps_kernel& kernel, const ThreadPointer& thread) {
  return Call{"mps_encode", thread, 0, nullptr}.text() + " of " + kernel.name;
}

// The observation that the models make of two threads in their encodes, or nullptr.
const Observation* observe(const mpsforge_metal_mps_kernel& one, const mpsforge_metal_mps_kernel& other) {
  const uint32_t models = one.device->config.models;
  const bool matrices = one.mps_class == MPSFORGE_METAL_MPS_MATRIX && other.mps_class == MPSFORGE_METAL_MPS_MATRIX;
  if (matrices && (models & kMatrix.bit)) return &kMatrix;
  if (&one != &other) return nullptr;
  if (one.mps_class == MPSFORGE_METAL_MPS_GRAPH && (models & kGraph.bit)) return &kGraph;
  return models & kObject.bit ? &kObject : nullptr;
}

}  // namespace

bool Windows::enter(const mpsforge_metal_mps_kernel& kernel, const ThreadPointer& thread, Place* place) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Window& window : open_) {
    if (window.thread == thread) continue;
    if (const Observation* seen = observe(kernel, *window.kernel)) {
      kernel.device->findings.model(seen->signature, seen->message, describe(*window.kernel, window.thread),
                                    describe(kernel, thread));
      return false;
    }
  }
  *place = open_.insert(open_.end(), {&kernel, thread});
  return true;
}

void Windows::leave(Place place) {
  std::lock_guard<std::mutex> lock(mutex_);
  open_.erase(place);
}

bool Windows::splits(uint32_t every, uint64_t seed) {
  if (every == 0) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  ++graphs_;
  // A sequence that neither queues nor kernels have.
  if (every == MPSFORGE_METAL_SPLIT_BY_SEED) return draw(seed, kSplits, graphs_) % 4 == 0;
  return graphs_ % every == 0;
}

}  // namespace mpsforge::metal

using namespace mpsforge::metal;
using mpsforge::sync::Lock;

mpsforge_metal_mps_kernel::mpsforge_metal_mps_kernel(std::shared_ptr<Device> device, uint32_t mps_class,
                                                     const std::string& name)
    : Handle(HandleKind::Kernel),
      device(std::move(device)),
      mps_class(mps_class),
      name(name.empty() ? "MPS kernel " + std::to_string(this->device->next_object()) : name),
      uses_(this->device->config.models & MPSFORGE_METAL_MODEL_KERNEL_ORDER && mps_class != MPSFORGE_METAL_MPS_GRAPH
                ? this->device->checker.object("MPSKernel " + this->name)
                : nullptr) {}

void mpsforge_metal_mps_kernel::encode(mpsforge_metal_command_buffer& buffer, mpsforge_metal_encoder* encoder,
                                       const char* kernel_name, std::vector<Argument> arguments, uint64_t threads) {
  const ThreadPointer thread = current_thread(*device);
  if (buffer.device != device) {
    device->findings.violation(Rule::OtherDevice, "", describe(*this, thread), buffer.label());
    return;
  }
  if (uses_)
    device->checker.access(thread->actor, uses_.get(), 0, 1, true, {"mps_encode", thread->interned(), "", 0, 0});
  Windows::Place place;
  if (!device->windows.enter(*this, thread, &place)) return;
  // A sequence of delays that no queue has.
  device->delay(~number, encodes_++);
  encode_in_window(buffer, encoder, kernel_name, std::move(arguments), threads, thread);
  device->windows.leave(place);
}

void mpsforge_metal_mps_kernel::encode_in_window(mpsforge_metal_command_buffer& buffer, mpsforge_metal_encoder* encoder,
                                                 const char* kernel_name, std::vector<Argument> arguments,
                                                 uint64_t threads, const ThreadPointer& thread) {
  const auto kernel = device->kernel(kernel_name);
  Lock lock(device->mutex);
  if (!buffer.root) return;
  CommandBuffer& root = *buffer.root;
  const auto call = [&] { return root.call("mps_encode", thread).text(); };
  if (!kernel) {
    device->findings.violation(Rule::UnknownKernel, "", call(), kernel_name);
    return;
  }
  for (const Argument& argument : arguments) {
    if (!argument.buffer) continue;
    if (!root.accepts(*argument.buffer, thread, "mps_encode")) return;
    if (argument.buffer->contains(argument.offset, 0)) continue;
    device->findings.violation(Rule::OutOfRange, "", call(), argument.buffer->describe(argument.offset, 0));
    return;
  }
  if (encoder && (root.open_encoder() != encoder || !encoder->compute)) {
    device->findings.violation(Rule::ForeignEncoder, root.opened().text(), call());
    return;
  }
  // Without an encoder it opens one of its own, and ends it at once.
  if (!encoder && !root.open(this, true, thread, "mps_encode")) return;
  root.add({Dispatch{kernel, std::move(arguments), threads, {{threads, 1, 1}, {1, 1, 1}}, {}, {}}, thread});
  if (encoder) return;
  root.close();
  // MPSGraph may commit by itself while it encodes (metal rule 32).
  if (mps_class == MPSFORGE_METAL_MPS_GRAPH && buffer.mps &&
      device->windows.splits(device->config.graph_split, device->config.seed)) {
    buffer.commit_and_continue(lock, thread, "commit_and_continue of an MPSGraph");
  }
}
