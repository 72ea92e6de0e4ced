// Scenarios of several streams: explicit ones, those that threads lease, and tensors that go from one to the other with
// no synchronise but that of the threads themselves.
#include <ATen/core/grad_mode.h>
#include <ATen/mps/MPSAllocatorInterface.h>
#include <c10/core/Event.h>
#include <c10/core/InferenceMode.h>
#include <unistd.h>

#include <set>

#include "scenarios.h"

namespace mpsforge::hostmps {
namespace {

// A counter of the pool; -1 where the sources have none.
int64_t statistic(const char* name) { return mpsforge_hostmps_stream_statistic(name); }

// Each thread works on a stream that it asked for.
SCENARIO(explicit_streams) {
  run.in_parallel([&](int number) {
    at::Generator generator = run.generator(number);
    const c10::Stream before = stream_of_thread(), own = new_stream(), other = new_stream();
    run.expect(own.id() != 0, "a new stream is the default one");
    // 32 are handed out in turn, so that more callers at once may see one again
    if (2 * run.threads <= 32) run.expect(own != other, "a new stream is the one before");
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor input = at::randn({16, 16}, generator);
      at::Tensor output;
      {
        const c10::StreamGuard on_own(own);
        run.expect(stream_of_thread() == own, "the guard's stream is not current");
        output = at::mm(input.to(at::kMPS), input.to(at::kMPS));
        try {
          const c10::StreamGuard on_other(other);
          run.expect(stream_of_thread() == other, "the inner guard's stream is not current");
          throw std::runtime_error("leaves the guard");
        } catch (const std::runtime_error&) {
        }
        run.expect(stream_of_thread() == own, "the stream is not restored after an exception");
        own.synchronize();
        // with more threads the streams are shared
        run.expect(run.threads > 16 || own.query(), "a stream that was waited for has work left");
        run.expect_close("mm on a stream", output, at::mm(input, input));
      }
      run.expect(stream_of_thread() == before, "the stream is not restored");
    }
  });
}

// All threads make the process's first streams at once: from then on the default stream's work is counted, too.
SCENARIO(first_streams) {
  at::ones({1}, kMPS).item();
  run.in_parallel([&](int number) {
    const c10::Stream own = new_stream();
    run.expect(own.id() != 0, "a new stream is the default one");
    const c10::StreamGuard on_own(own);
    run.expect_close("ones", at::full({16}, number, kMPS), at::full({16}, number, at::kFloat));
  });
}

// torch.mps.synchronize() waits for all streams, whoever uses them.
SCENARIO(device_synchronize) {
  std::vector<c10::Stream> streams;
  for (int number = 0; number < run.threads; ++number) streams.push_back(new_stream());
  for (int i = 0; i < run.iterations; ++i) {
    run.in_parallel([&](int number) {
      const c10::StreamGuard on_own(streams[static_cast<size_t>(number)]);
      at::Tensor sum = at::zeros({32}, kMPS);
      for (int j = 0; j < 5; ++j) sum = at::add(sum, 1.0);
      run.meet();
      if (number == 0) {
        hooks().deviceSynchronize();
        for (const c10::Stream& stream : streams) run.expect(stream.query(), "a stream has work left");
      }
      run.meet();
      run.expect_close("sum", sum, at::full({32}, 5.0));
    });
  }
}

struct Layer {
  at::Tensor weight, bias;
};

// Steps of gradient descent on two layers; the weights after them.
std::vector<at::Tensor> train(std::vector<Layer> layers, const at::Tensor& input, int steps) {
  for (Layer& layer : layers) {
    for (at::Tensor* part : {&layer.weight, &layer.bias}) *part = part->detach().requires_grad_();
  }
  for (int step = 0; step < steps; ++step) {
    const at::Tensor hidden = at::relu(at::linear(input, layers[0].weight, layers[0].bias));
    const at::Tensor loss = at::linear(hidden, layers[1].weight, layers[1].bias).sum();
    loss.backward();
    const at::NoGradGuard no_gradients;
    for (Layer& layer : layers) {
      for (at::Tensor* part : {&layer.weight, &layer.bias}) {
        *part = at::sub(*part, part->grad(), 0.01).requires_grad_();
      }
    }
  }
  return {layers[0].weight.detach(), layers[0].bias.detach(), layers[1].weight.detach(), layers[1].bias.detach()};
}

void compare_training(Run& run, int number) {
  at::Generator generator = run.generator(number);
  const at::Tensor input = at::randn({4, 8}, generator);
  std::vector<Layer> here = {{at::randn({6, 8}, generator), at::randn({6}, generator)},
                             {at::randn({3, 6}, generator), at::randn({3}, generator)}};
  std::vector<Layer> there;
  for (const Layer& layer : here) there.push_back({layer.weight.to(at::kMPS), layer.bias.to(at::kMPS)});
  const auto expected = train(here, input, 3);
  const auto found = train(there, input.to(at::kMPS), 3);
  for (size_t i = 0; i < found.size(); ++i) run.expect_close("weights after training", found[i], expected[i]);
}

// The backward pass runs on a thread of the engine; it uses the forward's stream.
SCENARIO(training_streams) {
  run.in_parallel([&](int number) {
    const c10::StreamGuard on_own(new_stream());
    for (int i = 0; i < run.iterations; ++i) compare_training(run, number);
  });
}

// On the main thread that is stream 0, and nothing of several streams runs.
SCENARIO(training_main) {
  for (int i = 0; i < run.iterations; ++i) compare_training(run, i);
  run.expect(stream_of_thread().id() == 0, "the main thread has another stream than 0");
  run.expect(statistic("streams") == 1, "training on the main thread used another stream than 0");
  run.expect(statistic("hand_over_waits") == 0, "a wait for another stream");
}

// Who asks for a stream may encode there, and others wait for all of its work; but not for what it is given once the
// asker has gone to another stream.
SCENARIO(fences_that_ended) {
  const c10::Stream left = new_stream(), next = new_stream(), other = new_stream();
  const auto full_on = [](const c10::Stream& stream, double value) {
    const c10::StreamGuard on_stream(stream);
    return at::full({8}, value, kMPS);
  };
  for (int i = 0; i < run.iterations; ++i) {
    for (const c10::Stream& stream : {left, next}) {
      const c10::StreamGuard on_stream(stream);
      hooks().getDispatchQueue();
    }
    full_on(next, 0.0);
    full_on(other, 0.0);  // after what may have been encoded on the two
    const at::Tensor later = full_on(left, i);
    const int64_t before = statistic("hand_over_waits");
    const at::Tensor own = full_on(other, i + 1.0);
    run.expect(statistic("hand_over_waits") == before, "a wait for a stream that was left");
    run.expect_close("on the stream that was left", later, at::full({8}, static_cast<double>(i)));
    run.expect_close("on the other stream", own, at::full({8}, i + 1.0));
  }
}

// A tensor of one stream is freed while another, which was recorded as a user of it, still does.
SCENARIO(record_stream) {
  const c10::Stream first = new_stream(), second = new_stream();
  for (int i = 0; i < run.iterations; ++i) {
    at::Tensor output;
    at::Tensor input;
    {
      const c10::StreamGuard on_first(first);
      input = at::full({64, 64}, i, kMPS);
    }
    c10::Event ready(at::kMPS);
    ready.record(first);
    second.wait(ready);
    {
      const c10::StreamGuard on_second(second);
      output = at::mul(input, 2.0);
    }
    input.record_stream(second);
    input = at::Tensor();  // freed
    {
      const c10::StreamGuard on_first(first);
      at::full({64, 64}, -1, kMPS);  // of the same size
    }
    const c10::StreamGuard on_second(second);
    run.expect_close("recorded", output, at::full({64, 64}, 2.0 * i));
  }
}

// What is freed on one stream is allocated on another.
SCENARIO(buffer_reuse_streams) {
  std::vector<c10::Stream> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(new_stream());
  run.in_parallel([&](int number) {
    std::vector<at::Tensor> kept;
    for (int i = 0; i < run.iterations; ++i) {
      const c10::StreamGuard on(streams[static_cast<size_t>(number + i) % streams.size()]);
      const double value = number * 1000 + i;
      at::mul(at::full({64, 64}, value, kMPS), 2.0);  // both are freed at once
      kept.push_back(at::add(at::full({64, 64}, value, kMPS), 1.0));
    }
    for (int i = 0; i < run.iterations; ++i) {
      run.expect_close("add", kept[static_cast<size_t>(i)], at::full({64, 64}, number * 1000 + i + 1.0));
    }
  });
}

// Streams that threads lease exist from the first operator on.
void start_streams() { new_stream(); }

// Every thread passes a tensor on to the next one, again and again, and all of them stay in use.
SCENARIO(hand_over_ring) {
  start_streams();
  const size_t count = static_cast<size_t>(run.threads);
  std::vector<at::Tensor> now(count), next(count);
  for (size_t i = 0; i < count; ++i) now[i] = at::full({32}, static_cast<double>(i), kMPS);
  run.in_parallel([&](int number) {
    const c10::OptionalStreamGuard on(stream_of(number));
    const size_t place = static_cast<size_t>(number);
    for (int i = 0; i < run.iterations; ++i) {
      next[(place + 1) % count] = at::add(now[place], 1.0);
      run.meet();
      now[place] = next[place];
      run.meet();
    }
  });
  for (size_t i = 0; i < count; ++i) {
    const size_t from = (i + count - static_cast<size_t>(run.iterations) % count) % count;
    run.expect_close("around the ring", now[i], at::full({32}, static_cast<double>(from) + run.iterations));
  }
}

// A tree: each round half of the threads add what the other half made.
SCENARIO(hand_over_tree) {
  start_streams();
  for (int i = 0; i < run.iterations; ++i) {
    std::vector<at::Tensor> values(static_cast<size_t>(run.threads));
    run.in_parallel([&](int number) {
      const c10::OptionalStreamGuard on(stream_of(number));
      values[static_cast<size_t>(number)] = at::full({48}, number + 1.0, kMPS);
      for (int step = 1; step < run.threads; step *= 2) {
        run.meet();
        if (number % (2 * step) == 0 && number + step < run.threads) {
          values[static_cast<size_t>(number)] =
              at::add(values[static_cast<size_t>(number)], values[static_cast<size_t>(number + step)]);
        }
      }
    });
    run.expect_close("sum of the tree", values[0], at::full({48}, run.threads * (run.threads + 1) / 2.0));
  }
}

// All threads add to one tensor at the same time. Each addition is whole on stock: one queue takes them in turn.
SCENARIO(hand_over_in_place) {
  start_streams();
  const at::Tensor sum = at::zeros({64}, kMPS);
  run.in_parallel([&](int number) {
    const c10::OptionalStreamGuard on(stream_of(number));
    for (int i = 0; i < run.iterations; ++i) sum.add_(1.0);
  });
  run.expect_close("sum", sum, at::full({64}, static_cast<double>(run.threads * run.iterations)));
}

// All threads read the same weights; one of them changes the weights in between.
SCENARIO(hand_over_weights) {
  start_streams();
  at::Generator first = run.generator(-1);
  const at::Tensor here = at::randn({12, 12}, first);
  const at::Tensor weight = here.to(at::kMPS);
  run.in_parallel([&](int number) {
    const c10::OptionalStreamGuard on(stream_of(number));
    at::Generator generator = run.generator(number);
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor input = at::randn({12, 12}, generator);
      const at::Tensor output = at::mm(input.to(at::kMPS), weight);
      run.meet();
      if (number == i % run.threads) weight.mul_(-1.0);
      run.meet();
      run.expect_close("mm with shared weights", output, at::mm(input, here) * (i % 2 == 0 ? 1.0 : -1.0));
    }
  });
}

