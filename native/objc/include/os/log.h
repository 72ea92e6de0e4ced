// The unified log. Messages are formatted always, so that wrong arguments show, and go to standard error if
// MPSFORGE_OS_LOG is set.
#pragma once

#include <os/object.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct os_log_s* os_log_t;
typedef uint8_t os_log_type_t;
enum {
  OS_LOG_TYPE_DEFAULT = 0x00,
  OS_LOG_TYPE_INFO = 0x01,
  OS_LOG_TYPE_DEBUG = 0x02,
  OS_LOG_TYPE_ERROR = 0x10,
  OS_LOG_TYPE_FAULT = 0x11
};

os_log_t os_log_create(const char* subsystem, const char* category);
extern struct os_log_s mpsforge_os_log_default;
#define OS_LOG_DEFAULT (&mpsforge_os_log_default)
#define OS_LOG_DISABLED ((os_log_t)0)
bool os_log_type_enabled(os_log_t log, os_log_type_t type);

// The annotations of os_log's formats (%{public}s) are taken out first.
void mpsforge_os_log(os_log_t log, os_log_type_t type, const char* format, ...);
#define os_log_with_type(log, type, format, ...) mpsforge_os_log(log, type, "" format, ##__VA_ARGS__)
#define os_log(log, format, ...) os_log_with_type(log, OS_LOG_TYPE_DEFAULT, format, ##__VA_ARGS__)
#define os_log_info(log, format, ...) os_log_with_type(log, OS_LOG_TYPE_INFO, format, ##__VA_ARGS__)
#define os_log_debug(log, format, ...) os_log_with_type(log, OS_LOG_TYPE_DEBUG, format, ##__VA_ARGS__)
#define os_log_error(log, format, ...) os_log_with_type(log, OS_LOG_TYPE_ERROR, format, ##__VA_ARGS__)
#define os_log_fault(log, format, ...) os_log_with_type(log, OS_LOG_TYPE_FAULT, format, ##__VA_ARGS__)

#ifdef __cplusplus
}
#endif
