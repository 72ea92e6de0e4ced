package programs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"mpsforge/native/script"
	"mpsforge/validate/judge/allocator"
)

// A history is what some threads did to one pool, with times and answers. It is linearizable if some order of the
// operations, each at a moment between its beginning and its end, explains all answers by the models below.

// historyOperation is one line of a thread.
type historyOperation struct {
	verb   string
	object int // which event or stream
}

// History is a kind of random history.
type History struct {
	Name, Rules string
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
	thread  int
	commits bool // a synchronize that comes after a commit of its own
	again   bool // a thread that shares asks for a slot again (pool rule 8)
}

// fenced is the order that work outside of guards gets before its block (docs/dev/spec/guard.md): a command that is on the stream by
// itself, and may be complete before the block begins.
const fenced = "fence"

// committed is what PyTorch's synchronize does before it waits, also with an empty command buffer: others see work until that
// is complete. The reference pool commits nothing then.
const committed = "commit"

const (
	historyEvents = 3
	historySlots  = 3
)

// slotHolders is the state of the lease model.
type slotHolders struct {
	held   [historySlots]int // by which thread; -1: by nobody
	shares [8]bool           // threads that found no slot
}

// completions is the state of the model of events and streams: what each is known to be, and which threads have made the
// commit of a synchronize.
type completions struct {
	of    [historyEvents]int
	begun [8]bool
}

const (
	unused   = iota // nothing was recorded or enqueued
	pending         // it may be complete or not
	complete        // it has been seen to be
)

// Histories are all kinds.
func Histories() []History {
	return []History{
		{
			Name: "leases of worker streams", Rules: "2, 8",
			setup: fmt.Sprintf("pool PYTORCH_MPS_STREAM_POOL_SIZE=%d\n", historySlots+1), threads: 5,
			choose: func(random *rand.Rand) historyOperation {
				return historyOperation{verb: []string{"working", "working", "release_slot"}[random.IntN(3)]}
			},
			line:  func(operation historyOperation, _ int) string { return operation.verb },
			last:  "release_slot", // else the end of the thread does it, unrecorded
			model: leaseModel(),
		},
		{
			Name: "events of one stream", Rules: "15",
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
			model: completionModel("event.record", "event.query", "event.synchronize", 0),
		},
		{
			Name: "streams under several threads", Rules: "4, 10, 13",
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
			model: completionModel("enqueue", "query", "synchronize", 1),
		},
	}
}

// Operations are those of a history's program, by line.
type Operations map[int]answered

// Program is one history of the kind as a program.
func (h History) Program(seed uint64, operations int) (string, Operations) {
	random := rand.New(rand.NewPCG(seed, 1))
	var text strings.Builder
	text.WriteString(h.setup)
	lines := strings.Count(h.setup, "\n")
	write := func(line string) {
		text.WriteString(line + "\n")
		lines++
	}
	made := Operations{}
	for thread := range h.threads {
		write(fmt.Sprintf("thread T%d", thread))
		write("barrier start")
		for range operations / h.threads {
			operation := h.choose(random)
			write(h.line(operation, thread))
			made[lines] = answered{historyOperation: operation, thread: thread}
		}
		if h.last != "" {
			write(h.last)
			made[lines] = answered{historyOperation: historyOperation{verb: h.last}, thread: thread}
		}
	}
	for object := range historyEvents {
		write(fmt.Sprintf("block enqueue%d", object))
		write(fmt.Sprintf("increment t%d 1", object))
	}
	return text.String(), made
}

// Judge decides about the records of a program's run, of which it returns the number of operations, and what is wrong;
// sources says that it ran on PyTorch's own, where a synchronize commits and threads that share ask again. It leaves a picture of
// a history that is not linearizable in the folder.
func (h History) Judge(records []script.Record, made Operations, sources bool, artifacts string, seed uint64) (int, string) {
	var history, more []porcupine.Operation
	for _, record := range records {
		if operation, ok := made[record.Line]; ok && !strings.HasPrefix(record.Thread, "block") {
			operation.commits = sources && operation.verb == "synchronize"
			operation.again = sources
			one := porcupine.Operation{ClientId: operation.thread, Input: operation, Call: record.Start, Output: record.Value, Return: record.End}
			history = append(history, one)
			if operation.verb == "enqueue" || operation.commits {
				operation.verb = map[bool]string{false: fenced, true: committed}[operation.commits]
				one.Input = operation
				more = append(more, one)
			}
		}
	}
	if len(history) != len(made) {
		return len(history), fmt.Sprintf("%d of %d operations were recorded", len(history), len(made))
	}
	history = append(history, more...)
	switch porcupine.CheckOperationsTimeout(h.model, history, allocator.DecideLimit) {
	case porcupine.Ok:
		return len(history), ""
	case porcupine.Unknown:
		return len(history), fmt.Sprintf("undecided: %d operations took longer than %v to check", len(history), allocator.DecideLimit)
	default:
		return len(history), fmt.Sprintf("not linearizable: %d operations; %s", len(history), h.draw(history, artifacts, seed))
	}
}

// draw leaves porcupine's picture of a history and says where.
func (h History) draw(history []porcupine.Operation, artifacts string, seed uint64) string {
	if err := os.MkdirAll(artifacts, 0o755); err != nil {
		return "no picture: " + err.Error()
	}
	path := filepath.Join(artifacts, fmt.Sprintf("history-%s-%d.html", strings.ReplaceAll(h.Name, " ", "-"), seed))
	_, info := porcupine.CheckOperationsVerbose(h.model, history, allocator.MinimiseLimit)
	if err := porcupine.VisualizePath(h.model, info, path); err != nil {
		return "no picture: " + err.Error()
	}
	return "a picture of it: " + path
}

// leaseModel: a thread that needs a stream gets the lowest free slot, or stream 0 where none is free. It keeps the slot until it
// gives it back, and stream 0 as long or until there is a slot when it asks again.
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
			case next.shares[operation.thread] && !operation.again:
				return stream == 0, next
			case lowest >= 0:
				next.held[lowest] = operation.thread
				next.shares[operation.thread] = false
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
// so it stays complete until something is started again. What was never started has an answer of its own: an event is not
// complete (MPSEvent.mm:129 of PyTorch 2.6.0), a stream is.
func completionModel(start, query, synchronize string, never int64) porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{completions{}} },
		Step: func(state, input, output any) []any {
			states, operation, answer := state.(completions), input.(answered), output.(int64)
			of := &states.of[operation.object]
			switch {
			case operation.verb == start:
				*of = pending
			case operation.verb == fenced || operation.verb == committed:
				states.begun[operation.thread] = operation.verb == committed
				without := states
				*of = pending
				return []any{without, states}
			case operation.verb == synchronize:
				if operation.commits && !states.begun[operation.thread] {
					return nil
				}
				states.begun[operation.thread] = false
				if *of == pending {
					*of = complete
				}
			case operation.verb == query && *of == unused:
				if answer != never {
					return nil
				}
			case operation.verb == query && answer == 1:
				*of = complete
			case operation.verb == query && *of == complete:
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
