// torch/csrc/mps/Module.cpp of the series, as a C interface.
#include <ATen/core/Tensor.h>
#include <ATen/detail/MPSHooksInterface.h>
#include <ATen/native/mps/MetalShaderLibrary.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <memory>
#include <sstream>
#include <utility>

#include "attempt.h"
#include "streams.h"

using at::native::mps::DynamicMetalShaderLibrary;
using at::native::mps::MetalKernelFunction;

namespace mpsforge::overlay {
namespace {

thread_local std::string failure, kept;

const at::MPSHooksInterface& hooks() { return at::detail::getMPSHooks(); }

#if MPSFORGE_OVERLAY_STREAMS
const c10::impl::VirtualGuardImpl& guard() {
  static const auto& one = *new c10::impl::VirtualGuardImpl(at::kMPS);
  return one;
}

c10::Stream stream_of(int64_t id) { return c10::Stream(c10::Stream::UNSAFE, guard().getDevice(), id); }

std::string lines_of(const std::unordered_map<std::string, uint64_t>& counters) {
  std::ostringstream lines;
  for (const auto& [name, value] : counters) lines << name << '\t' << value << '\n';
  return lines.str();
}
#endif

using Library = std::shared_ptr<DynamicMetalShaderLibrary>;
using Kernel = std::shared_ptr<MetalKernelFunction>;

}  // namespace

int attempt(const std::function<void()>& call) noexcept {
  int kind = MPSFORGE_OVERLAY_RUNTIME;
  try {
    call();
    return MPSFORGE_OVERLAY_OK;
  } catch (const c10::ValueError& error) {
    kind = MPSFORGE_OVERLAY_VALUE;
    failure = error.what_without_backtrace();
  } catch (const c10::TypeError& error) {
    kind = MPSFORGE_OVERLAY_TYPE;
    failure = error.what_without_backtrace();
  } catch (const c10::NotImplementedError& error) {
    kind = MPSFORGE_OVERLAY_NOT_IMPLEMENTED;
    failure = error.what_without_backtrace();
  } catch (const c10::Error& error) {
    failure = error.what_without_backtrace();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  return kind;
}

const char* keep(std::string text) {
  kept = std::move(text);
  return kept.c_str();
}

}  // namespace mpsforge::overlay

using namespace mpsforge::overlay;

extern "C" {

const char* mpsforge_overlay_error() { return failure.c_str(); }

int mpsforge_overlay_synchronize() {
  return attempt([] { hooks().deviceSynchronize(); });
}

int mpsforge_overlay_empty_cache() {
  return attempt([] { hooks().emptyCache(); });
}

int mpsforge_overlay_profiler_stop() {
  return attempt([] { hooks().profilerStopTrace(); });
}

int mpsforge_overlay_event_release(uint32_t event) {
  return attempt([&] { hooks().releaseEvent(event); });
}

int mpsforge_overlay_event_record(uint32_t event) {
  return attempt([&] { hooks().recordEvent(event); });
}

int mpsforge_overlay_event_wait(uint32_t event) {
  return attempt([&] { hooks().waitForEvent(event); });
}

int mpsforge_overlay_event_synchronize(uint32_t event) {
  return attempt([&] { hooks().synchronizeEvent(event); });
}

int mpsforge_overlay_event_elapsed(uint32_t from, uint32_t to, double* milliseconds) {
  return attempt([&] { *milliseconds = hooks().elapsedTimeOfEvents(from, to); });
}

#if MPSFORGE_OVERLAY_STREAMS
int mpsforge_overlay_stream_current(int64_t* stream) {
  return attempt([&] {
    at::mps::leaseMPSStream();  // what the next operator will use
    *stream = guard().getStream(guard().getDevice()).id();
  });
}

int mpsforge_overlay_stream_default(int64_t* stream) {
  return attempt([&] { *stream = guard().getDefaultStream(guard().getDevice()).id(); });
}

int mpsforge_overlay_stream_new(int64_t* stream) {
  return attempt([&] { *stream = guard().getNewStream(guard().getDevice()).id(); });
}

int mpsforge_overlay_stream_set(int64_t stream, int64_t before[3]) {
  return attempt([&] {
    const auto was = at::mps::setMPSStream(stream, /*by_program=*/true);
    before[0] = reinterpret_cast<intptr_t>(was.stream);
    before[1] = was.by_program;
    before[2] = 1;
  });
}

int mpsforge_overlay_stream_restore(int64_t before[3]) {
  return attempt([&] {
    if (std::exchange(before[2], 0) == 0) return;
    at::mps::restoreMPSStream({reinterpret_cast<at::mps::MPSStream*>(before[0]), before[1] != 0});
  });
}

int mpsforge_overlay_stream_query(int64_t stream, int* complete) {
  return attempt([&] { *complete = guard().queryStream(stream_of(stream)); });
}

int mpsforge_overlay_stream_release() {
  return attempt([] { at::mps::returnMPSStream(); });
}

int mpsforge_overlay_graph_statistics(const char** text) {
  return attempt([&] { *text = keep(lines_of(at::native::mps::graphCacheStatistics())); });
}

int mpsforge_overlay_stream_statistics(const char** text) {
  return attempt([&] { *text = keep(lines_of(at::mps::getMPSStreamStatistics())); });
}

int mpsforge_overlay_suspend(void** suspension) {
  return attempt([&] { *suspension = new at::mps::MPSOpSuspension; });
}

int mpsforge_overlay_resume(void** suspension) {
  return attempt([&] { delete static_cast<at::mps::MPSOpSuspension*>(std::exchange(*suspension, nullptr)); });
}
#endif

#if MPSFORGE_OVERLAY_EXTRAS
int mpsforge_overlay_external_begin(const void* expected, void** queue) {
  return attempt([&] { *queue = reinterpret_cast<void*>(at::mps::beginMPSExternalWork(expected)); });
}

int mpsforge_overlay_external_end(void** queue) {
  return attempt([&] {
    at::mps::endMPSExternalWork();
    *queue = nullptr;
  });
}
#endif

int mpsforge_overlay_library_new(const char* source, void** library) {
  return attempt([&] { *library = new Library(std::make_shared<DynamicMetalShaderLibrary>(source)); });
}

int mpsforge_overlay_library_names(void* library, const char** text) {
  return attempt([&] {
    std::string lines;
    for (const auto& name : (*static_cast<Library*>(library))->getFunctionNames()) lines += name + '\n';
    *text = keep(std::move(lines));
  });
}

void mpsforge_overlay_library_delete(void* library) { delete static_cast<Library*>(library); }

int mpsforge_overlay_kernel_new(void* library, const char* name, void** kernel) {
  return attempt([&] { *kernel = new Kernel((*static_cast<Library*>(library))->getKernelFunction(name)); });
}

int mpsforge_overlay_kernel_facts(void* kernel, uint64_t facts[3]) {
  return attempt([&] {
    const auto& function = **static_cast<Kernel*>(kernel);
    facts[0] = function.getMaxThreadsPerThreadgroup();
    facts[1] = function.getThreadExecutionWidth();
    facts[2] = function.getStaticThreadGroupMemoryLength();
  });
}

void mpsforge_overlay_kernel_delete(void* kernel) { delete static_cast<Kernel*>(kernel); }

int mpsforge_overlay_kernel_call(void* kernel, const mpsforge_overlay_argument* arguments, size_t count,
                                 const uint64_t* threads, size_t dimensions, const uint64_t* group, size_t groups) {
  return attempt([&] {
    auto& function = **static_cast<Kernel*>(kernel);
    std::vector<at::Tensor> tensors;
    for (size_t i = 0; i < count; ++i) {
      if (!arguments[i].tensor) continue;
      auto* const held = static_cast<c10::TensorImpl*>(arguments[i].tensor);
      tensors.emplace_back(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(held));
    }
#if MPSFORGE_OVERLAY_STREAMS
    // Nothing says which of them the kernel writes.
    const at::mps::MPSOpGuard around({{at::TensorList(tensors), /*writes=*/true}});
#endif
    function.runCommandBlock([&] {
      function.startEncoding();
      size_t next = 0;
      for (size_t i = 0; i < count; ++i) {
        if (arguments[i].tensor) {
          function.setArg(i, tensors[next++]);
        } else {
          function.setArg(i, arguments[i].data, arguments[i].size);
        }
      }
      TORCH_CHECK(dimensions > 0 && dimensions < 4, "Number of threads is undefined or has wrong dimention");
      TORCH_CHECK(groups == 0 || groups == dimensions);
      const c10::ArrayRef<uint64_t> length(threads, dimensions), size(group, groups);
      if (dimensions == 1) {
        function.dispatch(length[0], groups ? std::optional<uint64_t>(size[0]) : std::nullopt);
      } else {
        function.dispatch(length, groups ? c10::OptionalArrayRef<uint64_t>(size) : std::nullopt);
      }
    });
  });
}

}  // extern "C"
