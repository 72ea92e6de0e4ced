package upstream

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/internal/words"
	"mpsforge/patches"
	"mpsforge/reports"
)

// mostChecks is how many tests of one kind of problem get a check of their own; the file of all ends has every one.
const mostChecks = 25

// verdicts are what is wrong with tests, by kind of problem. A test is in one of them at most.
type verdicts struct {
	differ   []*test // end otherwise on patched than on stock, twice, or die there once
	better   []*test // pass on patched and do not end as expected on stock, twice: what the patches are for
	unlisted []*test // do not end as expected, twice, and are not known failures
	fixed    []*test // are known failures and end as expected, twice
	flaky    []*test // ended so and otherwise
	stale    []string
}

// conclude judges all tests and fills in the report.
func (r *runner) conclude() error {
	v := r.verdicts()
	all, err := r.write("upstream-ends.tsv", r.ends())
	if err != nil {
		return err
	}
	r.compare(v, all)
	proposal, err := r.propose(v)
	if err != nil {
		return err
	}
	r.ratchet(v, all, proposal)
	r.count(v)
	return nil
}

// onlyCompared says that known failures are not asked for: they are the host build's, and a real device has its own.
func (r *runner) onlyCompared() bool { return r.env.Machine.MetalRan && r.stock != nil }

func (r *runner) verdicts() verdicts {
	var v verdicts
	seen := map[string]bool{}
	for _, t := range r.all {
		seen[t.id()] = true
		_, known := r.listed.failures[t.id()]
		expected := slices.ContainsFunc(t.patched, end.expected)
		unexpected := slices.ContainsFunc(t.patched, func(e end) bool { return !e.expected() })
		differs := r.stock != nil && (t.differs() || t.diesAlone()) && r.listed.flaky[t.id()] == ""
		if differs && t.better() {
			v.better = append(v.better, t)
		}
		switch {
		case differs && !t.better():
			v.differ = append(v.differ, t)
		case t.flaky() && !(differs && t.better()):
			v.flaky = append(v.flaky, t)
		case r.listed.flaky[t.id()] != "" || r.onlyCompared():
		case unexpected && !known:
			v.unlisted = append(v.unlisted, t)
		case expected && known:
			v.fixed = append(v.fixed, t)
		}
	}
	if r.complete() {
		for _, section := range []map[string]string{r.listed.failures, r.listed.successes, r.listed.flaky} {
			for id := range section {
				if r.env.Shard.Has(id) && !seen[id] {
					v.stale = append(v.stale, id)
				}
			}
		}
		for id := range r.listed.leftOut {
			if r.env.Shard.Has(id) && !r.names[id] {
				v.stale = append(v.stale, id)
			}
		}
		slices.Sort(v.stale)
	}
	return v
}

// complete says that every test was chosen, if not for this shard.
func (r *runner) complete() bool { return !r.env.Quick && r.env.Upstream.Tests == "" }

// differs reports whether no end on stock is one on patched.
func (t *test) differs() bool {
	return !slices.ContainsFunc(t.stock, func(e end) bool { return slices.Contains(t.patched, e) })
}

// diesAlone reports whether a run on patched died, hung or was found at fault, while those on stock ended as expected: a rare race looks so.
func (t *test) diesAlone() bool {
	return slices.ContainsFunc(t.patched, func(e end) bool { return e.kind == crashed || e.kind == hung || e.kind == found }) &&
		!slices.ContainsFunc(t.stock, func(e end) bool { return !e.expected() })
}

// better reports whether the test always passes on patched and never ends as expected on stock.
func (t *test) better() bool {
	return !slices.ContainsFunc(t.patched, func(e end) bool { return e.kind != passed }) && !slices.ContainsFunc(t.stock, end.expected)
}

// flaky reports whether a second run ended otherwise on either side, or once as expected and once not.
func (t *test) flaky() bool {
	several := func(ends []end) bool {
		return slices.ContainsFunc(ends, func(e end) bool { return e != ends[0] })
	}
	return several(t.patched) || several(t.stock)
}

