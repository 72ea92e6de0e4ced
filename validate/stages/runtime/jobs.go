package runtime

import (
	"context"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"mpsforge/fork/builds"
	"mpsforge/fork/hostbuild/host"
	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/stage"
)

// A job is what one shard does and no other: the values of an operation, a class's layout, a check of the reference pool, a scenario
// with its rows of stock and patched in all flavours, a patch left out. Its name decides which shard that is.

func valuesJob(operation string) string { return "values: " + operation }

func layoutJob(l host.Layout) string { return "layout: " + l.Class }

func withoutJob(patch *patches.Patch) string { return "without " + patch.Name }

// jobs gives the number of checks of each job, from the names of operations and from the classes.
func (r *stageRun) jobs(operations []string, classes []host.Layout) (map[string]int, error) {
	checks := map[string]int{}
	for _, name := range operations {
		checks[valuesJob(name)]++
	}
	for i, flavour := range r.flavours() {
		for _, s := range r.table {
			checks[s.Name]++
			if (i == 0 || !r.env.Quick) && !(s.NoThread != "" && flavour == builds.Thread) {
				checks[s.Name]++ // on stock
			}
		}
		if flavour != builds.Plain || !r.whole() {
			continue
		}
		for _, class := range classes {
			checks[layoutJob(class)]++
		}
		pool, err := r.poolJobs()
		if err != nil {
			return nil, err
		}
		for _, name := range pool {
			checks[name]++
		}
	}
	left, err := r.env.Series.Named(r.env.Host.Ablate)
	for _, patch := range left {
		checks[withoutJob(patch)]++
	}
	return checks, err
}

// divide counts the checks to come, and says which part of all jobs this shard has.
func (r *stageRun) divide(operations []string, classes []host.Layout) error {
	checks, err := r.jobs(operations, classes)
	if err != nil {
		return err
	}
	for job, count := range checks {
		if r.env.Shard.Has(job) {
			r.total += int64(count)
		}
	}
	for _, s := range r.table {
		if r.env.Shard.Has(s.Name) {
			r.allRows += checks[s.Name]
		}
	}
	left, err := r.leftOut()
	if err != nil {
		return err
	}
	r.allRows += len(left) * len(r.flavours()) * len(r.without())
	r.reached(0)
	return r.env.Shard.Split(r.stage, slices.Collect(maps.Keys(checks)))
}

// failsWhole says whether a job fails with the whole series, so that failing without a patch is no evidence for the patch. What another
// shard has to judge did not run here: try runs it once to find out, beside the report.
func (r *stageRun) failsWhole(job string, flavour builds.Flavour, try func(aside *stageRun, patched *host.Build) (process.Result, error)) (bool, error) {
	r.mutex.Lock()
	fails, known := r.failed[failedKey(job, flavour)]
	r.mutex.Unlock()
	if known || r.env.Shard.Has(job) {
		return fails, nil
	}
	aside := *r
	aside.stage = &reports.Stage{Name: r.stage.Name}
	end, err := try(&aside, r.patched[flavour])
	if err != nil {
		return false, err
	}
	fails = end.Problem != "" && end.Skipped == ""
	r.fails(job, flavour, fails)
	return fails, nil
}

// fails remembers whether a job fails with the whole series.
func (r *stageRun) fails(job string, flavour builds.Flavour, fails bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.failed[failedKey(job, flavour)] = fails
}

// together runs do for all of these, stage.AtOnce of them side by side: half of a short process is its start, which one thread does. Each
// gets a run with a report of its own; what they add comes in their order, also if one ends with an error.
func together[T any](ctx context.Context, r *stageRun, all []T, do func(context.Context, *stageRun, T) error) error {
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(stage.AtOnce())
	parts := make([]*reports.Stage, len(all))
	for i, each := range all {
		one := *r
		one.stage = &reports.Stage{Name: r.stage.Name}
		parts[i] = one.stage
		group.Go(func() error {
			if err := limited.Err(); err != nil || r.ends() {
				return err
			}
			return do(limited, &one, each)
		})
	}
	err := group.Wait()
	for _, part := range parts {
		for _, check := range part.Checks {
			r.stage.Add(check)
		}
		for name, n := range part.Counts {
			r.stage.Count(name, n)
		}
	}
	return err
}
