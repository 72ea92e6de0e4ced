package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"mpsforge/internal/events"
)

func replayCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "replay", usage: "play an event stream again",
		about: `FILE is what a command wrote to standard error with --progress json; - is standard input, so that you can
watch a command that runs on another machine. On a terminal the UI stays open at the end, until you press q.

  mpsforge verify --progress json 2> events.jsonl
  mpsforge replay events.jsonl                         at the original speed
  mpsforge replay --speed 20 events.jsonl              twenty times as fast
  mpsforge replay --speed max events.jsonl             only its end
  mpsforge replay --progress plain --speed max events.jsonl
  ssh mac mpsforge run --progress json 2>&1 >/dev/null | mpsforge replay --speed max -`,
		argument: "FILE", ui: replayUI,
		flags:  []cli.Flag{&cli.StringFlag{Name: "speed", Value: "1", Usage: "`N` times as fast as it was; max: without waiting"}},
		action: replay,
	})
}

// errQuit ends a replay because the user asked for it.
var errQuit = errors.New("the replay was left")

func replay(ctx context.Context, c call) (result, error) {
	speed := 0.0 // without waiting
	if text := c.String("speed"); text != "max" {
		var err error
		if speed, err = strconv.ParseFloat(text, 64); err != nil || !(speed > 0) || speed > 1e6 {
			return result{}, usagef("--speed %s: a number above 0, or max", text)
		}
	}
	name := c.Args().First()
	file, err := os.Open(name)
	if err != nil {
		return result{}, fmt.Errorf("replay: %w", err)
	}
	defer file.Close()
	played, err := c.play(ctx, events.NewReader(file), speed)
	if errors.Is(context.Cause(ctx), errQuit) {
		return result{message: fmt.Sprintf("events played: %d", played)}, nil
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("replay %s: %w", name, err)
	}
	return result{value: struct {
		Events int `json:"events"`
	}{played}, message: fmt.Sprintf("events played: %d", played)}, err
}

// play hands the events on, each at its time.
func (c call) play(ctx context.Context, reader *events.Reader, speed float64) (played int, err error) {
	ended := false
	for {
		record, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF) && !ended:
			c.clock.stop()
			c.sink.Emit(events.Message{Level: events.Warning, Text: "the stream has no end: its command was killed, or still runs"})
			return played, nil
		case errors.Is(err, io.EOF):
			return played, nil
		case err != nil:
			return played, err
		}
		if err := c.clock.wait(ctx, record.Time, speed); err != nil {
			return played, err
		}
		c.feed.Put(record)
		played++
		_, ended = record.Event.(events.End)
	}
}

// streamClock is the time of a stream that is played again.
type streamClock struct {
	mutex sync.Mutex
	last  time.Time // of the event before
	at    time.Time // when that was to be played
	speed float64
}

// mostBehind is how far a replay may be behind and still catch up; behind a longer break, such as Ctrl-Z, it goes on from there.
const mostBehind = 5 * time.Second

// now is the stream's time: between two events it goes on at the speed.
func (s *streamClock) now() time.Time {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.last.IsZero() {
		return time.Now()
	}
	return s.last.Add(time.Duration(float64(time.Since(s.at)) * s.speed))
}

// stop lets the stream's time go on no more: nothing is known of what comes after its last event.
func (s *streamClock) stop() {
	s.mutex.Lock()
	s.speed = 0
	s.mutex.Unlock()
}

// due is when to play an event. It counts from when the one before was to be played, not from when it was: else each would add its
// delay, and thousands a second would fall behind.
func (s *streamClock) due(event, now time.Time, speed float64) time.Time {
	if speed == 0 || s.last.IsZero() {
		return now
	}
	due := s.at.Add(time.Duration(float64(event.Sub(s.last)) / speed))
	if now.Sub(due) > mostBehind {
		return now
	}
	return due
}

// wait waits until it is the time of an event.
func (s *streamClock) wait(ctx context.Context, event time.Time, speed float64) error {
	now := time.Now()
	due := s.due(event, now, speed)
	if due.After(now) {
		select {
		case <-ctx.Done():
		case <-time.After(due.Sub(now)):
		}
	}
	s.mutex.Lock()
	s.last, s.at, s.speed = event, due, speed
	s.mutex.Unlock()
	return ctx.Err()
}
