package operators

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
)

// The numbers of a job.
const (
	defaultThreads = 4
	mostThreads    = 16
	rounds         = 3 // that each thread goes through the samples
	quickRounds    = 2
	samples        = 4 // of an entry, drawn by the seed
	jobSeconds     = 60
	slowSeconds    = 600 // under ThreadSanitizer
)

// forms of one word beside basic; validate/stages/operators/python/forms.py says what they are.
var forms = []string{"backward", "out", "in-place", "shared", "made-elsewhere", "handed-on", "strided", "first-work", "streams"}

// pairs of forms that can be combined: at most one says how the operator is called, and one where its inputs come from.
func pairs() [][2]string {
	exclusive := [][]string{{"backward", "out", "in-place"}, {"shared", "made-elsewhere", "first-work"}}
	var found [][2]string
	for i, a := range forms {
		for _, b := range forms[i+1:] {
			if !slices.ContainsFunc(exclusive, func(group []string) bool { return slices.Contains(group, a) && slices.Contains(group, b) }) {
				found = append(found, [2]string{a, b})
			}
		}
	}
	return found
}

// impossible are types that Metal does not have: PyTorch refuses them before any operator.
var impossible = []string{"float64", "complex128"}

// plan draws jobs from a seed. The draw for a cell depends on the seed and the cell alone.
type plan struct {
	seed   uint64
	quick  bool
	device string
}

func (p plan) random(words ...any) *rand.Rand {
	hash := fnv.New64a()
	fmt.Fprintln(hash, words...)
	return rand.New(rand.NewPCG(p.seed, hash.Sum64()))
}

func (p plan) job(operator, dtype, form string, threads int) job {
	j := job{cell: cell{operator, dtype, form, threads, p.seed}, Rounds: rounds, Samples: samples, Device: p.device, Seconds: jobSeconds,
		Environment: map[string]string{"MPSFORGE_METAL_SEED": fmt.Sprint(p.seed % 1_000_000_007)}}
	if p.quick {
		j.Rounds = quickRounds
	}
	return j
}

// threads draws a thread count from 2 to 16.
func (p plan) threads(operator, form string) int {
	return 2 + p.random(operator, form, "threads").IntN(mostThreads-1)
}

// mainType is the one that an entry runs in beside the basic form: float32 where it has that.
func (e entry) mainType() string {
	for _, dtype := range append([]string{"float32", "int64", "complex64"}, e.DTypes...) {
		if slices.Contains(e.DTypes, dtype) && !slices.Contains(impossible, dtype) {
			return dtype
		}
	}
	return ""
}

func (e entry) possible() []string {
	return slices.DeleteFunc(slices.Clone(e.DTypes), func(dtype string) bool { return slices.Contains(impossible, dtype) })
}

// has says whether an entry has a form at all, as far as the database knows.
func (e entry) has(form string) bool {
	switch form {
	case "out":
		return e.Out
	case "in-place":
		return e.InPlace
	case "backward":
		return e.Backward
	}
	return true
}

func (e entry) forms() []string {
	return slices.DeleteFunc(slices.Clone(forms), func(form string) bool { return !e.has(form) })
}

// pair draws two forms that the entry has.
func (p plan) pair(e entry) string {
	possible := slices.DeleteFunc(pairs(), func(pair [2]string) bool { return !e.has(pair[0]) || !e.has(pair[1]) })
	drawn := possible[p.random(e.Name, "pair").IntN(len(possible))]
	return drawn[0] + "+" + drawn[1]
}

// candidates are the entries that may run beside another, in the order in which they are drawn for it: the first that runs alone is
// taken. So the draw depends on no other entry's end.
func (p plan) candidates(name string, entries []entry) []string {
	var all []string
	for _, at := range p.random(name, "group").Perm(len(entries)) {
		if entries[at].mainType() != "" {
			all = append(all, entries[at].Name)
		}
	}
	return all
}

// basics are the jobs of every entry and type in the basic form.
func (p plan) basics(entries []entry) []job {
	var jobs []job
	for _, e := range entries {
		for _, dtype := range e.possible() {
			jobs = append(jobs, p.job(e.Name, dtype, "basic", defaultThreads))
		}
	}
	return jobs
}

// partners gives each of the named entries the first of its candidates that runs alone. Those of other shards did not run here: probe
// runs them once more to find out, and their own shards judge them.
func (p plan) partners(entries []entry, names []string, ends []outcome, probe func([]job) ([]outcome, error)) (map[string]string, error) {
	alone, mainTypes := map[string]bool{}, map[string]string{}
	for _, e := range entries {
		mainTypes[e.Name] = e.mainType()
	}
	for {
		for _, o := range ends {
			if o.Job.DType == mainTypes[o.Job.Operator] {
				alone[o.Job.Operator] = o.ranAlone()
			}
		}
		found, asked := map[string]string{}, map[string]bool{}
		var unknown []job
		for _, name := range names {
			for _, candidate := range p.candidates(name, entries) {
				runs, known := alone[candidate]
				if !known && !asked[candidate] {
					asked[candidate] = true
					unknown = append(unknown, p.job(candidate, mainTypes[candidate], "basic", defaultThreads))
				}
				if !known || runs {
					found[name] = candidate
					break
				}
			}
		}
		if len(unknown) == 0 {
			return found, nil
		}
		var err error
		if ends, err = probe(unknown); err != nil {
			return nil, err
		}
	}
}

// others are the jobs of every entry that runs in every other form: each alone, one pair, and one beside its partner. What does not
// run has none.
func (p plan) others(entries []entry, partners map[string]string) []job {
	var jobs []job
	for _, e := range entries {
		partner, runs := partners[e.Name]
		if !runs {
			continue
		}
		for _, form := range append(e.forms(), p.pair(e), groupPrefix+partner) {
			jobs = append(jobs, p.job(e.Name, e.mainType(), form, p.threads(e.Name, form)))
		}
	}
	return jobs
}

// sample is the short form: each entry once, in a form or a type drawn by the seed.
func (p plan) sample(entries []entry) []job {
	var jobs []job
	for _, e := range entries {
		dtypes := e.possible()
		if len(dtypes) == 0 {
			continue
		}
		choices := append(e.forms(), "basic", p.pair(e))
		random := p.random(e.Name, "sample")
		form := choices[random.IntN(len(choices))]
		if form == "basic" {
			jobs = append(jobs, p.job(e.Name, dtypes[random.IntN(len(dtypes))], form, defaultThreads))
		} else {
			jobs = append(jobs, p.job(e.Name, e.mainType(), form, p.threads(e.Name, form)))
		}
	}
	return jobs
}

// sanitized are the jobs of every entry under ThreadSanitizer: once, in its main type, with fewer rounds and samples.
func (p plan) sanitized(entries []entry) []job {
	p.quick = true
	var jobs []job
	for _, e := range entries {
		if e.mainType() == "" {
			continue
		}
		j := p.job(e.Name, e.mainType(), "basic", defaultThreads)
		j.Samples, j.Seconds = 2, slowSeconds
		jobs = append(jobs, j)
	}
	return jobs
}

// some draws so many of the jobs.
func (p plan) some(jobs []job, count int) []job {
	drawn := slices.Clone(jobs)
	p.random("some").Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	return drawn[:min(count, len(drawn))]
}