// compare fails for each test that ends otherwise on patched than on stock.
func (r *runner) compare(v verdicts, all string) {
	check := reports.Check{Name: "same end as on stock", Subject: "patched", Verdict: reports.Passed, Artifact: all}
	if r.stock == nil {
		check.Verdict, check.Detail = reports.Skipped, "there is no Python with an unpatched torch to compare with: name one with --stock"
		r.report.Add(check)
		return
	}
	check.Detail = fmt.Sprintf("tests: %d, the same end: %d, better: %d, another end: %d, flaky: %d", len(r.all),
		len(r.all)-len(v.differ)-len(v.flaky)-len(v.better), len(v.better), len(v.differ), len(v.flaky))
	if len(v.differ) > 0 {
		check.Verdict = reports.Failed
	}
	for _, t := range r.all {
		check.Seconds += t.seconds
	}
	r.report.Add(check)
	for _, t := range r.first(v.differ, all, "end differently from stock") {
		r.report.Add(t.check(fmt.Sprintf("stock: %s; patched: %s; again: %s", inWords(t.stock), inWords(t.patched), r.again(t.id()))))
	}
}

// ratchet fails for failures that upstream.json does not list, and for listed ones that end as expected.
func (r *runner) ratchet(v verdicts, all, proposal string) {
	check := reports.Check{Name: "known failures", Subject: "patched", Verdict: reports.Passed, Artifact: all}
	check.Detail = fmt.Sprintf("%s lists %d failures; of %d tests, new failures: %d, listed ones that end as PyTorch expects: %d, names that no test has: %d",
		r.file(), len(r.listed.failures), len(r.all), len(v.unlisted), len(v.fixed), len(v.stale))
	switch {
	case r.onlyCompared():
		check.Verdict, check.Detail = reports.Skipped, r.file()+" is of the host build; on a real device only the comparison with stock counts"
	case r.listed.empty(): // nobody has run them on a host build of this version
		v.unlisted = nil
		check.Verdict, check.Detail = reports.Skipped,
			fmt.Sprintf("there is no %s yet; only the comparison with stock counts until a run of the long form has written it", r.file())
	}
	if len(v.unlisted)+len(v.fixed)+len(v.stale) > 0 {
		check.Verdict = reports.Failed
	}
	if proposal != "" {
		check.Detail += fmt.Sprintf("; the list as it is now: cp %s patches/%s", proposal, r.file())
	} else if len(v.fixed) > 0 {
		check.Detail += "; delete what no longer fails; a run of the long form that is no shard writes the shorter list"
	}
	r.report.Add(check)
	for _, t := range r.first(v.unlisted, all, "fail and are not in "+r.file()) {
		found := t.check(fmt.Sprintf("%s, which %s does not list; again: %s", inWords(t.patched), r.file(), r.again(t.id())))
		r.report.Add(found)
	}
	for _, t := range r.first(v.fixed, all, "are known failures and end as PyTorch expects") {
		r.report.Add(t.check(fmt.Sprintf("%s, and %s lists it as a failure (%s): delete it there; again: %s", inWords(t.patched), r.file(),
			r.listed.failures[t.id()], r.again(t.id()))))
	}
	if len(v.stale) > 0 {
		r.report.Add(reports.Check{Name: "names that no test has", Subject: "patched", Verdict: reports.Failed,
			Detail: fmt.Sprintf("delete them in %s: %s", r.file(), strings.Join(v.stale[:min(len(v.stale), mostChecks)], ", "))})
	}
}

// file is the baseline's list, seen from the folder of the series.
func (r *runner) file() string { return r.env.Series.Baseline.Name + "/" + patches.UpstreamFile }

// first are the tests that get a check of their own; for the others there is one together.
func (r *runner) first(tests []*test, all, what string) []*test {
	if len(tests) > mostChecks {
		r.report.Add(reports.Check{Name: fmt.Sprintf("%d more", len(tests)-mostChecks), Subject: "patched", Verdict: reports.Failed,
			Detail: fmt.Sprintf("tests that %s, too; all are in %s", what, all)})
		return tests[:mostChecks]
	}
	return tests
}

