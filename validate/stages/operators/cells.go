package operators

import (
	"strings"
	"time"

	"mpsforge/internal/events"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/stage"
)

// part is the cell of the events' grid that a job belongs to: there are too many operators for a row each, so that a row is a form.
func (r *stormRun) part(p *pool, j job) events.Part {
	part := events.Part{Step: stage.StepName(r.report.Name), Subject: p.subject.Name, Name: j.Form}
	if ownSettings(j) {
		part.Subject += ", one stream"
	}
	switch {
	case strings.HasPrefix(j.Form, groupPrefix):
		part.Name = "beside another"
	case strings.Contains(j.Form, "+"):
		part.Name = "two forms"
	}
	switch {
	case j.Threads == 1:
		part.Column = "1 thread"
	case j.Threads <= 4:
		part.Column = "2-4 threads"
	case j.Threads <= 8:
		part.Column = "5-8 threads"
	default:
		part.Column = "9+ threads"
	}
	return part
}

// planCells announces the cells of jobs.
func (r *stormRun) planCells(p *pool, jobs []job) {
	planned := map[events.Part]bool{}
	for _, j := range jobs {
		if part := r.part(p, j); !planned[part] {
			planned[part] = true
			r.env.Sink.Emit(events.PartsPlanned{Step: part.Step, Subject: part.Subject, Names: []string{part.Name}, Columns: []string{part.Column}})
		}
	}
}

// cell reports the end of a job. One that does not run alone says nothing of threads, and is in no cell.
func (r *stormRun) cell(p *pool, o outcome) {
	end := process.Result{Kind: o.Result.Status.outcome()}
	switch {
	case o.faulty():
		end.Problem = o.Job.cell.String() + ": " + o.Result.Text
	case o.Result.Status != right:
		return
	}
	part := r.part(p, o.Job)
	r.env.Sink.Emit(events.PartStarted{Part: part})
	finished := end.Finished(knownOf(r.known, o) != nil || strings.HasPrefix(p.subject.Name, "without "))
	finished.Part, finished.Elapsed = part, time.Duration(o.Result.Wall*float64(time.Second))
	r.env.Sink.Emit(finished)
}
