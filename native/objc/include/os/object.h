#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// Of logs. Dispatch objects have functions of their own.
void* os_retain(void* object);
void os_release(void* object);

#ifdef __cplusplus
}
#endif
