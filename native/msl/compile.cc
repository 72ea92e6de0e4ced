#include "compile.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <regex>
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
                                                 "-fno-caret-diagnostics",
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

// A line of what the compiler says.
struct Diagnostic {
  std::string file, kind, text;
  size_t line = 0, column = 0;

  // Empty where the line is none.
  static Diagnostic of(const std::string& said) {
    static const std::regex form("^(.*?):([0-9]+):([0-9]+): (fatal error|error|note): (.*)$");
    std::smatch parts;
    if (said.size() > kLongest || !std::regex_match(said, parts, form)) return {};
    return {parts[1], parts[4] == "note" ? "note" : "error", parts[5], std::stoul(parts[2]), std::stoul(parts[3])};
  }
  static constexpr size_t kLongest = 4096;  // std::regex takes stack by the length
};

// What the compiler says, about the shader as its author wrote it: rewrite() adds to its lines, and the headers check
// what it adds. An error in a header is one of the shader's line that needs the header, unless others say enough.
std::string readable(const std::string& said, const std::string& source) {
  std::vector<std::string> own(1);
  std::istringstream written(source);
  for (std::string line; std::getline(written, line);) own.push_back(line);
  std::string result, of_headers, in_header;
  bool errors = false;
  const auto show = [&](const Diagnostic& d, const std::string& kind, const std::string& text) {
    const std::string line = d.line < own.size() ? own[d.line] : "";
    return "program_source:" + std::to_string(d.line) + ":" + std::to_string(std::min(d.column, line.size() + 1)) +
           ": " + kind + ": " + text + "\n    " + line + "\n";
  };
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    const Diagnostic d = Diagnostic::of(line);
    const bool in_shader = d.file == "program_source";
    if (d.kind == "error") {
      in_header = in_shader ? "" : d.text;
      const size_t said_of = d.text.find("static assertion failed") == 0 ? d.text.rfind("': ") : d.text.npos;
      if (!in_shader && said_of != d.text.npos) in_header = d.text.substr(said_of + 3);
      if (!in_shader) continue;
      errors = true;
      result += show(d, d.kind, d.text);
    } else if (d.kind == "note") {
      if (!in_shader) continue;
      if (!in_header.empty()) of_headers += show(d, "error", in_header);
      const bool ours = d.line >= own.size() || d.column > own[d.line].size() || d.text.find("mpsforge") != line.npos;
      if (in_header.empty() && !ours) result += show(d, d.kind, d.text);
      in_header.clear();
    } else if (line.find("In file included") != 0 && line.find(" generated.") == line.npos) {
      result += line + "\n";
    }
  }
  if (errors) return result;
  result += of_headers;
  return result.empty() ? said : result;
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
                                   "-fno-caret-diagnostics",
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
    return {"", readable(error, source)};
  }
  remove_rest(temporary);
  if (rename(temporary.c_str(), folder.c_str()) == 0) return {library, ""};
  // Another process was faster; or another source has the name, and this one stays where it is.
  if (read_file(folder + "/whole") != all) return {temporary + "/library.so", ""};
  remove_all(temporary);
  return {library, ""};
}

}  // namespace mpsforge::msl
