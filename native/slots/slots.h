// The C ABI of a slot allocator: what the reference and every subject under test implement.
//
// All strings are UTF-8 and end with a null byte. No function throws or keeps a pointer that it is given; running
// out of memory ends the process, except in create. Functions on one mpsforge_slots may be called from any thread at
// any time, except destroy.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Rises with every change of this header; a caller refuses a table with another number.
#define MPSFORGE_SLOTS_ABI 1u

#define MPSFORGE_SLOTS_MAX 1023u  // worker slots

// What acquire does when every slot is leased.
enum {
  MPSFORGE_SLOTS_SHARE = 0,  // answers SHARED at once
  MPSFORGE_SLOTS_WAIT = 1,   // waits up to wait_ms, then answers EXHAUSTED
  MPSFORGE_SLOTS_ERROR = 2   // waits up to 100 ms, then answers EXHAUSTED
};

enum { MPSFORGE_SLOTS_LEASED = 0, MPSFORGE_SLOTS_SHARED = 1, MPSFORGE_SLOTS_EXHAUSTED = 2 };

// The texts that message() composes.
enum { MPSFORGE_SLOTS_SHARE_WARNING = 0, MPSFORGE_SLOTS_EXHAUSTED_ERROR = 1 };

typedef struct mpsforge_slots mpsforge_slots;

typedef struct {
  uint32_t worker_slots;  // 1..MPSFORGE_SLOTS_MAX
  uint32_t policy;
  int64_t wait_ms;  // milliseconds, for MPSFORGE_SLOTS_WAIT only; negative: for ever
} mpsforge_slots_config;

typedef struct {
  uint32_t outcome;
  uint32_t slot;         // 0-based; 0 unless leased
  uint64_t generation;   // unique among the leases of the slot: 1, 3, 5...; 0 unless leased
  uint32_t first_share;  // 1 for the first SHARED answer of the object, else 0
} mpsforge_slots_result;

typedef struct {
  uint64_t live;       // leases held
  uint64_t peak;       // most leases ever held at once
  uint64_t leases;     // leases ever given
  uint64_t waits;      // acquires that found no slot for them and queued
  uint64_t shares;     // answers SHARED
  uint64_t exhausted;  // answers EXHAUSTED
  uint64_t refused;    // releases refused
  uint64_t waiting;    // threads in the queue
} mpsforge_slots_statistics;

// The function table of an implementation: static, immutable, valid for as long as the library is loaded.
typedef struct {
  uint32_t abi;  // MPSFORGE_SLOTS_ABI

  // Says what was built, from the values it was compiled with; never NULL, owned by the library.
  const char* (*identity)(void);

  // Returns NULL if the configuration is out of range or memory is short. The caller owns the result.
  mpsforge_slots* (*create)(const mpsforge_slots_config* config);

  // Frees the object; no thread may be inside a function on it. NULL is allowed.
  void (*destroy)(mpsforge_slots* self);

  // Leases the lowest free slot, or answers by the policy; may block. Fills *result.
  void (*acquire)(mpsforge_slots* self, mpsforge_slots_result* result);

  // Returns 1 if the lease was live and is now ended, 0 if it was refused. Never blocks on other threads' leases.
  int (*release)(mpsforge_slots* self, uint32_t slot, uint64_t generation);

  // Fills *statistics: one consistent moment during the call.
  void (*statistics)(mpsforge_slots* self, mpsforge_slots_statistics* statistics);

  // Writes one of the texts above to buffer, cut to size bytes with the null byte. Returns its full length in bytes
  // without it.
  size_t (*message)(mpsforge_slots* self, int which, char* buffer, size_t size);

  // Reads the values of PYTORCH_MPS_STREAM_POOL_SIZE and _EXHAUSTED (NULL: unset) into *config. Writes the warnings to
  // buffer, one a line, cut to size bytes with the null byte. Returns how many there are.
  int (*parse)(const char* pool_size, const char* exhausted, mpsforge_slots_config* config, char* buffer, size_t size);
} mpsforge_slots_api;

// The one symbol that a subject's shared library exports.
typedef const mpsforge_slots_api* (*mpsforge_slots_subject_function)(void);
#define MPSFORGE_SLOTS_SUBJECT_SYMBOL "mpsforge_slots_subject"

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const mpsforge_slots_api*
mpsforge_slots_subject(void);

// The reference, built in.
const mpsforge_slots_api* mpsforge_slots_reference(void);

#ifdef __cplusplus
}
#endif
