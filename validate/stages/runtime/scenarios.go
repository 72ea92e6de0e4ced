package runtime

import (
	"errors"
	"fmt"
	"slices"

	"mpsforge/internal/suggest"
	"mpsforge/validate/judge/process"
)

// scenario is one row of the runtime stage: a scenario of native/torch/scenarios, and what must come of it.
type scenario struct {
	name string
	// patches are those without which it must fail; where the series has not all of them yet, the scenario waits. The
	// first is named in the trailer of that patch.
	patches []string
	// stock says what unpatched sources do.
	stock process.Stock
	// least is the fewest threads at which stock is expected to fail.
	least int
	// cold runs are not preceded by a run on one thread. While the patches for the first use are missing, the other
	// scenarios begin warm, so that they show what they are about; the report says so.
	cold bool
	// iterations of each thread.
	iterations int
	// set in the environment.
	environment []string
	// notThread says why ThreadSanitizer cannot judge it; empty if it can.
	notThread string
}

// The autograd engine's thread and its callers share queues and tasks that libtorch counts references to.
const engineUnseen = "libtorch is not instrumented: what its autograd engine frees looks like a race"

// ScenarioNames are the names of the table's scenarios.
func ScenarioNames() []string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

// FirstScenario is the one that a build with host.First has what it needs for: a program of the field reports.
const FirstScenario = "parallel-basic"

// ErrNoScenario is of a name that the table does not have.
var ErrNoScenario = errors.New("no such scenario")

// CheckScenarios refuses names that the table does not have.
func CheckScenarios(names []string) error {
	_, err := chosen(names)
	return err
}

// chosen are the table's rows of these names, in their order; without names all.
func chosen(names []string) ([]scenario, error) {
	table := scenarios()
	if len(names) == 0 {
		return table, nil
	}
	var rows []scenario
	for _, name := range names {
		at := slices.IndexFunc(table, func(s scenario) bool { return s.name == name })
		if at < 0 {
			return nil, fmt.Errorf("%w: %q%s", ErrNoScenario, name, suggest.Names(name, ScenarioNames()))
		}
		if !slices.ContainsFunc(rows, func(s scenario) bool { return s.name == name }) {
			rows = append(rows, table[at])
		}
	}
	return rows, nil
}

