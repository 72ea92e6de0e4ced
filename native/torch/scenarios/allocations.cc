// Memory that runs out in PyTorch's MPS sources: the exception reaches who called, and what is tried again is right.
#include <c10/core/Event.h>
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "scenarios.h"

namespace mpsforge::hostmps {
namespace {

thread_local int allocations_left = 0;  // until one fails; 0: none will

// Of the library that holds the host build's MPS sources, and with them its function for failing command buffers.
const void* library_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

[[maybe_unused]] bool fails_for(const void* caller) {
  if (allocations_left == 0) return false;
  static const void* const sources = library_of(reinterpret_cast<void*>(&mpsforge_hostmps_fail_command_buffer));
  return library_of(caller) == sources && --allocations_left == 0;
}

}  // namespace
}  // namespace mpsforge::hostmps

#if !__has_feature(thread_sanitizer)  // which has its own
// In place of the C++ library's, for the whole process.
void* operator new(size_t size) {
  using namespace mpsforge::hostmps;
  void* const memory = fails_for(__builtin_return_address(0)) ? nullptr : std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#endif

namespace mpsforge::hostmps {
namespace {

struct Place {
  const char* name;
  std::function<at::Tensor(const at::Tensor&)> compute;  // of 8 by 8 ones
  double each;                                           // value of the result
};

const std::vector<Place>& places() {
  static const std::vector<Place> all = {
      {"a kernel", [](const at::Tensor& ones) { return at::add(ones, 1.0); }, 2.0},
      {"a graph", [](const at::Tensor& ones) { return at::sum(ones, 0); }, 8.0},
      {"a matrix product", [](const at::Tensor& ones) { return at::mm(ones, ones); }, 8.0},
      {"a fill", [](const at::Tensor& ones) { return at::zeros_like(ones); }, 0.0},
      {"a copy to the GPU", [](const at::Tensor&) { return at::ones({8}).to(at::kMPS); }, 1.0},
      {"a copy from the GPU", [](const at::Tensor& ones) { return ones.cpu(); }, 1.0},
      {"a cast on its way from the GPU", [](const at::Tensor& ones) { return ones.to(at::kCPU, at::kInt); }, 1.0},
      {"indices that are counted", [](const at::Tensor& ones) { return at::nonzero(ones).select(1, 0).eq(0); }, 0.125},
      {"a wait for the stream",
       [](const at::Tensor& ones) {
         const at::Tensor sums = at::add(ones, 1.0);
         stream_of_thread().synchronize();
         return sums;
       },
       2.0},
      {"an event",
       [](const at::Tensor& ones) {
         const at::Tensor sums = at::add(ones, 1.0);
         c10::Event event(at::kMPS);
         event.record(stream_of_thread());
         event.block(stream_of_thread());
         event.synchronize();
         return sums;
       },
       2.0},
      {"work of another thread",
       [](const at::Tensor& ones) {
         at::Tensor sums;
         std::thread([&] { sums = at::add(ones, 1.0); }).join();
         return at::add(sums, 1.0);
       },
       3.0},
  };
  return all;
}

enum class Raised { nothing, the_failure, other };

// Whether the call raises that a command buffer has failed.
Raised raised_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return std::strstr(error.what(), "The GPU failed to execute") ? Raised::the_failure : Raised::other;
  }
  return Raised::nothing;
}

// Whether an allocation failed on the way to the place's end.
bool fails(const Place& place, const at::Tensor& ones, int allocation) {
  allocations_left = allocation;
  try {
    place.compute(ones);
  } catch (const std::exception&) {
  }
  const bool failed = allocations_left == 0;
  allocations_left = 0;
  return failed;
}

// So does the exception of a command buffer that fails, whatever could not be allocated on its way.
SCENARIO(allocation_failures) {
  at::globalContext().hasMPS();
  const at::Tensor ones = at::ones({8, 8}, kMPS);
  run.in_parallel([&](int) {
    for (const Place& place : places()) {
      for (int allocation = 1; fails(place, ones, allocation); ++allocation) {
        raise_all<std::exception>();
        run.expect_close(place.name, at::mean(place.compute(ones).to(at::kCPU, at::kFloat)), at::full({}, place.each));
      }
    }
  });
  for (const Place& place : places()) {
    bool failed = true;
    for (int allocation = 1; failed; ++allocation) {
      mpsforge_hostmps_fail_command_buffer(1);
      allocations_left = allocation;
      Raised raised = raised_by([&] { place.compute(ones); });
      failed = allocations_left == 0;
      allocations_left = 0;
      // what could not be allocated may be raised first
      while (raised != Raised::the_failure) {
        raised = raised_by([] {
          at::add(at::ones({8}, kMPS), 1.0);
          hooks().deviceSynchronize();
        });
        if (raised == Raised::nothing) break;
      }
      run.expect(raised == Raised::the_failure, std::string(place.name) + ": nobody hears of the work that failed");
      raise_all<std::exception>();
    }
  }
}

}  // namespace
}  // namespace mpsforge::hostmps
