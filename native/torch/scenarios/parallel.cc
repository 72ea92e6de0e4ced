// Scenarios by several threads. They use what a Python program reaches: ATen's operators and the hooks behind
// torch.mps.
#include <ATen/mps/MPSProfiler.h>
#include <c10/core/Event.h>
#include <mpsforge/host.h>

#include <thread>
#include <tuple>

#include "scenarios.h"

namespace mpsforge::hostmps {
namespace {

// torch.mps.synchronize()
void synchronize() { hooks().deviceSynchronize(); }

// Seeds 000 to 004: random tensors, a product, relu, and a synchronise in each thread.
void basic(Run& run, int64_t size) {
  run.in_parallel([&](int) {
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor a = at::randn({size, size}, kMPS);
      const at::Tensor b = at::relu(at::mm(a, a));
      synchronize();
      const at::Tensor a_here = a.cpu();
      run.expect_close("relu(mm)", b, at::relu(at::mm(a_here, a_here)));
    }
  });
}

SCENARIO(parallel_basic) { basic(run, 24); }

SCENARIO(parallel_large) { basic(run, 256); }

// More threads than the pool has streams.
SCENARIO(over_subscription) { parallel_basic(run); }

// nn.Linear by several threads, one set of weights.
SCENARIO(linear) {
  at::Generator first = run.generator(-1);
  const at::Tensor weight = random({12, 8}, first), bias = random({12}, first);
  const at::Tensor weight_there = weight.to(at::kMPS), bias_there = bias.to(at::kMPS);
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor input = random({4, 8}, generator);
      const at::Tensor output = at::linear(input.to(at::kMPS), weight_there, bias_there);
      synchronize();
      run.expect_close("linear", output, at::linear(input, weight, bias));
    }
  });
}

void sequential(Run& run, bool shared) {
  at::Generator first = run.generator(-1);
  const Model model(8, 16, 4, first);
  const Model model_there = model.on(at::kMPS);
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    const Model own = shared ? model : Model(8, 16, 4, generator);
    const Model own_there = shared ? model_there : own.on(at::kMPS);
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor input = random({3, 8}, generator);
      const at::Tensor output = own_there(input.to(at::kMPS));
      synchronize();
      run.expect_close("sequential", output, own(input));
    }
  });
}

SCENARIO(sequential_shared) { sequential(run, true); }

SCENARIO(sequential_own) { sequential(run, false); }

// The other layers of the field reports.
SCENARIO(layers) {
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    for (int i = 0; i < run.iterations; ++i) {
      compare(run, "softmax", {random({5, 7}, generator)}, [](Inputs in) { return at::softmax(in[0], -1); });
      compare(run, "layer_norm", {random({3, 6}, generator), random({6}, generator), random({6}, generator)},
              [](Inputs in) { return at::layer_norm(in[0], {6}, in[1], in[2]); });
      compare(run, "conv1d", {random({2, 3, 9}, generator), random({4, 3, 3}, generator), random({4}, generator)},
              [](Inputs in) { return at::conv1d(in[0], in[1], in[2], 1, 1); });
      synchronize();
    }
  });
}

// No use before the threads: all that is made at first use is made by several threads at once. libtorch's own
// call_once, in front of it, is not known to ThreadSanitizer.
SCENARIO(cold_start) {
  at::globalContext().hasMPS();
  run.in_parallel([&](int number) {
    const at::Tensor a = at::full({6, 6}, number + 1.0, kMPS);
    run.expect_close("full", at::add(a, a), at::full({6, 6}, 2 * (number + 1.0)));
  });
}

// The same for Metal kernels: their libraries, some of them made from a template, and pipelines.
SCENARIO(kernels_cold_start) {
  at::globalContext().hasMPS();
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    for (const at::ScalarType type : {at::kFloat, at::kHalf}) {
      const at::Tensor input = random({4, 5}, generator).to(type);
      compare(run, "exp", {input}, [](Inputs in) { return at::exp(in[0]); });
      compare(run, "tanh", {input}, [](Inputs in) { return at::tanh(in[0]); });
    }
    compare(run, "renorm", {random({6, 5}, generator)}, [](Inputs in) { return at::renorm(in[0], 2, 0, 1.5); });
  });
}