// The reader drops the last reference, and the maker gets memory of that size again.
SCENARIO(hand_over_freed) {
  start_streams();
  std::vector<at::Tensor> letters(static_cast<size_t>(run.threads));
  run.in_parallel([&](int number) {
    const c10::OptionalStreamGuard on(stream_of(number));
    at::Tensor sum = at::zeros({64, 64}, kMPS);
    double expected = 0;
    for (int i = 0; i < run.iterations; ++i) {
      letters[static_cast<size_t>(number)] = at::full({64, 64}, number + i, kMPS);
      run.meet();
      const int from = (number + 1) % run.threads;
      sum = at::add(sum, letters[static_cast<size_t>(from)]);
      letters[static_cast<size_t>(from)] = at::Tensor();
      expected += from + i;
      run.meet();
    }
    run.expect_close("sum of letters", sum, at::full({64, 64}, expected));
  });
}

// Random programs: in each round a tensor is changed by one thread, or read by any number of them.
SCENARIO(hand_over_random) {
  start_streams();
  constexpr int kTensors = 6;
  constexpr double kMost = 1e3;  // so small that the least difference is beyond what expect_close() allows
  std::vector<at::Tensor> tensors;
  std::vector<double> expected;
  for (int i = 0; i < kTensors; ++i) {
    tensors.push_back(at::full({40}, i, kMPS));
    expected.push_back(i);
  }
  uint64_t state = run.seed * 2654435761u + 1;
  auto random = [&](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state >> 33) % below);
  };
  struct Step {
    int thread, to, from;
    bool replaces;
  };
  std::vector<std::vector<Step>> rounds;
  for (int i = 0; i < run.iterations; ++i) {
    std::vector<Step> round;
    std::vector<double> before = expected;
    for (int to = 0; to < kTensors; ++to) {
      if (to % 2 != i % 2) continue;  // the others are read in this round
      const int from = (to + 1 + 2 * random(kTensors / 2)) % kTensors;
      const Step step = {random(static_cast<uint64_t>(run.threads)), to, from, random(2) == 0};
      expected[static_cast<size_t>(to)] =
          (step.replaces ? 0 : before[static_cast<size_t>(to)]) + 1 + before[static_cast<size_t>(from)];
      while (expected[static_cast<size_t>(to)] > kMost) expected[static_cast<size_t>(to)] -= kMost;
      round.push_back(step);
    }
    rounds.push_back(round);
  }
  run.in_parallel([&](int number) {
    const c10::OptionalStreamGuard on(stream_of(number));
    std::vector<double> values;
    for (int i = 0; i < kTensors; ++i) values.push_back(i);
    for (const auto& round : rounds) {
      for (const Step& step : round) {
        const size_t to = static_cast<size_t>(step.to), from = static_cast<size_t>(step.from);
        double value = (step.replaces ? 0 : values[to]) + 1 + values[from];
        double less = 0;
        for (; value > kMost; value -= kMost) less += kMost;
        values[to] = value;
        if (step.thread != number) continue;
        if (step.replaces) {
          tensors[to] = at::add(tensors[from], 1.0 - less);
        } else {
          tensors[to].add_(tensors[from]).add_(1.0 - less);
        }
      }
      run.meet();
    }
  });
  for (int i = 0; i < kTensors; ++i) {
    run.expect_close("random program", tensors[static_cast<size_t>(i)],
                     at::full({40}, expected[static_cast<size_t>(i)]));
  }
}

