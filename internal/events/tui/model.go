// Package tui is the terminal UI: it draws events.State.
//
// Model's Update and View are functions of the model and the message: no clock, no input and output, so that tests give them
// recorded streams and look at the frames. program.go is what runs them on a terminal.
package tui

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"mpsforge/internal/events"
	"mpsforge/internal/words"
)

// The least size of a terminal that the whole UI fits into.
const (
	leastWidth  = 40
	leastHeight = 15
)

// pane is what the arrow keys move in.
type pane int

const (
	stepsPane pane = iota
	partsPane
	detailPane // of one row of parts
	logPane
)

// Model is the UI's state: what the stream said, and what the user looks at.
type Model struct {
	state  *events.State
	now    time.Time
	width  int
	height int
	styles styles
	// interrupt ends the command's work, quit does so where q was pressed.
	interrupt, quit func()
	// show opens a report, or says why it cannot.
	show func(path string) error
	// stay keeps the UI after the stream's end until the user quits.
	stay bool

	pane     pane
	chosen   *events.StepState // nil: what runs is followed
	row      int               // chosen row of parts
	scroll   int               // of the detail: lines above; of the log: lines below
	failures bool              // show bad news only
	filter   string
	typing   bool // the filter
	help     bool
	asking   bool // whether to stop the work
	stopping bool
	opening  bool // the report, as soon as it is there
	notice   string
	spinner  int
	over     bool // nothing more comes
}

// Options of a model.
type Options struct {
	Colours         words.Palette
	Interrupt, Quit func()
	Show            func(path string) error // a report
	Stay            bool
}

// New makes the model before the first event.
func New(o Options) Model {
	return Model{state: events.NewState(), styles: newStyles(o.Colours), interrupt: o.Interrupt, quit: o.Quit, show: o.Show, stay: o.Stay}
}

// Messages besides bubbletea's own.
type (
	batch   []events.Record
	tick    time.Time
	closing struct{} // the stream has ended, and nothing is left to show
	leaving struct{} // the command was asked to end, by a signal for one
	opened  string   // how showing the report went
)

// Init does nothing: program.go sends the ticks.
func (m Model) Init() tea.Cmd { return nil }

// Update takes a message.
func (m Model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = message.Width, message.Height
	case tick:
		m.now = time.Time(message)
		m.spinner++
	case batch:
		for _, record := range message {
			m.state.Apply(record)
			m.now = record.Time
		}
		m.asking = m.asking && m.state.End == nil
		if m.opening && m.stay && m.state.End != nil {
			m.opening = false
			return m, m.openReport()
		}
	case opened:
		m.notice = string(message)
	case closing:
		m.over = true
		if !m.stay || m.stopping {
			return m, tea.Quit
		}
	case leaving:
		m.stopping, m.asking = true, false
		if m.over {
			return m, tea.Quit
		}
	case tea.KeyMsg:
		return m.key(message)
	}
	return m, nil
}

// ended reports that there is no work any more.
func (m Model) ended() bool { return m.over || m.state.End != nil }

// openReport shows the report. The stream may be anybody's, and the system opens some files by running them: a page is none of these.
func (m Model) openReport() tea.Cmd {
	end, show := m.state.End, m.show
	return func() tea.Msg {
		if end == nil || filepath.Ext(end.Report) != ".html" {
			return opened("this run has no report")
		}
		path := end.Report
		if err := show(path); err != nil {
			return opened(err.Error())
		}
		return opened("opened " + path)
	}
}

func call(f func()) tea.Cmd {
	return func() tea.Msg {
		if f != nil {
			f()
		}
		return nil
	}
}

func (m Model) key(pressed tea.KeyMsg) (tea.Model, tea.Cmd) {
	if key.Matches(pressed, keyStop) { // as without the UI; in raw mode it is not a signal
		m.stopping, m.asking = true, false
		if m.ended() {
			return m, tea.Quit
		}
		return m, call(m.interrupt)
	}
	if key.Matches(pressed, keySuspend) {
		return m, tea.Suspend
	}
	m.notice = ""
	switch {
	case m.asking:
		m.asking = false
		if pressed.String() == "y" || pressed.String() == "enter" {
			m.stopping = true
			return m, call(m.quit)
		}
	case m.typing:
		m.typeFilter(pressed)
	case m.help:
		m.help = false
	default:
		return m.command(pressed)
	}
	return m, nil
}

