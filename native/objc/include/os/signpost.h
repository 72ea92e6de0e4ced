// Signposts: counted and checked (an interval must have begun before it ends), and shown like messages of the log.
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

void mpsforge_os_signpost(os_log_t log, os_signpost_type_t type, os_signpost_id_t id, const char* name,
                          const char* format, ...);
#define os_signpost_event_emit(log, id, name, ...) \
  mpsforge_os_signpost(log, OS_SIGNPOST_EVENT, id, "" name, "" __VA_ARGS__)
#define os_signpost_interval_begin(log, id, name, ...) \
  mpsforge_os_signpost(log, OS_SIGNPOST_INTERVAL_BEGIN, id, "" name, "" __VA_ARGS__)
#define os_signpost_interval_end(log, id, name, ...) \
  mpsforge_os_signpost(log, OS_SIGNPOST_INTERVAL_END, id, "" name, "" __VA_ARGS__)

#ifdef __cplusplus
}
#endif
