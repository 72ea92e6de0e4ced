package operators

import (
	"encoding/json"
	"fmt"

	"mpsforge/validate/judge/kept"
)

// keptEnds are the results of a long form that has not come to its end yet: a later run with the same seed on the same library
// goes on where it was interrupted.
type keptEnds struct {
	*kept.File[outcome]
	have map[string][]outcome // by job
}

// openKept opens the results that belong to these things.
func openKept(run *kept.Run, of ...any) (*keptEnds, error) {
	file, ends, err := kept.Open[outcome](run, fmt.Sprintln(of...))
	if err != nil {
		return nil, err
	}
	k := &keptEnds{File: file, have: map[string][]outcome{}}
	for _, o := range ends {
		k.have[keyOf(o.Job)] = append(k.have[keyOf(o.Job)], o)
	}
	return k, nil
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
func (k *keptEnds) split(jobs []job) (ends []outcome, left []job) {
	for _, j := range jobs {
		key := keyOf(j)
		if there := k.have[key]; len(there) > 0 {
			ends, k.have[key] = append(ends, there[0]), there[1:]
			continue
		}
		left = append(left, j)
	}
	return ends, left
}
