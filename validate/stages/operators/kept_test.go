package operators

import (
	"testing"

	"mpsforge/internal/require"
	"mpsforge/validate/judge/kept"
)

// A run that goes on takes the results that it has, and leaves the other jobs to be done.
func TestKeptResultsAreLeftOut(t *testing.T) {
	jobs := (plan{seed: 7}).basics(someEntries)
	run := &kept.Run{Cache: t.TempDir(), Stage: "operators"}
	stopped := require.One(openKept(run, "stamp", 7))(t)
	done := outcome{Job: jobs[1], Result: result{Status: wrongValues, Text: "planted"}}
	done.Job.ID = 5
	require.NoError(t, stopped.Add(done))
	results := require.One(openKept(run, "stamp", 7))(t)
	ends, left := split(results, jobs)
	if len(ends) != 1 || ends[0].Result.Text != "planted" || len(left) != len(jobs)-1 || left[1].cell != jobs[2].cell {
		t.Errorf("%+v, %d left", ends, len(left))
	}
}
