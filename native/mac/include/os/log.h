// The unified log, with the functions that clang's builtins of the format feed: Apple's header is not among the open
// ones.
#pragma once

#include <mach-o/loader.h>
#include <os/object.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// In Objective-C a log is an object, and the names of C++ functions that are given one say so.
#if OS_OBJECT_USE_OBJC
OS_OBJECT_DECL(os_log);
#else
typedef struct os_log_s* os_log_t;
#endif
typedef uint8_t os_log_type_t;
enum {
  OS_LOG_TYPE_DEFAULT = 0x00,
  OS_LOG_TYPE_INFO = 0x01,
  OS_LOG_TYPE_DEBUG = 0x02,
  OS_LOG_TYPE_ERROR = 0x10,
  OS_LOG_TYPE_FAULT = 0x11
};

extern struct mach_header __dso_handle;
extern struct os_log_s _os_log_default;
#define OS_LOG_DEFAULT ((os_log_t)(void*)&_os_log_default)
#define OS_LOG_DISABLED ((os_log_t)0)

os_log_t os_log_create(const char* subsystem, const char* category);
bool os_log_type_enabled(os_log_t log, os_log_type_t type);
void _os_log_impl(void* dso, os_log_t log, os_log_type_t type, const char* format, uint8_t* bytes, uint32_t size);

#ifdef __cplusplus
}
#endif

#define MPSFORGE_LOG_TEXT __attribute__((section("__TEXT,__oslogstring,cstring_literals")))
#define os_log_with_type(log, type, format, ...)                                                                \
  do {                                                                                                          \
    os_log_t log_ = (log);                                                                                      \
    if (os_log_type_enabled(log_, type)) {                                                                      \
      static const char format_[] MPSFORGE_LOG_TEXT = format;                                                   \
      uint8_t bytes_[__builtin_os_log_format_buffer_size(format, ##__VA_ARGS__)];                               \
      _os_log_impl(&__dso_handle, log_, type, format_,                                                          \
                   (uint8_t*)__builtin_os_log_format(bytes_, format, ##__VA_ARGS__), (uint32_t)sizeof(bytes_)); \
    }                                                                                                           \
  } while (0)
#define os_log(log, format, ...) os_log_with_type(log, OS_LOG_TYPE_DEFAULT, format, ##__VA_ARGS__)
#define os_log_info(log, format, ...) os_log_with_type(log, OS_LOG_TYPE_INFO, format, ##__VA_ARGS__)
#define os_log_debug(log, format, ...) os_log_with_type(log, OS_LOG_TYPE_DEBUG, format, ##__VA_ARGS__)
#define os_log_error(log, format, ...) os_log_with_type(log, OS_LOG_TYPE_ERROR, format, ##__VA_ARGS__)
#define os_log_fault(log, format, ...) os_log_with_type(log, OS_LOG_TYPE_FAULT, format, ##__VA_ARGS__)
