#ifndef MPSFORGE_OS_OBJECT_H
#define MPSFORGE_OS_OBJECT_H

#ifdef __cplusplus
extern "C" {
#endif

// Of logs. Dispatch objects have functions of their own.
void* os_retain(void* object);
void os_release(void* object);

#ifdef __cplusplus
}
#endif

#endif
