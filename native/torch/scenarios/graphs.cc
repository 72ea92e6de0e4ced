// The cache of graphs: which graph serves what, and whom, and for how long it lives.
#include <ATen/mps/MPSAllocatorInterface.h>
#include <mpsforge/host.h>

#include <cstdlib>
#include <thread>
#include <tuple>
#include <utility>

#include "scenarios.h"

namespace mpsforge::hostmps {
namespace {

// Inputs that differ in one thing alone need graphs of their own.
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

// From here on empty_cache() frees graphs, too, which it does if memory is short: no memory is short of this.
void be_short_of_memory() { at::mps::getIMPSAllocator()->setLowWatermarkRatio(1e-12); }

// Graphs compiled by a thread outlive it and serve the next one, and are freed by empty_cache(), and beyond the bound
// that the environment sets for the process.
SCENARIO(graph_cache) {
  at::globalContext().hasMPS();
  be_short_of_memory();
  const char* bound = std::getenv("PYTORCH_MPS_GRAPH_CACHE_SIZE");
  const uint64_t before = mpsforge_host_live_graphs();
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    for (int i = 0; i < run.iterations; ++i) {
      for (int64_t size = 1; size <= 4; ++size) {
        compare(run, "linear", {random({2, size}, generator), random({3, size}, generator)},
                [](Inputs in) { return at::relu(at::linear(in[0], in[1])); });
      }
      // not beside other threads' operations, which empty-cache is about
      run.meet();
      if (number == 0) hooks().emptyCache();
      run.meet();
    }
    const uint64_t cached = mpsforge_host_live_graphs() - before;
    if (bound) {
      run.expect(cached <= std::strtoull(bound, nullptr, 10) * static_cast<uint64_t>(run.threads),
                 "more graphs than the bound: " + std::to_string(cached));
    }
    run.meet();
  });
  const uint64_t once = mpsforge_host_live_graphs() - before;
  for (int i = 0; i < 8; ++i) {
    std::thread next([&] { at::relu(at::ones({2, 3}, kMPS)).cpu(); });
    next.join();
    const uint64_t left = mpsforge_host_live_graphs() - before;
    run.expect(left > 0 && left <= once + 2,
               "graphs after threads in turn: " + std::to_string(left) + ", and " + std::to_string(once) + " before");
  }
  hooks().emptyCache();
  const uint64_t left = mpsforge_host_live_graphs() - before;
  run.expect(left == 0, "graphs of threads that have ended, after empty_cache: " + std::to_string(left));

  // Free memory that the allocator has kept is no reason to lose graphs: empty_cache() gives it back first.
  auto* const allocator = at::mps::getIMPSAllocator();
  constexpr int64_t kKept = 64 << 20;
  at::relu(at::ones({2, 3}, kMPS)).cpu();
  allocator->setLowWatermarkRatio(static_cast<double>(allocator->getDriverAllocatedMemory() + kKept / 2) /
                                  static_cast<double>(allocator->getRecommendedMaxMemory()));
  at::empty({kKept}, at::TensorOptions(kMPS).dtype(at::kByte));
  const uint64_t compiled = mpsforge_host_live_graphs();
  hooks().emptyCache();
  run.expect(compiled > before && mpsforge_host_live_graphs() == compiled,
             "graphs that empty_cache dropped for memory that was free: " +
                 std::to_string(compiled - mpsforge_host_live_graphs()));
  be_short_of_memory();
  hooks().emptyCache();
}

// Threads that come and go run one model, as a server's may: they take over the graphs of those before them. Several
// at once have at most as many as if each had its own.
SCENARIO(graphs_in_turn) {
  at::globalContext().hasMPS();
  at::Generator generator = run.generator(0);
  const Model here(8, 16, 4, generator), there = here.on(at::kMPS);
  const at::Tensor input = random({2, 8}, generator);
  const uint64_t before = mpsforge_host_live_graphs();
  const auto body = [&](int) { run.expect_close("model", there(input.to(at::kMPS)), here(input)); };
  std::thread first(body, 0);
  first.join();
  const uint64_t once = mpsforge_host_live_graphs() - before;
  run.expect(once > 0, "no graph is kept after the thread that compiled it");
  for (int turn = 0; turn < 200 / run.threads; ++turn) {
    run.in_parallel(body);
    const uint64_t kept = mpsforge_host_live_graphs() - before;
    run.expect(kept >= once && kept <= once * static_cast<uint64_t>(run.threads),
               "graphs after turn " + std::to_string(turn) + ": " + std::to_string(kept) +
                   ", one thread's: " + std::to_string(once));
  }
}

