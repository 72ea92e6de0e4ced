// Dispatch queues over the engine's serial queues, so that its checker, its deadlock detection and signature 16
// (dispatch_sync on the queue that the thread is on) work. Objects are plain pointers, not Objective-C objects.
//
// What is left out is not declared. Concurrent queues run a dispatch_sync on the calling thread and each
// dispatch_async on a thread of its own. Nobody serves the main queue, as in a process without a run loop: a
// dispatch_async to it aborts.
#pragma once

#include <Availability.h>
#include <Block.h>
#include <TargetConditionals.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*dispatch_function_t)(void* context);
#ifdef __BLOCKS__
typedef void (^dispatch_block_t)(void);
#endif

// --- queues

typedef struct dispatch_queue_s* dispatch_queue_t;
typedef dispatch_queue_t dispatch_queue_main_t;
typedef dispatch_queue_t dispatch_queue_global_t;
typedef dispatch_queue_t dispatch_queue_serial_t;
typedef const struct dispatch_queue_attr_s* dispatch_queue_attr_t;

#define DISPATCH_QUEUE_SERIAL ((dispatch_queue_attr_t)0)
extern const struct dispatch_queue_attr_s mpsforge_dispatch_concurrent;
#define DISPATCH_QUEUE_CONCURRENT (&mpsforge_dispatch_concurrent)
#define DISPATCH_TARGET_QUEUE_DEFAULT ((dispatch_queue_t)0)
#define DISPATCH_CURRENT_QUEUE_LABEL ((dispatch_queue_t)0)

#define DISPATCH_QUEUE_PRIORITY_HIGH 2
#define DISPATCH_QUEUE_PRIORITY_DEFAULT 0
#define DISPATCH_QUEUE_PRIORITY_LOW (-2)
#define DISPATCH_QUEUE_PRIORITY_BACKGROUND INT16_MIN
#define QOS_CLASS_USER_INTERACTIVE 0x21u
#define QOS_CLASS_USER_INITIATED 0x19u
#define QOS_CLASS_DEFAULT 0x15u
#define QOS_CLASS_UTILITY 0x11u
#define QOS_CLASS_BACKGROUND 0x09u
typedef unsigned int dispatch_qos_class_t;

dispatch_queue_t dispatch_queue_create(const char* label, dispatch_queue_attr_t attribute);
dispatch_queue_t dispatch_queue_create_with_target(const char* label, dispatch_queue_attr_t attribute,
                                                   dispatch_queue_t target);
dispatch_queue_attr_t dispatch_queue_attr_make_with_qos_class(dispatch_queue_attr_t attribute, dispatch_qos_class_t qos,
                                                              int relative_priority);
// Apple's headers have own names for these; they are queues like others.
typedef dispatch_queue_t dispatch_queue_global_t;
typedef dispatch_queue_t dispatch_queue_main_t;
dispatch_queue_global_t dispatch_get_global_queue(intptr_t identifier, uintptr_t flags);
dispatch_queue_main_t dispatch_get_main_queue(void);
const char* dispatch_queue_get_label(dispatch_queue_t queue);

void dispatch_sync_f(dispatch_queue_t queue, void* context, dispatch_function_t work);
void dispatch_async_f(dispatch_queue_t queue, void* context, dispatch_function_t work);
void dispatch_queue_set_specific(dispatch_queue_t queue, const void* key, void* context,
                                 dispatch_function_t destructor);
void* dispatch_queue_get_specific(dispatch_queue_t queue, const void* key);
void* dispatch_get_specific(const void* key);  // of the queue whose block the calling thread runs, NULL else
void dispatch_assert_queue(dispatch_queue_t queue);
void dispatch_assert_queue_not(dispatch_queue_t queue);
void dispatch_apply_f(size_t iterations, dispatch_queue_t queue, void* context,
                      void (*work)(void* context, size_t index));
#ifdef __BLOCKS__
void dispatch_sync(dispatch_queue_t queue, dispatch_block_t block);
void dispatch_async(dispatch_queue_t queue, dispatch_block_t block);
void dispatch_apply(size_t iterations, dispatch_queue_t queue, void (^block)(size_t index));
// On a serial queue the same as without barrier; on a concurrent one they abort.
void dispatch_barrier_sync(dispatch_queue_t queue, dispatch_block_t block);
void dispatch_barrier_async(dispatch_queue_t queue, dispatch_block_t block);
#endif

