package reports

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// plots of the whole report: the stages' own, and the time each stage took.
func (r *Report) plots() []namedPlot {
	times := Plot{Title: "Time of each stage", Unit: "seconds"}
	var all []namedPlot
	for _, stage := range r.Stages {
		for _, plot := range stage.Plots {
			all = append(all, namedPlot{stage.Name, plot})
		}
		if stage.Verdict == Passed || stage.Verdict == Failed {
			times.Bars = append(times.Bars, PlotBar{Name: stage.Name, Value: stage.Seconds})
		}
	}
	return append(all, namedPlot{"report", times})
}

// namedPlot is a plot with the stage it comes from.
type namedPlot struct {
	From string
	Plot
}

// fileName is the plot's name as a file.
func (p namedPlot) fileName() string {
	letters := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return ' '
	}, strings.ToLower(p.From+" "+p.Title))
	return strings.Join(strings.Fields(letters), "-") + ".svg"
}

// bars gives the plot as bars, those of a line as one group.
func (p Plot) bars() []PlotBar {
	bars := slices.Clone(p.Bars)
	for _, line := range p.Lines {
		for _, point := range line.Points {
			name := fmt.Sprintf("%g %s", point.X, p.X)
			if point.X == 1 {
				name = strings.TrimSuffix(name, "s")
			}
			bars = append(bars, PlotBar{Group: line.Name, Name: name, Value: point.Y})
		}
	}
	return bars
}

// writeBars draws the plot as text, which every reader of a report can show, a terminal too. Lines have at most width characters if names
// leave room for bars.
func (p Plot) writeBars(b *strings.Builder, width int) {
	parts := []rune(" ▏▎▍▌▋▊▉█")
	bars := p.bars()
	var most float64
	group, name := 0, 0
	for i, bar := range bars {
		bar.Group, bar.Name = printable(bar.Group), printable(bar.Name)
		bars[i] = bar
		most = max(most, bar.Value)
		group, name = max(group, len([]rune(bar.Group))), max(name, len([]rune(bar.Name)))
	}
	if most <= 0 {
		return
	}
	const least, value = 8, 8                                // characters of a bar and of its number
	longest := min(50, max(least, width-group-name-value-4)) // each of which has eight parts
	before := ""
	for _, bar := range bars {
		label := bar.Group
		if label == before {
			label = ""
		}
		before = bar.Group
		eighths := int(bar.Value / most * float64(longest) * 8)
		line := strings.Repeat("█", eighths/8)
		if rest := eighths % 8; rest > 0 {
			line += string(parts[rest])
		}
		if group > 0 {
			fmt.Fprintf(b, "%-*s  ", group, label)
		}
		fmt.Fprintf(b, "%*s  %s %s\n", name, bar.Name, line, number(bar.Value))
	}
}

// number writes a value with about three digits, and never with an exponent.
func number(value float64) string {
	switch {
	case value == math.Trunc(value) || value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.2f", value)
}

// ticks are round values from 0 to at least most, six at most.
func ticks(most float64) []float64 {
	if most < 1e-300 || math.IsInf(most, 0) || math.IsNaN(most) { // a fifth of less may be nothing
		return []float64{0, 1}
	}
	step := math.Pow(10, math.Floor(math.Log10(most/5)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if most/(step*factor) <= 5 {
			step *= factor
			break
		}
	}
	all := []float64{0}
	for at := 1; all[len(all)-1] < most; at++ {
		all = append(all, float64(at)*step)
	}
	return all
}
