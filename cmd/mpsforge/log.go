package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mpsforge/internal/events"
)

// keptLogs is how many logs stay in the cache.
const keptLogs = 50

// logged is a renderer that also writes the events to a log in the cache, from the first step on.
type logged struct {
	events.Renderer
	command string
	held    []events.Record
	begun   bool
	file    *os.File // nil if nothing was begun, or no log could be made
	lines   events.Renderer
}

func (l *logged) Show(records []events.Record) {
	l.Renderer.Show(records)
	if l.begun {
		if l.file != nil {
			l.lines.Show(records)
		}
		return
	}
	l.held = append(l.held, records...)
	for _, record := range records {
		if _, begins := record.Event.(events.StepStarted); begins {
			l.begin(record.Time)
			return
		}
	}
}

// begin opens the log. Work goes on without one where the cache cannot be written: the commands that need it say so themselves.
func (l *logged) begin(now time.Time) {
	l.begun = true
	file, err := newLog(l.command, now)
	if err != nil {
		l.Renderer.Show([]events.Record{{Time: now, Event: events.Message{Level: events.Warning, Text: "there is no log of this run: " + err.Error()}}})
		return
	}
	l.file, l.lines = file, events.NewJSON(file)
	l.lines.Show(l.held)
	l.held = nil
}

// Idle is passed on: it is not an event of the work.
func (l *logged) Idle(now time.Time, status string) {
	if idle, ok := l.Renderer.(events.Idler); ok {
		idle.Idle(now, status)
	}
}

func (l *logged) Close() {
	if l.file != nil {
		_ = l.file.Close() // each line has been written
	}
	l.Renderer.Close()
}

// path is the log's, or empty.
func (l *logged) path() string {
	if l.file == nil {
		return ""
	}
	return l.file.Name()
}

// newLog makes a file in the cache and removes the oldest of many.
func newLog(command string, now time.Time) (*os.File, error) {
	cache, err := openCache()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "logs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of logs: %w", err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.jsonl")) // in the order of their times
	if err != nil {
		return nil, fmt.Errorf("list logs: %w", err)
	}
	for _, old := range found[:max(0, len(found)-keptLogs+1)] {
		if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("remove an old log: %w", err)
		}
	}
	name := now.UTC().Format("20060102T150405.000000Z") + "-" + strings.ReplaceAll(command, " ", "-") + ".jsonl"
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("make the log: %w", err)
	}
	return file, nil
}
