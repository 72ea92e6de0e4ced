// scenarios --list | --stamp | NAME [--threads N] [--iterations N] [--seed N] [--warm 1] | --program|--record FILE...
//
// Runs one scenario, or programs of the reference pool, and prints one JSON object on standard output. Exit code 0: it
// ran to its end, whatever it found; 2: wrong arguments. Whatever else ends the process is a result, too.
#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <dlfcn.h>
#include <mpsforge/host.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "scenarios.h"
#include "script/json.h"

extern "C" const char mpsforge_stamp[];

// Of ThreadSanitizer's runtime; absent without it.
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line) __attribute__((weak));
extern "C" void AnnotateIgnoreWritesEnd(const char* file, int line) __attribute__((weak));

namespace mpsforge::hostmps {
namespace {

// Memory of the CPU under ThreadSanitizer. libtorch is not compiled with it, so it does not see that the count of
// references orders what one thread did with a storage before another releases it, and calls that release a race. So it
// is not shown the release of such memory.
class CPUMemory final : public c10::Allocator {
 public:
  at::DataPtr allocate(size_t size) override {
    at::DataPtr memory = c10::GetDefaultCPUAllocator()->allocate(size);
    memory.compare_exchange_deleter(c10::GetDefaultCPUAllocator()->raw_deleter(), &release);
    return memory;
  }
  at::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t size) const override { default_copy_data(to, from, size); }

 private:
  static void release(void* memory) {
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    c10::GetDefaultCPUAllocator()->raw_deleter()(memory);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  }
};

// What the loaded library says of itself, and where it was loaded from.
std::string identity() {
  Dl_info info{};
  const bool known = dladdr(mpsforge_stamp, &info) != 0 && info.dli_fname;
  return "\"library\":" + quoted(known ? info.dli_fname : "") + ",\"stamp\":" + quoted(mpsforge_stamp);
}

const Scenario* find(const char* name) {
  for (const Scenario& scenario : all_scenarios()) {
    if (scenario.name == name) return &scenario;
  }
  return nullptr;
}

int list() {
  std::string text;
  for (const auto& [kind, name, run] : all_scenarios()) {
    if (kind == Kind::benchmark) continue;
    text += (text.empty() ? "" : ",") + std::string("{\"name\":") + quoted(name) +
            ",\"operation\":" + (kind == Kind::operation ? "true" : "false") + "}";
  }
  std::printf("[%s]\n", text.c_str());
  return 0;
}

std::string describe_findings() {
  std::vector<mpsforge_host_finding> findings(64);
  const size_t count = mpsforge_host_findings(findings.data(), findings.size());
  if (count < findings.size()) findings.resize(count);
  // PyTorch keeps buffers, queues, events and graphs for ever. Command buffers and encoders are left by threads without
  // an autorelease pool, the main one too: the gather of v2.9.1's View.mm, stock's own, takes both outside of a pool.
  findings.erase(std::remove_if(findings.begin(), findings.end(),
                                [](const mpsforge_host_finding& finding) {
                                  return finding.kind == 3 &&
                                         std::strstr(finding.message, "left behind at the device's end");
                                }),
                 findings.end());
  std::string text;
  for (const auto& finding : findings) {
    text += (text.empty() ? "" : ",") + std::string("{\"kind\":") + std::to_string(finding.kind) +
            ",\"signature\":" + std::to_string(finding.signature) + ",\"message\":" + quoted(finding.message) +
            ",\"first\":" + quoted(finding.first) + ",\"second\":" + quoted(finding.second) +
            ",\"history\":" + quoted(finding.history) + "}";
  }
  return "\"finding_count\":" + std::to_string(findings.size()) + ",\"findings\":[" + text + "]";
}

std::string quoted_list(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& one : texts) all += (all.empty() ? "" : ",") + quoted(one);
  return all;
}

// To be called before the first thread is started.
void prepare_cpu() {
  at::set_num_threads(1);  // many threads run operators at once already
  // The CPU's linear makes static variables inside functions of libtorch 2.9.1. C++ makes each once, and a later thread
  // loads its guard before it is used. As libtorch is not compiled with ThreadSanitizer, that load is not seen, and two
  // first uses by threads are reported as a race.
  at::linear(at::ones({1, 1}), at::ones({1, 1}));
}

// Closes the software Metal, which a process on a Mac has to its very end: exit handlers that wait for the GPU would
// wait for ever for what is left.
void close_device() {
  try {
    hooks().deviceSynchronize();
  } catch (const std::exception&) {
    // that work has failed is what a scenario asks itself
  }
  mpsforge_host_close();
}

