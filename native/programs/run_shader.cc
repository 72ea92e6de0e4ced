// Compiles a file in Metal's language and runs one of its kernels, for package fork/hostbuild/msl:
//   run_shader compile TOOLCHAIN FILE [NAME=VALUE...]  prints the path of the library that it made, or what is wrong
//   run_shader list SECONDS LIBRARY                    prints the kernels
//   run_shader run SECONDS LIBRARY                     runs what standard input asks for, and prints what comes of it
// What the library's code prints itself goes to standard error.
#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "msl/compile.h"
#include "shaders/run.h"

using namespace mpsforge::shaders;

namespace {

constexpr rlim_t kMemory = rlim_t{4} << 30;
constexpr rlim_t kFiles = 16;
constexpr size_t kAlignment = 256;
constexpr int kFrames = 16, kFindings = 8;
constexpr size_t kSignalStack = 64 << 10;

int answers = 1;                     // file descriptor
const void* library_base = nullptr;  // of the shader's

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

void answer(const void* data, size_t size) {
  for (auto* at = static_cast<const char*>(data); size > 0;) {
    const ssize_t written = write(answers, at, size);
    if (written <= 0) _exit(1);
    at += written;
    size -= static_cast<size_t>(written);
  }
}
void answer(const std::string& text) { answer(text.data(), text.size()); }

// Where the frame's function and its callers are in the library, as far as they are.
void answer_places(const void* const* frame) {
  for (int i = 0; frame && i < kFrames; ++i) {
    Dl_info info;
    if (!dladdr(frame[1], &info) || info.dli_fbase != library_base) return;
    char text[32];
    const auto offset = static_cast<const char*>(frame[1]) - static_cast<const char*>(library_base) - 1;
    answer(text, static_cast<size_t>(std::snprintf(text, sizeof text, " %zx", static_cast<size_t>(offset))));
    const auto* next = static_cast<const void* const*>(frame[0]);
    frame = next > frame ? next : nullptr;
  }
}

void on_signal(int signal, siginfo_t*, void* context) {
  const auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  const void* const here[2] = {reinterpret_cast<const void*>(machine.gregs[REG_RBP]),
                               reinterpret_cast<const void*>(machine.gregs[REG_RIP] + 1)};
#else
  const void* const here[2] = {reinterpret_cast<const void*>(machine.regs[29]),
                               reinterpret_cast<const void*>(machine.pc + 1)};
#endif
  char text[32];
  answer(text, static_cast<size_t>(std::snprintf(text, sizeof text, "signal %d", signal)));
  // The stack that it came from may be above or below this one.
  Dl_info info;
  if (dladdr(here[1], &info) && info.dli_fbase == library_base) {
    const void* const first[2] = {nullptr, here[1]};
    answer_places(first);
    answer_places(static_cast<const void* const*>(here[0]));
  }
  answer("\n", 1);
  _exit(3);
}

// The library's code runs from here on.
const Library& load(const char* seconds, const char* path, decltype(&mpsforge_shaders_run)& run) {
  const auto limit = [](int what, rlim_t most) {
    const rlimit both{most, most};
    if (setrlimit(what, &both) != 0) fail(std::string("a limit cannot be set: ") + std::strerror(errno));
  };
  const rlim_t time = std::strtoul(seconds, nullptr, 10);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_NOFILE, kFiles);
  limit(RLIMIT_AS, kMemory);
  limit(RLIMIT_CPU, time + 2);
  static char signal_stack[kSignalStack];
  const stack_t stack{signal_stack, 0, sizeof signal_stack};
  sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGALRM, SIGXCPU}) {
    sigaction(signal, &action, nullptr);
  }
  answers = dup(1);
  if (answers < 0 || dup2(2, 1) < 0) fail("there is no file descriptor left");
  const itimerval timer{{}, {static_cast<time_t>(time), 0}};
  setitimer(ITIMER_REAL, &timer, nullptr);
  void* loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!loaded) fail(dlerror());
  const auto table = reinterpret_cast<decltype(&mpsforge_shaders)>(dlsym(loaded, "mpsforge_shaders"));
  run = reinterpret_cast<decltype(&mpsforge_shaders_run)>(dlsym(loaded, "mpsforge_shaders_run"));
  Dl_info info;
  if (!table || !run || !dladdr(reinterpret_cast<const void*>(table), &info)) fail("it is no library of kernels");
  library_base = info.dli_fbase;
  return table()->libraries[0];
}

int compile(int count, char** args) {
  mpsforge::msl::Toolchain toolchain;
  const std::string problem = toolchain.read(args[0]);
  if (!problem.empty()) fail(problem);
  std::ifstream file(args[1], std::ios::binary);
  std::ostringstream source;
  source << file.rdbuf();
  if (!file) fail(std::string("cannot read ") + args[1]);
  mpsforge::msl::Macros macros;
  for (int i = 2; i < count; ++i) {
    const std::string macro = args[i];
    const size_t equals = macro.find('=');
    macros.emplace_back(macro.substr(0, equals), equals == std::string::npos ? "1" : macro.substr(equals + 1));
  }
  const auto made = mpsforge::msl::compile(toolchain, source.str(), macros);
  std::printf("%s", made.error.empty() ? made.library.c_str() : made.error.c_str());
  return made.error.empty() ? 0 : 3;
}