// Kernels of MetalPerformanceShaders, which open encoders of their own, while other threads' kernels leave theirs open.
SCENARIO(matrix_kernels) {
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    for (int i = 0; i < run.iterations; ++i) {
      compare(run, "exp", {random({4, 5}, generator)}, [](Inputs in) { return at::exp(in[0]); });
      const at::Tensor matrix = random({5, 5}, generator) + 4 * at::eye(5);
      compare(run, "lu_factor", {matrix}, [](Inputs in) { return std::get<0>(at::linalg_lu_factor(in[0])); });
      compare(run, "solve_triangular", {at::triu(matrix), random({5, 2}, generator)},
              [](Inputs in) { return at::linalg_solve_triangular(in[0], in[1], /*upper=*/true); });
      compare(run, "linear", {random({4, 8}, generator), random({6, 8}, generator), random({6}, generator)},
              [](Inputs in) { return at::linear(in[0], in[1], in[2]); });
      compare(run, "linear without a bias", {random({4, 8}, generator), random({6, 8}, generator)},
              [](Inputs in) { return at::linear(in[0], in[1]); });
    }
  });
}

// Some threads encode while the others synchronise the device.
SCENARIO(synchronize_encode) {
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    for (int i = 0; i < run.iterations; ++i) {
      if (number % 2 == 1) {
        synchronize();
        continue;
      }
      const at::Tensor input = random({16, 16}, generator);
      run.expect_close("add", at::add(input.to(at::kMPS), 1.0), input + 1.0);
    }
  });
}

// torch::mps::commit() while others encode.
SCENARIO(commit_encode) {
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor input = random({16, 16}, generator);
      const at::Tensor output = at::mul(input.to(at::kMPS), 2.0);
      hooks().commitStream();
      run.expect_close("mul", output, input * 2.0);
    }
  });
}

// torch::mps::get_command_buffer(), which makes the buffer if there is none, while others commit.
SCENARIO(command_buffer_hook) {
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    for (int i = 0; i < run.iterations; ++i) {
      if (number % 2 == 1) {
        run.expect(hooks().getCommandBuffer() != nullptr, "no command buffer");
        continue;
      }
      const at::Tensor input = random({16, 16}, generator);
      run.expect_close("add", at::add(input.to(at::kMPS), 1.0), input + 1.0);
    }
  });
}

// Reading single numbers back, as a loss is read.
SCENARIO(items) {
  run.in_parallel([&](int number) {
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor value = at::full({}, number * 1000.0 + i, kMPS);
      run.expect(value.item<float>() == static_cast<float>(number * 1000 + i), "item: another thread's number");
      synchronize();
    }
  });
}

// Events as torch.mps.Event uses them.
SCENARIO(events) {
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor input = random({8, 8}, generator);
      const uint32_t begin = hooks().acquireEvent(true), end = hooks().acquireEvent(true);
      hooks().recordEvent(begin);
      const at::Tensor output = at::add(input.to(at::kMPS), 1.0);
      hooks().recordEvent(end);
      hooks().synchronizeEvent(end);
      run.expect(hooks().queryEvent(end), "an event that was waited for is not complete");
      run.expect(hooks().elapsedTimeOfEvents(begin, end) >= 0, "negative time between events");
      hooks().releaseEvent(begin);
      hooks().releaseEvent(end);
      run.expect_close("add", output, input + 1.0);
    }
  });
}

