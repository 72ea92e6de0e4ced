// Command buffers that fail on the GPU: who waits for what they were to compute gets an exception, and later work is
// right.
#include <ATen/mps/MPSAllocatorInterface.h>
#include <ATen/mps/MPSStream.h>
#include <ATen/native/mps/OperationUtils.h>
#include <c10/core/Event.h>
#include <pthread.h>

#include <thread>

#include "scenarios.h"

// Of the Objective-C runtime of host builds: how many objects the thread's autorelease pools hold.
extern "C" void* objc_autoreleasePoolPush(void);

namespace mpsforge::hostmps {
namespace {

// Of the error that the software Metal gives to a command buffer that was asked to fail.
const char* const kError = "(injected)";

// A sum of which a part fails.
at::Tensor failing_sum(const at::Tensor& input) {
  mpsforge_hostmps_fail_command_buffer(1);
  return at::sum(at::add(input, 1.0));
}

struct Place {
  const char* name;
  std::function<void(const at::Tensor&)> consume;  // must raise
};

const std::vector<Place>& places() {
  static const std::vector<Place> all = {
      {"item", [](const at::Tensor& input) { failing_sum(input).item(); }},
      {"copy to the CPU", [](const at::Tensor& input) { at::add(failing_sum(input), 1.0).cpu(); }},
      {"copy to the CPU of another type", [](const at::Tensor& input) { failing_sum(input).to(at::kCPU, at::kHalf); }},
      {"nonzero, whose count is read", [](const at::Tensor& input) { at::nonzero(failing_sum(input)); }},
      {"synchronize",
       [](const at::Tensor& input) {
         failing_sum(input);
         hooks().deviceSynchronize();
       }},
      {"synchronize of the stream",
       [](const at::Tensor& input) {
         failing_sum(input);
         stream_of_thread().synchronize();
       }},
      {"synchronize of an event",
       [](const at::Tensor& input) {
         failing_sum(input);
         c10::Event event(at::kMPS);
         event.record(stream_of_thread());
         event.synchronize();
       }},
      {"a wait, after the stream was to go on without work",
       [](const at::Tensor& input) {
         at::mps::MPSStream* stream = at::mps::getCurrentMPSStream();
         stream->synchronize(at::mps::SyncType::COMMIT_AND_WAIT);
         stream->synchronize(at::mps::SyncType::COMMIT_AND_CONTINUE);
         failing_sum(input);
         hooks().deviceSynchronize();
       }},
      {"another stream, whose thread has ended",
       [](const at::Tensor& input) {
         at::Tensor sum;
         std::thread maker([&] { sum = failing_sum(input); });
         maker.join();
         at::add(sum, 1.0).item();
       }},
  };
  return all;
}

// Each thread in turn consumes what failed, in every place; between them the threads compute right values.
SCENARIO(failed_work) {
  at::globalContext().hasMPS();
  const at::Tensor input = at::ones({64});
  std::atomic<bool> raises{true};
  run.in_parallel([&](int) {
    const at::Tensor there = input.to(at::kMPS);
    for (int i = 0; i < run.iterations && raises; ++i) {
      for (const Place& place : places()) {
        run.meet();
        const uint64_t wrong = run.wrong();
        run.expect_error(place.name, kError, [&] { place.consume(there); });
        // what is silent here may wait for ever in the next place
        if (run.wrong() != wrong) raises = false;
        run.meet();
        if (!raises) return;
        raise_all<c10::Error>();
        run.meet();
        run.expect_close("later work", at::sum(at::add(there, 2.0)), at::full({}, 192.0));
      }
    }
  });
}

// In a block on a queue, who waits for the event of work that has failed gets no exception, which would end the
// process; the next wait off the queue raises.
SCENARIO(failed_work_in_blocks) {
  const at::Tensor there = at::ones({64}).to(at::kMPS);
  for (int i = 0; i < run.iterations; ++i) {
    failing_sum(there);
    const uint32_t event = hooks().acquireEvent(false);
    hooks().recordEvent(event);
    dispatch_sync(dispatch_queue(), ^() {
      hooks().synchronizeEvent(event);
    });
    hooks().releaseEvent(event);
    run.expect_error("the next wait", kError, [] { hooks().deviceSynchronize(); });
    raise_all<c10::Error>();
    run.expect_close("later work", at::sum(at::add(there, 2.0)), at::full({}, 192.0));
  }
}

// The call ends in an error whose text has the first words and none of the others.
void expect_text(Run& run, const std::string& what, const std::function<void()>& call,
                 const std::vector<std::string>& words, const std::vector<std::string>& others) {
  std::string wrong = what + ": no error";
  try {
    call();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    wrong.clear();
    for (const std::string& word : words) {
      if (text.find(word) == std::string::npos) wrong = what + ": no \"" + word + "\" in: " + text;
    }
    for (const std::string& word : others) {
      if (text.find(word) != std::string::npos) wrong = what + ": \"" + word + "\" in: " + text;
    }
  }
  raise_all<c10::Error>();
  run.expect(wrong.empty(), wrong);
}

at::Tensor failing_product(const at::Tensor& input) {
  mpsforge_hostmps_fail_command_buffer(1);
  return at::mul(input, 2.0);
}

// Metal ends a command buffer that waits too long for another stream's. So by the time that a thread has enqueued what
// uses the last of many command buffers, or waits for its event, most of these are done.
SCENARIO(long_backlog) {
  constexpr size_t kCommandBuffers = 16, kMayBeLeft = 6;  // 4, and the two that are open when the GPU's wait is encoded
  std::vector<std::unique_ptr<c10::Event>> events(kCommandBuffers);
  at::Tensor last;
  c10::StreamId of_first = 0;
  run.in_parallel([&](int number) {
    for (int i = 0; i < run.iterations; ++i) {
      if (number == 0) {
        last = at::full({256, 256}, 1.0, kMPS);
        of_first = stream_of_thread().id();
        for (auto& event : events) {
          last = at::mm(last, last).div(256.0);
          event = std::make_unique<c10::Event>(at::kMPS);
          event->record(stream_of_thread());
        }
      }
      run.meet();
      if (number == 1 && i % 2) events.back()->block(stream_of_thread());
      const at::Tensor sum = at::add(last, 1.0);
      if (stream_of_thread().id() != of_first) {
        run.expect(events[kCommandBuffers - 1 - kMayBeLeft]->query(),
                   "the GPU is to wait for more than a few command buffers of another stream");
      }
      run.expect_close("sum", sum, at::full({256, 256}, 2.0));
      run.meet();
    }
  });
}

// The same where MPSGraph commits by itself.
SCENARIO(failed_work_in_graphs) { failed_work(run); }

// Threads take turns, because another one's work outside of operators makes each commit what it has, and no more of
// them take part than there are streams for.
void in_turns(Run& run, const std::function<void(const at::Tensor&)>& body) {
  constexpr int kThreads = 10;
  at::globalContext().hasMPS();
  std::mutex turn;
  run.in_parallel([&](int number) {
    for (int i = 0; i < run.iterations && number < kThreads; ++i) {
      const std::lock_guard<std::mutex> lock(turn);
      raise_all<c10::Error>();  // what the others' work has come to
      const at::Tensor ones = at::ones({64}).to(at::kMPS);
      at::neg(ones).cpu();  // a command buffer that does not fail
      body(ones);
    }
  });
}

SCENARIO(failed_operators) {
  in_turns(run, [&](const at::Tensor& ones) {
    expect_text(run, "item", [&] { at::sum(failing_product(ones)).item(); },
                {kError, "with work of mul_Tensor, sum_dim_IntList, mps_copy_ (thread "}, {"neg", "others"});
    uint64_t thread = 0;
    at::Tensor product;
    std::thread maker([&] {
      thread = reinterpret_cast<uint64_t>(pthread_self());
      product = failing_product(ones);
    });
    maker.join();
    const at::Tensor opposite = at::neg(ones);  // in a command buffer of this thread's stream
    expect_text(run, "another thread", [&] { at::sub(product, opposite).cpu(); },
                {"with work of mul_Tensor (thread " + std::to_string(thread) + ")"}, {"neg", "sub"});
    expect_text(run, "an operator on another stream, which commits the first one's work",
                [&] {
                  const at::Tensor product = failing_product(ones);
                  const c10::StreamGuard on_default(guard().getDefaultStream(at::Device(at::kMPS, 0)));
                  at::sub(product, ones).cpu();
                },
                {"with work of mul_Tensor (thread "}, {"neg", "sub"});
    expect_text(
        run, "an operator given again, after others",
        [&] {
          const at::Tensor first = failing_product(ones);
          at::Tensor last = at::exp(first);
          for (const auto function : {at::sin, at::cos, at::neg, at::abs, at::sqrt, at::log, at::tanh, at::exp}) {
            last = function(last);
          }
          last.cpu();
        },
        {"work of others, cos, neg, out_abs_out, sqrt, log, tanh, exp, mps_copy_ (thread "}, {"mul_Tensor", ", sin,"});
    expect_text(run, "code outside of operators",
                [&] {
                  at::mps::MPSStream* stream = at::mps::getCurrentMPSStream();
                  mpsforge_hostmps_fail_command_buffer(1);
                  stream->fill(at::native::mps::getMTLBufferStorage(ones), 0, ones.nbytes(), 0);
                  stream->synchronize(at::mps::SyncType::COMMIT_AND_WAIT);
                },
                {"with work of code outside of PyTorch's operators (thread "}, {"neg"});
    run.expect_close("later work", at::sum(ones), at::full({}, 64.0));
  });
}

// MPSGraph commits within the sum, which PyTorch 2.6.0 and 2.9.1 both compute by a graph of its own.
SCENARIO(failed_operators_in_graphs) {
  in_turns(run, [&](const at::Tensor& ones) {
    expect_text(run, "item",
                [&] {
                  mpsforge_hostmps_fail_command_buffer(1);
                  at::exp(at::sum(ones)).item();
                },
                {kError, "with work of sum_dim_IntList (thread "}, {"neg", "exp"});
  });
}

// A copy that raises lets go of the buffer that it made over the CPU's memory.
SCENARIO(failed_copies) {
  in_turns(run, [&](const at::Tensor& ones) {
    const auto fail = [&] {
      run.expect_error("copy to the CPU", kError, [&] { failing_product(ones).cpu(); });
      run.expect_error("copy from the CPU", kError, [&] {
        failing_product(ones);
        at::empty_like(ones).copy_(at::ones({64}));
      });
      raise_all<c10::Error>();
    };
    const auto allocated = [] { return at::mps::getIMPSAllocator()->getDriverAllocatedMemory(); };
    fail();  // what is made once
    const size_t before = allocated();
    for (int i = 0; i < 20; ++i) fail();
    const auto let_go = [&] { return allocated() <= before; };
    wait_for(let_go);  // command buffers let go of their memory after the wait for them
    run.expect(let_go(), "the device has more memory allocated than before the copies that failed");
  });
}

// A thread of Python has no autorelease pool: what a commit leaves there is kept as long as the thread lives.
SCENARIO(commits_without_pool) {
  run.in_parallel([&](int) {
    const at::Tensor ones = at::ones({16}, kMPS);
    const auto use = [&] {
      const at::Tensor sums = at::add(ones, 1.0);
      stream_of_thread().synchronize();  // commits what the kernel has encoded
      run.expect_close("sums", sums.cpu(), at::full({16}, 2.0));
    };
    use();  // the first one may make what stays
    const void* before = objc_autoreleasePoolPush();
    for (int i = 0; i < run.iterations; ++i) {
      use();
    }
    run.expect(objc_autoreleasePoolPush() == before, "the thread's autorelease pool holds as many objects as before");
  });
}

}  // namespace
}  // namespace mpsforge::hostmps
