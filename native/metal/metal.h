// The C ABI over Metal: as much of a device, its queues, command buffers, encoders, buffers and events as a stream pool
// needs. Two backends implement it: the software Metal, which runs anywhere and checks every rule, and Apple's
// framework.
//
// Names and meaning follow Metal. Unless said otherwise:
//  - a function may be called by any thread at any time; what Metal forbids is a violation, see findings;
//  - every create function gives the caller one reference, which release ends; Metal's own retains apply on top (a
//    command buffer keeps its queue, and what it encodes, alive until it has ended);
//  - as in Objective-C, a call on a NULL object does nothing and returns zero, so that a program which goes on after a
//    recorded violation meets no second fault;
//  - strings are UTF-8, end with a null byte and are copied; no function throws.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Rises with every change of this header; a caller refuses a table with another number.
#define MPSFORGE_METAL_ABI 6u

typedef struct mpsforge_metal_device mpsforge_metal_device;
typedef struct mpsforge_metal_queue mpsforge_metal_queue;
typedef struct mpsforge_metal_command_buffer mpsforge_metal_command_buffer;
typedef struct mpsforge_metal_encoder mpsforge_metal_encoder;
typedef struct mpsforge_metal_buffer mpsforge_metal_buffer;
typedef struct mpsforge_metal_event mpsforge_metal_event;
typedef struct mpsforge_metal_serial_queue mpsforge_metal_serial_queue;
typedef struct mpsforge_metal_mps_kernel mpsforge_metal_mps_kernel;
typedef struct mpsforge_metal_call mpsforge_metal_call;

// MTLCommandBufferStatus.
enum {
  MPSFORGE_METAL_NOT_ENQUEUED = 0,
  MPSFORGE_METAL_ENQUEUED = 1,
  MPSFORGE_METAL_COMMITTED = 2,
  MPSFORGE_METAL_SCHEDULED = 3,
  MPSFORGE_METAL_COMPLETED = 4,
  MPSFORGE_METAL_ERROR = 5
};

// MTLStorageMode, as far as used.
enum { MPSFORGE_METAL_SHARED = 0, MPSFORGE_METAL_PRIVATE = 2 };

// How a range of a buffer is used; bits.
enum { MPSFORGE_METAL_READ = 1, MPSFORGE_METAL_WRITE = 2 };

// What a violation does.
enum {
  MPSFORGE_METAL_RECORD = 0,  // it is kept for findings, and the call has no effect
  MPSFORGE_METAL_ABORT = 1    // it is printed to standard error as Metal prints it, and the process aborts
};

// Models of what Apple's kernels do not tolerate, and of what our series promises; bits. Each of the former is an
// observation from outside, its source in models.cc.
enum {
  MPSFORGE_METAL_MODEL_MATRIX = 1,  // MPSNDArrayMatrixMultiplication encoded by two threads at once: signature 10
  MPSFORGE_METAL_MODEL_GRAPH = 2,   // one MPSGraph encoded by two threads: signature 11
  MPSFORGE_METAL_MODEL_KERNEL_OBJECT = 4,  // one MPSKernel encoded by two threads at once
  // One buffer written by the CPU and by the GPU in no order, in any ranges.
  MPSFORGE_METAL_MODEL_MIXED_WRITES = 8,
  // One MPSKernel encoded by two threads that nothing orders, even if this run's encodes did not meet.
  MPSFORGE_METAL_MODEL_KERNEL_ORDER = 16,
  // A wait in a command buffer that is committed before the signal; not of an event that the CPU has set.
  MPSFORGE_METAL_MODEL_EARLY_WAIT = 32,
  MPSFORGE_METAL_MODEL_ENCODES = 7,  // the first three: two threads inside of encodes at the same time
  MPSFORGE_METAL_MODEL_ALL = 63
};

// For mpsforge_metal_config.graph_split: the seed draws at which encodes an MPSGraph commits, about one of four.
#define MPSFORGE_METAL_SPLIT_BY_SEED UINT32_MAX

// Whether wait_until_completed returns after the completed handlers; Apple's pages leave it open.
enum { MPSFORGE_METAL_WAIT_BY_SEED = 0, MPSFORGE_METAL_WAIT_COVERS = 1, MPSFORGE_METAL_WAIT_DOES_NOT_COVER = 2 };

