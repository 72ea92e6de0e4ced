package reports

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Sizes of a chart in its own units. It is narrow, so that its letters can be read on a phone without zooming.
const (
	chartWidth  = 380.0
	chartHeight = 250.0
	barHeight   = 40.0
	letter      = 6.6 // width of a letter of the charts' font, about
)

// chartStyle makes a chart a file of its own. Its ground is light wherever it is shown, so that a dark page does not
// swallow the letters.
const chartStyle = `<style>
svg{font:12px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
.ground{fill:#ffffff;stroke:#d0d7de}
.title{font-weight:600;font-size:14px}
text{fill:#1b1f24}.quiet{fill:#57606a}
.rule{stroke:#d8dee4}.axis,.leader{stroke:#57606a}
.bar{fill:#0b5cad}.mark{fill:#ffffff}
.s0{stroke:#0b5cad}.s1{stroke:#b4470b}.s2{stroke:#1a7f37}.s3{stroke:#8a3ffc}.s4{stroke:#8c1d5b}.s5{stroke:#5b5b5b}
` + lineStyle + `</style>`

// lineStyle gives each line dashes of its own: with the marks they distinguish lines without colour.
const lineStyle = `.line{fill:none;stroke-width:2}.mark{stroke-width:2}.spread{stroke-width:1}.leader{stroke-dasharray:1 3}
.line.s1{stroke-dasharray:7 3}.line.s2{stroke-dasharray:2 3}.line.s3{stroke-dasharray:9 3 2 3}.line.s4{stroke-dasharray:12 4}.line.s5{stroke-dasharray:4 4}
`

// drawing is an SVG being written.
type drawing struct{ strings.Builder }

