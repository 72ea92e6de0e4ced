//go:build cgo

package slots

/*
#cgo CXXFLAGS: -std=c++17 -O2 -Wall -Wextra
#cgo linux LDFLAGS: -ldl -static-libstdc++ -static-libgcc
#include <dlfcn.h>
#include <stdlib.h>
#include "harness.h"

// cgo cannot call function pointers.
static const char* identity(const mpsforge_slots_api* api) { return api->identity(); }
static mpsforge_slots* create(const mpsforge_slots_api* api, const mpsforge_slots_config* config) { return api->create(config); }
static void destroy(const mpsforge_slots_api* api, mpsforge_slots* self) { api->destroy(self); }
static void acquire(const mpsforge_slots_api* api, mpsforge_slots* self, mpsforge_slots_result* result) { api->acquire(self, result); }
static int release(const mpsforge_slots_api* api, mpsforge_slots* self, uint32_t slot, uint64_t generation) {
  return api->release(self, slot, generation);
}
static void statistics(const mpsforge_slots_api* api, mpsforge_slots* self, mpsforge_slots_statistics* out) { api->statistics(self, out); }
static size_t message(const mpsforge_slots_api* api, mpsforge_slots* self, int which, char* buffer, size_t size) {
  return api->message(self, which, buffer, size);
}
static int parse(const mpsforge_slots_api* api, const char* size, const char* exhausted, mpsforge_slots_config* config,
                 char* buffer, size_t length) {
  return api->parse(size, exhausted, config, buffer, length);
}
static const mpsforge_slots_api* subject(void* function) { return ((mpsforge_slots_subject_function)function)(); }
*/
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	_ "mpsforge/native/schedule" // its random.h is included
)

// textLimit bounds the texts taken from a subject, in bytes.
const textLimit = 4096

// Subject is an implementation of the slot allocator: the reference, or one from a shared library.
type Subject struct{ api *C.mpsforge_slots_api }

// Reference returns the built-in implementation that the others are judged by.
func Reference() (*Subject, error) { return newSubject(C.mpsforge_slots_reference()) }

// Load loads a subject from a shared library. The library stays loaded until the process ends: a stalled history leaves
// threads inside it.
func Load(path string) (*Subject, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	library := C.dlopen(name, C.RTLD_NOW|C.RTLD_LOCAL)
	if library == nil {
		return nil, fmt.Errorf("load subject %s: %s", path, C.GoString(C.dlerror()))
	}
	symbol := C.CString(C.MPSFORGE_SLOTS_SUBJECT_SYMBOL)
	defer C.free(unsafe.Pointer(symbol))
	function := C.dlsym(library, symbol)
	if function == nil {
		return nil, fmt.Errorf("load subject %s: it does not export %s", path, C.MPSFORGE_SLOTS_SUBJECT_SYMBOL)
	}
	subject, err := newSubject(C.subject(function))
	if err != nil {
		return nil, fmt.Errorf("load subject %s: %w", path, err)
	}
	return subject, nil
}

func newSubject(api *C.mpsforge_slots_api) (*Subject, error) {
	if api == nil || api.abi != C.MPSFORGE_SLOTS_ABI {
		return nil, fmt.Errorf("not a slot allocator of ABI %d", uint32(C.MPSFORGE_SLOTS_ABI))
	}
	return &Subject{api}, nil
}

// Identity returns what the library says it was built from.
func (s *Subject) Identity() string { return C.GoString(C.identity(s.api)) }

// Parse reads the values of PYTORCH_MPS_STREAM_POOL_SIZE and _EXHAUSTED, nil meaning unset, and returns the configuration
// and the warnings.
func (s *Subject) Parse(size, exhausted *string) (Config, []string) {
	texts := [2]*C.char{}
	for i, text := range []*string{size, exhausted} {
		if text != nil {
			texts[i] = C.CString(*text)
			defer C.free(unsafe.Pointer(texts[i]))
		}
	}
	var config C.mpsforge_slots_config
	var buffer [textLimit]C.char
	count := C.parse(s.api, texts[0], texts[1], &config, &buffer[0], textLimit)
	var warnings []string
	if count > 0 {
		warnings = strings.SplitN(C.GoString(&buffer[0]), "\n", int(count))
	}
	return Config{uint32(config.worker_slots), Policy(config.policy), int64(config.wait_ms)}, warnings
}

// Slots is one allocator. Its methods are safe for use by several goroutines, but for Close.
type Slots struct {
	subject *Subject
	self    *C.mpsforge_slots
}