int list(const char* seconds, const char* path) {
  decltype(&mpsforge_shaders_run) run;
  const Library& library = load(seconds, path, run);
  std::ostringstream text;
  for (uint32_t i = 0; i < library.kernel_count; ++i) {
    const Kernel& kernel = library.kernels[i];
    text << "kernel " << kernel.name << "\n";
    for (uint32_t k = 0; k < kernel.argument_count; ++k) {
      const Argument& a = kernel.arguments[k];
      text << "argument " << static_cast<uint32_t>(a.kind) << " " << a.index << " " << a.access << " " << a.size << " "
           << (*a.type ? a.type : "-") << " " << a.name << "\n";
    }
  }
  answer(text.str());
  return 0;
}

// Memory of an argument; which of its bytes the kernel has read and written, a bit for each.
struct Memory {
  uint32_t place;
  size_t length;
  std::vector<char> bytes;
  std::vector<uint64_t> read, written;
  std::vector<uint8_t> read_pages, written_pages;

  explicit Memory(size_t length)
      : length(length),
        bytes(length + kAlignment),
        read(length / 64 + 2),
        written(read),
        read_pages((length >> Touched::kPage) + 2),
        written_pages(read_pages) {}
  char* data() {
    return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(bytes.data()) + kAlignment - 1) / kAlignment *
                                   kAlignment);
  }
};

int findings = 0;

void refuse(void* owner, const Refused& what) {
  if (findings++ >= kFindings) return;
  std::ostringstream text;
  text << "finding " << static_cast<uint32_t>(what.problem) << " " << what.slot << " "
       << static_cast<int64_t>(what.offset) << " " << what.size << " " << what.access;
  for (const uint32_t at : what.thread) text << " " << at;
  text << " " << what.other_access;
  for (const uint32_t at : what.other) text << " " << at;
  answer(text.str());
  if (what.problem != Problem::Divergence) answer_places(static_cast<Run*>(owner)->frame);
  answer("\n");
}

int run(const char* seconds, const char* path) {
  decltype(&mpsforge_shaders_run) start;
  const Library& library = load(seconds, path, start);
  static Run run;
  const Kernel* kernel = nullptr;
  std::vector<Memory> memory;
  memory.reserve(kArguments);
  for (std::string word; std::cin >> word && word != "run";) {
    if (word == "kernel") {
      std::cin >> word;
      for (uint32_t i = 0; i < library.kernel_count; ++i) {
        if (word == library.kernels[i].name) kernel = &library.kernels[i];
      }
    } else if (word == "threads") {
      std::cin >> run.threads[0] >> run.threads[1] >> run.threads[2];
    } else if (word == "group") {
      std::cin >> run.group[0] >> run.group[1] >> run.group[2];
    } else if (word == "races") {
      std::cin >> run.check_races;
    } else if (word == "memory") {
      uint32_t place = 0;
      size_t length = 0;
      std::cin >> place >> length;
      std::cin.get();
      if (place >= kArguments || memory.size() == kArguments) fail("there is no such argument");
      Memory& m = memory.emplace_back(length);
      m.place = place;
      std::cin.read(m.data(), static_cast<std::streamsize>(length));
      const uint32_t slot = run.slot_count++;
      run.slots[slot] = {uint64_t{slot} << kTagShift | reinterpret_cast<uint64_t>(m.data()),
                         length,
                         {m.read.data(), m.read_pages.data()},
                         {m.written.data(), m.written_pages.data()},
                         false};
      run.arguments[place] = run.slots[slot].base;
    }
  }
  if (!kernel || !std::cin) fail("the request is not whole");
  for (uint32_t slot = 1; slot < run.slot_count; ++slot) {
    run.slots[slot].of_group = kernel->arguments[memory[slot - 1].place].kind == ArgumentKind::Threadgroup;
  }
  run.owner = &run;
  run.resolve = [](void*, uint64_t) -> uint32_t { return 0; };
  run.refuse = refuse;
  start(kernel, &run);
  const itimerval none{};
  setitimer(ITIMER_REAL, &none, nullptr);
  for (Memory& m : memory) {
    answer("memory " + std::to_string(m.place) + "\n");
    answer(m.data(), m.length);
    answer(m.written.data(), (m.length + 7) / 8);
  }
  answer("done " + std::to_string(findings) + "\n");
  return 0;
}

}  // namespace

int main(int count, char** args) {
  const std::string what = count > 1 ? args[1] : "";
  if (what == "compile" && count >= 4) return compile(count - 2, args + 2);
  if (what == "list" && count == 4) return list(args[2], args[3]);
  if (what == "run" && count == 4) return run(args[2], args[3]);
  fail("usage: run_shader compile TOOLCHAIN FILE [NAME=VALUE...] | list SECONDS LIBRARY | run SECONDS LIBRARY");
}
