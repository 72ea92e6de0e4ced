#include "trace_file.h"

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace mpsforge::metal::trace {
namespace {

FILE* file = nullptr;  // the mutex is held
std::atomic<bool> opened{false};

uint32_t thread_number() {
  static std::atomic<uint32_t> threads{0};
  static thread_local const uint32_t mine = ++threads;
  return mine;
}

void write(const char* format, va_list words) {
  if (!file) return;
  std::fprintf(file, "%" PRIu32 " ", thread_number());
  std::vfprintf(file, format, words);
  std::fputc('\n', file);
}

// A forked child leaves the file to its parent, with all that has been written so far.
void before_fork() {
  mutex().lock();
  if (file) std::fflush(file);
}
void after_fork() { mutex().unlock(); }
void begin_child() {
  file = nullptr;
  mutex().unlock();
}

}  // namespace

// Never destroyed: threads of the program call Metal until the process ends.
std::mutex& mutex() {
  static auto& made = *new std::mutex;
  return made;
}

bool is_open() { return opened.load(std::memory_order_acquire); }

int open(const char* path) {
  FILE* next = path ? std::fopen(path, "w") : nullptr;
  if (path && !next) return errno;
  static const int prepared = pthread_atfork(before_fork, after_fork, begin_child);
  const std::lock_guard<std::mutex> lock(mutex());
  const int closed = file && std::fclose(file) != 0 ? errno : 0;
  file = next;
  opened.store(next != nullptr, std::memory_order_release);
  return prepared != 0 ? prepared : closed;
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
