package bench

import (
	"slices"
	"testing"

	"mpsforge/validate/judge/pytests"
)

// Speeds become lines with their samples; efficiency is relative to one thread; a count at which no process lived has
// no point.
func TestScalingPlots(t *testing.T) {
	at := func(name string, threads int, operations int64, problem string) pytests.Job {
		o := pytests.Job{Test: pytests.Test{Name: name}, Subject: &pytests.Subject{}, Run: pytests.Run{Threads: threads}}
		o.Counted.Operations, o.Counted.Seconds, o.End.Problem = operations, 2, problem
		return o
	}
	plots := scalingPlots([]pytests.Job{at("linear", 1, 200, ""), at("linear", 2, 300, ""), at("linear", 2, 360, ""), at("linear", 4, 0, "died"),
		at("processes", 2, 500, "")}, []string{"linear", "mlp"})
	if len(plots) != 3 {
		t.Fatalf("%d plots", len(plots))
	}
	speed, efficiency, processes := plots[0].Lines, plots[1].Lines, plots[2].Lines
	if len(speed) != 1 || len(speed[0].Points) != 2 || speed[0].Points[1].Y != 180 || !slices.Equal(speed[0].Points[1].Samples, []float64{150, 180}) {
		t.Errorf("%+v", speed)
	}
	if len(efficiency) != 1 || efficiency[0].Points[1].Y != 90 || efficiency[0].Points[1].Samples != nil {
		t.Errorf("%+v", efficiency)
	}
	if len(processes) != 2 || processes[0].Name != "processes" || processes[1].Name != "threads" {
		t.Errorf("%+v", processes)
	}
}

// Each patched run is compared with the stock run beside it; a run that failed counts, as one of speed 0.
func TestStepsTable(t *testing.T) {
	patched, stock := &pytests.Subject{Name: "patched"}, &pytests.Subject{Name: "stock"}
	var all []pytests.Job
	add := func(s *pytests.Subject, speed float64, problem string) {
		o := pytests.Job{Test: pytests.Test{Name: "steps-16"}, Subject: s, Run: pytests.Run{Threads: 4}}
		o.Counted.Facts, o.End.Problem = map[string]float64{stepsFact: speed}, problem
		all = append(all, o)
	}
	for _, pair := range [][2]float64{{300, 100}, {90, 100}, {260, 100}} {
		add(patched, pair[0], "")
		add(stock, pair[1], "")
	}
	rows := stepsTable(all, patched, stock, "").Rows
	if len(rows) != 1 || !slices.Equal(rows[0], []string{"steps-16", "4 threads", "260", "100", "2.60", "0.90", "3"}) {
		t.Errorf("%q", rows)
	}
	all[0].End.Problem = "hung"
	if rows = stepsTable(all, patched, stock, "").Rows; rows[0][5] != "0.00" {
		t.Errorf("a hung run does not show: %q", rows)
	}
}

// A number of threads at which no process lived is no row and no point; of several processes the median counts.
func TestScaleTable(t *testing.T) {
	var all []pytests.Job
	add := func(threads int, steps, bytes, streams float64, problem string) {
		o := pytests.Job{Test: pytests.Test{Name: scaleTest}, Run: pytests.Run{Threads: threads}}
		o.Counted.Facts, o.End.Problem = map[string]float64{stepsFact: steps, threadBytesFact: bytes, streamsFact: streams}, problem
		all = append(all, o)
	}
	add(1, 900, 3<<20, 2, "")
	add(64, 1500, 1<<20, 65, "")
	add(64, 1300, 1<<20, 65, "")
	add(64, 1400, 2<<20, 65, "")
	add(256, 0, 0, 0, "hung")
	rows := scaleTable(all, "").Rows
	if len(rows) != 2 || !slices.Equal(rows[1], []string{"64 threads", "65", "1400", "1.00"}) {
		t.Errorf("%q", rows)
	}
	plots := scalePlots(all)
	if len(plots) != 2 || len(plots[0].Lines[0].Points) != 2 || len(plots[1].Lines[0].Points[1].Samples) != 3 {
		t.Errorf("%+v", plots)
	}
	if plots := scalePlots(nil); plots != nil {
		t.Errorf("%+v", plots)
	}
}