// Events come back to the pool and out again. Until it is recorded, such an event is like a new one, whatever listeners
// of its earlier use are still to run; nothing waits for what was not asked for.
SCENARIO(event_reuse) {
  const uint32_t used = hooks().acquireEvent(true);
  hooks().recordEvent(used);
  hooks().synchronizeEvent(used);
  hooks().releaseEvent(used);
  run.in_parallel([&](int) {
    for (int i = 0; i < run.iterations; ++i) {
      const uint32_t begin = hooks().acquireEvent(true), end = hooks().acquireEvent(true);
      run.expect(!hooks().queryEvent(begin) && !hooks().queryEvent(end), "an event is complete but was not recorded");
      if (run.wrong() > 0) return;  // where this is wrong, some of the rest waits for ever
      hooks().synchronizeEvent(end);
      hooks().waitForEvent(end);
      run.expect_error("not recorded", "enable_timing", [&] { hooks().elapsedTimeOfEvents(begin, end); });
      hooks().recordEvent(begin);
      at::zeros({4, 4}, kMPS);
      hooks().recordEvent(end);
      hooks().synchronizeEvent(end);
      const double first = hooks().elapsedTimeOfEvents(begin, end);
      run.expect(first > 0 && first == hooks().elapsedTimeOfEvents(begin, end), "another time when asked again");
      const uint32_t untimed = hooks().acquireEvent(false);
      hooks().recordEvent(untimed);
      run.expect_error("without timing", "enable_timing", [&] { hooks().elapsedTimeOfEvents(begin, untimed); });
      for (const uint32_t event : {begin, end, untimed}) hooks().releaseEvent(event);
    }
  });
}

// One event recorded, asked and waited for by all threads.
SCENARIO(event_shared) {
  const uint32_t begin = hooks().acquireEvent(true), event = hooks().acquireEvent(true);
  hooks().recordEvent(begin);
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor input = random({8, 8}, generator);
      const at::Tensor output = at::add(input.to(at::kMPS), 1.0);
      hooks().recordEvent(event);
      hooks().waitForEvent(event);
      hooks().synchronizeEvent(event);
      hooks().queryEvent(event);
      try {
        run.expect(hooks().elapsedTimeOfEvents(begin, event) > 0, "no time between events");
      } catch (const c10::Error&) {  // it has no time yet since another thread recorded it
      }
      run.expect_close("add", output, input + 1.0);
    }
  });
  hooks().synchronizeEvent(event);
  run.expect(hooks().queryEvent(event), "an event that was waited for is not complete");
  hooks().releaseEvent(begin);
  hooks().releaseEvent(event);
}

// The events of c10, which name the stream.
SCENARIO(event_guard) {
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor input = random({8, 8}, generator);
      c10::Event begin(at::kMPS, c10::EventFlag::BACKEND_DEFAULT), end(at::kMPS, c10::EventFlag::BACKEND_DEFAULT);
      const c10::Stream stream = stream_of_thread();
      begin.record(stream);
      const at::Tensor output = at::add(input.to(at::kMPS), 1.0);
      end.record(stream);
      end.block(stream);
      end.synchronize();
      run.expect(end.query(), "an event that was waited for is not complete");
      run.expect(begin.elapsedTime(end) > 0, "no time between events");
      run.expect_close("add", output, input + 1.0);
    }
  });
}

// The profiler traces while threads work. Each signposts' interval that begins ends.
SCENARIO(profiler) {
  // One of an operator that a graph computes begins when the graph is scheduled.
  static int64_t size = 4;
  const at::Tensor input = at::ones({4, ++size}).to(at::kMPS);  // for a graph that is compiled now
  synchronize();
  hooks().profilerStartTrace("event,interval", false);
  const uint64_t before = mpsforge_host_signposts(1);
  const at::Tensor output = at::log_softmax(input, 1);
  synchronize();
  const auto begun = [&] { return mpsforge_host_signposts(1) > before; };
  wait_for(begun);
  run.expect(begun(), "log_softmax has begun no interval");
  const uint64_t events_before = mpsforge_host_signposts(0);
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor input = random({8, 8}, generator);
      run.expect_close("linear", at::linear(input.to(at::kMPS), input.to(at::kMPS)), at::linear(input, input));
      compare(run, "exp", {input}, [](Inputs in) { return at::exp(in[0]); });
    }
  });
  synchronize();
  // There may be a moment at which as many have ended as begun, and more are to come; these would lose their begin.
  uint64_t begins = 0, ends = 0;
  auto since = std::chrono::steady_clock::now();
  wait_for([&] {
    const uint64_t ended = mpsforge_host_signposts(2), begun_now = mpsforge_host_signposts(1);
    const auto now = std::chrono::steady_clock::now();
    if (begun_now != begins || ended != ends) since = now;
    begins = begun_now, ends = ended;
    return begins == ends && now - since > std::chrono::milliseconds(200);
  });
  hooks().profilerStopTrace();
  run.expect(begins > 0 && begins == ends,
             "intervals begun: " + std::to_string(begins) + ", ended: " + std::to_string(ends));
  run.expect(mpsforge_host_signposts(0) > events_before, "no event was emitted");
}