// Nobody but the main thread has used mps when all threads begin; half of them begin in inference mode. The operators
// call others: a thread that changes its stream in the middle of one is not ordered with itself.
SCENARIO(first_use) {
  at::Generator first = run.generator(-1);
  const at::Tensor here = at::randn({16, 16}, first), bias_here = at::randn({16}, first);
  const at::Tensor weight = here.to(at::kMPS), bias = bias_here.to(at::kMPS);
  run.in_parallel([&](int number) {
    const c10::InferenceMode inference(number % 2 == 1);
    at::Generator generator = run.generator(number);
    // Whatever a thread counts, it is at another number in each of them when the layers begin.
    for (uint64_t i = 0; i < (run.seed + 3 * static_cast<uint64_t>(number)) % 16; ++i) at::relu(weight);
    for (int i = 0; i < run.iterations; ++i) {
      const at::Tensor input = at::randn({16, 16}, generator);
      at::Tensor output = at::linear(input.to(at::kMPS).t(), weight, bias);
      output = at::add(output, at::linear(at::relu(output), weight));
      const at::Tensor expected = at::linear(input.t(), here, bias_here);
      run.expect_close("two layers", output, expected + at::linear(at::relu(expected), here));
    }
  });
}

// Each thread that works has a stream of its own while it lives.
SCENARIO(stream_per_thread) {
  start_streams();
  for (int i = 0; i < run.iterations; ++i) {
    std::vector<c10::StreamId> ids(static_cast<size_t>(run.threads));
    run.in_parallel([&](int number) {
      const at::Tensor ones = at::ones({8}, kMPS);
      ids[static_cast<size_t>(number)] = stream_of_thread().id();
      run.meet();
      run.expect_close("ones", ones, at::ones({8}));
    });
    const std::set<c10::StreamId> different(ids.begin(), ids.end());
    const bool room = run.threads <= 31;
    run.expect(!room || (different.size() == ids.size() && different.count(0) == 0), "two threads have one stream");
    run.expect(!room || *different.rbegin() <= run.threads, "a slot that a thread returned is not used again");
  }
  run.expect(statistic("live") == 0, "slots are leased and no thread lives");
  run.expect(statistic("leases") >= std::min(run.threads, 31) * run.iterations, "leases are not counted");
}

