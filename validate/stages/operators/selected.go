package operators

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mpsforge/internal/suggest"
	"mpsforge/reports"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/stage"
)

// ErrNoOperator is returned, wrapped, for a name that the operator database does not have.
var ErrNoOperator = errors.New("no such entry in the operator database")

// ErrDType is returned, wrapped, for a type that no entry of the database has.
var ErrDType = errors.New("no operator has the type")

// ErrForm is returned, wrapped, for a form that does not exist, or that needs the names of operators.
var ErrForm = errors.New("no such form of operators")

// CheckOptions refuses options that name no form, before any work. Names of operators are known to the torch alone.
func CheckOptions(o stage.OperatorOptions) error {
	if len(o.Names) == 0 && len(o.Forms)+len(o.DTypes) > 0 {
		return fmt.Errorf("%w: --form and --dtype choose how named operators are called; name some with --operators", ErrForm)
	}
	return checkForms(o.Forms, nil)
}

// checkForms refuses what is no form, and groups with an entry that is none of those given; nil: they are not known.
func checkForms(chosen, entries []string) error {
	all := append([]string{"basic"}, forms...)
	for _, form := range chosen {
		for _, word := range strings.Split(form, "+") {
			beside, group := strings.CutPrefix(word, groupPrefix)
			switch {
			case group && entries != nil:
				if err := checkEntry(beside, entries); err != nil {
					return fmt.Errorf("form %s: %w", word, err)
				}
			case !group && !slices.Contains(all, word):
				return fmt.Errorf("%w: %q%s, %sNAME", ErrForm, word, suggest.Names(word, all), groupPrefix)
			}
		}
	}
	return nil
}

// checkEntry refuses the name of an entry that the database does not have.
func checkEntry(name string, entries []string) error {
	if !slices.Contains(entries, name) {
		return fmt.Errorf("%w: %q%s", ErrNoOperator, name, suggest.Names(name, entries))
	}
	return nil
}

func names(entries []entry) []string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Name)
	}
	return all
}

// checkAsked refuses options that name what the database does not have.
func checkAsked(asked stage.OperatorOptions, entries []entry) error {
	var dtypes []string
	for _, e := range entries {
		dtypes = append(dtypes, e.DTypes...)
	}
	slices.Sort(dtypes)
	dtypes = slices.Compact(dtypes)
	for _, dtype := range asked.DTypes {
		if !slices.Contains(dtypes, dtype) {
			return fmt.Errorf("%w: %q%s", ErrDType, dtype, suggest.Names(dtype, dtypes))
		}
	}
	for _, name := range asked.Names {
		if err := checkEntry(name, names(entries)); err != nil {
			return err
		}
		if at := slices.IndexFunc(entries, func(e entry) bool { return e.Name == name }); len(asked.DTypes) == 0 && entries[at].mainType() == "" {
			return fmt.Errorf("%w: PyTorch's database gives %q none that Metal has; --dtype names one to try", ErrDType, name)
		}
	}
	return checkForms(asked.Forms, names(entries))
}

// selected runs the entries, forms and types that the options name, and nothing else: how a finding is seen again.
func (r *stormRun) selected(ctx context.Context, patched *pool) error {
	asked := r.env.Operators
	if err := checkAsked(asked, r.entries); err != nil {
		return err
	}
	if err := r.env.Shard.Split(r.report, asked.Names); err != nil {
		return err
	}
	var jobs []job
	for _, name := range asked.Names {
		if !r.env.Shard.Has(name) {
			continue
		}
		at := slices.IndexFunc(r.entries, func(e entry) bool { return e.Name == name })
		chosen, dtypes := asked.Forms, asked.DTypes
		if len(chosen) == 0 {
			chosen = append([]string{"basic"}, r.entries[at].forms()...)
		}
		if len(dtypes) == 0 {
			dtypes = []string{r.entries[at].mainType()}
		}
		for _, form := range chosen {
			threads := r.env.Python.Threads
			if len(threads) == 0 && form == "basic" {
				threads = []int{defaultThreads}
			} else if len(threads) == 0 {
				threads = []int{r.plan.threads(name, form)}
			}
			for _, dtype := range dtypes {
				for _, count := range threads {
					for range max(1, r.env.Python.Repeat) {
						jobs = append(jobs, r.plan.job(name, dtype, form, count))
					}
				}
			}
		}
	}
	ends, err := r.run(ctx, patched, "selected", jobs)
	if err != nil {
		return err
	}
	for _, o := range ends {
		switch known := knownOf(r.known, o); {
		case o.faulty():
			check := r.fault(patched, o)
			if known != nil {
				check.Detail = "known failure: " + known.Reason + "; " + check.Detail
			}
			r.report.Add(check)
		case o.Result.Status == right:
			detail := fmt.Sprintf("right values: %d, calls: %d, streams: %d", o.Result.Values, o.Result.Calls, o.Result.Streams)
			if o.Result.CPU != "" {
				detail += "; alone unlike the CPU: " + o.Result.CPU
			}
			r.report.Add(reports.Check{Name: o.Job.cell.String(), Subject: patched.subject.Name, Verdict: reports.Passed, Seconds: o.Result.Wall,
				Detail: detail})
		default:
			r.skip(o.Job.cell.String(), fmt.Sprintf("%s: %s", o.Result.Status, o.Result.Reason))
		}
	}
	r.report.Tables = append(r.report.Tables, coverage(patched.subject.Name, r.entries, ends, r.known))
	debts(r.report, patched.subject.Name, ends)
	return nil
}

// findingsOf are those of the software Metal and of ThreadSanitizer.
func findingsOf(o outcome) []reports.Finding {
	return process.Findings([]process.Result{{Threads: o.Job.Threads, Found: o.Result.Findings, Output: o.Result.Stderr, Kind: o.Result.Status.outcome()}})
}
