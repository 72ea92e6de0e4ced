package reports

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// outcomeMarks show outcomes where colour alone would not do.
var outcomeMarks = map[Outcome]string{OutcomePassed: "✓", OutcomeFailed: "✗", OutcomeWrongValues: "≠", OutcomeCrashed: "†", OutcomeHung: "∞",
	OutcomeRace: "⇄", OutcomeViolation: "!", OutcomeSkipped: "○"}

// outcomeLegend explains them, in a fixed order.
var outcomeLegend = []Outcome{OutcomePassed, OutcomeFailed, OutcomeWrongValues, OutcomeCrashed, OutcomeHung, OutcomeRace, OutcomeViolation, OutcomeSkipped}

func legend() string {
	var parts []string
	for _, outcome := range outcomeLegend {
		parts = append(parts, outcomeMarks[outcome]+" "+string(outcome))
	}
	return strings.Join(parts, ", ") + ". The counts are processes: how many ended badly, or all if none did, out of how many."
}

// mostColumns is how many thread counts a grid has; the row of a check with more is shown in ranges.
const mostColumns = 12

// mostTogether is how many the rows of a grid may have among them. With more all rows are shown in ranges: the grid's cells would be
// the product of both.
const mostTogether = 4 * mostColumns

// grid is the thread grid of a stage: checks against numbers of threads.
type grid struct {
	Threads []int
	Rows    []gridRow
	Wide    []gridRow // with too many thread counts for a column each
}

// gridRow is one check on one subject by one path.
type gridRow struct {
	Check   *Check
	Subject string // with the path
	First   bool   // of the rows of its check's name
	Span    int    // how many rows the name has, in the first one
	Cells   []Cell // of a grid's row one for each of its threads, the zero value where nothing ran
}

// threadGrid gives the grid of a stage, without rows if no check has cells. Rows of one name are together.
func (s *Stage) threadGrid() grid {
	var g grid
	var names []string
	rows := map[string][]gridRow{}
	columns := map[int]bool{}
	for i := range s.Checks {
		check := &s.Checks[i]
		for _, path := range paths(check.Cells) {
			cells := slices.DeleteFunc(slices.Clone(check.Cells), func(c Cell) bool { return c.Path != path })
			row := gridRow{Check: check, Subject: strings.Trim(check.Subject+", "+path, ", "), Cells: cells}
			if len(cells) > mostColumns {
				g.Wide = append(g.Wide, row)
				continue
			}
			if rows[check.Name] == nil {
				names = append(names, check.Name)
			}
			rows[check.Name] = append(rows[check.Name], row)
			for _, cell := range cells {
				columns[cell.Threads] = true
			}
		}
	}
	if len(columns) > mostTogether {
		for _, name := range names {
			g.Wide = append(g.Wide, rows[name]...)
		}
		return g
	}
	g.Threads = slices.Sorted(maps.Keys(columns))
	for _, name := range names {
		for i, row := range rows[name] {
			own := row.Cells
			row.Cells = make([]Cell, len(g.Threads))
			for _, cell := range own {
				row.Cells[slices.Index(g.Threads, cell.Threads)] = cell
			}
			if i == 0 {
				row.First, row.Span = true, len(rows[name])
			}
			g.Rows = append(g.Rows, row)
		}
	}
	return g
}

func paths(cells []Cell) []string {
	var all []string
	for _, cell := range cells {
		if !slices.Contains(all, cell.Path) {
			all = append(all, cell.Path)
		}
	}
	return all
}

// text is a cell in few words, empty for one in which nothing ran.
func (c Cell) text() string {
	switch c.Outcome {
	case "":
		return ""
	case OutcomeSkipped:
		return outcomeMarks[OutcomeSkipped]
	case OutcomePassed:
		return fmt.Sprintf("%s %d/%d", outcomeMarks[OutcomePassed], c.Of, c.Of)
	}
	text := fmt.Sprintf("%s %d/%d", outcomeMarks[c.Outcome], c.Bad, c.Of)
	if c.Signature != "" {
		text += ": " + c.name()
	}
	return text
}

// name is that of the signature, without its number in the list of signatures, which would read as a count.
func (c Cell) name() string {
	if number, name, found := strings.Cut(c.Signature, " "); found && strings.Trim(number, "0123456789") == "" {
		return name
	}
	return c.Signature
}

