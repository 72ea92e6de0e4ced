// Drives a slot allocator from many C++ threads and records what happened, while another reads its statistics. C++
// threads, because Go's race detector and scheduler see nothing of C++ memory, and because a sanitizer build must run
// without Go.
#pragma once

#include "slots.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  mpsforge_slots_config config;
  uint64_t seed;           // same seed, same choices in each thread; the interleaving differs
  uint32_t threads;        // at least 1
  uint32_t operations;     // per thread; what a thread holds at its end is released on top
  uint32_t max_held;       // leases that a thread holds at once; 1 with an endless wait, else threads may deadlock
  uint32_t stale_percent;  // of the operations, that release a lease which ended or never was
  uint32_t hold_yields;    // a holder yields the processor up to so many times
  uint32_t stall_ms;       // no operation of any thread ends for so long: stalled
} mpsforge_history_options;

enum { MPSFORGE_HISTORY_ACQUIRE = 0, MPSFORGE_HISTORY_RELEASE = 1 };

typedef struct {
  int64_t start_ns;  // on a monotonic clock with one base for all threads
  int64_t end_ns;
  uint64_t generation;  // acquire: result; release: argument
  uint32_t slot;        // likewise
  uint32_t thread;
  uint32_t kind;
  uint32_t outcome;      // acquire: MPSFORGE_SLOTS_LEASED and so on; release: 1 accepted, 0 refused
  uint32_t first_share;  // acquire only
  uint32_t valid;        // release only: 1 if the lease was the thread's own live one
} mpsforge_history_record;

typedef struct {
  size_t records;
  uint64_t overlaps;                     // times that a slot had two holders
  uint64_t torn;                         // statistics read meanwhile that are of no single moment
  uint32_t stalled;                      // 1: see stuck; the records are those of finished operations
  mpsforge_slots_statistics statistics;  // after all threads have ended; zero if stalled
  char stuck[512];                       // who was inside which operation when nothing moved any more
} mpsforge_history_result;

// How many records a history has at most.
size_t mpsforge_history_capacity(const mpsforge_history_options* options);

// Runs one history and writes its records, ordered by thread, to records[capacity]. Returns 0, or -1 if the options
// are out of range, the capacity is too small or create failed. Blocks until the history has ended or stalled. The
// threads of a stalled history, the allocator and their memory are left behind, as no thread can be ended from
// outside: the subject's library must stay loaded.
int mpsforge_history_run(const mpsforge_slots_api* api, const mpsforge_history_options* options,
                         mpsforge_history_record* records, size_t capacity, mpsforge_history_result* result);

#ifdef __cplusplus
}
#endif
