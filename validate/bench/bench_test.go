package bench

import (
	"slices"
	"testing"

	"mpsforge/validate/pytests"
)

// Speeds become lines with their samples; efficiency is relative to one thread; a count at which no process lived has
// no point.
func TestScalingPlots(t *testing.T) {
	at := func(name string, threads int, operations int64, problem string) pytests.Job {
		o := pytests.Job{Test: pytests.Test{Name: name}, Subject: &pytests.Subject{}, Run: pytests.Run{Threads: threads}}
		o.Counted.Operations, o.Counted.Seconds, o.End.Problem = operations, 2, problem
		return o
	}
	plots := scalingPlots([]pytests.Job{at("linear", 1, 200, ""), at("linear", 2, 300, ""), at("linear", 2, 360, ""), at("linear", 4, 0, "died"), at("processes", 2, 500, "")}, []string{"linear", "mlp"})
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