func (d *drawing) add(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

func (d *drawing) text(x, y float64, class, anchor, text string) {
	var safe strings.Builder
	_ = xml.EscapeText(&safe, []byte(text)) // a strings.Builder takes everything
	d.add(`<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`, x, y, class, anchor, safe.String())
}

// svg draws the plot. One in a file of its own brings its style and its ground; one within a page takes the page's.
func (p Plot) svg(alone bool) string {
	height, draw := chartHeight, p.drawLines
	if len(p.Lines) == 0 {
		height, draw = float64(len(p.Bars))*barHeight+8, p.drawBars
	}
	head := 0.0
	var d drawing
	if alone {
		head = 48
	}
	label := strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;").Replace(p.Title + " (" + p.Unit + ")")
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" aria-label="%s">`, chartWidth, height+head, label)
	if alone {
		d.add("%s", chartStyle)
		d.add(`<rect class="ground" x="0.5" y="0.5" width="%g" height="%g" rx="6"/>`, chartWidth-1, height+head-1)
		d.text(12, 22, "title", "start", p.Title)
		d.text(12, 39, "quiet", "start", p.Unit)
		d.add(`<g transform="translate(0 %g)">`, head)
	}
	draw(&d)
	if alone {
		d.add(`</g>`)
	}
	d.add(`</svg>`)
	return d.String()
}

// drawBars draws bars from left to right with their names above them, so that long names are no trouble.
func (p Plot) drawBars(d *drawing) {
	var most float64
	for _, bar := range p.Bars {
		most = max(most, bar.Value)
	}
	const left, right = 12.0, 12.0
	for i, bar := range p.Bars {
		y := float64(i) * barHeight
		name := strings.TrimPrefix(bar.Group+", "+bar.Name, ", ")
		d.text(left, y+15, "", "start", shorten(name, 46))
		d.text(chartWidth-right, y+15, "quiet", "end", number(bar.Value))
		d.add(`<line class="rule" x1="%g" x2="%g" y1="%g" y2="%g"/>`, left, chartWidth-right, y+27, y+27)
		if most > 0 {
			d.add(`<rect class="bar" x="%g" y="%g" width="%.1f" height="12"/>`, left, y+21, max(1, bar.Value/most*(chartWidth-left-right)))
		}
	}
}

// drawLines draws lines over a logarithmic axis, since counts double. Each line is named at its end.
func (p Plot) drawLines(d *drawing) {
	var counts []float64
	var most float64
	name, spread := 0, false
	for _, line := range p.Lines {
		name = max(name, len([]rune(line.Name)))
		for _, point := range line.Points {
			spread = spread || len(point.Samples) > 1
			most = max(most, point.Y, slices.Max(append([]float64{0}, point.Samples...)))
			if !slices.Contains(counts, point.X) {
				counts = append(counts, point.X)
			}
		}
	}
	if len(counts) == 0 {
		return
	}
	slices.Sort(counts)
	all := ticks(most)
	top := all[len(all)-1]
	const above, below = 12.0, 44.0
	left := 22 + letter*float64(len(number(top)))
	right := chartWidth - 22 - letter*float64(name+1+len(number(top)))
	y := func(value float64) float64 { return chartHeight - below - value/top*(chartHeight-above-below) }
	x := func(count float64) float64 {
		first, last := counts[0], counts[len(counts)-1]
		if first == last || first <= 0 {
			return (left + right) / 2
		}
		return left + 10 + math.Log(count/first)/math.Log(last/first)*(right-left-20)
	}
	for _, tick := range all {
		d.add(`<line class="rule" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, left, right, y(tick), y(tick))
		d.text(left-6, y(tick)+4, "quiet", "end", number(tick))
	}
	d.add(`<line class="axis" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, left, right, y(0), y(0))
	free := math.Inf(-1)
	for _, count := range counts {
		if x(count)-free < 18 {
			continue
		}
		free = x(count)
		d.text(free, chartHeight-26, "quiet", "middle", number(count))
	}
	label := p.X
	if spread {
		label += "; upright: least to most measured"
	}
	d.text((left+right)/2, chartHeight-8, "quiet", "middle", label)
	ends := make([]float64, len(p.Lines))
	for i, line := range p.Lines {
		class := fmt.Sprintf("s%d", i%6)
		var path []string
		for _, point := range line.Points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x(point.X), y(point.Y)))
			if len(point.Samples) > 1 {
				d.add(`<line class="spread %s" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, class, x(point.X), x(point.X), y(slices.Min(point.Samples)),
					y(slices.Max(point.Samples)))
			}
		}
		d.add(`<polyline class="line %s" points="%s"/>`, class, strings.Join(path, " "))
		for _, point := range line.Points {
			d.mark(i, x(point.X), y(point.Y), class)
		}
		ends[i] = y(line.Points[len(line.Points)-1].Y)
	}
	for i, at := range apart(ends, 15) {
		line := p.Lines[i]
		last := line.Points[len(line.Points)-1]
		d.add(`<line class="leader" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, x(last.X)+6, right+5, ends[i], at)
		d.text(right+8, at+4, "", "start", line.Name+" "+number(last.Y))
	}
}

// mark draws a point, in the shape of its line.
func (d *drawing) mark(line int, x, y float64, class string) {
	class = "mark " + class
	switch line % 3 {
	case 0:
		d.add(`<circle class="%s" cx="%.1f" cy="%.1f" r="3.2"/>`, class, x, y)
	case 1:
		d.add(`<rect class="%s" x="%.1f" y="%.1f" width="6" height="6"/>`, class, x-3, y-3)
	default:
		d.add(`<path class="%s" d="M%.1f %.1fl4 7h-8z"/>`, class, x, y-4)
	}
}

// apart moves heights away from each other until they are at least so far apart, in the order they have.
func apart(heights []float64, least float64) []float64 {
	order := make([]int, len(heights))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(heights[a], heights[b]) })
	moved := slices.Clone(heights)
	for i := 1; i < len(order); i++ {
		moved[order[i]] = max(moved[order[i]], moved[order[i-1]]+least)
	}
	// What was pushed below the axis goes up again, and takes its neighbours along.
	floor := chartHeight - 44.0
	for i := len(order) - 1; i >= 0; i-- {
		moved[order[i]] = min(moved[order[i]], floor)
		floor = moved[order[i]] - least
	}
	return moved
}
