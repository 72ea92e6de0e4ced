// Runs the scenarios of the Metal classes, each in a process of its own. Usage: metal_test [SCENARIO]
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "metal_scenarios.h"

namespace mpsforge::objc::test {

void check(bool holds, const char* expression, const char* file, int line) {
  if (holds) return;
  std::fprintf(stderr, "%s:%d: not so: %s\n", file, line, expression);
  _exit(3);
}

id<MTLDevice> device() {
  static id<MTLDevice> const made = MTLCreateSystemDefaultDevice();
  return made;
}

id<MTLBuffer> shared_buffer(NSUInteger length) {
  return [device() newBufferWithLength:length options:MTLResourceStorageModeShared];
}

id<MTLCommandBuffer> fill(id<MTLCommandQueue> queue, id<MTLBuffer> buffer, NSRange range, uint8_t value) {
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  id<MTLBlitCommandEncoder> encoder = [commands blitCommandEncoder];
  [encoder fillBuffer:buffer range:range value:value];
  [encoder endEncoding];
  [commands commit];
  return commands;
}

}  // namespace mpsforge::objc::test

using namespace mpsforge::objc::test;

// The engine's threads live until the process ends.
extern "C" const char* __tsan_default_options() { return "report_thread_leaks=0"; }
// Scenarios leave queues and buffers behind.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

namespace {

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

// What a scenario prints to standard error, and how it ends.
std::string run(const Scenario& scenario, int* status) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  std::fflush(stdout);  // else the child prints it too
  const pid_t child = fork();
  if (child < 0) std::abort();
  if (child == 0) {
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    signal(SIGABRT, SIG_DFL);
    alarm(60);
    @autoreleasepool {
      scenario.run();
    }
    exit(0);
  }
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;) text.append(part, static_cast<size_t>(got));
  close(ends[0]);
  waitpid(child, status, 0);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Scenario> all = behaviour_scenarios();
  for (const auto& more : {misuse_scenarios(), thread_scenarios()}) all.insert(all.end(), more.begin(), more.end());
  int ran = 0, failed = 0;
  for (const Scenario& scenario : all) {
    if (argc > 1 && std::strcmp(argv[1], scenario.name) != 0) continue;
    if (scenario.sanitized_only && !kSanitized) continue;
    int status = 0;
    const std::string text = run(scenario, &status);
    const bool ended_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    const bool right =
        scenario.message ? !ended_well && text.find(scenario.message) != std::string::npos : ended_well && text.empty();
    ++ran;
    if (right) continue;
    ++failed;
    std::printf("FAIL %s: status %d, wanted %s%s, printed:\n%s\n", scenario.name, status,
                scenario.message ? "an end with " : "a good end", scenario.message ? scenario.message : "",
                text.c_str());
  }
  std::printf("%d scenarios ran, %d failed\n", ran, failed);
  return ran > 0 && failed == 0 ? 0 : 1;
}
