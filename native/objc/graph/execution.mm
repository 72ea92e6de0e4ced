// One encode of a graph, from the call to the dispatch that the GPU runs.
#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>

#include "../engine.h"
#include "../record.h"
#include "arrays.h"
#include "evaluator_hook.h"

namespace mpsforge::graph {
namespace {

using objc::api;
using objc::EngineCall;
using objc::fail;

constexpr char kKernel[] = "mpsforge software MPSGraph";

struct Operand {
  size_t offset;
  DataType type;
  Shape shape;
  Shape strides;
};

// Made by the encoding thread, which gives it to the command buffer; the dispatch has its address.
struct Execution {
  Plan plan;
  std::vector<Operand> operands;  // the feeds, then the results
  size_t feeds;
};

// The command buffer's root gives it back when its work has ended, or when nobody commits it.
void delete_execution(void* execution) {
  const EngineCall blind;
  delete static_cast<const Execution*>(execution);
}

// Declares each run of adjacent elements, so that two commands on interleaved views do not look like a race; of a view
// with very many runs, the whole range. Returns the first element.
void* declare(mpsforge_metal_call* call, uint32_t index, const Operand& operand, uint32_t access) {
  constexpr int64_t kMostRuns = 256;
  if (element_count(operand.shape) == 0) return nullptr;
  const size_t bytes = bytes_of(operand.type);
  size_t inner = operand.shape.size();  // dimensions from here on are adjacent
  int64_t run = 1;
  while (inner > 0 && (operand.shape[inner - 1] == 1 || operand.strides[inner - 1] == run))
    run *= operand.shape[--inner];
  const Shape outer(operand.shape.begin(), operand.shape.begin() + static_cast<int64_t>(inner));
  if (element_count(outer) > kMostRuns) {
    int64_t last = 0;
    for (size_t i = 0; i < operand.shape.size(); ++i) last += (operand.shape[i] - 1) * operand.strides[i];
    return api().argument(call, index, operand.offset, (static_cast<size_t>(last) + 1) * bytes, access);
  }
  void* first = nullptr;
  for (int64_t i = 0; i < element_count(outer); ++i) {
    int64_t rest = i, position = 0;
    for (size_t j = inner; j-- > 0; rest /= outer[j]) position += rest % outer[j] * operand.strides[j];
    void* const data = api().argument(call, index, operand.offset + static_cast<size_t>(position) * bytes,
                                      static_cast<size_t>(run) * bytes, access);
    if (!data) return nullptr;
    if (i == 0) first = data;
  }
  return first;
}

// On the engine's executor. The engine's checker learns what it accesses; ThreadSanitizer does not, since the GPU is
// no thread of the program.
void run(mpsforge_metal_call* call) {
  const EngineCall blind;
  // The bytes come after the bindings; the number of threads, which means nothing else here, is the offset.
  const auto index = static_cast<uint32_t>(api().threads(call) - 1);
  size_t length = 0;
  const void* const bytes = api().bytes(call, index, &length);
  const Execution* execution = nullptr;
  if (!bytes || length != sizeof execution) fail("MPSGraph: its dispatch has no execution");
  std::memcpy(&execution, bytes, sizeof execution);
  const size_t feeds = execution->feeds;
  std::vector<View> views;
  for (size_t i = 0; i < execution->operands.size(); ++i) {
    const Operand& operand = execution->operands[i];
    void* const data =
        declare(call, static_cast<uint32_t>(i), operand, i < feeds ? MPSFORGE_METAL_READ : MPSFORGE_METAL_WRITE);
    if (!data && element_count(operand.shape) != 0) return;  // the engine has reported why
    views.push_back({data, operand.type, operand.shape, operand.strides});
  }
  const auto middle = views.begin() + static_cast<int64_t>(feeds);
  try {
    evaluator()->run(execution->plan, {views.begin(), middle}, {middle, views.end()});
  } catch (const std::exception& error) {
    fail("MPSGraph execution failed: %s", error.what());
  }
}

void add_kernel() {
  static std::once_flag once;
  std::call_once(once, [] {
    const mpsforge_metal_kernel kernel = {kKernel, run, ""};
    api().add_kernel(objc::device(), &kernel);
  });
}

std::string describe(DataType type, const Shape& shape) { return name_of(type) + text_of(shape); }

// A length of -1 fits any. A tensor without dimensions and one of a single element are the same in MPSGraph's feeds.
bool fits(const Shape& expected, const Shape& given) {
  if (element_count(given) == 1 && (expected.empty() || given.empty())) {
    return std::all_of(expected.begin(), expected.end(), [](int64_t n) { return n == 1 || n == -1; });
  }
  return std::equal(expected.begin(), expected.end(), given.begin(), given.end(),
                    [](int64_t one, int64_t other) { return one == other || one < 0; });
}

// PyTorch reads a result into memory of another shape with as many elements, and a constant of one element into memory
// of any shape, which it fills.
bool fits_target(const Shape& computed, const Shape& memory) {
  const bool known = std::none_of(computed.begin(), computed.end(), [](int64_t n) { return n < 0; });
  if (!known) return fits(computed, memory);
  return element_count(computed) == element_count(memory) || element_count(computed) == 1;
}

// MPSGraph converts what it writes to the type of the memory. Apple's words do not say so; PyTorch relies on it: it
// reads the Int32 indices of nonZeroIndices, topK and argSort into Int64 (Indexing.mm, Sort.mm), truth values into
// UInt8 (any and all, ReduceOps.mm), Float32 into Float16 and BFloat16 (logit, topk), and its tests pass on a Mac.
// Nothing shows that numbers with a fraction become whole ones.
bool converts(DataType computed, DataType memory) {
  const auto kind = [](DataType type) {
    switch (type) {
      case DataType::Float32:
      case DataType::Float16:
      case DataType::BFloat16:
        return 1;
      case DataType::ComplexFloat32:
      case DataType::ComplexFloat16:
        return 2;
      default:
        return 0;
    }
  };
  return kind(computed) == kind(memory);
}

// What one encode computes, for the record.
std::string describe(const Plan& plan, const std::vector<Memory>& feeds, const std::vector<Memory>& results) {
  std::string text = "graph";
  for (const NodePointer& node : plan.nodes) text += " " + node->operation;
  text += ":";
  for (const Memory& memory : feeds) text += " " + describe(memory.type, memory.shape);
  text += " ->";
  for (const Memory& memory : results) text += " " + describe(memory.type, memory.shape);
  return text;
}

bool fits_sized(const Shape& computed, const Shape& memory) { return computed.size() == memory.size(); }

void check(const char* what, const Input& input, const Memory& memory, bool target) {
  const Value& value = input.node->results.at(input.result);
  bool (*rule)(const Shape&, const Shape&) = target ? fits_target : fits;
  if (target && sized_by_memory(*input.node)) rule = fits_sized;
  const bool same = target ? converts(value.type, memory.type) : value.type == memory.type;
  if (!same || (value.shape && !rule(*value.shape, memory.shape))) {
    fail("MPSGraph: %s of type %s has data of type %s", what,
         (name_of(value.type) + (value.shape ? text_of(*value.shape) : "[?]")).c_str(),
         describe(memory.type, memory.shape).c_str());
  }
  const size_t end = end_of(memory);
  if (end == 0) return;
  if (memory.buffer == nil) fail("MPSGraph: %s has no buffer", what);
  if (end > [memory.buffer length]) {
    fail("MPSGraph: %s of type %s at offset %zu ends at byte %zu of a buffer of %zu bytes", what,
         describe(memory.type, memory.shape).c_str(), memory.offset, end, static_cast<size_t>([memory.buffer length]));
  }
}

}  // namespace

Shape packed_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t length : shape) count *= length;
  return count;
}

