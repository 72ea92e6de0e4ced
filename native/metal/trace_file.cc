#include "trace_file.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <string>

namespace mpsforge::metal::trace {
namespace {

// With the mutex held.
FILE* file = nullptr;
std::string& path_of_all() {
  static auto& made = *new std::string;
  return made;
}
bool to_open = false;  // by the first line, in a forked child

std::atomic<bool> opened{false};

uint32_t thread_number() {
  static std::atomic<uint32_t> threads{0};
  static thread_local const uint32_t mine = ++threads;
  return mine;
}

constexpr char kProcess[] = "%p";

std::string own_path() {
  std::string path = path_of_all();
  const size_t found = path.find(kProcess);
  if (found != std::string::npos) path.replace(found, sizeof kProcess - 1, std::to_string(getpid()));
  return path;
}

void write(const char* format, va_list words) {
  if (to_open) file = std::fopen(own_path().c_str(), "w");
  to_open = false;
  if (!file) return;
  std::fprintf(file, "%" PRIu32 " ", thread_number());
  std::vfprintf(file, format, words);
  std::fputc('\n', file);
}

// A forked child leaves the file to its parent, with all that has been written so far, and has one of its own if the
// path allows it.
void before_fork() {
  mutex().lock();
  if (file) std::fflush(file);
}
void after_fork() { mutex().unlock(); }
void begin_child() {
  file = nullptr;
  to_open = path_of_all().find(kProcess) != std::string::npos;
  mutex().unlock();
}

}  // namespace

// Never destroyed: threads of the program call Metal until the process ends.
std::mutex& mutex() {
  static auto& made = *new std::mutex;
  return made;
}

bool is_open() { return opened.load(std::memory_order_acquire); }

void flush() {
  const std::lock_guard<std::mutex> lock(mutex());
  if (file) std::fflush(file);
}

int open(const char* path) {
  static const int prepared = pthread_atfork(before_fork, after_fork, begin_child);
  const std::lock_guard<std::mutex> lock(mutex());
  int error = prepared;
  if (file && std::fclose(file) != 0) error = errno;
  file = nullptr;
  to_open = false;
  path_of_all() = path ? path : "";
  if (path && !(file = std::fopen(own_path().c_str(), "w"))) error = errno;
  opened.store(file != nullptr, std::memory_order_release);
  return error;
}

void line(const char* format, ...) {
  const std::lock_guard<std::mutex> lock(mutex());
  va_list words;
  va_start(words, format);
  write(format, words);
  va_end(words);
}

void line_locked(const char* format, ...) {
  va_list words;
  va_start(words, format);
  write(format, words);
  va_end(words);
}

}  // namespace mpsforge::metal::trace
