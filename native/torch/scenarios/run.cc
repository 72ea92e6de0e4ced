#include <ATen/CPUGeneratorImpl.h>
#include <mpsforge/host.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <sstream>
#include <thread>

#include "scenarios.h"

namespace mpsforge::hostmps {
namespace {

// Made at its first use, which is before main.
std::vector<Scenario>& added() {
  static std::vector<Scenario> all;
  return all;
}

}  // namespace

bool add_scenario(Kind kind, const char* identifier, void (*run)(Run&)) {
  std::string name = identifier;
  std::replace(name.begin(), name.end(), '_', '-');
  added().push_back({kind, name, run});
  return true;
}

const std::vector<Scenario>& all_scenarios() { return added(); }

void Run::expect(bool holds, const std::string& what) {
  // Relaxed: counting must not order threads.
  checked_.fetch_add(1, std::memory_order_relaxed);
  if (holds) return;
  wrong_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard<std::mutex> lock(mutex_);
  if (first_wrong_.empty()) first_wrong_ = what;
}

void Run::expect_error(const std::string& what, const std::string& word, const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    expect(text.find(word) != std::string::npos, what + ": an error without \"" + word + "\": " + text);
    return;
  }
  expect(false, what + ": no error");
}

void Run::expect_close(const char* what, const at::Tensor& found, const at::Tensor& expected) {
  const at::Tensor here = found.cpu();
  std::ostringstream difference;
  bool same = here.sizes() == expected.sizes() && here.dtype() == expected.dtype();
  if (!same) {
    difference << what << ": " << here.dtype() << here.sizes() << " instead of " << expected.dtype()
               << expected.sizes();
  } else if (!at::isFloatingType(expected.scalar_type()) && !at::isComplexType(expected.scalar_type())) {
    same = at::equal(here, expected);
    if (!same) difference << what << ": other values";
  } else {
    const bool half = expected.element_size() == 2;
    const double tolerance = half ? 2e-2 : 2e-4;
    same = at::allclose(here, expected, tolerance, half ? 1e-2 : 1e-4, /*equal_nan=*/true);
    if (!same) {
      const at::Tensor off = (here.to(at::kFloat) - expected.to(at::kFloat)).abs();
      difference << what << ": off by up to " << off.max().item<float>() << " at " << off.argmax().item<int64_t>()
                 << " of " << off.numel();
    }
  }
  expect(same, difference.str());
}

void Run::in_parallel(const std::function<void(int)>& body) {
  std::atomic<bool> go{false};
  std::atomic<int> ready{0};
  std::vector<std::thread> running;
  // Starting and joining orders threads; the checker of GPU work does not see std::thread.
  const int birth = 0;
  mpsforge_host_order_release(&birth);
  for (int number = 0; number < threads; ++number) {
    running.emplace_back([&, number] {
      mpsforge_host_order_acquire(&birth);
      mpsforge_host_name_thread(("worker " + std::to_string(number)).c_str());
      ++ready;
      while (!go.load(std::memory_order_relaxed)) std::this_thread::yield();
      try {
        body(number);
      } catch (const std::exception& error) {
        std::lock_guard<std::mutex> lock(mutex_);
        std::istringstream text(error.what());
        std::string line;
        std::getline(text, line);
        errors_.push_back("thread " + std::to_string(number) + ": " + line);
      }
      mpsforge_host_order_release(&running);
    });
  }
  while (ready.load() < threads) std::this_thread::yield();
  // Relaxed, so that ThreadSanitizer sees no order between the threads' first steps.
  go.store(true, std::memory_order_relaxed);
  for (std::thread& thread : running) thread.join();
  mpsforge_host_order_acquire(&running);
}

void Run::meet() {
  const int meeting = meeting_.load();
  mpsforge_host_order_release(&meeting_);
  if (++arrived_ == threads) {
    arrived_ = 0;
    ++meeting_;
  } else {
    while (meeting_.load() == meeting) std::this_thread::yield();
  }
  mpsforge_host_order_acquire(&meeting_);
}

at::Generator Run::generator(int thread) const {
  return at::detail::createCPUGenerator(seed * 1000003 + static_cast<uint64_t>(thread));
}

std::string Run::first_wrong() {
  std::lock_guard<std::mutex> lock(mutex_);
  return first_wrong_;
}

std::vector<std::string> Run::errors() {
  std::lock_guard<std::mutex> lock(mutex_);
  return errors_;
}

bool ends_well(pid_t child, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kPause(10);
  int status = -1;
  for (auto left = patience; left.count() > 0 && waitpid(child, &status, WNOHANG) == 0; left -= kPause) {
    std::this_thread::sleep_for(kPause);
  }
  if (status == -1) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace mpsforge::hostmps
