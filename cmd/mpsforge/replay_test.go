package main

import (
	"testing"
	"time"
)

// A replay that is late catches up, so that delays do not add up; behind a long break it goes on from there.
func TestReplayKeepsTime(t *testing.T) {
	event := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	planned := time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)
	clock := streamClock{last: event, at: planned}
	for name, c := range map[string]struct {
		now   time.Duration // since the one before was to be played
		speed float64
		want  time.Duration
	}{
		"in time":            {0, 1, time.Second},
		"twice as fast":      {0, 2, time.Second / 2},
		"late":               {3 * time.Second, 1, time.Second},
		"after a long break": {time.Hour, 1, time.Hour},
		"without waiting":    {time.Minute, 0, time.Minute},
	} {
		if got := clock.due(event.Add(time.Second), planned.Add(c.now), c.speed); got != planned.Add(c.want) {
			t.Errorf("%s: due %v after the one before, not %v", name, got.Sub(planned), c.want)
		}
	}
}

// The time of a log that was cut off ends with its last event, however long the terminal shows it.
func TestReplayOfACutLogStopsTheClock(t *testing.T) {
	event := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	clock := streamClock{last: event, at: time.Now().Add(-time.Hour), speed: 1}
	if got := clock.now(); got.Before(event.Add(time.Hour)) {
		t.Errorf("the clock of a running stream is at %v", got)
	}
	clock.stop()
	if got := clock.now(); got != event {
		t.Errorf("the clock of a cut stream goes on: %v after its last event", got.Sub(event))
	}
}
