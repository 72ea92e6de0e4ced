// A small language for programs over Metal and over a stream pool: what threads do, and what must come of it. One text
// serves the checker's corpus, the scenarios of the pool and random programs, in the Go process, under sanitizers and
// under the deterministic scheduler.
//
// A program is lines of words; # begins a comment, "..." holds blanks. Lines before the first heading are set-up, run
// by the main thread; "thread NAME" begins what a thread does; "block NAME" what a handler, listener or serial queue
// runs; "end" what the main thread does after all threads have ended. Objects are named by their creation and released
// at the end. A number after "=" is what the value must be; if it is not, the run has a failure. "fails TEXT VERB ..."
// expects an error that holds TEXT.
//
// All levels:
// clang-format off
//   device KEY=NUMBER...      only as the first line: abort, macos, models, cap, covers, split, order or watchdog,
//                             as mpsforge_metal_config explains them
//   barrier NAME              waits for all threads that have this line; orders them
//   post NAME                 counts up; orders
//   await NAME [N]            waits until the count is N, or 1; orders
//   repeat N ... done         again and again; nests
//   pause [MICROSECONDS]      a scheduling point, or a short sleep
//   stop unless completed CB  ends the section unless the command buffer has completed, by its status
//   stop unless value E N     ends the section unless the shared event has reached N
//   release NAME              releases an object early
//   leak NAME                 never releases an object
//   gil                       in the set-up: a lock that threads hold but where the pool blocks
//   no_python                 the thread is not one of Python's: it releases that lock for good
//   with_gil BLOCK            runs the block with that lock, as a deleter of a Python object does
//   await_with_gil NAME       waits with that lock held, as an extension in C may
//   fork BLOCK                runs the block in a forked child, whose failures count
// clang-format on
// Metal: verbs of metal_verbs.cc. Pool: "pool NAME=VALUE..." in the set-up makes one; verbs of pool_verbs.cc.
#pragma once

#include <stdint.h>

#include "../metal/metal.h"
#include "../pool/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

// How the threads of a program are run.
enum {
  MPSFORGE_SCRIPT_FREE = 0,    // freely; the seed decides delays
  MPSFORGE_SCRIPT_DRAWN = 1,   // by the deterministic scheduler, which draws every step from the seed
  MPSFORGE_SCRIPT_SEARCH = 2,  // by the deterministic scheduler, all schedules one after another
  MPSFORGE_SCRIPT_REPLAY = 3   // one schedule, as a result names it
};

typedef struct {
  const mpsforge_metal_api* metal;
  const mpsforge_pool_api* pool;
  uint32_t mode;
  uint64_t seed;       // of the first run; each further run takes the next
  uint64_t runs;       // of MPSFORGE_SCRIPT_SEARCH: at most so many
  int32_t deviations;  // of MPSFORGE_SCRIPT_SEARCH: places at most where a schedule differs from the default one, which
                       // goes on with a thread while it can; negative: any number
  uint32_t max_delay_us;  // microseconds
  uint32_t stall_ms;      // milliseconds without a step until a free run counts as stuck
  uint32_t record;        // 1: the result holds every step with its times and value
  uint32_t on_violation;  // MPSFORGE_METAL_RECORD or ABORT; a program's line "device abort=..." goes before it
  const uint32_t* stop;   // may be NULL; once it is not 0, no further run begins (read atomically)
  const char* schedule;   // of MPSFORGE_SCRIPT_REPLAY
} mpsforge_script_options;

// Runs the program and returns a JSON object, to be freed with mpsforge_script_free; NULL if memory is short:
//   error      what is wrong with the text or the schedule; nothing else is there then
//   runs       runs done; complete: (search) whether there are no more schedules
//   stuck      the last run could not end; its threads are left behind, and the process should not go on for long
//   steps      scheduling steps of the longest run, under a scheduler
//   runs_with  for each kind of finding the number of runs that had one
//   failures, findings   each kind once, with the number of runs that had it and the seed or schedule of the first
//   statistics of the last run
//   records    of the last run
// Blocks until done. Runs of a scheduler are one at a time in a process; free ones may be concurrent.
char* mpsforge_script_run(const char* text, const mpsforge_script_options* options);
void mpsforge_script_free(char* result);

#ifdef __cplusplus
}
#endif
