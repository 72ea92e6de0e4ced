// Copies between CPU and MPS, of tensors that several threads share and of views: they move the right numbers, and
// neither change their source nor read it later.
#if __has_include(<ATen/mps/MPSUploads.h>)
#include <ATen/mps/MPSUploads.h>
#endif
#include <c10/core/Event.h>
#include <mpsforge/host.h>
#include <unistd.h>

#include "scenarios.h"

namespace mpsforge::hostmps {
namespace {

// Zeros on the CPU that begin on a page of memory: Metal can write them in place.
at::Tensor on_a_page(at::IntArrayRef sizes, at::ScalarType type) {
  const int64_t page = sysconf(_SC_PAGESIZE), bytes = c10::multiply_integers(sizes) * c10::elementSize(type);
  const at::Tensor all = at::zeros({page + bytes}, at::kByte);
  const int64_t start = page - static_cast<int64_t>(reinterpret_cast<uintptr_t>(all.data_ptr()) % page);
  return all.slice(0, start, start + bytes).view(type).view(sizes);
}

// Threads read one tensor on mps at once, as views and as other types.
SCENARIO(copies_to_cpu) {
  const at::Tensor expected = at::arange(64.0, at::kFloat).view({8, 8});
  const at::Tensor shared = expected.to(at::kMPS);
  run.in_parallel([&](int) {
    for (int i = 0; i < run.iterations; ++i) {
      for (const at::ScalarType type : {at::kHalf, at::kByte, at::kInt, at::kLong}) {
        run.expect_close("rows of another type", shared.slice(0, 2).to(at::kCPU, type), expected.slice(0, 2).to(type));
        run.expect_close("columns of another type", shared.t().to(at::kCPU, type), expected.t().to(type));
        run.expect_close("into a page, of another type", on_a_page({8, 8}, type).copy_(shared), expected.to(type));
      }
      const at::Tensor columns = at::zeros({8, 8}), all = at::zeros({8, 8});
      columns.slice(1, 0, 4).copy_(shared.slice(1, 0, 4));
      all.slice(1, 0, 4).copy_(expected.slice(1, 0, 4));
      run.expect_close("columns into columns", columns, all);
      const at::Tensor transposed = at::zeros({8, 8}).copy_(shared.t(), /*non_blocking=*/true);
      run.expect_close("transposed, non-blocking", transposed, expected.t());
      const at::Tensor back =
          at::zeros({8, 8}).copy_(shared, /*non_blocking=*/true).to(at::kMPS, /*non_blocking=*/true);
      run.expect_close("to the CPU and back, non-blocking", back, expected);
      run.expect_close("the source", shared.cpu(), expected);
      const at::Tensor pair = at::complex(expected, expected + 1.0), here = pair.to(at::kMPS);
      run.expect_close("conjugated, to the CPU", at::zeros_like(pair).copy_(here.conj()), pair.conj().resolve_conj());
      run.expect_close("negated, to the CPU", at::imag(here.conj()).cpu(), -at::imag(pair));
      run.expect_close("into a conjugated view, of the CPU", at::zeros_like(pair).conj().copy_(here).conj(),
                       pair.conj().resolve_conj());
      run.expect_close("conjugated, from the CPU", at::zeros_like(here).copy_(pair.conj()), pair.conj().resolve_conj());
      run.expect_close("into a negated view, of MPS", at::imag(at::zeros_like(here).conj()).copy_(expected), expected);
      run.expect_close("negated, within MPS", at::imag(here.conj()).clone(), -at::imag(pair));
      // MPS lacks the types of these: the CPU has to convert before the values move
      run.expect_close("of float64, into a conjugated view",
                       at::zeros_like(here).conj().copy_(expected.to(at::kDouble)),
                       at::complex(expected, at::zeros_like(expected)));
      run.expect_close("of complex128, into a conjugated view",
                       at::zeros_like(here).conj().copy_(pair.to(at::kComplexDouble)), pair);
      const at::Tensor part = at::zeros({2, 8, 8}, here.options()).select(0, 1);
      run.expect_close("of MPS, into a conjugated part", part.conj().copy_(here), pair);
      const at::Tensor image = expected.view({2, 2, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast);
      const at::Tensor second = image.to(at::kMPS).slice(0, 1);
      run.expect_close("of another layout and type", second.to(at::kHalf), image.slice(0, 1).to(at::kHalf));
      run.expect_close("the same, to the CPU", second.to(at::kCPU, at::kHalf), image.slice(0, 1).to(at::kHalf));
    }
  });
}

// One thread reads a tensor of the CPU and drops it, and another releases the storage, as it does where its operator
// finds the copy that has written it done: of their order only libtorch's count of references knows.
void release_of_another_thread(Run& run) {
  at::Tensor tensor = at::ones({8}, at::kFloat);
  c10::Storage storage = tensor.storage();
  std::atomic<bool> dropped{false};
  run.in_parallel([&](int number) {
    if (number == 0) {
      const auto* values = tensor.const_data_ptr<float>();
      run.expect_close("before the drop", at::scalar_tensor(values[7]), at::scalar_tensor(1.0));
      tensor.reset();
      dropped.store(true, std::memory_order_relaxed);  // orders nothing
    } else if (number == 1) {
      while (!dropped.load(std::memory_order_relaxed)) std::this_thread::yield();
      storage = {};
    }
  });
}

// What a non-blocking copy to the CPU writes is dropped at once, and its memory is used for another tensor.
SCENARIO(dropped_copies) {
  release_of_another_thread(run);
  const at::Tensor shared = at::full({512}, -1.0, at::kFloat).to(at::kMPS);
  run.in_parallel([&](int) {
    for (int i = 0; i < run.iterations; ++i) {
      std::vector<at::Tensor> later;
      for (int number = 0; number < 20; ++number) {
        at::empty({512}).copy_(shared, /*non_blocking=*/true);
        later.push_back(at::full({512}, number, at::kFloat));
      }
      run.expect_close("an element of the source", shared[0], at::scalar_tensor(-1.0));  // waits for the copies
      run.expect_close("tensors made after the drop", at::stack(later),
                       at::arange(20.0).unsqueeze(1).expand({20, 512}));
    }
  });
}

// Tensors of the CPU are copied non-blocking, and freed or written at once.
SCENARIO(copies_from_cpu) {
#if __has_include(<ATen/mps/MPSUploads.h>)
  // An upload for which Metal makes no buffer takes nothing from what all uploads may take.
  at::globalContext().hasMPS();
  const std::vector<char> bytes(1 << 20);
  hooks().deviceSynchronize();
  const size_t taken = at::mps::MPSUploads::bytes();
  mpsforge_host_refuse(MPSFORGE_HOST_BUFFERS, 1);
  const id<MTLBuffer> none =
      at::mps::MPSUploads::newBuffer(at::mps::MPSDevice::getInstance()->device(), bytes.data(), bytes.size());
  run.expect(none == nil && at::mps::MPSUploads::bytes() <= taken, "an upload that failed is counted");
#endif
  run.in_parallel([&](int) {
    for (int i = 0; i < run.iterations; ++i) {
      std::vector<at::Tensor> copies;
      const at::Tensor written = at::empty({512});
      for (int number = 0; number < 20; ++number) {
        copies.push_back(at::full({512}, number, at::kFloat).to(at::kMPS, /*non_blocking=*/true));
        copies.push_back(written.fill_(number).to(at::kMPS, /*non_blocking=*/true));
      }
      run.expect_close("sources freed or written", at::stack(copies),
                       at::arange(20.0).repeat_interleave(2).unsqueeze(1).expand({40, 512}));
    }
  });
}

// As long as the GPU takes for a while.
void occupy(const at::Tensor& matrix) {
  for (int i = 0; i < 4; ++i) at::mm(matrix, matrix);
}

// The main thread leaves a copy to the CPU to the GPU, and the first other threads copy from there.
SCENARIO(copies_before_threads) {
  const at::Tensor sevens = at::full({1 << 14}, 7.0), there = sevens.to(at::kMPS);
  // Of a size whose products take longer than threads and their streams take to begin.
  const at::Tensor matrix = at::ones({1024, 1024}).to(at::kMPS), here = at::zeros({1 << 14});
  run.expect_close("matrix", matrix, at::ones({1024, 1024}));
  occupy(matrix);
  here.copy_(there, /*non_blocking=*/true);
  run.in_parallel([&](int number) {
    const c10::OptionalStreamGuard on(stream_of(number));
    run.expect_close("copied on", here.to(at::kMPS), sevens);
  });
}

// One thread leaves a copy to the CPU to the GPU. When another one has waited for its own work, in whatever way, it is
// there.
SCENARIO(copies_awaited) {
  const at::Tensor there = at::full({1 << 14}, 7.0).to(at::kMPS), matrix = at::ones({256, 256}).to(at::kMPS);
  at::Tensor here;
  run.in_parallel([&](int number) {
    const at::Tensor own = at::ones({4}).to(at::kMPS);
    for (int i = 0; i < run.iterations; ++i) {
      if (number == 0) {
        here = at::zeros({1 << 14});
        occupy(matrix);
        here.copy_(there, /*non_blocking=*/true);
      }
      run.meet();
      if (number == 1 || run.threads == 1) {
        if (i % 4 == 0) {
          run.expect(at::sum(own).item<float>() == 4, "a sum of its own");
        } else if (i % 4 == 1) {
          own.copy_(at::ones({4}));
        } else if (i % 4 == 2 &&
                   mpsforge_hostmps_stream_statistic("streams") > 0) {  // stock's streams cannot be waited for
          stream_of_thread().synchronize();
        } else {
          c10::Event event(c10::DeviceType::MPS);
          event.record(stream_of_thread());
          event.synchronize();
        }
        run.expect(at::all(here.eq(7.0)).item<bool>(), "what another thread copied to the CPU before the wait");
      }
      run.meet();
    }
  });
}

}  // namespace
}  // namespace mpsforge::hostmps
