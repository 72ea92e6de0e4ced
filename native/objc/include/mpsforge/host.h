// What programs on Linux may ask of the Objective-C layer: test drivers and the glue that stands in for PyTorch. None
// of it exists on macOS.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The same layout as mpsforge_metal_finding of native/metal/metal.h; kind 0 is a violation, 1 a race, 2 a deadlock, 3 a
// lifetime, 4 a model's observation.
typedef struct {
  uint32_t kind;
  uint32_t signature;
  char message[512];
  char first[256];
  char second[256];
  char history[256];
} mpsforge_host_finding;

typedef struct {
  uint64_t command_buffers;
  uint64_t commands;
  uint64_t handlers;
  uint64_t races;
  uint64_t violations;
  uint64_t checker_ranges;
  uint64_t checker_bytes;
} mpsforge_host_statistics;

// Copies up to capacity findings and returns how many there are.
size_t mpsforge_host_findings(mpsforge_host_finding* out, size_t capacity);
void mpsforge_host_get_statistics(mpsforge_host_statistics* out);
// Waits for all committed work, ends the device's threads and adds what was left behind to the findings. After that
// only findings and statistics of the device may be read.
void mpsforge_host_close(void);

// Names the calling thread in findings.
void mpsforge_host_name_thread(const char* name);

// Reports to the checker an access of the CPU to memory of a Metal buffer (MPSFORGE_HOST_READ, _WRITE; both). Memory
// of no buffer is passed over. Weakly defined here; native/objc/metal knows the buffers.
enum { MPSFORGE_HOST_READ = 1, MPSFORGE_HOST_WRITE = 2 };
void mpsforge_host_cpu_access(const void* pointer, size_t length, uint32_t access);

// An order that the checkers cannot see by themselves: what happened before a release of the object happens before what
// follows an acquire of it. Threads that are made or joined need it, for instance.
void mpsforge_host_order_release(const void* object);
void mpsforge_host_order_acquire(const void* object);

// Adds a section that getsectiondata finds. The bytes are not copied. One of the same name is replaced.
void mpsforge_host_add_section(const char* segment, const char* section, const void* bytes, size_t size);

// The names of the translated Metal kernels that have run, one a line, into text, which ends in a null byte. Returns
// how many bytes there are without it.
size_t mpsforge_host_translated(char* text, size_t capacity);

// Signposts of a type (os/signpost.h: event, begin, end) emitted so far.
uint64_t mpsforge_host_signposts(unsigned type);

// Lets the n-th command buffer that is committed on the queue, an id<MTLCommandQueue>, from now on fail: it executes
// nothing.
void mpsforge_host_fail_command_buffer(void* queue, uint32_t n);

// Lets the device give nil to the next n requests of a kind, as Metal does if it has no more: of command queues, of
// shared events, or of buffers that are taken from no heap. Safe on any thread.
enum { MPSFORGE_HOST_QUEUES, MPSFORGE_HOST_EVENTS, MPSFORGE_HOST_BUFFERS, MPSFORGE_HOST_KINDS };
void mpsforge_host_refuse(uint32_t kind, uint32_t n);

// What the process has done with Metal so far, where MPSFORGE_METAL_RECORD=1: a line for each call, in their order,
// into text, which ends in a null byte. Returns how many bytes there are without it. Queues and events have numbers in
// the order in which they are made. The lines are
//   make queue|event|graph|library|function NAME|pipeline NAME
//   memory BYTES: of heaps and of buffers outside of them, given back where it begins with "-"
//   buffer BYTES, over BYTES: an MTLBuffer, of memory that is the CPU's already
//   commit QUEUE[, continue], and for a queue: wait until scheduled|completed, scheduled|completed handler,
//   signal EVENT to VALUE on QUEUE, wait of the GPU EVENT for VALUE on QUEUE
//   blit|compute encoder QUEUE, end encoding, and in encoders: fill BYTES, copy BYTES, kernel NAME,
//   argument INDEX: BYTES from OFFSET, dispatch THREADS GROUP; graph OPERATIONS: FEEDS -> RESULTS
//   signal|wait of the CPU EVENT to|for VALUE, notify EVENT at VALUE
size_t mpsforge_host_recorded(char* text, size_t capacity);

// MPSGraph objects that exist.
uint64_t mpsforge_host_live_graphs(void);

#ifdef __cplusplus
}
#endif