typedef struct {
  uint64_t seed;             // of delays and of what Metal leaves open
  uint32_t max_delay_us;     // microseconds, before a command and before a handler; 0: none
  uint32_t on_violation;     // MPSFORGE_METAL_RECORD or ABORT
  uint32_t macos;            // the rules of which macOS, 100 * major + minor; 0: the newest and strictest
  uint32_t check_order;      // 1: the happens-before checker is on
  uint32_t watchdog_ms;      // milliseconds without any progress until a blocked call is called a deadlock; 0: never
  uint32_t models;           // MPSFORGE_METAL_MODEL bits
  uint32_t max_uncompleted;  // command buffers a queue holds; 0: 64, Metal's default
  uint32_t wait_covers_handlers;  // MPSFORGE_METAL_WAIT_...
  uint32_t graph_split;  // an MPSGraph encodes commitAndContinue by itself every so many times; 0: never; or by seed
} mpsforge_metal_config;

enum {
  MPSFORGE_METAL_VIOLATION = 0,  // a call that Metal answers with an assertion
  MPSFORGE_METAL_RACE = 1,       // two conflicting accesses that nothing orders
  MPSFORGE_METAL_DEADLOCK = 2,   // nothing can go on any more
  MPSFORGE_METAL_LIFETIME = 3,   // left behind, or used after its end
  MPSFORGE_METAL_MODEL = 4       // a model's observation
};

typedef struct {
  uint32_t kind;
  uint32_t signature;  // number of the crash signature (see `mpsforge metal explain`), or 0
  char message[512];   // what Metal prints, or one sentence
  char first[256];     // the call that made it wrong, or the earlier access, with its thread, queue and buffer
  char second[256];    // the call or access that was found
  char history[256];   // of a race: where the range was last freed and reused; else empty
} mpsforge_metal_finding;

typedef struct {
  uint64_t command_buffers;  // committed
  uint64_t commands;         // executed
  uint64_t handlers;         // called
  uint64_t races;            // found, each pair of places once
  uint64_t violations;
  uint64_t checker_ranges;  // ranges that the checker remembers now
  uint64_t checker_bytes;   // of its memory, about
} mpsforge_metal_statistics;

typedef void (*mpsforge_metal_function)(void* context);
typedef void (*mpsforge_metal_handler)(void* context, mpsforge_metal_command_buffer* borrowed);

// A compute kernel.
typedef struct {
  const char* name;
  void (*host)(mpsforge_metal_call* call);  // runs all threads of a dispatch, on the software Metal
  const char* source;                       // the same in Metal Shading Language, for Apple's framework
} mpsforge_metal_kernel;

// What the next command buffers committed on a queue do.
enum {
  MPSFORGE_METAL_INJECT_ERROR = 1,  // executes nothing and ends in MPSFORGE_METAL_ERROR; its signals are not sent
  MPSFORGE_METAL_INJECT_HANG = 2    // executes nothing until resume
};

// Classes of MPSKernel and MPSGraph that the models distinguish.
enum { MPSFORGE_METAL_MPS_MATRIX = 0, MPSFORGE_METAL_MPS_GRAPH = 1, MPSFORGE_METAL_MPS_OTHER = 2 };

typedef struct {
  mpsforge_metal_buffer* buffer;
  size_t offset;  // bytes
} mpsforge_metal_binding;

// A dispatch in three dimensions: its threads, and those of one threadgroup.
typedef struct {
  uint64_t threads[3];
  uint64_t group[3];
} mpsforge_metal_grid;

// A buffer that a kernel may reach.
typedef struct {
  uint64_t address;  // of the first byte
  size_t length;     // bytes from there to its end
  uint32_t access;   // bits
} mpsforge_metal_reach;

// How many buffers can be bound to a kernel's arguments.
#define MPSFORGE_METAL_ARGUMENTS 31u

// What a kernel's threads may do wrong by themselves.
enum {
  MPSFORGE_METAL_OUT_OF_RANGE = 0,
  MPSFORGE_METAL_DIVERGENCE = 1,  // a barrier that not all threads of a threadgroup reach
  MPSFORGE_METAL_KERNEL_RACE = 2  // two threads of a grid use one byte, and nothing orders them
};

// When a command buffer was handed to the GPU and when that ran it: seconds of a clock that only rises; 0: not yet.
typedef struct {
  double kernel_start, kernel_end;
  double gpu_start, gpu_end;
} mpsforge_metal_times;

// An observer of the order between threads, such as ThreadSanitizer when the engine is compiled without it.
// Whatever happened before a release of an object happens before what follows an acquire of it. The functions run on
// the thread concerned, often with the engine's locks held, and must not call the engine.
typedef struct {
  void (*thread_begins)(void);  // on every thread that the engine starts, before anything else
  void (*release)(const void* object);
  void (*acquire)(const void* object);
} mpsforge_metal_observer;

