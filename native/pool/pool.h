// The C ABI of a stream pool: what the reference and, later, an adapter to PyTorch's own sources implement. It is
// the view of PyTorch of docs/dev/spec/pool.md: streams, leases, tensors, operators, events, caches. Rule numbers are
// those of that page.
//
// Functions that can fail return 0, or -1 with a text in last_error: that is PyTorch's normal exception. Unless said
// otherwise a function may be called by any thread at any time. Streams are named by number: 0 the default one, then
// the worker streams (slot + 1), then the 32 explicit ones. No function throws.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../metal/metal.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MPSFORGE_POOL_ABI 3u
#define MPSFORGE_POOL_EXPLICIT_STREAMS 32u

typedef struct mpsforge_pool mpsforge_pool;
typedef struct mpsforge_pool_tensor mpsforge_pool_tensor;
typedef struct mpsforge_pool_event mpsforge_pool_event;
typedef struct mpsforge_pool_host mpsforge_pool_host;

typedef struct {
  const mpsforge_metal_api* metal;
  mpsforge_metal_device* device;  // must outlive the pool
  // Lines NAME=VALUE: the process's environment, as far as it is set.
  const char* environment;
  // Called around everything that may lock for long, lease or wait, with begins 1 and 0, in pairs that may be nested:
  // the GIL is released, if the thread holds it, and taken again if it was released (rule 12). May be NULL.
  void (*blocking)(void* context, int begins);
  void* context;
} mpsforge_pool_config;

// How an operator does its work.
enum {
  MPSFORGE_POOL_KERNEL = 0,  // a dispatch on the stream's open compute encoder
  MPSFORGE_POOL_MATRIX = 1,  // an MPSNDArrayMatrixMultiplication object of the thread's kernel cache (rule 20)
  MPSFORGE_POOL_GRAPH = 2,   // a compiled MPSGraph of the thread's graph cache (rule 19)
  MPSFORGE_POOL_BLIT = 3     // "copy" and "fill" only: a blit
};

// The arithmetic of an operator; elements are int32, and wrap. All tensors of one operator have one size.
typedef struct {
  uint32_t path;  // MPSFORGE_POOL_KERNEL and so on
  // "fill" (out = value), "copy" (out = in), "add" (out = in0 + in1), "multiply" (out = in0 * in1), "scale"
  // (out = in0 * value), "increment" (out = out + value: its only tensor is the output, which it also reads).
  const char* name;
  mpsforge_pool_tensor* const* inputs;
  size_t input_count;
  mpsforge_pool_tensor* output;
  int32_t value;
  uint32_t key;  // of the compiled graph; operators of one key and name share it within a thread
} mpsforge_pool_operator;

// A tensor that an operator uses, and how.
typedef struct {
  mpsforge_pool_tensor* tensor;
  int writes;
} mpsforge_pool_use;

typedef struct {
  uint64_t live, peak, leases, waits, shares;  // of slots, as in slots.h
  uint64_t hand_over_waits;                    // GPU waits encoded by the guards
  uint64_t overtakes;                          // writers that had to let one pass which came later; 0 for ever
  uint64_t commits;                            // of all streams
  uint64_t streams;                            // created so far
  uint64_t reused;                             // blocks that the allocator gave out again
  uint64_t allocated;                          // bytes of Metal buffers held
  uint64_t graphs;                             // compiled graphs alive, of all threads
  uint64_t kernels;                            // kernel objects alive, of all threads
  uint64_t profiled;                           // records that the profiler finished
} mpsforge_pool_statistics;