// signatures says where those of a grid's cells are explained; empty if there are none.
func (g grid) signatures() string {
	for _, row := range slices.Concat(g.Rows, g.Wide) {
		for _, cell := range row.Cells {
			if cell.Signature != "" {
				return "mpsforge metal explain NAME explains a crash by its name, such as " + cell.name() + "."
			}
		}
	}
	return ""
}

// Marked says whether to name the check's verdict in this row: of several paths only the bad ones are to blame.
func (r gridRow) Marked() bool {
	bad := func(c Cell) bool { return c.Bad > 0 }
	return r.Check.Verdict == Skipped || r.Check.Verdict == Failed && (slices.ContainsFunc(r.Cells, bad) || !slices.ContainsFunc(r.Check.Cells, bad))
}

// cellRange is neighbouring cells that ended alike.
type cellRange struct {
	First, Last int // threads
	Cell        Cell
}

func (r cellRange) threads() string {
	if r.First == r.Last {
		return inThreads(fmt.Sprint(r.First))
	}
	return inThreads(fmt.Sprintf("%d to %d", r.First, r.Last))
}

func (c Cell) inThreads() string { return inThreads(fmt.Sprint(c.Threads)) }

// inThreads puts the noun to a count, or to several.
func inThreads(counts string) string {
	if counts == "1" {
		return "1 thread"
	}
	return counts + " threads"
}

// ranges joins neighbours, so that 33 thread counts need no 33 columns.
func ranges(cells []Cell) []cellRange {
	var all []cellRange
	for _, cell := range cells {
		if n := len(all); n > 0 && all[n-1].Cell.text() == cell.text() {
			all[n-1].Last = cell.Threads
			continue
		}
		all = append(all, cellRange{cell.Threads, cell.Threads, cell})
	}
	return all
}

// comparison is one row of stock against patched.
type comparison struct {
	Name, Flavour  string
	Stock, Patched *Check
}

// comparisons sets what ran on the stock sources beside the same on the patched ones.
func (s *Stage) comparisons() []comparison {
	var all []comparison
	type key struct{ name, flavour string }
	places := map[key]int{}
	for i := range s.Checks {
		check := &s.Checks[i]
		side, flavour := check.side(), strings.TrimPrefix(strings.TrimPrefix(check.Subject, check.side()), ", ")
		if side != "stock" && side != "patched" {
			continue
		}
		at, found := places[key{check.Name, flavour}]
		if !found {
			at = len(all)
			places[key{check.Name, flavour}] = at
			all = append(all, comparison{Name: check.Name, Flavour: flavour})
		}
		if side == "stock" {
			all[at].Stock = check
		} else {
			all[at].Patched = check
		}
	}
	// An old report has no cells; its tables hold what there is to compare.
	return slices.DeleteFunc(all, func(c comparison) bool {
		return c.Stock == nil || c.Patched == nil || len(c.Stock.Cells)+len(c.Patched.Cells) == 0
	})
}

// side is what was checked, without the flavour.
func (c *Check) side() string {
	side, _, _ := strings.Cut(c.Subject, ", ")
	return side
}

// ended says how a check's processes ended, all together, with the outcome to show it by.
func (c *Check) ended() (Outcome, string) {
	if len(c.Cells) == 0 {
		return map[Verdict]Outcome{Passed: OutcomePassed, Failed: OutcomeFailed}[c.Verdict], c.Detail
	}
	if worst := slices.IndexFunc(c.Cells, func(cell Cell) bool { return cell.Bad > 0 }); worst >= 0 {
		cell := c.Cells[worst]
		text := fmt.Sprintf("%s %d of %d at %s", cell.Outcome, cell.Bad, cell.Of, cell.inThreads())
		return cell.Outcome, strings.TrimSuffix(text+": "+cmp.Or(cell.name(), shorten(cell.Detail, 90)), ": ")
	}
	if c.Cells[0].Outcome == OutcomeSkipped {
		return OutcomeSkipped, "skipped: " + c.Cells[0].Detail
	}
	of, counts := 0, []string{}
	for _, cell := range c.Cells {
		of += cell.Of
		if text := fmt.Sprint(cell.Threads); !slices.Contains(counts, text) {
			counts = append(counts, text)
		}
	}
	if len(counts) > 8 {
		counts = []string{counts[0] + " to " + counts[len(counts)-1]}
	}
	return OutcomePassed, fmt.Sprintf("passed %d of %d at %s", of, of, inThreads(strings.Join(counts, ", ")))
}

// shorten cuts a text to so many characters.
func shorten(text string, most int) string {
	letters := []rune(text)
	if len(letters) <= most {
		return text
	}
	return string(letters[:most-1]) + "…"
}
