package checkout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"mpsforge/reports"
)

// runtimeFolder holds the streams, guards, events and memory: what runs at the end of guards and threads.
const runtimeFolder = "aten/src/ATen/mps"

// silentFolders hold what this check reads.
var silentFolders = []string{runtimeFolder, "aten/src/ATen/native/mps", "torch/csrc/mps"}

// harmless are faults that end no process, and why: in a function, or on any way from one that no exception may leave.
var harmless = []struct{ file, function, fault, reason string }{
	{"MPSAllocator.h", "~MPSHeapAllocatorImpl", "", "the allocator is never destroyed (pool rule 24)"},
	{"MPSAllocator.mm", "~MPSAllocator", "", "the allocator is never destroyed (pool rule 24)"},
	{"MPSEvent.mm", "~MPSEventPool", "", "the pool of events is never destroyed (pool rule 24)"},
	{"MPSEvent.mm", "completions", "allocates: new", "at the first call alone, which is the constructor's of the first event"},
	{"MPSGuardImpl.mm", "exchangeStream", "raises: throw", "an id that has no stream is none that a destructor gives back"},
}

// harmless gives the reason why the fault ends no process, if there is one.
func (e escape) harmless() string {
	for _, row := range harmless {
		for _, at := range []*body{e.body, e.where} {
			if path.Base(at.file) == row.file && at.name == row.function && (row.fault == "" || row.fault == e.fault.what) {
				return row.reason
			}
		}
	}
	return ""
}

// escapes finds the functions of a checkout that no exception may leave, and that reach what raises. stock gives the baseline's text of a file.
func escapes(dir string, stock func(file string) (string, error)) (found []escape, read int, err error) {
	sources := map[string]string{}
	if _, err = eachSource(dir, silentFolders, func(file, text string) { sources[file] = text }); err != nil {
		return nil, 0, err
	}
	p, err := readProgram(sources, stock)
	if err != nil {
		return nil, 0, err
	}
	for _, b := range p.bodies {
		if b.silent {
			read++
			found = append(found, p.reached(b)...)
		}
	}
	return found, read, nil
}

// checkSilentFunctions adds the verdict on a checkout: no function of the series that an exception may not leave reaches what raises.
func checkSilentFunctions(dir string, stock func(file string) (string, error), report *reports.Stage) error {
	const name = "an exception where none may be"
	pool, err := os.ReadFile(filepath.Join(dir, runtimeFolder, "MPSStreamPool.h"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !strings.Contains(string(pool), "deferMPSError") {
		report.Add(reports.Check{Name: name, Subject: "checkout", Rule: "31", Verdict: reports.Skipped,
			Detail: "no patch is applied that keeps errors (stream-pool)"})
		return nil
	}
	found, read, err := escapes(dir, stock)
	if err != nil {
		return err
	}
	report.Count("functions that no exception may leave", int64(read))
	failed := 0
	for _, e := range found {
		check := reports.Check{Name: name, Subject: fmt.Sprintf("%s:%d", e.file, e.line), Rule: "31", Verdict: reports.Passed}
		detail := fmt.Sprintf("%s: %s, in %s:%d", strings.Join(e.way, " > "), e.fault.what, e.where.file, e.fault.line)
		if reason := e.harmless(); reason != "" {
			check.Detail = detail + ". No fault: " + reason
		} else if e.stock {
			check.Detail = detail + ". The baseline's own: the series changes none of these functions"
		} else {
			failed++
			check.Verdict = reports.Failed
			check.Detail = detail +
				". No exception may leave the first: it would end the process. Catch it with catch (...) and keep it (deferMPSError), or do without"
			if e.fault.fork {
				check.Detail = detail + ". The first may run in a forked child, where the lock may be another thread's for ever: ask isInForkedChild() before"
			}
		}
		report.Add(check)
	}
	if failed == 0 {
		report.Add(clean(name, "31", read, "function of the series that no exception may leave",
			"no function of the series that is noexcept, a destructor or a deleter reaches what raises, allocates or locks, outside of a "+
				"try block that catches everything"))
	}
	return nil
}
