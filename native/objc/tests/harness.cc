#include "harness.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

extern "C" void* objc_autoreleasePoolPush(void);
extern "C" void objc_autoreleasePoolPop(void* pool);

// The engine's threads live until the process ends.
extern "C" const char* __tsan_default_options() { return "report_thread_leaks=0"; }
// Objects that end with the process are no leaks that matter.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

namespace mpsforge::objc::test {
namespace {

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool kThreads = true;
#else
constexpr bool kThreads = false;
#endif
#if __has_feature(address_sanitizer)
constexpr bool kAddresses = true;
#else
constexpr bool kAddresses = false;
#endif
#endif
constexpr int kThreadSanitizerFound = 66;

std::vector<Case>& all_cases() {
  static std::vector<Case> all;
  return all;
}

void run_child(const Case& each) {
  signal(SIGABRT, SIG_DFL);
  alarm(60);
  if (each.environment) putenv(const_cast<char*>(each.environment));
  void* pool = objc_autoreleasePoolPush();
  each.run();
  objc_autoreleasePoolPop(pool);
  std::exit(0);
}

// What it printed to standard error, and how it ended.
std::string run_alone(const Case& each, int* status) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  std::fflush(stdout);  // else the child prints it too
  const pid_t child = fork();
  if (child < 0) std::abort();
  if (child == 0) {
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    run_child(each);
  }
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;) text.append(part, static_cast<size_t>(got));
  close(ends[0]);
  waitpid(child, status, 0);
  return text;
}

bool wanted(const Case& each, int argc, char** argv) {
  if (each.kind == Case::kThreadSanitizer && !kThreads) return false;
  if (each.kind == Case::kPlain && (kThreads || kAddresses)) return false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], each.name) == 0) return true;
  }
  return argc == 1;
}

}  // namespace

void check(bool holds, const char* expression, const char* file, int line) {
  if (holds) return;
  std::fprintf(stderr, "%s:%d: not so: %s\n", file, line, expression);
  _exit(3);
}

bool add(const Case& one) {
  all_cases().push_back(one);
  return true;
}

int run_cases(int argc, char** argv) {
  int ran = 0;
  int failed = 0;
  for (const Case& each : all_cases()) {
    if (!wanted(each, argc, argv)) continue;
    int status = 0;
    const std::string text = run_alone(each, &status);
    // By an abort, or by ThreadSanitizer: a failed CHECK and the alarm end a process too.
    const bool died = WIFSIGNALED(status) ? WTERMSIG(status) == SIGABRT : WEXITSTATUS(status) == kThreadSanitizerFound;
    const bool right =
        each.message ? died && text.find(each.message) != std::string::npos : status == 0 && text.empty();
    ++ran;
    if (right) continue;
    ++failed;
    std::printf("FAIL %s: status %d, wanted %s%s, printed:\n%s\n", each.name, status,
                each.message ? "an end with " : "a good end", each.message ? each.message : "", text.c_str());
  }
  std::printf("%d scenarios ran, %d failed\n", ran, failed);
  return ran > 0 && failed == 0 ? 0 : 1;
}

}  // namespace mpsforge::objc::test