size_t end_of(const Memory& memory) {
  if (element_count(memory.shape) == 0) return 0;
  int64_t last = 0;
  for (size_t i = 0; i < memory.shape.size(); ++i) last += (memory.shape[i] - 1) * memory.strides[i];
  return memory.offset + (static_cast<size_t>(last) + 1) * bytes_of(memory.type);
}

std::optional<Shape> strides_of_view(const Shape& shape, const Shape& strides, const Shape& wanted) {
  if (element_count(shape) != element_count(wanted)) return std::nullopt;
  if (element_count(shape) == 0) return packed_strides(wanted);
  Shape result(wanted.size(), 1);
  // From the last dimension: merge dimensions whose elements are adjacent into a group, and split the group into the
  // wanted ones.
  size_t next = wanted.size();
  for (size_t i = shape.size(); i > 0;) {
    int64_t group = shape[--i];
    const int64_t stride = strides[i];
    while (i > 0 && (shape[i - 1] == 1 || group == 1 || strides[i - 1] == stride * group)) {
      if (group == 1 && shape[i - 1] != 1) break;
      group *= shape[--i];
    }
    int64_t rest = group;
    while (next > 0 && rest % wanted[next - 1] == 0 && (rest > 1 || wanted[next - 1] == 1)) {
      result[--next] = stride * (group / rest);
      rest /= wanted[next];
    }
    if (rest != 1) return std::nullopt;
  }
  while (next > 0) {
    if (wanted[--next] != 1) return std::nullopt;
  }
  return result;
}

void encode(mpsforge_metal_mps_kernel* kernel, id<MTLCommandBuffer> command_buffer,
            id<MTLComputeCommandEncoder> encoder, Plan plan, const std::vector<Memory>& feeds,
            const std::vector<Memory>& results) {
  if (command_buffer == nil) fail("MPSGraph: encoded to no command buffer");
  for (size_t i = 0; i < feeds.size(); ++i) {
    check("a placeholder", plan.feeds[i], feeds[i], false);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    check("a target tensor", plan.targets[i], results[i], true);
  }
  if (objc::environment().record) objc::record(describe(plan, feeds, results));
  std::vector<mpsforge_metal_binding> bindings;
  auto execution = std::make_unique<Execution>();
  execution->plan = std::move(plan);
  execution->feeds = feeds.size();
  for (const auto* memories : {&feeds, &results}) {
    for (const Memory& memory : *memories) {
      if (memory.buffer != nil) objc::keep_until_completed(command_buffer, memory.buffer);
      bindings.push_back({objc::engine_buffer(memory.buffer), 0});
      execution->operands.push_back({memory.offset, memory.type, memory.shape, memory.strides});
    }
  }
  mpsforge_metal_command_buffer* const target = objc::engine_command_buffer(command_buffer);
  mpsforge_metal_encoder* const open = objc::engine_encoder(encoder);
  const EngineCall call;
  add_kernel();
  // A command buffer that has ended keeps nothing, and the engine refuses the dispatch.
  Execution* const address = execution.get();
  if (api().keep(target, address, delete_execution, 0)) execution.release();
  api().mps_encode(kernel, target, open, kKernel, bindings.data(), bindings.size(), &address, sizeof address,
                   bindings.size() + 1);
}

}  // namespace mpsforge::graph
