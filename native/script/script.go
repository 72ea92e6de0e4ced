//go:build cgo

package script

/*
#cgo CXXFLAGS: -std=c++17 -O2 -Wall -Wextra
#cgo linux LDFLAGS: -static-libstdc++ -static-libgcc
#include <stdlib.h>
#include "script.h"

static const char* identity(const mpsforge_metal_api* metal) { return metal->identity(); }
static void request_stop(uint32_t* stop) { __atomic_store_n(stop, 1, __ATOMIC_RELAXED); }
*/
import "C"

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	_ "mpsforge/native/metal"    // linked, and its headers are included
	_ "mpsforge/native/pool"     // the same
	_ "mpsforge/native/schedule" // the same
)

func api(backend Backend) (*C.mpsforge_metal_api, error) {
	metal := C.mpsforge_metal_software()
	if backend == Apple {
		metal = C.mpsforge_metal_framework()
	}
	if metal == nil {
		return nil, ErrNoBackend
	}
	return metal, nil
}

// Identity is a backend's name for itself.
func Identity(backend Backend) (string, error) {
	metal, err := api(backend)
	if err != nil {
		return "", err
	}
	return C.GoString(C.identity(metal)), nil
}

// trace has the software Metal write what is done with it to a file, until end is called.
func trace(path string) (end func(), err error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	if errno := C.mpsforge_metal_trace(name); errno != 0 {
		return nil, fmt.Errorf("trace to %s: %w", path, syscall.Errno(errno))
	}
	return func() { C.mpsforge_metal_trace(nil) }, nil
}

// Run runs the program on a Metal and the reference pool and returns what came of it. It blocks until all
// runs are done, or the one under way when the context ends; the threads of a stuck run are left behind. An error means
// that nothing can be said: a text or a schedule that is none (ErrProgram), no memory, or the end of the context.
func Run(ctx context.Context, text string, options Options) (*Result, error) {
	if options.Trace != "" {
		end, err := trace(options.Trace)
		if err != nil {
			return nil, err
		}
		defer end()
	}
	metal, err := api(options.Backend)
	if err != nil {
		return nil, err
	}
	program, schedule := C.CString(text), C.CString(options.Schedule)
	defer C.free(unsafe.Pointer(program))
	defer C.free(unsafe.Pointer(schedule))
	stop := (*C.uint32_t)(C.calloc(1, C.sizeof_uint32_t))
	defer C.free(unsafe.Pointer(stop))
	stopped := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		C.request_stop(stop)
		close(stopped)
	})
	defer func() {
		if !unwatch() {
			<-stopped
		}
	}()
	own := C.mpsforge_script_options{
		metal:        metal,
		pool:         C.mpsforge_pool_reference(),
		mode:         C.uint32_t(options.Mode),
		seed:         C.uint64_t(options.Seed),
		runs:         C.uint64_t(options.Runs),
		deviations:   C.int32_t(options.Deviations),
		max_delay_us: C.uint32_t(options.MaxDelay.Microseconds()),
		stall_ms:     C.uint32_t(options.Stall.Milliseconds()),
		stop:         stop,
		schedule:     schedule,
	}
	if options.Record {
		own.record = 1
	}
	if options.Abort {
		own.on_violation = C.MPSFORGE_METAL_ABORT
	}
	found := C.mpsforge_script_run(program, &own)
	if found == nil {
		return nil, errors.New("run program: no memory")
	}
	defer C.mpsforge_script_free(found)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return decode([]byte(C.GoString(found)))
}

func decode(text []byte) (*Result, error) {
	var result struct {
		Error string `json:"error"`
		Result
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return nil, fmt.Errorf("run program: its result: %w", err)
	}
	if result.Error != "" {
		return nil, fmt.Errorf("%w: %s", ErrProgram, result.Error)
	}
	result.Language = Language
	return &result.Result, nil
}
