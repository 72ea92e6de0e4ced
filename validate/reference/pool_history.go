package reference

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"mpsforge/native/script"
	"mpsforge/reports"
	"mpsforge/validate/allocator"
	"mpsforge/validate/reference/corpus"
	"mpsforge/validate/stage"
)

// A history is what some threads did to one pool, with times and answers. It is linearizable if some order of the
// operations, each at a moment between its beginning and its end, explains all answers by the models below.

// historyOperation is one line of a thread.
type historyOperation struct {
	verb   string
	object int // which event or stream
}

// poolHistory is a kind of random history.
type poolHistory struct {
	name, rules string
	setup       string
	threads     int
	choose      func(random *rand.Rand) historyOperation
	line        func(operation historyOperation, thread int) string
	last        string // verb of each thread's last operation, if it must be a certain one
	model       porcupine.Model
}

// answered is an operation with its answer.
type answered struct {
	historyOperation
	thread int
}

// fenced is the order that work outside of guards gets before its block (docs/spec/guard.md): a command that is on the stream by
// itself, and may be complete before the block begins.
const fenced = "fence"

const (
	historyEvents = 3
	historySlots  = 3
)

// slotHolders is the state of the lease model.
type slotHolders struct {
	held   [historySlots]int // by which thread; -1: by nobody
	shares [8]bool           // threads that found no slot
}

// completions is the state of the model of events and streams: what each is known to be.
type completions [historyEvents]int

const (
	unused   = iota // nothing was recorded or enqueued
	pending         // it may be complete or not
	complete        // it has been seen to be
)

func poolHistories() []poolHistory {
	return []poolHistory{
		{
			name: "leases of worker streams", rules: "2, 8",
			setup: fmt.Sprintf("pool PYTORCH_MPS_STREAM_POOL_SIZE=%d\n", historySlots+1), threads: 5,
			choose: func(random *rand.Rand) historyOperation {
				return historyOperation{verb: []string{"working", "working", "release_slot"}[random.IntN(3)]}
			},
			line:  func(operation historyOperation, _ int) string { return operation.verb },
			last:  "release_slot", // else the end of the thread does it, unrecorded
			model: leaseModel(),
		},
		{
			name: "events of one stream", rules: "15",
			setup: "pool PYTORCH_MPS_STREAM_PER_THREAD=0\nevent e0\nevent e1\nevent e2\n", threads: 4,
			choose: func(random *rand.Rand) historyOperation {
				verb := []string{"event.record", "event.query", "event.query", "event.synchronize"}[random.IntN(4)]
				return historyOperation{verb, random.IntN(historyEvents)}
			},
			line: func(operation historyOperation, _ int) string {
				if operation.verb == "event.record" {
					return fmt.Sprintf("event.record e%d 0", operation.object)
				}
				return fmt.Sprintf("%s e%d", operation.verb, operation.object)
			},
			model: completionModel("event.record", "event.query", "event.synchronize"),
		},
		{
			name: "streams under several threads", rules: "4, 10, 13",
			setup: "pool PYTORCH_MPS_STREAM_POOL_SIZE=4 PYTORCH_MPS_STREAM_PER_THREAD=0\n" +
				"tensor t0 4\nset t0 1\nuse 4\ntensor t1 4\nset t1 1\nrestore\nuse 5\ntensor t2 4\nset t2 1\nrestore\nsynchronize_device\n", threads: 4,
			choose: func(random *rand.Rand) historyOperation {
				verb := []string{"enqueue", "query", "query", "synchronize"}[random.IntN(4)]
				return historyOperation{verb, random.IntN(historyEvents)}
			},
			line: func(operation historyOperation, _ int) string {
				stream := []int{0, 4, 5}[operation.object]
				if operation.verb == "enqueue" {
					return fmt.Sprintf("on_queue %d enqueue%d", stream, operation.object)
				}
				return fmt.Sprintf("%s %d", operation.verb, stream)
			},
			model: completionModel("enqueue", "query", "synchronize"),
		},
	}
}

// program is one history of a shape as a program, with the operation of each line of each thread.
func (h poolHistory) program(seed uint64, operations int) (string, map[int]answered) {
	random := rand.New(rand.NewPCG(seed, 1))
	var text strings.Builder
	text.WriteString(h.setup)
	lines := strings.Count(h.setup, "\n")
	write := func(line string) {
		text.WriteString(line + "\n")
		lines++
	}
	made := map[int]answered{}
	for thread := range h.threads {
		write(fmt.Sprintf("thread T%d", thread))
		write("barrier start")
		for range operations / h.threads {
			operation := h.choose(random)
			write(h.line(operation, thread))
			made[lines] = answered{operation, thread}
		}
		if h.last != "" {
			write(h.last)
			made[lines] = answered{historyOperation{verb: h.last}, thread}
		}
	}
	for object := range historyEvents {
		write(fmt.Sprintf("block enqueue%d", object))
		write(fmt.Sprintf("increment t%d 1", object))
	}
	return text.String(), made
}