// check is a failed one of a single test.
func (t *test) check(detail string) reports.Check {
	output := words.LastLines(t.last.Output, 30)
	if output == "" {
		output = words.LastLines(t.last.Text, 30)
	}
	return reports.Check{Name: t.id(), Subject: "patched", Verdict: reports.Failed, Detail: detail, Seconds: t.seconds, Output: output}
}

// inWords gives a test's ends in words, each once.
func inWords(ends []end) string {
	var all []string
	for _, e := range ends {
		if text := e.String(); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	text := strings.Join(all, ", then ")
	if len(ends) > 1 && len(all) == 1 {
		text += ", twice"
	}
	return text
}

// propose writes upstream.json as it would be now: what is listed and still fails, with today's causes; where the version has no
// list yet, all failures. A failure that is not listed is never in it. It gives the path, or nothing where nothing would change.
func (r *runner) propose(v verdicts) (string, error) {
	if !r.complete() || !r.env.Shard.Whole() || r.onlyCompared() || len(v.fixed)+len(v.stale) == 0 && !r.listed.empty() && !r.otherCauses() {
		return "", nil
	}
	now := patches.UpstreamFacts{Failures: map[string][]string{}, UnexpectedSuccesses: r.facts.UnexpectedSuccesses, Flaky: r.facts.Flaky,
		LeftOut: r.facts.LeftOut}
	for _, t := range r.all {
		_, known := r.listed.failures[t.id()]
		last := t.patched[len(t.patched)-1]
		if slices.ContainsFunc(t.patched, end.expected) || !known && !r.listed.empty() {
			continue
		}
		now.Failures[last.cause] = append(now.Failures[last.cause], t.id())
	}
	data, err := written(now)
	if err != nil {
		return "", err
	}
	return r.write(patches.UpstreamFile, data)
}

// otherCauses reports whether a known failure has another cause now than the list says.
func (r *runner) otherCauses() bool {
	return slices.ContainsFunc(r.all, func(t *test) bool {
		cause, known := r.listed.failures[t.id()]
		return known && cause != t.patched[len(t.patched)-1].cause
	})
}

// ends is a table of all tests, by tabs.
func (r *runner) ends() []byte {
	var out bytes.Buffer
	out.WriteString("test\tstock\tpatched\tcause on patched\tseconds\n")
	for _, t := range r.all {
		kinds := func(ends []end) string {
			var all []string
			for _, e := range ends {
				all = append(all, string(e.kind))
			}
			return strings.Join(all, ", ")
		}
		fmt.Fprintf(&out, "%s\t%s\t%s\t%s\t%.2f\n", t.id(), kinds(t.stock), kinds(t.patched), t.patched[0].cause, t.seconds)
	}
	return out.Bytes()
}

// write puts a file beside the report, where there is one.
func (r *runner) write(name string, data []byte) (string, error) {
	if r.env.Artifacts == "" {
		return "", nil
	}
	if err := os.MkdirAll(r.env.Artifacts, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(r.env.Artifacts, name)
	return path, os.WriteFile(path, data, 0o644)
}

// count puts counts and tables into the report.
func (r *runner) count(v verdicts) {
	ends := map[string]map[kind]int{}
	causes, groups := map[string]int{}, map[string]int{}
	expected, own, kernels := 0, 0, 0
	for _, t := range r.all {
		for name, all := range map[string][]end{"stock": t.stock, "patched": t.patched} {
			if len(all) > 0 {
				if ends[name] == nil {
					ends[name] = map[kind]int{}
				}
				ends[name][all[0].kind]++
			}
		}
		e := t.patched[0]
		if !e.expected() {
			causes[e.cause]++
			groups[group(e.cause)]++
		}
		if t.pointed {
			continue
		}
		own++
		if e.expected() {
			expected++
		} else if group(e.cause) == missingKernel {
			kernels++
		}
	}
	r.report.Count("tests", int64(len(r.all)))
	r.report.Count("end as PyTorch expects", int64(expected))
	r.report.Count("need a missing Metal kernel", int64(groups[missingKernel]))
	r.report.Count("flaky", int64(len(v.flaky)))
	share := func(of int) string { return fmt.Sprintf("%.1f %%", 100*float64(expected)/float64(max(1, of))) }
	if own > 0 {
		r.fact("end as PyTorch expects on a Mac",
			fmt.Sprintf("of the tests of MPS %d of %d, %s; of those that need no missing Metal kernel %s (the aim is 95 %%)", expected, own, share(own),
				share(own-kernels)))
	}

	outcomes := reports.Table{Title: "How PyTorch's tests end",
		Note: "The first three are what the suite expects on a Mac. Each test ran in a process of its own.", Key: 1, Columns: []string{"end", "stock",
			"patched"}}
	for _, k := range kinds {
		if ends["stock"][k]+ends["patched"][k] > 0 {
			outcomes.Rows = append(outcomes.Rows, []string{string(k), fmt.Sprint(ends["stock"][k]), fmt.Sprint(ends["patched"][k])})
		}
	}
	r.report.Tables = append(r.report.Tables, outcomes, counted("Why the others end differently", "kind of cause", groups, len(groups)),
		counted("The most frequent causes", "cause", causes, 40))
	r.byFile(v)
	r.leftOut()
	r.named("Pass on the patched sources alone", "What the patches are for. Each ran a second time.", v.better)
	r.named("Flaky", "Each ran a second time because of how it first ended.", v.flaky)
}

// byFile adds a table of the files, if there are several.
func (r *runner) byFile(v verdicts) {
	table := reports.Table{Title: "By file", Key: 1, Columns: []string{"file", "tests", "end as PyTorch expects", "pass on the patched sources alone"}}
	for tests := r.all; len(tests) > 0; { // they are in the order of the files
		file, expected, better := tests[0].file, 0, 0
		last := slices.IndexFunc(tests, func(t *test) bool { return t.file != file })
		if last < 0 {
			last = len(tests)
		}
		for _, t := range tests[:last] {
			if t.patched[0].expected() {
				expected++
			}
			if slices.Contains(v.better, t) {
				better++
			}
		}
		table.Rows = append(table.Rows, []string{file, fmt.Sprint(last), fmt.Sprint(expected), fmt.Sprint(better)})
		tests = tests[last:]
	}
	if len(table.Rows) > 1 {
		r.report.Tables = append(r.report.Tables, table)
	}
}

// leftOut adds a table of the tests that do not run, with the reasons, for the files that this run has read.
func (r *runner) leftOut() {
	table := reports.Table{Title: "Left out by name", Note: "Tests of another device that mps cannot replace. They do not run.",
		Columns: []string{"reason", "tests"}}
	for _, reason := range slices.Sorted(maps.Keys(r.facts.LeftOut)) {
		names := slices.DeleteFunc(slices.Sorted(slices.Values(r.facts.LeftOut[reason])), func(id string) bool { return !r.names[id] })
		if len(names) > 0 {
			table.Rows = append(table.Rows, []string{reason, strings.Join(names, ", ")})
		}
	}
	r.report.AddTable(table)
}

// named adds a table of tests with their ends, if there are any.
func (r *runner) named(title, note string, tests []*test) {
	table := reports.Table{Title: title, Note: note, Columns: []string{"test", "stock", "patched"}}
	for _, t := range tests {
		table.Rows = append(table.Rows, []string{t.id(), inWords(t.stock), inWords(t.patched)})
	}
	r.report.AddTable(table)
}

// counted is a table of counts, the largest first.
func counted(title, column string, counts map[string]int, most int) reports.Table {
	table := reports.Table{Title: title, Key: 1, Columns: []string{column, "tests"}}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	for i, name := range names {
		if i == most {
			table.Note = fmt.Sprintf("%d more causes are in the file of all ends.", len(names)-most)
			break
		}
		table.Rows = append(table.Rows, []string{name, fmt.Sprint(counts[name])})
	}
	return table
}
