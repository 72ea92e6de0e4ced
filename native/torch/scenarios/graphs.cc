// What a graph in the cache is for: inputs that differ in one thing alone need graphs of their own.
#include "scenarios.h"

namespace mpsforge::hostmps {
namespace {

SCENARIO(graph_keys) {
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    const auto random = [&](at::IntArrayRef sizes) { return at::randn(sizes, generator); };
    // shapes whose numbers have the same digits, then no shape and that of one number
    for (const auto& sizes : std::vector<std::vector<int64_t>>{{1, 112}, {11, 12}, {111, 2}, {}, {1}}) {
      compare(run, "log_softmax", {random(sizes)}, [](Inputs in) { return at::log_softmax(in[0], -1); });
    }
    for (const auto type : {at::kFloat, at::kHalf, at::kFloat}) {
      compare(run, "log_softmax of a type", {random({3, 5}).to(type)},
              [](Inputs in) { return at::log_softmax(in[0], 1); });
    }
#if __has_include(<c10/metal/common.h>)  // PyTorch 2.6.0 does not have it, and its mm ignores conjugation
    const at::Tensor a = at::complex(random({3, 3}), random({3, 3})), b = at::complex(random({3, 3}), random({3, 3}));
    compare(run, "mm", {a, b}, [](Inputs in) { return at::mm(in[0], in[1]); });
    compare(run, "mm, the second conjugated", {a, b}, [](Inputs in) { return at::mm(in[0], in[1].conj()); });
    compare(run, "mm, the first conjugated", {a, b}, [](Inputs in) { return at::mm(in[0].conj(), in[1]); });
    compare(run, "mm, both conjugated", {a, b}, [](Inputs in) { return at::mm(in[0].conj(), in[1].conj()); });
#endif
  });
}

}  // namespace
}  // namespace mpsforge::hostmps