// A thread that returns its slot leases again at its next operator.
SCENARIO(release_slot) {
  start_streams();
  run.in_parallel([&](int number) {
    for (int i = 0; i < run.iterations; ++i) {
      guard().exchangeStream(stream_of_thread());  // the one that it has: that changes nothing
      const at::Tensor value = at::full({8}, number, kMPS);
      mpsforge_hostmps_release_stream_slot();
      run.expect_close("after the release", at::add(value, 1.0), at::full({8}, number + 1.0));
    }
  });
  run.expect(statistic("leases") >= run.threads * run.iterations, "a release did not give the slot back");
}

// A thread has the same current stream before and after its first operator.
SCENARIO(current_stream) {
  start_streams();
  run.in_parallel([&](int number) {
    for (int i = 0; i < run.iterations; ++i) {
      const c10::StreamId asked = stream_of_thread().id();
      run.expect_close("a value", at::full({8}, number, kMPS), at::full({8}, number, at::kFloat));
      run.expect(stream_of_thread().id() == asked, "an operator has given the thread another current stream");
      mpsforge_hostmps_release_stream_slot();
    }
  });
}

// PYTORCH_MPS_STREAM_POOL_SIZE=3: two threads at a time have a stream, the others get an error.
SCENARIO(exhausted_error) {
  start_streams();
  std::atomic<int> leased{0}, refused{0};
  run.in_parallel([&](int) {
    try {
      const at::Tensor ones = at::ones({8}, kMPS);
      ++leased;
      run.expect_close("ones", ones, at::ones({8}));
    } catch (const c10::Error& error) {
      ++refused;
      run.expect(std::string(error.what()).find("PYTORCH_MPS_STREAM_POOL_SIZE") != std::string::npos, error.what());
    }
    run.meet();
  });
  run.expect(leased == std::min(run.threads, 2) && refused == run.threads - leased, "another number of leases");
}