// New makes an allocator. It returns ErrConfig if the configuration is out of range. The caller closes it.
func (s *Subject) New(config Config) (*Slots, error) {
	own := cConfig(config)
	self := C.create(s.api, &own)
	if self == nil {
		return nil, fmt.Errorf("%w: %+v", ErrConfig, config)
	}
	return &Slots{s, self}, nil
}

func cConfig(config Config) C.mpsforge_slots_config {
	return C.mpsforge_slots_config{
		worker_slots: C.uint32_t(config.WorkerSlots),
		policy:       C.uint32_t(config.Policy),
		wait_ms:      C.int64_t(config.WaitMS),
	}
}

// Close frees the allocator. No goroutine may be inside a method, least of all waiting in Acquire.
func (s *Slots) Close() { C.destroy(s.subject.api, s.self) }

// Acquire leases a slot, or answers by the policy. It may block its operating system thread for as long as the policy
// says, and nothing can interrupt it.
func (s *Slots) Acquire() Result {
	var result C.mpsforge_slots_result
	C.acquire(s.subject.api, s.self, &result)
	return Result{AcquireOutcome(result.outcome), uint32(result.slot), uint64(result.generation), result.first_share != 0}
}

// Release ends a lease. It returns false if the lease is not a live one.
func (s *Slots) Release(slot uint32, generation uint64) bool {
	return C.release(s.subject.api, s.self, C.uint32_t(slot), C.uint64_t(generation)) != 0
}

// Statistics returns the counters.
func (s *Slots) Statistics() Statistics {
	var out C.mpsforge_slots_statistics
	C.statistics(s.subject.api, s.self, &out)
	return goStatistics(out)
}

func goStatistics(in C.mpsforge_slots_statistics) Statistics {
	return Statistics{
		Live: uint64(in.live), Peak: uint64(in.peak), Leases: uint64(in.leases), Waits: uint64(in.waits),
		Shares: uint64(in.shares), Exhausted: uint64(in.exhausted), Refused: uint64(in.refused),
		Waiting: uint64(in.waiting),
	}
}

// ShareWarning returns the text of the warning that goes with the first share.
func (s *Slots) ShareWarning() string { return s.message(C.MPSFORGE_SLOTS_SHARE_WARNING) }

// ExhaustedError returns the text of the exception that goes with the outcome Exhausted.
func (s *Slots) ExhaustedError() string { return s.message(C.MPSFORGE_SLOTS_EXHAUSTED_ERROR) }

func (s *Slots) message(which C.int) string {
	var buffer [textLimit]C.char
	C.message(s.subject.api, s.self, which, &buffer[0], textLimit)
	return C.GoString(&buffer[0])
}

// RunHistory runs one history with C++ threads and returns what they recorded, ordered by thread. It blocks until the
// history has ended or, by options.StallMS, stalled; the threads of a stalled one are left behind.
func (s *Subject) RunHistory(options HistoryOptions) (History, error) {
	own := C.mpsforge_history_options{
		config:        cConfig(options.Config),
		seed:          C.uint64_t(options.Seed),
		threads:       C.uint32_t(options.Threads),
		operations:    C.uint32_t(options.Operations),
		max_held:      C.uint32_t(options.MaxHeld),
		stale_percent: C.uint32_t(options.StalePercent),
		hold_yields:   C.uint32_t(options.HoldYields),
		stall_ms:      C.uint32_t(options.StallMS),
	}
	records := make([]C.mpsforge_history_record, max(1, C.mpsforge_history_capacity(&own)))
	var result C.mpsforge_history_result
	if C.mpsforge_history_run(s.api, &own, &records[0], C.size_t(len(records)), &result) != 0 {
		return History{}, fmt.Errorf("run history: %w: %+v", ErrConfig, options)
	}
	history := History{
		Records:    make([]Record, result.records),
		Overlaps:   uint64(result.overlaps),
		Torn:       uint64(result.torn),
		Statistics: goStatistics(result.statistics),
	}
	if result.stalled != 0 {
		history.Stuck = "no progress: " + C.GoString(&result.stuck[0])
	}
	for i := range history.Records {
		record := &records[i]
		history.Records[i] = Record{
			Start: int64(record.start_ns), End: int64(record.end_ns),
			Thread: uint32(record.thread), Kind: Kind(record.kind),
			Slot: uint32(record.slot), Generation: uint64(record.generation),
		}
		if record.kind == C.MPSFORGE_HISTORY_ACQUIRE {
			history.Records[i].Outcome = AcquireOutcome(record.outcome)
			history.Records[i].FirstShare = record.first_share != 0
		} else {
			history.Records[i].Accepted = record.outcome != 0
			history.Records[i].Valid = record.valid != 0
		}
	}
	return history, nil
}
