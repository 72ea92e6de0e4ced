// The C interface of an overlay: the patched MPS backend as a library that is loaded into a process whose torch has the
// stock one. The package mpsforge_overlay (native/overlay/python) calls it through ctypes, so that one library serves
// every Python.
//
// Functions that may raise give 0, or what to raise; mpsforge_overlay_error() is then its text, on the same thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  MPSFORGE_OVERLAY_OK,
  MPSFORGE_OVERLAY_RUNTIME,
  MPSFORGE_OVERLAY_VALUE,
  MPSFORGE_OVERLAY_NOT_IMPLEMENTED,
  MPSFORGE_OVERLAY_TYPE
};

const char* mpsforge_overlay_error(void);

// Puts this copy in the place of the one in the image of that path: hooks and symbol pointers. What registers by being
// loaded has done so before. PyThreadState_GetUnchecked, PyGILState_GetThisThreadState, PyEval_SaveThread,
// PyEval_RestoreThread, Py_IsInitialized and Py_AddPendingCall are Python's.
int mpsforge_overlay_attach(const char* stock, void* get_unchecked, void* get_of_thread, void* save, void* restore,
                            void* is_initialized, void* add_call);

// What answers in this process, a fact a line: words with tabs between them. Until the next call.
int mpsforge_overlay_status(const char** text);

// torch._C._mps_*, as far as the series changes them.
int mpsforge_overlay_synchronize(void);
int mpsforge_overlay_empty_cache(void);
int mpsforge_overlay_profiler_stop(void);
int mpsforge_overlay_event_release(uint32_t event);
int mpsforge_overlay_event_record(uint32_t event);
int mpsforge_overlay_event_wait(uint32_t event);
int mpsforge_overlay_event_synchronize(uint32_t event);
int mpsforge_overlay_event_elapsed(uint32_t from, uint32_t to, double* milliseconds);
// An overlay of the part fixes, which has no streams, does not have these.
int mpsforge_overlay_stream_current(int64_t* stream);
int mpsforge_overlay_stream_default(int64_t* stream);
int mpsforge_overlay_stream_new(int64_t* stream);
// Sets the program's choice, or with -1 none, and keeps what was set before in before: {stream, by the program, 1}. The
// second function sets that again, if the last number is not 0, and makes it 0. On one thread.
int mpsforge_overlay_stream_set(int64_t stream, int64_t before[3]);
int mpsforge_overlay_stream_restore(int64_t before[3]);
int mpsforge_overlay_stream_query(int64_t stream, int* complete);
int mpsforge_overlay_stream_release(void);
int mpsforge_overlay_graph_statistics(const char** text);   // a counter a line: name, tab, number
int mpsforge_overlay_stream_statistics(const char** text);  // as mpsforge_overlay_graph_statistics
// What these begin they store through their last argument, and what they end they clear: a caller that a signal handler
// interrupts sees which it is.
int mpsforge_overlay_suspend(void** suspension);
int mpsforge_overlay_resume(void** suspension);
// The same. An overlay without the part extras does not have these.
int mpsforge_overlay_external_begin(const void* expected, void** queue);  // MTLCommandQueue, not owned
int mpsforge_overlay_external_end(void** queue);

// Shader libraries that are compiled at run time, and their kernels.
int mpsforge_overlay_library_new(const char* source, void** library);
int mpsforge_overlay_library_names(void* library, const char** text);  // a name a line
void mpsforge_overlay_library_delete(void* library);
int mpsforge_overlay_kernel_new(void* library, const char* name, void** kernel);
int mpsforge_overlay_kernel_facts(void* kernel, uint64_t facts[3]);  // most threads, width, static memory
void mpsforge_overlay_kernel_delete(void* kernel);
// An argument is a tensor (Python's Tensor._cdata), or size bytes at data. groups is 0, or equal to dimensions.
typedef struct {
  void* tensor;
  const void* data;
  uint64_t size;
} mpsforge_overlay_argument;
int mpsforge_overlay_kernel_call(void* kernel, const mpsforge_overlay_argument* arguments, size_t count,
                                 const uint64_t* threads, size_t dimensions, const uint64_t* group, size_t groups);

#ifdef __cplusplus
}
#endif