// The same with wait: the others wait until a thread ends.
SCENARIO(exhausted_wait) {
  start_streams();
  std::atomic<int> leased{0};
  run.in_parallel([&](int number) {
    const at::Tensor value = at::full({8}, number, kMPS);
    ++leased;
    while (leased < std::min(run.threads, 2)) std::this_thread::yield();  // none ends before two have a stream
    run.expect(stream_of_thread().id() == 1 || stream_of_thread().id() == 2, "a stream beyond the pool's size");
    run.expect_close("full", at::add(value, 1.0), at::full({8}, number + 1.0));
  });
  run.expect(statistic("peak") == std::min(run.threads, 2), "another number of leases at once");
}

// A warning of each variable that says nothing.
SCENARIO(settings) {
  const Warnings warnings;
  at::ones({4}, kMPS);
  statistic("peak");  // else the first thread that leases a stream reads them
  for (const char* expected : {"PYTORCH_MPS_STREAM_POOL_SIZE=1 is not a whole number in 2..1024; using the default",
                               "PYTORCH_MPS_STREAM_POOL_EXHAUSTED=sometimes is not one of share, wait, wait:500, error",
                               "PYTORCH_MPS_SANITIZE: often is not one of warn, error, waits, poison"}) {
    run.expect(warnings.text().find(expected) != std::string::npos, "no such warning, but: " + warnings.text());
  }
}

// A forked child gets an error that says what to do; the parent goes on.
SCENARIO(fork) {
  start_streams();
  run.in_parallel([&](int number) {
    at::Tensor value = at::full({8}, number, kMPS);
    run.meet();
    if (number == 0) {
      std::optional<c10::StreamGuard> outer(new_stream()), inner(new_stream());
      const pid_t child = ::fork();
      if (child == 0) {
        int code = 1;
        try {
          inner.reset();  // does not bring back the stream that the parent had chosen
          try {
            at::mps::getIMPSAllocator()->setLowWatermarkRatio(1.4);
            _exit(5);
          } catch (const c10::Error&) {
          }
          const auto& allocator = *at::mps::getIMPSAllocator();
          const void* const buffer = value.storage().data();
          if (allocator.isSharedBuffer(buffer)) _exit(3);
          allocator.setBufferShape(buffer, {4, 2});
          if (!allocator.getBufferShape(buffer).empty()) _exit(4);
          value = at::Tensor();  // a free does nothing
          at::zeros({8}, kMPS);
        } catch (const c10::Error& error) {
          code = std::string(error.what()).find("'spawn'") != std::string::npos ? 0 : 2;
        }
        _exit(code);
      }
      run.expect(ends_well(child, std::chrono::seconds(10)), "the child got no error that names 'spawn'");
    }
    run.expect_close("the parent's tensor", at::add(value, 1.0), at::full({8}, number + 1.0));
  });
}

}  // namespace
}  // namespace mpsforge::hostmps
