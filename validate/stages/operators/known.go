package operators

import (
	"fmt"
	"slices"
	"strings"

	"mpsforge/patches"
	"mpsforge/reports"
)

// flakyRuns is how often a known failure runs that does not fail each time.
const flakyRuns = 3

// covers says whether a fault is the known one: the same operator, all words of the known form, and an end that was seen.
func covers(failure patches.OperatorFailure, o outcome) bool {
	if !slices.Contains(failure.Seen, string(o.Result.Status)) || failure.Form == "basic" && failure.DType != o.Job.DType {
		return false
	}
	operators := []string{o.Job.Operator}
	for _, word := range words(o.Job.Form) {
		if partner, group := strings.CutPrefix(word, groupPrefix); group {
			operators = append(operators, partner)
		}
	}
	return (failure.Operator == patches.AnyOperator || slices.Contains(operators, failure.Operator)) &&
		!slices.ContainsFunc(words(failure.Form), func(word string) bool { return !slices.Contains(words(o.Job.Form), word) })
}

const groupPrefix = "group:"

// words of a form; basic, which every form adds to, has none.
func words(form string) []string {
	return slices.DeleteFunc(strings.Split(form, "+"), func(word string) bool { return word == "basic" })
}

// knownOf gives the known failure that a fault is, or nil.
func knownOf(known patches.KnownOperators, o outcome) *patches.OperatorFailure {
	for i := range known.Failures {
		if covers(known.Failures[i], o) {
			return &known.Failures[i]
		}
	}
	return nil
}

// knownJobs are the runs of the known failures, each as it is listed.
func (p plan) knownJobs(known patches.KnownOperators) []job {
	p.quick = false // they were found with these rounds
	var jobs []job
	for _, failure := range known.Failures {
		if failure.Operator == patches.AnyOperator {
			continue
		}
		p.seed = failure.Seed
		j := p.job(failure.Operator, failure.DType, failure.Form, failure.Threads)
		jobs = append(jobs, j)
		for range flakyRuns - 1 {
			if failure.Flaky {
				jobs = append(jobs, j)
			}
		}
	}
	return jobs
}

// judgeKnown holds the runs of the known failures against the list. One that passes must leave it; one that ends otherwise than
// listed is a new failure.
func judgeKnown(p *pool, known patches.KnownOperators, ends []outcome, report *reports.Stage) {
	table := reports.Table{Title: "known failures, patched",
		Note:    "Each runs as listed in operators.json of the baseline, a flaky one several times. One that passes must be deleted there.",
		Columns: []string{"operator", "form", "seen", "runs", "reason"}}
	summary := reports.Check{Name: "known failures", Subject: p.subject.Name, Verdict: reports.Passed}
	counts := map[string]int{}
	for _, failure := range known.Failures {
		if failure.Operator == patches.AnyOperator {
			continue // judge names what it covers
		}
		check := reports.Check{Name: "known failure: " + failure.Operator + ", " + failure.Form, Subject: p.subject.Name, Verdict: reports.Failed}
		var seen []string
		runs, odd := 0, outcome{}
		for _, o := range ends {
			if o.Job.cell != (cell{failure.Operator, failure.DType, failure.Form, failure.Threads, failure.Seed}) {
				continue
			}
			runs++
			summary.Seconds += o.Result.Wall
			switch {
			case covers(failure, o):
				seen = append(seen, string(o.Result.Status))
			case o.Result.Status != right:
				odd = o
			}
		}
		switch {
		case odd.Result.Status != "":
			check.Detail = fmt.Sprintf("listed as %s, now: %s: %s%s; again: %s", strings.Join(failure.Seen, " or "), odd.Result.Status, odd.Result.Text,
				odd.Result.Reason, p.again(odd.Job))
			report.Add(check)
		case len(seen) > 0:
			counts["as listed"]++
		case failure.Flaky:
			counts["flaky, and not seen in this run"]++
		default:
			check.Detail = fmt.Sprintf("it passes: delete it from patches/%s/operators.json (%s)", report.Facts[0].Value, failure.Reason)
			report.Add(check)
		}
		table.Rows = append(table.Rows, []string{failure.Operator, failure.Form, strings.Join(slices.Compact(slices.Sorted(slices.Values(seen))), ", "),
			fmt.Sprintf("%d of %d", len(seen), runs), failure.Reason})
	}
	if len(table.Rows) == 0 {
		return
	}
	report.Tables = append(report.Tables, table)
	summary.Detail = fmt.Sprintf("listed: %d, %s", len(known.Failures), listing(counts))
	if counts["as listed"] == 0 {
		summary.Verdict, summary.Detail = reports.Skipped, "none of them was seen: "+summary.Detail
	}
	report.Add(summary)
}

// judgeRows fails for rows of operators.json that name no entry of the database or no form: they excuse nothing that can happen.
func judgeRows(subject string, known patches.KnownOperators, entries []string, report *reports.Stage) {
	var wrong []string
	for _, list := range []map[string]string{known.NotAlone, known.SomeNotAlone} {
		for name := range list {
			if err := checkEntry(name, entries); err != nil {
				wrong = append(wrong, err.Error())
			}
		}
	}
	for _, failure := range known.Failures {
		err := checkForms([]string{failure.Form}, entries)
		if err == nil && failure.Operator != patches.AnyOperator {
			err = checkEntry(failure.Operator, entries)
		}
		if err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		report.Add(reports.Check{Name: "rows of operators.json", Subject: subject, Verdict: reports.Failed,
			Detail: "correct or delete what names nothing: " + strings.Join(wrong, "; ")})
	}
}

// judgeNotAlone compares what does not run alone, of the basic form in float32, with the list. Unlike other types, all entries should.
func judgeNotAlone(subject string, known patches.KnownOperators, ends []outcome, report *reports.Stage) {
	if known.NotAlone == nil {
		return
	}
	check := reports.Check{Name: "runs alone", Subject: subject, Verdict: reports.Passed}
	counts := map[string]int{}
	var wrong []string
	for _, o := range ends {
		if o.Job.Form != "basic" || o.Job.DType != "float32" || o.Result.Status == doesNotApply {
			continue
		}
		_, listed := known.NotAlone[o.Job.Operator]
		_, some := known.SomeNotAlone[o.Job.Operator]
		switch alone := o.Result.Status != notAlone; {
		case alone && listed:
			wrong = append(wrong, o.Job.Operator+" does: delete it from not_alone")
		case !alone && !listed && !some:
			wrong = append(wrong, fmt.Sprintf("%s does not, and not_alone does not list it: %s", o.Job.Operator, o.Result.Reason))
		case alone:
			counts["yes"]++
		default:
			counts["no, as listed"]++
		}
	}
	check.Detail = listing(counts)
	if len(wrong) > 0 {
		check.Verdict, check.Detail, check.Output = reports.Failed, fmt.Sprintf("%d entries differ from operators.json: %s", len(wrong), wrong[0]),
			strings.Join(wrong, "\n")
	}
	report.Add(check)
}