// --- once

typedef intptr_t dispatch_once_t;
void dispatch_once_f(dispatch_once_t* predicate, void* context, dispatch_function_t function);
#ifdef __BLOCKS__
void dispatch_once(dispatch_once_t* predicate, dispatch_block_t block);
#endif

// --- time

typedef uint64_t dispatch_time_t;  // nanoseconds of the monotonic clock
#define DISPATCH_TIME_NOW ((dispatch_time_t)0)
#define DISPATCH_TIME_FOREVER (~(dispatch_time_t)0)
#ifndef NSEC_PER_SEC
#define NSEC_PER_SEC 1000000000ull
#define NSEC_PER_MSEC 1000000ull
#define USEC_PER_SEC 1000000ull
#define NSEC_PER_USEC 1000ull
#endif
dispatch_time_t dispatch_time(dispatch_time_t when, int64_t delta);

// --- semaphores and groups: an edge from each signal (leave) to the waits that it lets through

typedef struct dispatch_semaphore_s* dispatch_semaphore_t;
dispatch_semaphore_t dispatch_semaphore_create(intptr_t value);
intptr_t dispatch_semaphore_wait(dispatch_semaphore_t semaphore, dispatch_time_t timeout);  // 0, or not in time
intptr_t dispatch_semaphore_signal(dispatch_semaphore_t semaphore);

typedef struct dispatch_group_s* dispatch_group_t;
dispatch_group_t dispatch_group_create(void);
void dispatch_group_enter(dispatch_group_t group);
void dispatch_group_leave(dispatch_group_t group);
intptr_t dispatch_group_wait(dispatch_group_t group, dispatch_time_t timeout);
#ifdef __BLOCKS__
void dispatch_group_async(dispatch_group_t group, dispatch_queue_t queue, dispatch_block_t block);
void dispatch_group_notify(dispatch_group_t group, dispatch_queue_t queue, dispatch_block_t block);
#endif

// --- data

typedef struct dispatch_data_s* dispatch_data_t;
#ifdef __BLOCKS__
#define DISPATCH_DATA_DESTRUCTOR_DEFAULT ((dispatch_block_t)0)  // the bytes are copied
extern const dispatch_block_t _dispatch_data_destructor_free;
#define DISPATCH_DATA_DESTRUCTOR_FREE (_dispatch_data_destructor_free)
// The destructor runs on the queue when the object ends; never if that is the main queue, which nobody serves.
dispatch_data_t dispatch_data_create(const void* bytes, size_t size, dispatch_queue_t queue,
                                     dispatch_block_t destructor);
// The object itself, its bytes and their number.
dispatch_data_t dispatch_data_create_map(dispatch_data_t data, const void** bytes, size_t* size);
#endif
size_t dispatch_data_get_size(dispatch_data_t data);

#ifdef __cplusplus
}
#endif

// --- any object. In C a transparent union would do; C++ takes a pointer to anything that is a dispatch object.

#ifdef __cplusplus
extern "C" void mpsforge_dispatch_retain(void* object);
extern "C" void mpsforge_dispatch_release(void* object);
inline void dispatch_retain(dispatch_queue_t object) { mpsforge_dispatch_retain(object); }
inline void dispatch_retain(dispatch_semaphore_t object) { mpsforge_dispatch_retain(object); }
inline void dispatch_retain(dispatch_group_t object) { mpsforge_dispatch_retain(object); }
inline void dispatch_retain(dispatch_data_t object) { mpsforge_dispatch_retain(object); }
inline void dispatch_release(dispatch_queue_t object) { mpsforge_dispatch_release(object); }
inline void dispatch_release(dispatch_semaphore_t object) { mpsforge_dispatch_release(object); }
inline void dispatch_release(dispatch_group_t object) { mpsforge_dispatch_release(object); }
inline void dispatch_release(dispatch_data_t object) { mpsforge_dispatch_release(object); }
#endif
