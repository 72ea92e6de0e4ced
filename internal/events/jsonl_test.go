package events_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"mpsforge/internal/events"
	"mpsforge/internal/require"
	"mpsforge/internal/schemas/schematest"
)

func asJSON(records []events.Record) string {
	var out bytes.Buffer
	return show(events.NewJSON(&out), &out, records)
}

func readAll(text string) ([]events.Record, error) {
	reader := events.NewReader(strings.NewReader(text))
	var records []events.Record
	for {
		record, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return records, err
		}
		records = append(records, record)
	}
}

// Every kind of event comes back as it was, with its time. The reader is strict: no field is unknown to it.
func TestStreamComesBack(t *testing.T) {
	want := small()
	got, err := readAll(asJSON(want))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
	kinds := map[reflect.Type]bool{}
	for _, record := range got {
		kinds[reflect.TypeOf(record.Event)] = true
	}
	if len(kinds) != 11 {
		t.Errorf("the test knows %d kinds of events; add the others to it", len(kinds))
	}
}

// Every kind of event is as the schema says, which names the same fields as the Go types.
func TestEventsKeepTheSchema(t *testing.T) {
	types := map[string]reflect.Type{}
	for i, line := range strings.Split(strings.TrimSpace(asJSON(small())), "\n") {
		if err := schematest.Validate("event", []byte(line)); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		var head struct{ Kind string }
		require.NoError(t, json.Unmarshal([]byte(line), &head))
		types[head.Kind] = reflect.TypeOf(small()[i].Event)
	}
	schematest.SameFields(t, "event", types)
}

// Whatever is wrong with a stream, the error says in which line.
func TestReaderNamesTheBadLine(t *testing.T) {
	good := strings.SplitAfter(asJSON(small()), "\n")
	for name, c := range map[string]struct{ text, want string }{
		"empty":        {"", "it is empty"},
		"text":         {"hello\n", "line 1: "},
		"no beginning": {good[3], "line 1: not a stream of events that this mpsforge reads: the first event should be stream, not parts-planned"},
		"another version": {strings.Replace(good[0], `"version":2`, `"version":9,"new":true`, 1),
			"line 1: not a stream of events that this mpsforge reads: it has version 9, and this mpsforge reads version 2"},
		"unknown kind": {good[0] + strings.Replace(good[2], "step-started", "step-begun", 1),
			`line 2: not a stream of events that this mpsforge reads: there is no kind of event called "step-begun"`},
		"unknown field": {good[0] + strings.Replace(good[2], `"step":`, `"steps":`, 1),
			`line 2: not a stream of events that this mpsforge reads: json: unknown field "steps"`},
		"cut off": {good[0] + good[1] + good[2][:20], "line 3: not a stream of events that this mpsforge reads: the line is cut off"},
		"no time": {good[0] + `{"kind":"end","event":{"exit_code":0}}` + "\n",
			"line 2: not a stream of events that this mpsforge reads: it has no time"},
		"two streams": {good[0] + good[0], "line 2: not a stream of events that this mpsforge reads: a second stream begins here"},
		"two in one line": {good[0] + strings.TrimSpace(good[1]) + good[1],
			"line 2: not a stream of events that this mpsforge reads: more than one object in a line"},
		"a line in between": {good[0] + "warning: foreign text\n" + good[1], "line 2: not a stream of events that this mpsforge reads: "},
	} {
		_, err := readAll(c.text)
		if !errors.Is(err, events.ErrStream) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// The command's error messages are behind the stream on standard error; they are no part of it.
func TestReaderEndsAtTheEnd(t *testing.T) {
	got, err := readAll(asJSON(small()) + "mpsforge: an error\n")
	if err != nil || len(got) != len(small()) {
		t.Errorf("%d events, %v", len(got), err)
	}
}
