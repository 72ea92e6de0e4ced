// Signposts, as log.h has the log.
#pragma once

#include <os/log.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t os_signpost_id_t;
typedef uint8_t os_signpost_type_t;
#define OS_SIGNPOST_ID_NULL ((os_signpost_id_t)0)
#define OS_SIGNPOST_ID_INVALID (~(os_signpost_id_t)0)
#define OS_SIGNPOST_ID_EXCLUSIVE ((os_signpost_id_t)0xEEEEB0B5B2B2EEEEull)
enum { OS_SIGNPOST_EVENT = 0x00, OS_SIGNPOST_INTERVAL_BEGIN = 0x01, OS_SIGNPOST_INTERVAL_END = 0x02 };

os_signpost_id_t os_signpost_id_generate(os_log_t log);
os_signpost_id_t os_signpost_id_make_with_pointer(os_log_t log, const void* pointer);
bool os_signpost_enabled(os_log_t log);
void _os_signpost_emit_with_name_impl(void* dso, os_log_t log, os_signpost_type_t type, os_signpost_id_t id,
                                      const char* name, const char* format, uint8_t* bytes, uint32_t size);

#ifdef __cplusplus
}
#endif

// A call without a format has an empty one: the literals are put together.
#define MPSFORGE_SIGNPOST(log, type, id, name, format, ...)                                              \
  do {                                                                                                   \
    os_log_t log_ = (log);                                                                               \
    os_signpost_id_t id_ = (id);                                                                         \
    if (os_signpost_enabled(log_)) {                                                                     \
      static const char name_[] MPSFORGE_LOG_TEXT = name;                                                \
      static const char format_[] MPSFORGE_LOG_TEXT = format;                                            \
      uint8_t bytes_[__builtin_os_log_format_buffer_size(format, ##__VA_ARGS__)];                        \
      _os_signpost_emit_with_name_impl(&__dso_handle, log_, type, id_, name_, format_,                   \
                                       (uint8_t*)__builtin_os_log_format(bytes_, format, ##__VA_ARGS__), \
                                       (uint32_t)sizeof(bytes_));                                        \
    }                                                                                                    \
  } while (0)
#define os_signpost_event_emit(log, id, name, ...) MPSFORGE_SIGNPOST(log, OS_SIGNPOST_EVENT, id, name, "" __VA_ARGS__)
#define os_signpost_interval_begin(log, id, name, ...) \
  MPSFORGE_SIGNPOST(log, OS_SIGNPOST_INTERVAL_BEGIN, id, name, "" __VA_ARGS__)
#define os_signpost_interval_end(log, id, name, ...) \
  MPSFORGE_SIGNPOST(log, OS_SIGNPOST_INTERVAL_END, id, name, "" __VA_ARGS__)
