package programs

import (
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"
)

// The models of histories must refuse what no pool may answer.
func TestPoolHistoryModelsJudge(t *testing.T) {
	shapes := Histories()
	lease := func(thread int, verb string, answer, start, end int64) porcupine.Operation {
		return porcupine.Operation{ClientId: thread, Input: answered{historyOperation: historyOperation{verb: verb}, thread: thread}, Output: answer,
			Call: start, Return: end}
	}
	commits := func(operation porcupine.Operation) porcupine.Operation {
		input := operation.Input.(answered)
		input.commits = true
		operation.Input = input
		return operation
	}
	again := func(operation porcupine.Operation) porcupine.Operation {
		input := operation.Input.(answered)
		input.again = true
		operation.Input = input
		return operation
	}
	full := []porcupine.Operation{lease(0, "working", 1, 0, 1), lease(1, "working", 2, 2, 3), lease(2, "working", 3, 4, 5),
		lease(3, "working", 0, 6, 7), lease(0, "release_slot", 0, 8, 9)}
	during := []porcupine.Operation{lease(0, "enqueue", 0, 0, 1), lease(0, "synchronize", 0, 2, 3), lease(0, "query", 1, 4, 5),
		commits(lease(1, "synchronize", 0, 6, 9)), lease(0, "query", 0, 7, 8)}
	after := append(slices.Clone(during[:4]), lease(0, "query", 0, 10, 11), commits(lease(1, committed, 0, 6, 9)))
	twice := []porcupine.Operation{lease(0, "enqueue", 0, 0, 9), lease(1, "query", 0, 1, 2), lease(1, "synchronize", 0, 3, 4),
		lease(1, "query", 1, 5, 6), lease(1, "query", 0, 10, 11)}
	for _, test := range []struct {
		name    string
		model   porcupine.Model
		history []porcupine.Operation
		legal   bool
	}{
		{"the lowest slots, one after the other", shapes[0].model, []porcupine.Operation{lease(0, "working", 1, 0, 1), lease(1, "working", 2, 2, 3)}, true},
		{"two threads on one worker stream", shapes[0].model, []porcupine.Operation{lease(0, "working", 1, 0, 1), lease(1, "working", 1, 2, 3)}, false},
		{"a slot that is not the lowest", shapes[0].model, []porcupine.Operation{lease(0, "working", 2, 0, 1)}, false},
		{"shared although a slot was free", shapes[0].model, []porcupine.Operation{lease(0, "working", 0, 0, 1)}, false},
		{"a slot changes hands after its return", shapes[0].model, []porcupine.Operation{lease(0, "working", 1, 0, 1), lease(0, "release_slot", 0, 2,
			3), lease(1, "working", 1, 4, 5)}, true},
		{"a thread that shares keeps to it", shapes[0].model, append(slices.Clone(full), lease(3, "working", 0, 10, 11)), true},
		{"a thread that shares takes a slot without asking", shapes[0].model, append(slices.Clone(full), lease(3, "working", 1, 10, 11)), false},
		{"a thread that shares asks again", shapes[0].model, append(slices.Clone(full), again(lease(3, "working", 1, 10, 11))), true},
		{"a thread that asks again finds no slot that is free", shapes[0].model, append(slices.Clone(full), again(lease(3, "working", 0, 10, 11))), false},
		{"incomplete, then complete", shapes[1].model, []porcupine.Operation{lease(0, "event.record", 0, 0, 1), lease(0, "event.query", 0, 2, 3),
			lease(0, "event.query", 1, 4, 5)}, true},
		{"complete, then incomplete", shapes[1].model, []porcupine.Operation{lease(0, "event.record", 0, 0, 1), lease(0, "event.query", 1, 2, 3),
			lease(0, "event.query", 0, 4, 5)}, false},
		{"incomplete after synchronize", shapes[1].model, []porcupine.Operation{lease(0, "event.record", 0, 0, 1), lease(0, "event.synchronize", 0, 2,
			3), lease(0, "event.query", 0, 4, 5)}, false},
		{"a fence completes before its block begins", shapes[2].model, append(slices.Clone(twice), lease(0, fenced, 0, 0, 9)), true},
		{"incomplete twice without a fence", shapes[2].model, twice, false},
		{"incomplete during a synchronize that commits", shapes[2].model, append(slices.Clone(during), commits(lease(1, committed, 0, 6, 9))), true},
		{"incomplete during a synchronize that does not", shapes[2].model, during, false},
		{"incomplete after a synchronize that commits", shapes[2].model, after, false},
		{"an event complete, never recorded", shapes[1].model, []porcupine.Operation{lease(0, "event.query", 1, 0, 1)}, false},
		{"a stream incomplete, never used", shapes[2].model, []porcupine.Operation{lease(0, "query", 0, 0, 1)}, false},
	} {
		if legal := porcupine.CheckOperations(test.model, test.history); legal != test.legal {
			t.Errorf("%s: legal %v, want %v", test.name, legal, test.legal)
		}
	}
}