// A thread that takes over a graph which another one has compiled has it to itself, also from that one.
SCENARIO(graphs_taken_over) {
  static int64_t next = 3;
  const int64_t shapes = std::exchange(next, next + run.iterations);  // which no earlier run has compiled
  std::atomic<int> ready{0};
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor here = random({2, shapes + i}, generator), there = here.to(at::kMPS);
      if (number == 0) at::log_softmax(there, 1);
      run.meet();
      for (++ready; ready < run.threads * (i + 1);)
        std::this_thread::yield();  // they begin closer together than by meet()
      run.expect_close("log_softmax", at::log_softmax(there, 1), at::log_softmax(here, 1));
      run.meet();
    }
  });
}

// A bound that is not a number is one warning, with what is used instead.
SCENARIO(graph_cache_size_warning) {
  const Warnings warnings;
  at::softmax(at::ones({4, 4}, kMPS), 1);
  run.expect(warnings.text().find("PYTORCH_MPS_GRAPH_CACHE_SIZE=many is not a number of graphs; using 512") !=
                 std::string::npos,
             "no warning of the bound, but: " + warnings.text());
}

// Threads that come and go, and hardly ever see a shape twice: graphs never outnumber the bound by more than the
// threads have in use.
SCENARIO(graph_cache_bound) {
  at::globalContext().hasMPS();
  const char* text = std::getenv("PYTORCH_MPS_GRAPH_CACHE_SIZE");
  const uint64_t bound = text ? std::strtoull(text, nullptr, 10) : 512;
  // of one operator, with those that it calls, and one that is about to be freed
  constexpr uint64_t kUsedByThread = 4;
  const uint64_t before = mpsforge_host_live_graphs();
  std::atomic<uint64_t> most{0};
  // However short the run is, one thread alone has more shapes than graphs may live.
  const int shapes = static_cast<int>(bound);
  for (int turn = 0; turn < 4; ++turn) {
    run.in_parallel([&](int number) {
      at::Generator generator = run.generator(number);
      for (int i = 0; i < shapes; ++i) {
        const int64_t size = 1 + number + run.threads * (i + turn * shapes);
        compare(run, "sum", {random({size}, generator)}, [](Inputs in) { return at::sum(in[0]); });
        const uint64_t live = mpsforge_host_live_graphs() - before;
        for (uint64_t seen = most; seen < live && !most.compare_exchange_weak(seen, live);) continue;
      }
    });
  }
  run.expect(most <= bound + kUsedByThread * static_cast<uint64_t>(run.threads),
             "graphs alive: " + std::to_string(most) + ", bound: " + std::to_string(bound));
}

// A program that comes back to more shapes than graphs are kept by default: in the end each has its graph, and
// empty_cache() leaves them.
SCENARIO(graphs_again) {
  at::globalContext().hasMPS();
  constexpr uint64_t kShapes = 600;
  const uint64_t before = mpsforge_host_live_graphs();
  for (int turn = 0; turn < 3; ++turn) {
    for (int64_t size = 1; size <= static_cast<int64_t>(kShapes); ++size) {
      run.expect_close("sum", at::ones({size}, kMPS).sum(), at::scalar_tensor(static_cast<double>(size)));
    }
    hooks().emptyCache();
  }
  const uint64_t kept = mpsforge_host_live_graphs() - before;
  run.expect(kept >= kShapes, "graphs that are kept: " + std::to_string(kept) + ", shapes: " + std::to_string(kShapes));
}

// The kernel of unique uses its graph after the autorelease pool in which it finds it. Graphs of threads that have
// nothing to do are freed at once.
SCENARIO(graphs_dropped) {
  be_short_of_memory();
  hooks().emptyCache();
  const uint64_t before = mpsforge_host_live_graphs();
  std::atomic<int> working{run.threads};
  run.in_parallel([&](int number) {
    const int64_t different = 7 + number;
    const at::Tensor numbers = at::arange(50.0).remainder(static_cast<double>(different)).to(at::kMPS);
    for (int i = 0; i < run.iterations; ++i) {
      if (number == 0) hooks().emptyCache();
      run.expect_close("unique", std::get<0>(at::_unique2(numbers)), at::arange(static_cast<double>(different)));
    }
    --working;
    while (number == 0 && working > 0) hooks().emptyCache();
    run.meet();
    if (number == 0) {
      hooks().emptyCache();
      const uint64_t left = mpsforge_host_live_graphs();
      run.expect(left <= before, "graphs of idle threads, after empty_cache: " + std::to_string(left - before));
    }
    run.meet();
  });
}

}  // namespace
}  // namespace mpsforge::hostmps
