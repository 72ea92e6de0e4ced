package trace

// event is a shared event. Signals of the GPU raise its value; the CPU may set it back, and then it begins anew (metal rule 18).
type event struct {
	lives [][]signal // each in the order of the trace: of commits, and of the CPU's signals
	seen  uint64     // the highest value that it is known to have had in its last life
}

type signal struct {
	value uint64
	after *node // what came before it
	by    *commandBuffer
}

// awaited is a value that somebody knows an event to have had, or has waited for.
type awaited struct {
	event *event
	life  int // of the event, when the wait began
	value uint64
	node  *node // what comes after
	// Where the GPU waits.
	in      *commandBuffer
	command int
}

func newEvent() *event { return &event{lives: [][]signal{nil}} }

func (e *event) life() int { return len(e.lives) - 1 }

// set is a signal of the CPU, which may lower the value. Signals that nobody has seen may still come.
func (e *event) set(value uint64, after *node) {
	if value < e.seen {
		var left []signal
		for _, s := range e.lives[e.life()] {
			if s.value > e.seen {
				left = append(left, s)
			}
		}
		e.lives = append(e.lives, left)
		e.seen = 0
	}
	e.saw(value)
	e.signal(signal{value: value, after: after})
}

func (e *event) saw(value uint64) { e.seen = max(e.seen, value) }

func (e *event) signal(s signal) { e.lives[e.life()] = append(e.lives[e.life()], s) }

// first is what came before the first signal that reached the value, as rule 24 has it; nil if none did. Values rise, so the first is the
// lowest. A wait that began before the event was set back may be ended by a signal that comes after that; one that came
// late may find a value of before.
func (e *event) first(life int, value uint64) *node {
	lives := append([][]signal{}, e.lives[life:]...)
	for i := life - 1; i >= 0; i-- {
		lives = append(lives, e.lives[i])
	}
	for _, signals := range lives {
		var lowest *signal
		for i := range signals {
			if s := &signals[i]; (s.by == nil || !s.by.fails) && s.value >= value && (lowest == nil || s.value < lowest.value) {
				lowest = s
			}
		}
		if lowest != nil {
			return lowest.after
		}
	}
	return nil
}
