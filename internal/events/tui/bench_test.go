package tui

import (
	"fmt"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"mpsforge/internal/events"
)

// BenchmarkTUI10kEvents gives the UI a second of a stream with 10,000 events, in the batches that Show would make of it, with a frame after
// each. The UI falls behind where one takes a second or longer.
func BenchmarkTUI10kEvents(b *testing.B) {
	const second, batches = 10_000, int(time.Second / batchInterval)
	m := send(New(Options{}), tea.WindowSizeMsg{Width: 120, Height: 40}, batch(stream(
		events.Stream{Version: events.Version, Command: "verify"}, events.StepStarted{Step: "verify operators"})))
	number := 0
	for b.Loop() {
		for range batches {
			var records batch
			for range second / batches {
				part := events.Part{Step: "verify operators", Subject: []string{"stock", "patched"}[number%2],
					Name: fmt.Sprint("operator ", number/2%600), Column: fmt.Sprintf("%d threads", 1+number%8)}
				at := start.Add(time.Duration(number) * 100 * time.Microsecond)
				for _, event := range []events.Event{events.PartStarted{Part: part}, events.PartFinished{Part: part, Outcome: events.OK},
					events.StepProgress{Step: part.Step, Done: int64(number), Total: 1e9, Note: part.Name},
					events.StepLine{Step: part.Step, Text: "a line of output"}} {
					if len(records) < second/batches {
						records = append(records, events.Record{Time: at, Event: event})
					}
				}
				number++
			}
			m = send(m, records)
			if m.View() == "" {
				b.Fatal("no frame")
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Seconds())/float64(b.N)*100, "%_of_a_second")
}