// The profiler traces an operator that the CPU computes for MPS, in several threads at once.
SCENARIO(profiler_fallback) {
  hooks().profilerStartTrace("event,interval", false);
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    for (int i = 0; i < run.iterations; ++i) {
      compare(run, "linalg_svd", {random({4, 4}, generator)},
              [](Inputs in) { return std::get<1>(at::linalg_svd(in[0])); });
      // the kernel of the CPU may call the operator itself
      for (int n = 0; n < 2; ++n) at::mps::getMPSProfiler().beginProfileCPUFallback("calls itself", {});
      for (int n = 0; n < 2; ++n) at::mps::getMPSProfiler().endProfileCPUFallback("calls itself");
    }
  });
  hooks().profilerStopTrace();
}

// Traces start and stop while threads work.
SCENARIO(profiler_toggle) {
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    for (int i = 0; i < run.iterations; ++i) {
      if (number == 0) hooks().profilerStartTrace("event,interval", i % 2 == 1);
      const at::Tensor input = random({8, 8}, generator);
      run.expect_close("mm", at::mm(input.to(at::kMPS), input.to(at::kMPS)), at::mm(input, input));
      compare(run, "exp", {input}, [](Inputs in) { return at::exp(in[0]); });
      if (number == 0) hooks().profilerStopTrace();
    }
  });
}

// torch.mps.empty_cache() while other threads work.
SCENARIO(empty_cache) {
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    for (int i = 0; i < run.iterations; ++i) {
      if (number == 0) hooks().emptyCache();
      const at::Tensor input = random({32, 32}, generator);
      run.expect_close("mm", at::mm(input.to(at::kMPS), input.to(at::kMPS)), at::mm(input, input));
    }
  });
}

// renorm fetches its encoder before its block.
SCENARIO(renorm) {
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    for (int i = 0; i < run.iterations; ++i) {
      compare(run, "renorm", {random({6, 5}, generator)}, [](Inputs in) { return at::renorm(in[0], 2, 0, 1.5); });
    }
  });
}

// A tensor made by one thread is used by the next, with no synchronise but that of the threads themselves.
SCENARIO(hand_over) {
  std::vector<at::Tensor> slots(static_cast<size_t>(run.threads));
  std::vector<at::Tensor> expected(slots.size());
  for (int i = 0; i < run.iterations; ++i) {
    run.in_parallel([&](int number) {
      at::Generator generator = run.generator(number * 1000 + i);
      const at::Tensor input = random({16, 16}, generator);
      slots[static_cast<size_t>(number)] = at::mm(input.to(at::kMPS), input.to(at::kMPS));
      expected[static_cast<size_t>(number)] = at::mm(input, input);
      run.meet();
      const size_t next = static_cast<size_t>((number + 1) % run.threads);
      run.expect_close("mm of another thread", at::add(slots[next], 1.0), expected[next] + 1.0);
      run.meet();
    });
  }
}

// What a thread frees, another gets: its old contents are in use by commands still under way.
SCENARIO(buffer_reuse) {
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    at::Tensor sum = at::zeros({64, 64}, kMPS), expected = at::zeros({64, 64});
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor input = random({64, 64}, generator);
      sum = at::add(sum, at::mul(input.to(at::kMPS), 3.0));  // the product is freed at once
      expected = expected + input * 3.0;
    }
    run.expect_close("sum of products", sum, expected);
  });
}

}  // namespace
}  // namespace mpsforge::hostmps
