#include "compile.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "rewrite.h"

extern char** environ;

namespace mpsforge::msl {
namespace {

constexpr rlim_t kSeconds = 60;
constexpr rlim_t kMemory = rlim_t{4} << 30;
constexpr auto kPoll = std::chrono::milliseconds(1);

// The source's text is compiled with these. The checks before accesses are AddressSanitizer's, as calls (hooks.cc);
// vectors would hide what a thread touches.
const std::vector<std::string>& code_flags() {
  static const std::vector<std::string> flags = {"-std=c++20",
                                                 "-O1",
                                                 "-fPIC",
                                                 "-fvisibility=hidden",
                                                 "-w",
                                                 "-fdeclspec",
                                                 "-fsigned-char",
                                                 "-fno-exceptions",
                                                 "-fno-finite-loops",  // else one that does not end becomes any code
                                                 "-fno-rtti",
                                                 "-fno-vectorize",
                                                 "-fno-slp-vectorize",
                                                 "-ffp-contract=off",
                                                 "-ferror-limit=20",
                                                 "-fno-color-diagnostics",
                                                 "-Xclang",
                                                 "-cl-single-precision-constant",
                                                 "-Xclang",
                                                 "-ffloat16-excess-precision=none",
                                                 "-fsanitize=kernel-address",
                                                 "-fsanitize=array-bounds",
                                                 "-mllvm",
                                                 "-asan-instrumentation-with-call-threshold=0",
                                                 "-mllvm",
                                                 "-asan-stack=0",
                                                 "-mllvm",
                                                 "-asan-globals=0",
                                                 "-mllvm",
                                                 "-asan-opt-same-temp=0",
                                                 "-mllvm",
                                                 "-asan-instrument-atomics=0",
                                                 "-mllvm",
                                                 "-asan-kernel-mem-intrinsic-prefix=1"};
  return flags;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return !file.fail();
}

// Finds the place in the cache; what is found there is compared, so nothing depends on this being unique.
std::string short_name(const std::string& text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  char name[17];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(hash));
  return name;
}

// Runs a program in the folder, with its input and outputs in files there; returns why it failed, or nothing.
std::string run(const std::vector<std::string>& args, const std::string& input, const std::string& output,
                const std::string& errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, input.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  std::vector<char*> argv;
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) return args[0] + " does not start: " + std::strerror(failed);
  const struct rlimit time = {kSeconds, kSeconds}, memory = {kMemory, kMemory};
  prlimit(child, RLIMIT_CPU, &time, nullptr);
  prlimit(child, RLIMIT_AS, &memory, nullptr);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2 * kSeconds);
  int status = 0;
  for (pid_t done = 0; done == 0;) {
    done = waitpid(child, &status, WNOHANG);
    if (done < 0 && errno == EINTR) done = 0;
    if (done < 0) return std::string("the compiler's end is not known: ") + std::strerror(errno);
    if (done == 0 && std::chrono::steady_clock::now() > end) kill(child, SIGKILL);
    if (done == 0) std::this_thread::sleep_for(kPoll);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  std::string said = read_file(errors);
  if (!said.empty()) return said;
  return WIFSIGNALED(status) ? "the compiler was stopped by signal " + std::to_string(WTERMSIG(status)) +
                                   "; it may use a minute and 4 GiB\n"
                             : "the compiler failed, and says nothing of it\n";
}

// What the compiler says of the shader alone: notes on headers that nobody has written an error in are left out.
std::string readable(const std::string& said) {
  std::istringstream lines(said);
  std::string result, line;
  bool keep = true;
  while (std::getline(lines, line)) {
    const bool note = line.find(": note: ") != std::string::npos;
    if (note || line.find(": error: ") != std::string::npos || line.find("In file included") == 0) {
      keep = !note || line.find("program_source:") == 0;
      if (line.find("In file included") == 0) keep = false;
    }
    if (keep) result += line + "\n";
  }
  return result;
}

// All but the library, and what it is of.
void remove_rest(const std::string& folder) {
  for (const char* name : {"source", "preprocessed", "shader.ii", "shader.o", "errors", "output"}) {
    unlink((folder + "/" + name).c_str());
  }
}

void remove_all(const std::string& folder) {
  remove_rest(folder);
  unlink((folder + "/library.so").c_str());
  unlink((folder + "/whole").c_str());
  rmdir(folder.c_str());
}

// The line with a directive that puts any file's bytes into the program; 0: there is none.
size_t line_of_embed(const std::string& source) {
  std::string spliced;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source.compare(i, 2, "\\\n") == 0) {
      ++i;
    } else {
      spliced += source[i];
    }
  }
  std::istringstream lines(spliced);
  std::string line;
  for (size_t number = 1; std::getline(lines, line); ++number) {
    const size_t mark = line.find_first_of("#%?");
    if (mark != std::string::npos && line.find("embed", mark) != std::string::npos) return number;
  }
  return 0;
}

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

