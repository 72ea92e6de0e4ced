// The one door from the Objective-C classes to the engine (native/metal).
//
// The engine has one mutex a device. If ThreadSanitizer saw it, every two Metal calls would be ordered for it, and
// races of the code under test would be hidden. So in that flavour the engine is compiled without instrumentation,
// EngineCall makes the sanitizer blind while a thread is in the engine, OutsideEngine makes it see again in callbacks,
// and the edges that Apple documents are declared by order_release and order_acquire.
//
// Environment of the process's device, read at its first use:
//   MPSFORGE_METAL_SEED            of delays and of what Metal leaves open; default 1
//   MPSFORGE_METAL_MAX_DELAY_US    microseconds, before a command and before a handler; default 0
//   MPSFORGE_METAL_ON_VIOLATION    abort (default) or record
//   MPSFORGE_METAL_MACOS           the macOS that the process finds, and whose rules hold, e.g. 15.1; default 15.5
//   MPSFORGE_METAL_CHECK_ORDER     1 (default): the happens-before checker is on; 0: off
//   MPSFORGE_METAL_CHECK_KERNELS   1: races between the threads of a translated kernel are findings; default 0
//   MPSFORGE_METAL_WATCHDOG_MS     without progress for so long is a deadlock; default 0: never
//   MPSFORGE_METAL_MODELS          sum of MPSFORGE_METAL_MODEL bits, or "seed": drawn from it; default 0
//   MPSFORGE_METAL_CHECK_WAITS     1: a wait that is committed before its signal is a finding, beside those models
//   MPSFORGE_METAL_GRAPH_SPLIT     an MPSGraph encodes commitAndContinue by itself every so many times, or "seed": at
//                                  encodes drawn from it; default 0: never
//   MPSFORGE_METAL_WORKING_SET_MB  megabytes, the device's recommendedMaxWorkingSetSize; default 8192
//   MPSFORGE_METAL_MAX_BUFFER_MB   megabytes, the device's maxBufferLength; default 0: 3/4 of the working set
//   MPSFORGE_METAL_POISON          1: fresh memory of buffers is not zero; default 0
//   MPSFORGE_METAL_RECORD          1: calls are recorded (mpsforge/host.h); default 0
//   MPSFORGE_METAL_IN_STEP         1: a commit that is recorded returns when the GPU has run the command buffer and its
//                                  handlers, so that memory that these give back is there at once; default 0
//   MPSFORGE_METAL_TRACE           a folder: calls that order or touch memory are written to PID.trace in it
//                                  (docs/dev/trace.md); default none
// A value that cannot be read ends the process with its name.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../metal/metal.h"

namespace mpsforge::objc {

struct Environment {
  mpsforge_metal_config config;
  unsigned macos_major;
  unsigned macos_minor;
  size_t working_set_bytes;
  size_t max_buffer_bytes;
  bool check_kernels;
  bool record, in_step;
};
const Environment& environment();

// The software Metal, which records its calls if the environment says so.
const mpsforge_metal_api& api();
// The process's one device; made at first use, never destroyed.
mpsforge_metal_device* device();
// NULL if nobody has used it yet.
mpsforge_metal_device* device_if_made();
// Waits for all committed work and ends the device's threads; findings and statistics may still be read.
void close_device();

// Around every call of the engine.
class EngineCall {
 public:
  EngineCall();
  ~EngineCall();
  EngineCall(const EngineCall&) = delete;
  EngineCall& operator=(const EngineCall&) = delete;
};

// In every function that the engine calls back, around what it runs of others' code.
class OutsideEngine {
 public:
  OutsideEngine();
  ~OutsideEngine();
  OutsideEngine(const OutsideEngine&) = delete;
  OutsideEngine& operator=(const OutsideEngine&) = delete;

 private:
  unsigned depth_;
};

bool inside_engine();

// For a call that came back without having done its work, which happens after a deadlock only: the engine has recorded
// the deadlock and let everybody go. Unless violations are only recorded, prints what it found and aborts.
void came_back_undone(const char* call);

// An edge for ThreadSanitizer and for the engine's checker: what happened before a release of the object happens before
// what follows an acquire of it. May be called inside or outside of the engine, but the engine's own checker learns
// only outside of it.
void order_release(const void* object);
void order_acquire(const void* object);
// For the engine's checker alone, where ThreadSanitizer sees the edge by itself.
void checker_release(const void* object);
void checker_acquire(const void* object);
// For ThreadSanitizer alone, where the engine knows the edge by itself.
void sanitizer_release(const void* object);
void sanitizer_acquire(const void* object);

// Prints the message to standard error and aborts.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace mpsforge::objc
