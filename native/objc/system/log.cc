// The unified log and signposts.
#include <os/log.h>
#include <os/signpost.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../engine.h"
#include "mpsforge/host.h"

struct os_log_s {
  std::string subsystem;
  std::string category;
  std::atomic<long> references;
};

struct os_log_s mpsforge_os_log_default{"default", "default", {1}};

namespace {

std::atomic<uint64_t> signposts[3];
std::atomic<uint64_t> next_signpost{1};

bool shown() {
  static const bool on = [] {
    const char* value = std::getenv("MPSFORGE_OS_LOG");
    return value && *value && std::strcmp(value, "0") != 0;
  }();
  return on;
}

// %{public}s is %s.
std::string without_annotations(const char* format) {
  std::string plain;
  for (const char* at = format; *at; ++at) {
    plain += *at;
    if (at[0] != '%') continue;
    if (at[1] == '%') {
      plain += *++at;
    } else if (at[1] == '{') {
      const char* end = std::strchr(at, '}');
      if (!end) mpsforge::objc::fail("the log's format \"%s\" has no end of %%{", format);
      at = end;
    }
  }
  return plain;
}

std::string formatted(const char* format, va_list arguments) {
  const std::string plain = without_annotations(format);
  va_list again;
  va_copy(again, arguments);
  const int needed = std::vsnprintf(nullptr, 0, plain.c_str(), again);
  va_end(again);
  if (needed < 0) mpsforge::objc::fail("the log's format \"%s\" is refused", format);
  std::vector<char> text(static_cast<size_t>(needed) + 1);
  std::vsnprintf(text.data(), text.size(), plain.c_str(), arguments);
  return text.data();
}

void show(os_log_t log, const char* what, const std::string& text) {
  if (!shown()) return;
  std::fprintf(stderr, "%s:%s %s%s\n", log->subsystem.c_str(), log->category.c_str(), what, text.c_str());
}

}  // namespace

extern "C" {

os_log_t os_log_create(const char* subsystem, const char* category) {
  return new os_log_s{subsystem ? subsystem : "", category ? category : "", {1}};
}

void* os_retain(void* object) {
  if (object) static_cast<os_log_t>(object)->references.fetch_add(1, std::memory_order_relaxed);
  return object;
}

void os_release(void* object) {
  auto* log = static_cast<os_log_t>(object);
  if (!log || log == OS_LOG_DEFAULT) return;
  const long before = log->references.fetch_sub(1, std::memory_order_acq_rel);
  if (before <= 0) mpsforge::objc::fail("os_release: log %p is released more often than it is retained", object);
  if (before == 1) delete log;
}

bool os_log_type_enabled(os_log_t log, os_log_type_t) { return log != OS_LOG_DISABLED; }

void mpsforge_os_log(os_log_t log, os_log_type_t, const char* format, ...) {
  if (!log) return;
  va_list arguments;
  va_start(arguments, format);
  show(log, "", formatted(format, arguments));
  va_end(arguments);
}

os_signpost_id_t os_signpost_id_generate(os_log_t log) {
  return log ? next_signpost.fetch_add(1, std::memory_order_relaxed) : OS_SIGNPOST_ID_NULL;
}

os_signpost_id_t os_signpost_id_make_with_pointer(os_log_t log, const void* pointer) {
  return log ? reinterpret_cast<os_signpost_id_t>(pointer) : OS_SIGNPOST_ID_NULL;
}

bool os_signpost_enabled(os_log_t log) { return log != OS_LOG_DISABLED; }

void mpsforge_os_signpost(os_log_t log, os_signpost_type_t type, os_signpost_id_t id, const char* name,
                          const char* format, ...) {
  if (!log || id == OS_SIGNPOST_ID_NULL || id == OS_SIGNPOST_ID_INVALID) return;
  if (type > OS_SIGNPOST_INTERVAL_END) mpsforge::objc::fail("a signpost of type %u", type);
  static const char* const kWords[] = {"event ", "begin ", "end "};
  signposts[type].fetch_add(1, std::memory_order_relaxed);
  va_list arguments;
  va_start(arguments, format);
  show(log, kWords[type], std::to_string(id) + " " + name + ": " + formatted(format, arguments));
  va_end(arguments);
}

uint64_t mpsforge_host_signposts(unsigned type) {
  return type <= OS_SIGNPOST_INTERVAL_END ? signposts[type].load(std::memory_order_relaxed) : 0;
}

}  // extern "C"
