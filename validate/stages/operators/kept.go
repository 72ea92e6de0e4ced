package operators

import (
	"encoding/json"
	"fmt"

	"mpsforge/validate/judge/kept"
)

// openKept opens the results of a long form that has not come to its end yet, which belong to these things: a later run with the same
// seed on the same library goes on where it was interrupted.
func openKept(run *kept.Run, of ...any) (*kept.Index[outcome], error) {
	return kept.OpenIndex(run, func(o outcome) string { return keyOf(o.Job) }, fmt.Sprintln(of...))
}

// keyOf names all of a job but its number in this run.
func keyOf(j job) string {
	j.ID = 0
	text, err := json.Marshal(j)
	if err != nil {
		panic(err) // plain data
	}
	return string(text)
}

// split gives the ends that are there, and the jobs that are left.
func split(k *kept.Index[outcome], jobs []job) (ends []outcome, left []job) {
	for _, j := range jobs {
		if end, have := k.Take(keyOf(j)); have {
			ends = append(ends, end)
		} else {
			left = append(left, j)
		}
	}
	return ends, left
}