// With warm, one thread runs the scenario once before: what is made at first use is there when the threads start.
int run(const Scenario& scenario, int threads, int iterations, uint64_t seed, bool warm) {
  prepare_cpu();
  Run state(threads, iterations, seed);
  const auto started = std::chrono::steady_clock::now();
  std::string error;
  std::vector<std::string> before;  // errors of the warm run
  try {
    if (warm) {
      Run first(1, 1, seed + 1);
      scenario.run(first);
      before = first.errors();
      if (first.wrong() > 0) before.push_back(first.first_wrong());
    }
    scenario.run(state);
  } catch (const std::exception& failure) {
    error = failure.what();
    error = error.substr(0, error.find('\n'));
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
  close_device();
  auto all = state.errors();
  if (!error.empty()) all.push_back(error);
  mpsforge_host_statistics statistics{};
  mpsforge_host_get_statistics(&statistics);
  std::printf(
      "{\"scenario\":%s,\"threads\":%d,\"iterations\":%d,\"seed\":%llu,\"seconds\":%.3f,\"checked\":%llu,\"wrong\":%"
      "llu,"
      "\"first_wrong\":%s,\"errors\":[%s],\"warm_errors\":[%s],\"command_buffers\":%llu,\"commands\":%llu,%s,%s}\n",
      quoted(scenario.name).c_str(), threads, iterations, static_cast<unsigned long long>(seed), seconds.count(),
      static_cast<unsigned long long>(state.checked()), static_cast<unsigned long long>(state.wrong()),
      quoted(state.first_wrong()).c_str(), quoted_list(all).c_str(), quoted_list(before).c_str(),
      static_cast<unsigned long long>(statistics.command_buffers), static_cast<unsigned long long>(statistics.commands),
      describe_findings().c_str(), identity().c_str());
  std::fflush(stdout);
  return 0;
}

// Programs of the reference pool, with the times and values of their steps if asked.
int programs(const std::vector<std::string>& paths, bool record) {
  prepare_cpu();
  ProgramResults results;
  try {
    results = run_programs(paths, record);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "scenarios: %s\n", failure.what());
    return 2;
  }
  close_device();
  std::printf("{\"checked\":%llu,\"errors\":[%s],\"records\":[%s],%s,%s}\n",
              static_cast<unsigned long long>(results.steps), results.errors.c_str(), results.records.c_str(),
              describe_findings().c_str(), identity().c_str());
  std::fflush(stdout);
  return 0;
}

int usage(const char* what) {
  std::fprintf(
      stderr,
      "scenarios: %s\nusage: scenarios --list | --stamp | NAME [--threads N] [--iterations N] [--seed N] [--warm 1] | "
      "--program|--record FILE...\n",
      what);
  return 2;
}

int start(int count, char** words) {
  if (count < 2) return usage("no scenario named");
  if (std::strcmp(words[1], "--list") == 0) return list();
  if (std::strcmp(words[1], "--stamp") == 0) {
    std::printf("{%s}\n", identity().c_str());
    return 0;
  }
  const bool record = std::strcmp(words[1], "--record") == 0;
  if (record || std::strcmp(words[1], "--program") == 0) return programs({words + 2, words + count}, record);
  const Scenario* scenario = find(words[1]);
  if (!scenario) return usage((std::string("no scenario ") + words[1]).c_str());
  long threads = 2, iterations = 10;
  unsigned long long seed = 1;
  bool warm = false;
  for (int i = 2; i < count; i += 2) {
    if (i + 1 == count) return usage("a flag without its number");
    char* end = nullptr;
    const unsigned long long number = std::strtoull(words[i + 1], &end, 10);
    if (*end != '\0' || end == words[i + 1]) return usage("not a number");
    if (std::strcmp(words[i], "--threads") == 0 && number >= 1 && number <= 256) {
      threads = static_cast<long>(number);
    } else if (std::strcmp(words[i], "--iterations") == 0 && number >= 1 && number <= 1000000) {
      iterations = static_cast<long>(number);
    } else if (std::strcmp(words[i], "--seed") == 0) {
      seed = number;
    } else if (std::strcmp(words[i], "--warm") == 0 && number <= 1) {
      warm = number == 1;
    } else {
      return usage("unknown flag, or a number out of its range");
    }
  }
  return run(*scenario, static_cast<int>(threads), static_cast<int>(iterations), seed, warm);
}

}  // namespace
}  // namespace mpsforge::hostmps

int main(int count, char** words) {
  static mpsforge::hostmps::CPUMemory memory;
  if (AnnotateIgnoreWritesBegin) c10::SetCPUAllocator(&memory, /*priority=*/1);
  return mpsforge::hostmps::start(count, words);
}