typedef struct {
  uint32_t abi;  // MPSFORGE_POOL_ABI
  const char* (*identity)(void);

  // The creating thread counts as the process's main thread (rule 1). NULL if the device is missing.
  mpsforge_pool* (*create)(const mpsforge_pool_config* config);
  // For tests alone: PyTorch's pool is never destroyed. Synchronizes first. No thread may be inside a function, and all
  // tensors and events must have been destroyed.
  void (*destroy)(mpsforge_pool* pool);
  const char* (*last_error)(void);  // of the calling thread; valid until its next failing call
  // Writes the warnings so far, one a line, cut to size bytes with the null byte. Returns how many there are.
  int (*warnings)(mpsforge_pool* pool, char* buffer, size_t size);
  void (*statistics)(mpsforge_pool* pool, mpsforge_pool_statistics* out);
  uint64_t (*stream_commits)(mpsforge_pool* pool, uint32_t stream);

  // --- streams and threads (rules 1-8, 29)
  // Leases if the thread has no stream. 0 if there is none to lease.
  uint32_t (*current_stream)(mpsforge_pool* pool);
  // Whether the thread, not the main one, has a stream: what autograd's engine asks before it looks for it.
  int (*has_stream)(mpsforge_pool* pool);
  // As current_stream, with the error: what an operator does first.
  int (*working_stream)(mpsforge_pool* pool, uint32_t* stream);
  // Overrides the thread's current stream: by_program 1, or 0 as the guards of autograd's engine do. *previous: what
  // was set before as a token for restore_stream; may be NULL.
  int (*set_current_stream)(mpsforge_pool* pool, uint32_t stream, int by_program, uint32_t* previous);
  // Undoes set_current_stream exactly: to the override before it, or to none. With the same by_program.
  int (*restore_stream)(mpsforge_pool* pool, uint32_t token, int by_program);
  int (*reset_stream)(mpsforge_pool* pool);  // to none
  uint32_t (*stream_from_pool)(mpsforge_pool* pool);
  int (*release_stream_slot)(mpsforge_pool* pool);  // 0 even if there is none to release
  // What the end of the calling thread does; later calls on the thread use stream 0 (rule 2). The thread's real end
  // does it too, if it was not done before.
  void (*end_thread)(mpsforge_pool* pool);

  // --- tensors (rules 16-18)
  // On the current stream, leasing if need be; for_cpu: shared memory that the CPU writes next. NULL: see last_error.
  mpsforge_pool_tensor* (*empty)(mpsforge_pool* pool, size_t elements, int for_cpu);
  void (*free_tensor)(mpsforge_pool_tensor* tensor);  // a deleter: never leases
  int (*record_stream)(mpsforge_pool_tensor* tensor, uint32_t stream);
  int (*operate)(mpsforge_pool* pool, const mpsforge_pool_operator* op);
  int (*read)(mpsforge_pool_tensor* tensor, int32_t* to);           // .cpu(): copies, synchronizes, reads
  int (*write)(mpsforge_pool_tensor* tensor, const int32_t* from);  // a copy from the CPU; from may be freed afterwards
  // Memory of the CPU, and a copy to it that does not block (rule 13).
  mpsforge_pool_host* (*host_create)(mpsforge_pool* pool, size_t elements);
  void (*host_destroy)(mpsforge_pool_host* host);
  int (*copy_to_host)(mpsforge_pool_tensor* tensor, mpsforge_pool_host* host);
  int (*host_read)(mpsforge_pool_host* host, int32_t* to);  // by the CPU alone: waits for nothing
  // An operator whose kernel is the function: a guard around it, which operators in it are inside of.
  int (*guard)(mpsforge_pool* pool, const mpsforge_pool_use* uses, size_t count, mpsforge_metal_function function,
               void* context);
  // A kernel written in Python: the function runs with the thread's guards suspended. It takes the GIL by itself.
  int (*suspended)(mpsforge_pool* pool, mpsforge_metal_function function, void* context);
  // An operator that runs on the CPU instead, by the function.
  int (*fallback)(mpsforge_pool* pool, const mpsforge_pool_use* uses, size_t count, mpsforge_metal_function function,
                  void* context);

  // --- synchronisation (rules 10-15)
  int (*synchronize)(mpsforge_pool* pool, uint32_t stream);
  int (*synchronize_device)(mpsforge_pool* pool);
  int (*commit)(mpsforge_pool* pool, uint32_t stream);
  int (*query_stream)(mpsforge_pool* pool, uint32_t stream, int* complete);
  // Runs the function on the stream's serial queue, as PyTorch's blocks do; inside, mutators run inline (rule 10).
  int (*on_queue)(mpsforge_pool* pool, uint32_t stream, mpsforge_metal_function function, void* context);
  // For extensions: ends the open encoder and gives the stream's command buffer, borrowed; off its queue it warns
  // once.
  mpsforge_metal_command_buffer* (*command_buffer)(mpsforge_pool* pool, uint32_t stream);
  mpsforge_metal_encoder* (*command_encoder)(mpsforge_pool* pool, uint32_t stream);
  int (*add_completed_handler)(mpsforge_pool* pool, uint32_t stream, mpsforge_metal_function function, void* context);

  mpsforge_pool_event* (*event_create)(mpsforge_pool* pool, int timing);
  void (*event_destroy)(mpsforge_pool_event* event);
  int (*event_record)(mpsforge_pool_event* event, uint32_t stream);
  int (*event_wait)(mpsforge_pool_event* event, uint32_t stream);
  int (*event_query)(mpsforge_pool_event* event, int* complete);
  int (*event_synchronize)(mpsforge_pool_event* event);
  // Milliseconds from one record's completion to the other's; an error if either was not recorded, or not with timing.
  int (*event_elapsed)(mpsforge_pool_event* from, mpsforge_pool_event* to, double* milliseconds);

  // --- caches, profiler, fork (rules 19-25)
  int (*empty_cache)(mpsforge_pool* pool);  // frees unused memory, drops compiled graphs
  int (*profiler)(mpsforge_pool* pool, int on);
} mpsforge_pool_api;

// The functions of a table in its order, for an implementation that calls them as the members.
#define MPSFORGE_POOL_FUNCTIONS                                                                                      \
  identity, create, destroy, last_error, warnings, statistics, stream_commits, current_stream, has_stream,           \
      working_stream, set_current_stream, restore_stream, reset_stream, stream_from_pool, release_stream_slot,       \
      end_thread, empty, free_tensor, record_stream, operate, read, write, host_create, host_destroy, copy_to_host,  \
      host_read, guard, suspended, fallback, synchronize, synchronize_device, commit, query_stream, on_queue,        \
      command_buffer, command_encoder, add_completed_handler, event_create, event_destroy, event_record, event_wait, \
      event_query, event_synchronize, event_elapsed, empty_cache, profiler

const mpsforge_pool_api* mpsforge_pool_reference(void);

#ifdef __cplusplus
}
#endif