// The function table of a backend: static, immutable.
typedef struct {
  uint32_t abi;  // MPSFORGE_METAL_ABI
  const char* (*identity)(void);

  // --- device. Release waits for all committed work, ends the device's threads and adds what was left behind to the
  // findings, so read them through close: close does the same and keeps the device for findings and statistics.
  mpsforge_metal_device* (*device_create)(const mpsforge_metal_config* config);  // NULL: no device, or out of range
  void (*device_close)(mpsforge_metal_device* device);
  void (*device_release)(mpsforge_metal_device* device);
  // Copies up to capacity findings and returns how many there are.
  size_t (*findings)(mpsforge_metal_device* device, mpsforge_metal_finding* out, size_t capacity);
  void (*statistics)(mpsforge_metal_device* device, mpsforge_metal_statistics* out);
  // Names the calling thread in findings.
  void (*name_thread)(mpsforge_metal_device* device, const char* name);
  // Adds a kernel; one of the same name is replaced. The functions must outlive the device.
  void (*add_kernel)(mpsforge_metal_device* device, const mpsforge_metal_kernel* kernel);

  // --- order between threads that the checker is to know of, beside what it sees by itself (serial queues, waits,
  // handlers): whatever happened before a release of the object happens before what follows an acquire of it. No-ops on
  // Apple's framework.
  void (*order_release)(mpsforge_metal_device* device, const void* object);
  void (*order_acquire)(mpsforge_metal_device* device, const void* object);

  // --- buffers
  mpsforge_metal_buffer* (*buffer_create)(mpsforge_metal_device* device, size_t length, uint32_t storage,
                                          const char* label);  // zeroed; NULL: no memory or length 0
  void (*buffer_release)(mpsforge_metal_buffer* buffer);
  size_t (*buffer_length)(mpsforge_metal_buffer* buffer);
  // The memory of a shared buffer, NULL of a private one. Accesses through it are not seen: announce them with
  // cpu_access, or use cpu_read and cpu_write.
  void* (*buffer_contents)(mpsforge_metal_buffer* buffer);
  void (*cpu_access)(mpsforge_metal_buffer* buffer, size_t offset, size_t length, uint32_t access);
  void (*cpu_read)(mpsforge_metal_buffer* buffer, size_t offset, size_t length, void* to);
  void (*cpu_write)(mpsforge_metal_buffer* buffer, size_t offset, size_t length, const void* from);
  // Notes what an allocator did with a range ("freed by ...", "reused by ..."), for the reports of races.
  void (*buffer_note)(mpsforge_metal_buffer* buffer, size_t offset, size_t length, const char* what);

  // --- queues. A queue holds max_uncompleted command buffers that have not completed; then creation blocks.
  mpsforge_metal_queue* (*queue_create)(mpsforge_metal_device* device, const char* label);
  void (*queue_release)(mpsforge_metal_queue* queue);
  // The n-th command buffer committed on the queue from now (1: the next) does what the kind says.
  void (*inject)(mpsforge_metal_queue* queue, uint32_t kind, uint32_t n);
  void (*resume)(mpsforge_metal_queue* queue);

  // --- command buffers: an MTLCommandBuffer, or an MPSCommandBuffer, which is a wrapper around a root one.
  mpsforge_metal_command_buffer* (*command_buffer)(mpsforge_metal_queue* queue);
  mpsforge_metal_command_buffer* (*mps_command_buffer)(mpsforge_metal_queue* queue);
  void (*command_buffer_release)(mpsforge_metal_command_buffer* buffer);
  uint32_t (*status)(mpsforge_metal_command_buffer* buffer);  // of the newest root
  // The error of a buffer in MPSFORGE_METAL_ERROR, else "". Valid for as long as the buffer.
  const char* (*error)(mpsforge_metal_command_buffer* buffer);
  void (*enqueue)(mpsforge_metal_command_buffer* buffer);
  void (*commit)(mpsforge_metal_command_buffer* buffer);
  // Of an MPSCommandBuffer: commits the root and goes on with a new one of the same queue. May block as creation does.
  void (*commit_and_continue)(mpsforge_metal_command_buffer* buffer);
  mpsforge_metal_command_buffer* (*root_command_buffer)(
      mpsforge_metal_command_buffer* buffer);  // a reference of its own
  void (*wait_until_scheduled)(mpsforge_metal_command_buffer* buffer);
  void (*wait_until_completed)(mpsforge_metal_command_buffer* buffer);
  // Handlers run on the device's own thread, one at a time, in the order of their buffers.
  void (*add_scheduled_handler)(mpsforge_metal_command_buffer* buffer, mpsforge_metal_handler handler, void* context);
  void (*add_completed_handler)(mpsforge_metal_command_buffer* buffer, mpsforge_metal_handler handler, void* context);
  void (*encode_signal)(mpsforge_metal_command_buffer* buffer, mpsforge_metal_event* event, uint64_t value);
  void (*encode_wait)(mpsforge_metal_command_buffer* buffer, mpsforge_metal_event* event, uint64_t value);

  // --- encoders
  mpsforge_metal_encoder* (*blit_encoder)(mpsforge_metal_command_buffer* buffer);
  mpsforge_metal_encoder* (*compute_encoder)(mpsforge_metal_command_buffer* buffer);
  void (*encoder_release)(mpsforge_metal_encoder* encoder);
  void (*end_encoding)(mpsforge_metal_encoder* encoder);
  void (*fill)(mpsforge_metal_encoder* encoder, mpsforge_metal_buffer* buffer, size_t offset, size_t length,
               uint8_t value);
  void (*copy)(mpsforge_metal_encoder* encoder, mpsforge_metal_buffer* from, size_t from_offset,
               mpsforge_metal_buffer* to, size_t to_offset, size_t length);
  void (*set_kernel)(mpsforge_metal_encoder* encoder, const char* name);
  void (*set_buffer)(mpsforge_metal_encoder* encoder, uint32_t index, mpsforge_metal_buffer* buffer, size_t offset);
  void (*set_bytes)(mpsforge_metal_encoder* encoder, uint32_t index, const void* data, size_t length);
  void (*dispatch)(mpsforge_metal_encoder* encoder, uint64_t threads);

  // --- inside a kernel's host function: the only way to its arguments, so that every access is declared. Returns NULL,
  // and records a violation, for a range that the bound buffer does not have.
  void* (*argument)(mpsforge_metal_call* call, uint32_t index, size_t offset, size_t length, uint32_t access);
  const void* (*bytes)(mpsforge_metal_call* call, uint32_t index, size_t* length);
  uint64_t (*threads)(mpsforge_metal_call* call);

  // --- MPSKernel and MPSGraph objects, as far as the models need them. Encodes one dispatch of the named kernel: on
  // the encoder if one is given (it must be the command buffer's open one), else on an encoder of its own. Bindings are
  // arguments 0.., bytes comes after them.
  mpsforge_metal_mps_kernel* (*mps_create)(mpsforge_metal_device* device, uint32_t mps_class, const char* label);
  void (*mps_release)(mpsforge_metal_mps_kernel* kernel);
  void (*mps_encode)(mpsforge_metal_mps_kernel* kernel, mpsforge_metal_command_buffer* buffer,
                     mpsforge_metal_encoder* encoder, const char* name, const mpsforge_metal_binding* bindings,
                     size_t count, const void* bytes, size_t length, uint64_t threads);

  // --- shared events
  mpsforge_metal_event* (*event_create)(mpsforge_metal_device* device, const char* label);
  void (*event_release)(mpsforge_metal_event* event);
  uint64_t (*event_value)(mpsforge_metal_event* event);
  void (*event_set)(mpsforge_metal_event* event, uint64_t value);  // a signal from the CPU
  // Returns 1 when the event has the value, 0 when the time is up. Negative time: for ever.
  int (*event_wait)(mpsforge_metal_event* event, uint64_t value, int64_t timeout_ms);
  // Calls the function once, on the listener's own thread, when the event has the value.
  void (*event_notify)(mpsforge_metal_event* event, uint64_t value, mpsforge_metal_function function, void* context);

  // --- serial dispatch queues. sync runs the function on the calling thread, after what was put in before; on a queue
  // that the thread is already on it is signature 16. async runs it on the queue's own thread.
  mpsforge_metal_serial_queue* (*serial_create)(mpsforge_metal_device* device, const char* label);
  void (*serial_release)(mpsforge_metal_serial_queue* queue);  // after what was put in has run
  void (*serial_sync)(mpsforge_metal_serial_queue* queue, mpsforge_metal_function function, void* context);
  void (*serial_async)(mpsforge_metal_serial_queue* queue, mpsforge_metal_function function, void* context);
  int (*serial_is_current)(mpsforge_metal_serial_queue* queue);  // 1: the calling thread runs a block of it

  // --- what classes named as Apple's need beyond that (native/objc). NULL on Apple's framework, which has them.
  // Before any other call on the device.
  void (*observe)(mpsforge_metal_device* device, const mpsforge_metal_observer* observer);
  // A kernel whose host function gets a context. It must outlive the device.
  void (*add_context_kernel)(mpsforge_metal_device* device, const mpsforge_metal_kernel* kernel, void* context);
  // A buffer over memory of the caller's, which must outlive the buffer and all work that uses it. Its bytes are left
  // as they are. NULL: length 0 or no memory.
  mpsforge_metal_buffer* (*buffer_over)(mpsforge_metal_device* device, void* memory, size_t length, uint32_t storage,
                                        const char* label);
  // Where kernels find the buffer's first byte, for addresses that are data themselves; see address_argument.
  uint64_t (*gpu_address)(mpsforge_metal_buffer* buffer);
  // The command buffer's root, or the encoder's, owns a reference to the object from now on and gives it back with the
  // function, on the handler thread: before the completed handlers, or after them; or on the thread that releases the
  // buffer, if that is never committed. Returns 0, and owns nothing, if it owns the object already or has ended.
  int (*keep)(mpsforge_metal_command_buffer* buffer, void* object, mpsforge_metal_function give_back,
              int after_handlers);
  int (*encoder_keep)(mpsforge_metal_encoder* encoder, void* object, mpsforge_metal_function give_back);
  void (*times)(mpsforge_metal_command_buffer* buffer, mpsforge_metal_times* out);  // of the newest root
  // 1: the other one is the buffer's root now.
  int (*is_root)(mpsforge_metal_command_buffer* buffer, mpsforge_metal_command_buffer* other);
  uint64_t (*number)(mpsforge_metal_command_buffer* buffer);  // of the newest root, on the device, as findings have it
  void (*dispatch_grid)(mpsforge_metal_encoder* encoder, const mpsforge_metal_grid* grid);
  void (*set_threadgroup_memory)(mpsforge_metal_encoder* encoder, uint32_t index, size_t length);
  // The kernels of the encoder's later dispatches may reach the buffer by address: MTLComputeCommandEncoder
  // useResource:usage:.
  void (*use_buffer)(mpsforge_metal_encoder* encoder, mpsforge_metal_buffer* buffer, uint32_t access);

  // --- and inside of a kernel's host function
  void* (*context)(mpsforge_metal_call* call);
  void (*grid)(mpsforge_metal_call* call, mpsforge_metal_grid* out);  // of a plain dispatch: groups of one thread
  size_t (*threadgroup_memory)(mpsforge_metal_call* call, uint32_t index);
  // Bytes from the binding's offset to the end of its buffer; 0: no buffer is bound.
  size_t (*argument_length)(mpsforge_metal_call* call, uint32_t index);
  // As argument, of a range that begins at an address of a bound or used buffer.
  void* (*address_argument)(mpsforge_metal_call* call, uint64_t address, size_t length, uint32_t access);
  // For host functions that check accesses themselves and declare them afterwards. The buffer bound to argument n, or,
  // from MPSFORGE_METAL_ARGUMENTS on, those that the encoder uses; length 0: none. Returns 0 when there are no more.
  int (*reach)(mpsforge_metal_call* call, size_t n, mpsforge_metal_reach* out);
  // Records what they found.
  void (*refuse)(mpsforge_metal_call* call, uint32_t problem, const char* what, const char* detail);
  // Which command runs: the number of its command buffer, and its own there, from 1.
  void (*command)(mpsforge_metal_call* call, uint64_t* command_buffer, uint32_t* number);
} mpsforge_metal_api;

// Runs anywhere.
const mpsforge_metal_api* mpsforge_metal_software(void);

// Begins a trace: the table that mpsforge_metal_software gives from now on writes a line for each call that orders or
// touches memory (docs/dev/trace.md). Call it before the first device is made. NULL ends the trace, as does the end of
// the process, in which a device that is still there is taken to end. "%p" in the path is the number of the process,
// and has a forked child write a file of its own; without it a child writes nothing. Returns 0, or an errno.
int mpsforge_metal_trace(const char* path);

// Apple's framework; NULL on other systems.
const mpsforge_metal_api* mpsforge_metal_framework(void);

#ifdef __cplusplus
}
#endif
