package trace

// event is a shared event. Signals of the GPU raise its value; the CPU may set it back, and then it begins anew (metal rule 18).
type event struct{ lives [][]signal }

type signal struct {
	value uint64
	after *node // what came before it
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

// set is a signal of the CPU, which may lower the value.
func (e *event) set(value uint64, after *node) {
	for _, earlier := range e.lives[e.life()] {
		if value <= earlier.value {
			e.lives = append(e.lives, nil)
			break
		}
	}
	e.signal(value, after)
}

func (e *event) signal(value uint64, after *node) {
	e.lives[e.life()] = append(e.lives[e.life()], signal{value, after})
}

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
			if s := &signals[i]; s.value >= value && (lowest == nil || s.value < lowest.value) {
				lowest = s
			}
		}
		if lowest != nil {
			return lowest.after
		}
	}
	return nil
}