func (m *Model) typeFilter(pressed tea.KeyMsg) {
	switch pressed.Type {
	case tea.KeyEnter:
		m.typing = false
	case tea.KeyEsc:
		m.typing, m.filter = false, ""
	case tea.KeyBackspace:
		if runes := []rune(m.filter); len(runes) > 0 {
			m.filter = string(runes[:len(runes)-1])
		}
	case tea.KeyRunes, tea.KeySpace:
		m.filter += events.Clean(string(pressed.Runes))
	}
	m.row, m.scroll = 0, 0
}

func (m Model) command(pressed tea.KeyMsg) (tea.Model, tea.Cmd) {
	is := func(b key.Binding) bool { return key.Matches(pressed, b) }
	switch {
	case is(keyQuit):
		if m.ended() {
			m.stopping = true
			return m, tea.Quit
		}
		m.asking = !m.stopping
	case is(keyHelp):
		m.help = true
	case is(keyReport):
		if m.ended() {
			return m, m.openReport()
		}
		m.opening = !m.opening
	case is(keyFailures):
		m.failures = !m.failures
		m.row, m.scroll = 0, 0
	case is(keyFilter):
		m.typing, m.filter = true, ""
	case is(keyLog):
		m.scroll = 0
		if m.pane == logPane {
			m.pane = stepsPane
		} else {
			m.pane = logPane
		}
	case is(keyOpen):
		m.open()
	case is(keyBack):
		m.back()
	case is(keyUp):
		m.move(-1)
	case is(keyDown):
		m.move(1)
	case is(keyPageUp):
		m.move(-m.page())
	case is(keyPageDown):
		m.move(m.page())
	case is(keyFirst):
		m.move(-1 << 30)
	case is(keyLast):
		m.move(1 << 30)
	}
	return m, nil
}

// open goes one pane deeper: from the steps to the parts of one, from the parts to one of them.
func (m *Model) open() {
	switch m.pane {
	case stepsPane:
		if m.chosen = m.current(); m.chosen != nil && len(m.rows()) > 0 {
			m.pane = partsPane
			m.row = m.newest()
		}
	case partsPane:
		if len(m.rows()) > 0 {
			m.pane, m.scroll = detailPane, 0
		}
	}
}

// back goes one pane out, and at last to following what runs.
func (m *Model) back() {
	switch m.pane {
	case detailPane:
		m.pane = partsPane
	case partsPane, logPane:
		m.pane = stepsPane
	default:
		if m.filter != "" || m.failures {
			m.filter, m.failures = "", false
		} else {
			m.chosen = nil
		}
	}
	m.scroll = 0
}

func (m *Model) move(by int) {
	switch m.pane {
	case stepsPane:
		steps := m.allSteps()
		if len(steps) > 0 {
			at := slices.Index(steps, m.current())
			m.chosen = steps[clamp(at+by, 0, len(steps)-1)]
			m.row = 0
		}
	case partsPane:
		m.row = clamp(m.row+by, 0, max(0, len(m.rows())-1))
	case detailPane:
		m.scroll = max(0, m.scroll+by) // the view knows where it ends
		m.scroll = min(m.scroll, max(0, len(m.detailLines(m.width-4))-1))
	case logPane:
		m.scroll = clamp(m.scroll-by, 0, max(0, len(m.logLines())-1))
	}
}

func clamp(n, low, high int) int { return max(low, min(n, high)) }

func (m Model) page() int { return max(1, m.height/2) }

// current is the step that is looked at.
func (m Model) current() *events.StepState {
	if m.chosen != nil {
		return m.chosen
	}
	return m.followed()
}

