// Copies between CPU and MPS, of tensors that several threads share and of views: they move the right numbers, and
// neither change their source nor read it later.
#include "scenarios.h"

namespace mpsforge::hostmps {
namespace {

// Threads read one tensor on mps at once, as views and as other types.
void copies_to_cpu(Run& run) {
  const at::Tensor expected = at::arange(64.0, at::kFloat).view({8, 8});
  const at::Tensor shared = expected.to(at::kMPS);
  run.in_parallel([&](int) {
    for (int i = 0; i < run.iterations; ++i) {
      for (const at::ScalarType type : {at::kHalf, at::kByte, at::kInt, at::kLong}) {
        run.expect_close("rows of another type", shared.slice(0, 2).to(at::kCPU, type), expected.slice(0, 2).to(type));
        run.expect_close("columns of another type", shared.t().to(at::kCPU, type), expected.t().to(type));
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
    }
  });
}

// What a non-blocking copy to the CPU writes is dropped at once, and its memory is used for another tensor.
void dropped_copies(Run& run) {
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
void copies_from_cpu(Run& run) {
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

}  // namespace

const std::vector<Scenario>& copy_scenarios() {
  static const std::vector<Scenario> all = {
      {"copies-to-cpu", "views of one tensor read by all threads, as other types", copies_to_cpu},
      {"dropped-copies", "non-blocking copies to the CPU whose destination is dropped at once", dropped_copies},
      {"copies-from-cpu", "non-blocking copies of tensors that are freed or written at once", copies_from_cpu},
  };
  return all;
}

}  // namespace mpsforge::hostmps
