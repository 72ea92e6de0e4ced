// Package events defines what a running command reports, and the renderers that show it.
//
// A command emits typed events into a Sink and knows nothing of terminals; a Feed puts the time on them and hands them to
// one renderer: plain lines, JSON lines, one live line, or the terminal UI of package tui. All renderers write to standard
// error: standard output holds data only.
//
// # The stream
//
// With --progress json each event is one line, a JSON object {"kind", "time", "event"}. Together they are complete: the
// terminal UI is drawn from nothing else, and "mpsforge replay FILE" draws it again. State is the one place that puts the
// events together. Times are RFC 3339 in UTC; fields that end in _ns are nanoseconds; fields that are empty or zero are
// left out where they say "omitempty" below.
//
//	kind            event
//	stream          first of all: version, tool, command and its arguments
//	pipeline        names of steps to come, in their order; of those inside a step when it names a parent
//	step-started    a step began; it may lie in another one
//	step-progress   how far a step is: done of total units, what it does now, how many do so at once, time left
//	parts-planned   parts of a step to come: the rows, and the columns of a grid, of one subject
//	part-started    a part began: a patch, a check, a scenario with so many threads
//	part-finished   how it ended
//	step-line       a line that a step's program wrote
//	step-finished   how a step ended
//	message         a line for the user: info, warning, or a status that SIGUSR1 (SIGINFO) asked for
//	end             last of all: exit code and message, and where the report is, if there is one
//
// A step is known by its name. A name can be used again once its step has finished; events are about the newest. A part is
// known by step, subject, name and column, and may run several times: each run starts and finishes. Parts that were planned
// and never ran, because one like them had settled the question, stay pending. A stream without an end is of a command
// that was killed.
//
// Version is the number in the first event. It rises with every change of this list or of a field, and a reader refuses
// another number than its own: who keeps streams keeps the mpsforge that wrote them.
package events
