package events

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"
)

// jsonLines writes each event as one JSON object with its kind.
type jsonLines struct{ encoder *json.Encoder }

// NewJSON makes the renderer of JSON lines.
func NewJSON(w io.Writer) Renderer {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return jsonLines{encoder}
}

func (j jsonLines) Show(records []Record) {
	for _, record := range records {
		// An event that cannot be written must not stop the work; standard error is gone then.
		_ = j.encoder.Encode(struct {
			Kind  string    `json:"kind"`
			Time  time.Time `json:"time"`
			Event Event     `json:"event"`
		}{record.Event.kind(), record.Time.UTC(), record.Event})
	}
}

func (jsonLines) Close() {}

// ErrStream is returned, wrapped, for what is not a stream of events that this version reads.
var ErrStream = errors.New("not a stream of events that this mpsforge reads")

// Reader reads a stream of JSON lines.
type Reader struct {
	lines *bufio.Reader
	line  int
	ended bool
}

// NewReader makes a reader.
func NewReader(r io.Reader) *Reader { return &Reader{lines: bufio.NewReader(r)} }

// Next gives the next event, and io.EOF behind the last. Its other errors name the line. Where the command's error
// messages are behind the stream, on the same standard error, they are not read.
func (r *Reader) Next() (Record, error) {
	if r.ended {
		return Record{}, io.EOF
	}
	line, err := r.lines.ReadBytes('\n')
	r.line++
	switch {
	case errors.Is(err, io.EOF) && len(line) == 0 && r.line == 1:
		return Record{}, fmt.Errorf("%w: it is empty", ErrStream)
	case errors.Is(err, io.EOF) && len(line) == 0:
		return Record{}, io.EOF
	case errors.Is(err, io.EOF):
		return Record{}, fmt.Errorf("line %d: %w: the line is cut off: %.80q", r.line, ErrStream, line)
	case err != nil:
		return Record{}, fmt.Errorf("line %d: %w", r.line, err)
	}
	record, err := decode(line)
	if err != nil {
		return Record{}, fmt.Errorf("line %d: %w: %w: %.80q", r.line, ErrStream, err, bytes.TrimSpace(line))
	}
	stream, opens := record.Event.(Stream)
	switch {
	case opens && r.line > 1:
		return Record{}, fmt.Errorf("line %d: %w: a second stream begins here", r.line, ErrStream)
	case opens && stream.Version != Version:
		return Record{}, fmt.Errorf("line %d: %w: it has version %d, and this mpsforge reads version %d; play it with the mpsforge %s that wrote it",
			r.line, ErrStream, stream.Version, Version, stream.Tool)
	case !opens && r.line == 1:
		return Record{}, fmt.Errorf("line 1: %w: the first event should be stream, not %s", ErrStream, record.Event.kind())
	}
	_, r.ended = record.Event.(End)
	return record, nil
}

// kinds are the events by their kind.
var kinds = func() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, event := range []Event{Stream{}, Pipeline{}, StepStarted{}, StepProgress{}, PartsPlanned{}, PartStarted{}, PartFinished{}, StepLine{},
		StepFinished{}, Message{}, End{}} {
		types[event.kind()] = reflect.TypeOf(event)
	}
	return types
}()

// decode reads one line, strictly: the version covers every field.
func decode(line []byte) (Record, error) {
	var head struct {
		Kind  string          `json:"kind"`
		Time  time.Time       `json:"time"`
		Event json.RawMessage `json:"event"`
	}
	if err := strictly(line, &head); err != nil {
		return Record{}, err
	}
	kind, known := kinds[head.Kind]
	if !known {
		return Record{}, fmt.Errorf("there is no kind of event called %q", head.Kind)
	}
	if head.Time.IsZero() {
		return Record{}, errors.New("it has no time")
	}
	event := reflect.New(kind)
	if head.Kind == "stream" { // another version may have other fields, and is to be recognised by its number
		if err := json.Unmarshal(head.Event, event.Interface()); err != nil {
			return Record{}, err
		}
	} else if err := strictly(head.Event, event.Interface()); err != nil {
		return Record{}, err
	}
	return Record{head.Time, event.Elem().Interface().(Event)}, nil
}

func strictly(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if decoder.More() {
		return errors.New("more than one object in a line")
	}
	return nil
}
