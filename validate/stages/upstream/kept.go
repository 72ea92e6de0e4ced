package upstream

import "mpsforge/validate/judge/kept"

// keptEnds are the ends of a long run's tests, by name. A nil one, of the short form, has none and keeps none.
type keptEnds struct {
	*kept.File[ended]
	ends map[string]ended
}

// openKept opens those that belong to these things.
func openKept(run *kept.Run, depends ...string) (*keptEnds, error) {
	file, ends, err := kept.Open[ended](run, depends...)
	if err != nil {
		return nil, err
	}
	k := &keptEnds{File: file, ends: map[string]ended{}}
	for _, end := range ends {
		if _, have := k.ends[end.Name]; !have { // the second run of a test is another one
			k.ends[end.Name] = end
		}
	}
	return k, nil
}

// end gives the kept end of a test.
func (k *keptEnds) end(name string) (ended, bool) {
	if k == nil {
		return ended{}, false
	}
	end, found := k.ends[name]
	return end, found
}

// add keeps an end.
func (k *keptEnds) add(end ended) error {
	if k == nil {
		return nil
	}
	return k.Add(end)
}