// checkPoolHistories runs random histories of each shape and decides about them.
func checkPoolHistories(ctx context.Context, c *stage.Checker) []reports.Check {
	rounds, operations := 100, 2000
	if c.Quick {
		rounds, operations = 6, 400
	}
	var checks []reports.Check
	for _, shape := range poolHistories() {
		started := time.Now()
		check := reports.Check{Name: "history: " + shape.name, Subject: c.Subject, Rule: shape.rules, Verdict: reports.Passed}
		c.Begin(check.Name)
		total := 0
		for round := 0; round < rounds && check.Verdict == reports.Passed && ctx.Err() == nil; round++ {
			seed := c.Seed + uint64(round)
			text, made := shape.program(seed, operations)
			n, problem := judgeHistory(ctx, c, shape, text, made, seed)
			total += n
			if problem != "" {
				check.Verdict, check.Detail, check.Output = reports.Failed, fmt.Sprintf("%s (seed %d)", problem, seed), text
			}
		}
		if check.Verdict == reports.Passed {
			check.Detail = fmt.Sprintf("%d histories, %d operations, linearizable", rounds, total)
		}
		check.Seconds = time.Since(started).Seconds()
		c.Count("operations", int64(total))
		checks = append(checks, c.Progress(ctx, check))
	}
	return checks
}

func judgeHistory(ctx context.Context, c *stage.Checker, shape poolHistory, text string, made map[int]answered, seed uint64) (int, string) {
	delay := time.Duration(seed%2) * freeDelay / 4
	result, err := script.Run(ctx, text, script.Options{Mode: script.Free, Seed: seed, Runs: 1, MaxDelay: delay, Stall: c.Patience, Record: true})
	if err != nil {
		return 0, err.Error()
	}
	if problem := corpus.Clean.Problem(result); problem != "" {
		return 0, problem
	}
	var history, fences []porcupine.Operation
	for _, record := range result.Records {
		if operation, ok := made[record.Line]; ok && !strings.HasPrefix(record.Thread, "block") {
			one := porcupine.Operation{ClientId: operation.thread, Input: operation, Call: record.Start, Output: record.Value, Return: record.End}
			history = append(history, one)
			if operation.verb == "enqueue" {
				operation.verb = fenced
				one.Input = operation
				fences = append(fences, one)
			}
		}
	}
	if len(history) != len(made) {
		return len(history), fmt.Sprintf("%d of %d operations were recorded", len(history), len(made))
	}
	history = append(history, fences...)
	switch porcupine.CheckOperationsTimeout(shape.model, history, allocator.DecideLimit) {
	case porcupine.Ok:
		return len(history), ""
	case porcupine.Unknown:
		return len(history), fmt.Sprintf("undecided: %d operations took longer than %v to check", len(history), allocator.DecideLimit)
	default:
		return len(history), fmt.Sprintf("not linearizable: %d operations; %s", len(history), drawHistory(c, shape, history, seed))
	}
}

// drawHistory leaves porcupine's picture of a history and says where.
func drawHistory(c *stage.Checker, shape poolHistory, history []porcupine.Operation, seed uint64) string {
	if err := os.MkdirAll(c.Artifacts, 0o755); err != nil {
		return "no picture: " + err.Error()
	}
	path := filepath.Join(c.Artifacts, fmt.Sprintf("history-%s-%d.html", strings.ReplaceAll(shape.name, " ", "-"), seed))
	_, info := porcupine.CheckOperationsVerbose(shape.model, history, allocator.MinimiseLimit)
	if err := porcupine.VisualizePath(shape.model, info, path); err != nil {
		return "no picture: " + err.Error()
	}
	return "a picture of it: " + path
}

// leaseModel: a thread that needs a stream gets the lowest free slot, or stream 0 where none is free, and keeps to either
// until it gives its slot back.
func leaseModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return slotHolders{held: [historySlots]int{-1, -1, -1}} },
		Step: func(state, input, output any) (bool, any) {
			next, operation, stream := state.(slotHolders), input.(answered), output.(int64)
			own, lowest := slices.Index(next.held[:], operation.thread), slices.Index(next.held[:], -1)
			switch {
			case operation.verb == "release_slot":
				if own >= 0 {
					next.held[own] = -1
				}
				next.shares[operation.thread] = false
				return true, next
			case own >= 0:
				return stream == int64(own+1), next
			case next.shares[operation.thread]:
				return stream == 0, next
			case lowest >= 0:
				next.held[lowest] = operation.thread
				return stream == int64(lowest+1), next
			default:
				next.shares[operation.thread] = true
				return stream == 0, next
			}
		},
		DescribeOperation: describeAnswered,
	}
}

// completionModel: what was started is pending; it may complete at any time, but once a query or a synchronize has said
// so it stays complete until something is started again. What was never started is complete.
func completionModel(start, query, synchronize string) porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{completions{}} },
		Step: func(state, input, output any) []any {
			states, operation, answer := state.(completions), input.(answered), output.(int64)
			of := &states[operation.object]
			switch {
			case operation.verb == start:
				*of = pending
			case operation.verb == fenced:
				without := states
				*of = pending
				return []any{without, states}
			case operation.verb == synchronize && *of == pending:
				*of = complete
			case operation.verb == query && answer == 1 && *of == pending:
				*of = complete
			case operation.verb == query && answer == 0 && *of != pending:
				return nil
			}
			return []any{states}
		},
		DescribeOperation: describeAnswered,
	}
	return model.ToModel()
}

func describeAnswered(input, output any) string {
	operation := input.(answered)
	return fmt.Sprintf("thread %d: %s %d: %d", operation.thread, operation.verb, operation.object, output)
}