// scenarios is the table. The field reports' rows come first.
func scenarios() []scenario {
	discipline := []string{"stream-discipline"}
	return []scenario{
		{name: "parallel-basic", patches: discipline, stock: process.StockFails, least: 2, iterations: 12},
		{name: "parallel-large", patches: discipline, stock: process.StockFails, least: 2, iterations: 4},
		{name: "linear", patches: discipline, stock: process.StockFails, least: 2, iterations: 12},
		{name: "sequential-shared", patches: discipline, stock: process.StockFails, least: 2, iterations: 12},
		{name: "sequential-own", patches: discipline, stock: process.StockFails, least: 2, iterations: 12},
		{name: "layers", patches: discipline, stock: process.StockFails, least: 2, iterations: 8},
		{name: "synchronize-encode", patches: discipline, stock: process.StockFails, least: 2, iterations: 20},
		{name: "commit-encode", patches: discipline, stock: process.StockFails, least: 2, iterations: 20},
		{name: "command-buffer-hook", patches: discipline, stock: process.StockMay, least: 2, iterations: 20},
		{name: "items", patches: discipline, stock: process.StockFails, least: 2, iterations: 20},
		{name: "renorm", patches: discipline, stock: process.StockMay, least: 2, iterations: 12},
		{name: "cold-start", patches: []string{"graph-and-kernel-cache", "profiler-streams"}, stock: process.StockMay, least: 2, cold: true, iterations: 1},
		{name: "kernels-cold-start", patches: []string{"kernel-locks", "graph-and-kernel-cache", "profiler-streams"}, stock: process.StockMay, least: 2, cold: true, iterations: 1},
		// cold, because on stock the graphs of a run before are all that this one needs
		{name: "graph-cache", patches: []string{"allocator-streams"}, stock: process.StockFails, least: 1, cold: true, iterations: 3, environment: []string{"PYTORCH_MPS_GRAPH_CACHE_SIZE=2"}},
		{name: "graphs-in-turn", patches: []string{"graph-and-kernel-cache"}, stock: process.StockMay, least: 2, cold: true, iterations: 1},
		{name: "graph-cache-bound", patches: []string{"allocator-streams"}, stock: process.StockFails, least: 1, cold: true, iterations: 1, environment: []string{"PYTORCH_MPS_GRAPH_CACHE_SIZE=16"}},
		{name: "graphs-again", patches: []string{"allocator-streams"}, stock: process.StockLives, least: 1, cold: true, iterations: 1},
		{name: "graphs-dropped", patches: []string{"allocator-streams"}, stock: process.StockMay, least: 2, iterations: 20},
		{name: "failed-work", patches: []string{"failed-work"}, stock: process.StockFails, least: 1, iterations: 3},
		{name: "commits-without-pool", patches: []string{"failed-work"}, stock: process.StockMay, least: 1, iterations: 20},
		// each graph commits by itself, so that what fails is MPSGraph's own command buffer
		{name: "failed-work-in-graphs", patches: []string{"failed-work"}, stock: process.StockFails, least: 1, iterations: 3, environment: []string{"MPSFORGE_METAL_GRAPH_SPLIT=1"}},
		// no graph commits by itself, so that the operators of one command buffer are known
		{name: "failed-operators", patches: []string{"failed-work"}, stock: process.StockFails, least: 1, iterations: 3, environment: []string{"MPSFORGE_METAL_GRAPH_SPLIT=0"}},
		{name: "failed-operators-in-graphs", patches: []string{"failed-work"}, stock: process.StockFails, least: 1, iterations: 3, environment: []string{"MPSFORGE_METAL_GRAPH_SPLIT=1"}},
		{name: "copies-to-cpu", patches: []string{"cpu-copies"}, stock: process.StockFails, least: 1, iterations: 10},
		{name: "dropped-copies", patches: []string{"cpu-copies"}, stock: process.StockFails, least: 1, iterations: 10},
		{name: "copies-from-cpu", patches: []string{"cpu-copies"}, stock: process.StockFails, least: 1, iterations: 10},
		{name: "copies-before-threads", patches: []string{"fences"}, stock: process.StockMay, least: 2, cold: true, iterations: 1},
		{name: "copies-awaited", patches: []string{"fences", "cpu-copies"}, stock: process.StockMay, least: 2, iterations: 10},
		// release_buffer() gives the mutex up in the middle of its callers' iteration
		{name: "empty-cache", patches: []string{"allocator-streams"}, stock: process.StockMay, least: 2, iterations: 12},
		{name: "matrix-kernels", patches: []string{"kernel-locks"}, stock: process.StockMay, least: 2, iterations: 300, environment: []string{"MPSFORGE_METAL_MODELS=7"}},
		{name: "profiler", patches: []string{"profiler-streams"}, stock: process.StockFails, least: 2, iterations: 10},
		{name: "profiler-toggle", patches: []string{"profiler-streams"}, stock: process.StockMay, least: 1, iterations: 10},
		{name: "events", patches: []string{"event-streams"}, stock: process.StockMay, least: 1, iterations: 10},
		{name: "event-reuse", patches: []string{"event-streams"}, stock: process.StockFails, least: 1, iterations: 10},
		{name: "event-shared", patches: []string{"event-streams"}, stock: process.StockMay, least: 1, iterations: 10},
		{name: "event-guard", patches: []string{"event-streams"}, stock: process.StockMay, least: 1, iterations: 10},
		{name: "explicit-streams", patches: []string{"stream-pool", "allocator-streams"}, stock: process.StockFails, least: 1, iterations: 10},
		{name: "device-synchronize", patches: []string{"stream-pool", "allocator-streams"}, stock: process.StockFails, least: 1, iterations: 8},
		{name: "training-streams", patches: []string{"stream-pool", "allocator-streams"}, stock: process.StockMay, least: 1, iterations: 3, notThread: engineUnseen},
		{name: "fork", patches: []string{"stream-pool", "allocator-streams"}, stock: process.StockFails, least: 1, iterations: 1},
		{name: "record-stream", patches: []string{"allocator-streams"}, stock: process.StockFails, least: 1, iterations: 10},
		{name: "buffer-reuse-streams", patches: []string{"allocator-streams"}, stock: process.StockLives, iterations: 20},
		{name: "buffer-reuse", patches: []string{"allocator-streams"}, stock: process.StockLives, iterations: 30},
		{name: "hand-over", patches: []string{"hand-over", "allocator-streams"}, stock: process.StockLives, iterations: 8},
		{name: "hand-over-ring", patches: []string{"hand-over", "allocator-streams"}, stock: process.StockLives, iterations: 40},
		{name: "hand-over-tree", patches: []string{"hand-over", "allocator-streams"}, stock: process.StockLives, iterations: 8},
		{name: "hand-over-in-place", patches: []string{"hand-over", "allocator-streams"}, stock: process.StockLives, iterations: 40},
		{name: "hand-over-weights", patches: []string{"hand-over", "allocator-streams"}, stock: process.StockLives, iterations: 12},
		{name: "hand-over-freed", patches: []string{"hand-over", "allocator-streams"}, stock: process.StockLives, iterations: 20},
		{name: "hand-over-random", patches: []string{"hand-over", "allocator-streams"}, stock: process.StockLives, iterations: 40},
		{name: "first-use", patches: []string{"hand-over"}, stock: process.StockMay, least: 2, cold: true, iterations: 40},
		{name: "pollers", patches: []string{"hand-over"}, stock: process.StockMay, least: 2, iterations: 5},
		{name: "birth", patches: []string{"hand-over"}, stock: process.StockMay, least: 1, cold: true, iterations: 40},
		{name: "strided-first", patches: []string{"hand-over"}, stock: process.StockMay, least: 2, cold: true, iterations: 8},
		{name: "running-mean", patches: []string{"hand-over"}, stock: process.StockMay, least: 2, iterations: 12},
		{name: "unshared-locks", patches: []string{"hand-over", "thread-leases"}, stock: process.StockFails, least: 1, iterations: 10, notThread: "its builds have no counters of locks"},
		{name: "freed-inside", patches: []string{"hand-over", "allocator-streams"}, stock: process.StockMay, least: 2, iterations: 12},
		{name: "operators-in-blocks", patches: discipline, stock: process.StockFails, least: 1, iterations: 2},
		{name: "encode-beside-wait", patches: discipline, stock: process.StockMay, least: 2, iterations: 3},
		{name: "sparse-parts", patches: []string{"hand-over"}, stock: process.StockFails, least: 1, iterations: 8},
		{name: "nested-try", patches: []string{"hand-over"}, stock: process.StockFails, least: 1, iterations: 20},
		{name: "nested-covered", patches: []string{"hand-over", "thread-leases"}, stock: process.StockFails, least: 1, iterations: 20},
		{name: "raw-work", patches: []string{"fences"}, stock: process.StockMay, least: 2, iterations: 12},
		{name: "external-work", patches: []string{"interop"}, stock: process.StockFails, least: 1, iterations: 12},
		{name: "interop-rules", patches: []string{"interop"}, stock: process.StockFails, least: 1, iterations: 1},
		{name: "errors-kept", patches: []string{"interop"}, stock: process.StockFails, least: 1, iterations: 5},
		{name: "sanitizer", patches: []string{"sanitizer"}, stock: process.StockFails, least: 1, iterations: 3, environment: []string{"PYTORCH_MPS_SANITIZE=error,poison"}},
		{name: "missing-waits", patches: []string{"sanitizer"}, stock: process.StockFails, least: 1, iterations: 8, environment: []string{"PYTORCH_MPS_SANITIZE=error,waits"}},
		{name: "stream-per-thread", patches: []string{"op-guards", "thread-leases"}, stock: process.StockFails, least: 1, iterations: 4},
		{name: "current-stream", patches: []string{"thread-leases"}, stock: process.StockMay, least: 1, iterations: 10},
		{name: "release-slot", patches: []string{"thread-leases"}, stock: process.StockFails, least: 1, iterations: 10},
		{name: "training-main", patches: []string{"thread-leases"}, stock: process.StockFails, least: 1, iterations: 10, notThread: engineUnseen},
		// One thread more than the pool has worker streams.
		{name: "over-subscription", patches: []string{"thread-leases"}, stock: process.StockFails, least: 2, iterations: 2},
		{name: "exhausted-error", patches: []string{"thread-leases"}, stock: process.StockFails, least: 1, iterations: 1,
			environment: []string{"PYTORCH_MPS_STREAM_POOL_SIZE=3", "PYTORCH_MPS_STREAM_POOL_EXHAUSTED=error"}},
		{name: "exhausted-wait", patches: []string{"thread-leases"}, stock: process.StockFails, least: 1, iterations: 1,
			environment: []string{"PYTORCH_MPS_STREAM_POOL_SIZE=3", "PYTORCH_MPS_STREAM_POOL_EXHAUSTED=wait"}},
	}
}

// threads are the thread counts of a scenario, long and short.
func (s scenario) threads(quick bool) []int {
	switch {
	case s.name == "over-subscription":
		return []int{33}
	case quick:
		return []int{1, 4}
	}
	return []int{1, 2, 3, 4, 5, 8, 16, 33}
}
