package fork

import (
	"io"
	"time"

	"mpsforge/internal/events"
)

// Sink takes the events of long work. Everything that takes one drops events when it is nil.
type Sink = events.Sink

// EventsTo gives a sink that writes events to w as JSON lines, in the form that --progress json writes and "mpsforge replay"
// plays; name is the command's. Call end once, when the work is done, with its error or nil: it writes what is held back
// and closes the stream. The sink is safe for use by several goroutines; w is written by one.
func EventsTo(w io.Writer, name string) (sink Sink, end func(error)) {
	feed := events.NewFeed(events.NewJSON(w), time.Now)
	feed.Emit(events.Stream{Version: events.Version, Tool: "package", Command: name, Args: []string{}})
	return feed, func(err error) {
		last := events.End{}
		if err != nil {
			last = events.End{ExitCode: 1, Message: err.Error()}
		}
		feed.Emit(last)
		feed.Close()
	}
}