std::string make(const Toolchain& t, const std::string& folder, const std::string& source, const Macros& macros) {
  const auto at = [&](const char* name) { return folder + "/" + name; };
  if (const size_t line = line_of_embed(source)) {
    return "program_source:" + std::to_string(line) + ":1: error: #embed is not part of Metal\n";
  }
  if (!write_file(at("source"), "# 1 \"program_source\"\n" + source)) return "cannot write into " + folder;
  std::vector<std::string> args = {t.clang,
                                   "-E",
                                   "-x",
                                   "c++",
                                   "-std=c++20",
                                   "-w",
                                   "-nostdinc",
                                   "-nostdinc++",
                                   "-fno-color-diagnostics",
                                   "-ferror-limit=20",
                                   "-I" + t.headers,
                                   "-include",
                                   "mpsforge/kernel.h",
                                   "-D__METAL__=1",
                                   "-D__METAL_MACOS__=1",
                                   "-D__METAL_VERSION__=310"};
  for (const auto& [name, value] : macros) args.push_back("-D" + name + "=" + value);
  args.push_back("-");
  std::string error = run(args, at("source"), at("preprocessed"), at("errors"));
  if (!error.empty()) return error;
  const Rewritten rewritten = rewrite(read_file(at("preprocessed")), t.headers);
  if (!rewritten.error.empty()) return rewritten.error;
  if (!write_file(at("shader.ii"), rewritten.text)) return "cannot write into " + folder;
  args = joined(joined({t.clang, "-x", "c++-cpp-output"}, code_flags()), t.flags);
  args = joined(args, {"-c", at("shader.ii"), "-o", at("shader.o")});
  error = run(args, "/dev/null", at("output"), at("errors"));
  if (!error.empty()) return error;
  args = joined({t.clang, "--driver-mode=g++", "--ld-path=" + t.linker, "-shared", "-Wl,-z,defs", "-Wl,-Bsymbolic",
                 "-o", at("library.so"), at("shader.o")},
                t.objects);
  return run(joined(args, {"-lm"}), "/dev/null", at("output"), at("errors"));
}

}  // namespace

std::string Toolchain::read(const std::string& file) {
  std::ifstream lines(file);
  if (!lines) return file + " is not there";
  std::string line;
  while (std::getline(lines, line)) {
    const size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    const std::string name = line.substr(0, space), value = line.substr(space + 1);
    if (name == "clang") clang = value;
    if (name == "linker") linker = value;
    if (name == "headers") headers = value;
    if (name == "cache") cache = value;
    if (name == "identity") identity = value;
    if (name == "flag") flags.push_back(value);
    if (name == "object") objects.push_back(value);
  }
  return clang.empty() || headers.empty() || cache.empty() ? file + " names no compiler" : "";
}

Compiled compile(const Toolchain& toolchain, const std::string& source, const Macros& macros) {
  std::string all = toolchain.identity + "\n";
  for (const std::string& flag : toolchain.flags) all += flag + "\n";
  for (const auto& [name, value] : macros) all += name + "=" + value + "\n";
  all += "\n" + source;
  const std::string folder = toolchain.cache + "/" + short_name(all), library = folder + "/library.so";
  if (read_file(folder + "/whole") == all && access(library.c_str(), R_OK) == 0) {
    utimes(folder.c_str(), nullptr);  // those that were used last stay in the cache (fork/hostbuild/host/msl.go)
    return {library, ""};
  }
  static std::atomic<unsigned> made{0};
  const std::string temporary = folder + "." + std::to_string(getpid()) + "." + std::to_string(++made);
  mkdir(toolchain.cache.c_str(), 0755);
  if (mkdir(temporary.c_str(), 0755) != 0) return {"", "cannot make " + temporary + ": " + std::strerror(errno) + "\n"};
  std::string error = make(toolchain, temporary, source, macros);
  if (error.empty() && !write_file(temporary + "/whole", all)) error = "cannot write into " + temporary + "\n";
  if (!error.empty()) {
    remove_all(temporary);
    return {"", readable(error)};
  }
  remove_rest(temporary);
  if (rename(temporary.c_str(), folder.c_str()) == 0) return {library, ""};
  // Another process was faster; or another source has the name, and this one stays where it is.
  if (read_file(folder + "/whole") != all) return {temporary + "/library.so", ""};
  remove_all(temporary);
  return {library, ""};
}

}  // namespace mpsforge::msl