// followed is the step to look at when the user has chosen none: the innermost that runs, and in the end the first that
// failed, or the one with the most to show.
func (m Model) followed() *events.StepState {
	if active := m.state.Active(); len(active) > 0 {
		return active[len(active)-1]
	}
	var best *events.StepState
	for _, step := range m.allSteps() {
		switch {
		case step.Phase != events.Done:
		case best == nil, rank(step) > rank(best), rank(step) == rank(best) && len(step.Parts) > len(best.Parts):
			best = step
		}
	}
	return best
}

// rank prefers a failed step, and of those the innermost.
func rank(step *events.StepState) int {
	depth := 0
	if step.Outcome == events.Failed {
		depth = 1
		for parent := step.Parent; parent != nil; parent = parent.Parent {
			depth++
		}
	}
	return depth
}

// allSteps lists the steps as a tree is read.
func (m Model) allSteps() []*events.StepState {
	var all []*events.StepState
	var walk func([]*events.StepState)
	walk = func(steps []*events.StepState) {
		for _, step := range steps {
			all = append(all, step)
			walk(step.Children)
		}
	}
	walk(m.state.Steps)
	return all
}

// row is a line of a step's parts: one part, or those of a name in a grid.
type row struct {
	group   int // of the grid
	name    string
	cells   []*events.PartState
	heading bool // of a group; no cells
}

func (r row) bad() bool {
	return slices.ContainsFunc(r.cells, func(p *events.PartState) bool { return p.Bad() })
}

func (r row) matches(filter string) bool {
	return slices.ContainsFunc(r.cells, func(p *events.PartState) bool {
		return strings.Contains(strings.ToLower(p.Label()+" "+p.Signature+" "+p.Detail), strings.ToLower(filter))
	})
}

// rows groups the parts of the current step: those without columns one by one, then the grid.
func (m Model) rows() []row {
	step := m.current()
	if step == nil {
		return nil
	}
	layout := m.gridOf(step)
	type key struct {
		group int
		name  string
	}
	var single, grid []row
	at := map[key]int{}
	for _, part := range step.Parts {
		if part.Column == "" {
			single = append(single, row{name: part.Name, cells: []*events.PartState{part}})
			continue
		}
		of := key{layout.groupOf(part.Subject), part.Name}
		i, found := at[of]
		if !found {
			i = len(grid)
			at[of] = i
			grid = append(grid, row{group: of.group, name: of.name})
		}
		grid[i].cells = append(grid[i].cells, part)
	}
	// Groups stay together, whatever the order in which their parts ran.
	slices.SortStableFunc(grid, func(a, b row) int { return a.group - b.group })
	if m.pane != partsPane && m.pane != detailPane { // what runs stays in sight; under a cursor nothing moves
		slices.SortStableFunc(single, func(a, b row) int { return phase(a.cells[0]) - phase(b.cells[0]) })
	}
	return slices.DeleteFunc(append(single, grid...), func(r row) bool {
		return m.failures && !r.bad() || m.filter != "" && !r.matches(m.filter)
	})
}

// phase orders parts: ended, running, to come.
func phase(p *events.PartState) int {
	switch {
	case p.Running > 0:
		return 1
	case p.Runs == 0:
		return 2
	}
	return 0
}

// newest is the row where something happens, or happened last.
func (m Model) newest() int {
	rows := m.rows()
	best, busy := 0, -1
	for i, r := range rows {
		for _, part := range r.cells {
			if part.Running > 0 {
				busy = i
			}
			if part.Runs > 0 {
				best = i
			}
		}
	}
	if busy >= 0 {
		return busy
	}
	return best
}

// logLines are those that the filters let through.
func (m Model) logLines() []events.LogLine {
	if !m.failures && m.filter == "" {
		return m.state.Log
	}
	var lines []events.LogLine
	for _, line := range m.state.Log {
		if (!m.failures || line.Bad) && strings.Contains(strings.ToLower(line.Step+" "+line.Text), strings.ToLower(m.filter)) {
			lines = append(lines, line)
		}
	}
	return lines
}
