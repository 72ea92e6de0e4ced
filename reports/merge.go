package reports

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ErrMerge is returned, wrapped, for reports that are not all the shards of one run.
var ErrMerge = errors.New("these reports are not all the shards of one run")

// shardChoice is the name of the flag that makes a shard, among a report's choices.
const shardChoice = "shard"

// Merge makes one report of the shards of a run, each of which must be there once, of the same thing. Names are what the shards are
// called in errors; stages that are required must have run in all of them. What no shard judged is in the result and is never a pass.
func Merge(shards []*Report, names []string, required ...string) (*Report, error) {
	ordered, err := inOrder(shards, names)
	if err != nil {
		return nil, err
	}
	first := ordered[0]
	merged := &Report{Schema: Schema, Tool: first.Tool, Started: first.Started, Quick: first.Quick, Seed: first.Seed, Identity: first.Identity,
		Machine: first.Machine,
		Merged:  len(ordered), Settings: first.Settings, Choices: withoutShard(first.Choices), Limits: slices.Clone(first.Limits)}
	for _, r := range ordered {
		merged.Seconds += r.Seconds
		if r.Started.Before(merged.Started) {
			merged.Started = r.Started
		}
	}
	for i := range first.Stages {
		parts := make([]*Stage, len(ordered))
		for at, r := range ordered {
			parts[at] = &r.Stages[i]
		}
		stage, asked, err := mergeStage(parts)
		if err != nil {
			return nil, err
		}
		if asked {
			required = append(required, stage.Name)
		}
		merged.Stages = append(merged.Stages, stage)
	}
	merged.Conclude(required)
	return merged, nil
}

// mostShards is more than anybody makes; a damaged report may name any number.
const mostShards = 10000

// inOrder gives the shards by their indices, after it has made sure that they are all those of one run.
func inOrder(shards []*Report, names []string) ([]*Report, error) {
	var ordered []*Report
	from := map[int]string{}
	for i, r := range shards {
		if r.Shard == nil {
			return nil, fmt.Errorf("%w: %s is not the report of a shard", ErrMerge, names[i])
		}
		if r.Shard.Of < 1 || r.Shard.Of > mostShards || r.Shard.Index < 1 || r.Shard.Index > r.Shard.Of {
			return nil, fmt.Errorf("%w: %s says that it is shard %s, which cannot be", ErrMerge, names[i], r.Shard)
		}
		if ordered == nil {
			ordered = make([]*Report, 0, r.Shard.Of)
		} else if what, one, other := foreign(shards[0], r); what != "" {
			return nil, fmt.Errorf("%w: %s differs from %s in %s: %q and %q", ErrMerge, names[i], names[0], what, other, one)
		}
		if before, twice := from[r.Shard.Index]; twice {
			return nil, fmt.Errorf("%w: shard %s is there twice: %s and %s", ErrMerge, r.Shard, before, names[i])
		}
		from[r.Shard.Index] = names[i]
		ordered = append(ordered, r)
	}
	if len(shards) == 0 {
		return nil, fmt.Errorf("%w: there are none", ErrMerge)
	}
	var missing []string
	for i := range shards[0].Shard.Of {
		if from[i+1] == "" {
			missing = append(missing, Shard{i + 1, shards[0].Shard.Of}.String())
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w: missing: shard %s", ErrMerge, strings.Join(missing, ", "))
	}
	slices.SortFunc(ordered, func(a, b *Report) int { return a.Shard.Index - b.Shard.Index })
	return ordered, nil
}

// foreign names what two shards of one run cannot differ in and these do.
func foreign(a, b *Report) (what, one, other string) {
	values := func(r *Report) [][2]string {
		var stages []string
		for _, s := range r.Stages {
			stages = append(stages, s.Name)
		}
		return [][2]string{
			{"the number of shards", fmt.Sprint(r.Shard.Of)},
			{"mpsforge", fmt.Sprint(r.Tool.Name, " ", r.Tool.Version, " ", r.Tool.Commit)},
			{"baseline", r.Identity.Baseline}, {"series", r.Identity.SeriesDigest}, {"base commit", r.Identity.BaseCommit}, {"tree", r.Identity.HeadTree},
			{"form", map[bool]string{true: "short", false: "long"}[r.Quick]}, {"seed", fmt.Sprint(r.Seed)},
			{"options", fmt.Sprint(withoutShard(r.Choices))}, {"stages", strings.Join(stages, ", ")},
			{"system", r.Machine.System}, {"use of a Metal device", fmt.Sprint(r.Machine.MetalRan)},
		}
	}
	right := values(b)
	for i, value := range values(a) {
		if value != right[i] {
			return value[0], value[1], right[i][1]
		}
	}
	return "", "", ""
}

func withoutShard(choices map[string]string) map[string]string {
	kept := maps.Clone(choices)
	delete(kept, shardChoice)
	return kept
}

// mergeStage makes one stage of its parts, which are in the order of the shards, and says whether any shard was to run it.
func mergeStage(parts []*Stage) (merged Stage, asked bool, err error) {
	merged = Stage{Name: parts[0].Name, Question: parts[0].Question}
	label := func(at int) string { return Shard{at + 1, len(parts)}.String() }
	var divided *Part
	jobs, worst := 0, 0
	rank := func(s *Stage) int { return slices.Index([]Verdict{Passed, Skipped, NotRun, Failed}, s.Verdict) }
	for at, s := range parts {
		asked = asked || s.Verdict != NotRun || s.Part != nil
		if rank(s) > rank(parts[worst]) {
			worst = at
		}
		if s.Part == nil {
			continue
		}
		if divided == nil {
			divided = s.Part
		}
		if s.Part.Of != divided.Of || s.Part.Digest != divided.Digest {
			return merged, false,
				fmt.Errorf("%w: of stage %s shard %s divided %d jobs, another shard %d, or others of the same number: what they ran was not the same",
					ErrMerge, s.Name, label(at), s.Part.Of, divided.Of)
		}
		jobs += s.Part.Jobs
	}
	if divided == nil { // each shard has run all of it, or none has
		merged = *parts[worst]
		if parts[worst].Verdict != parts[0].Verdict {
			merged.Reason = fmt.Sprintf("shard %s: %s", label(worst), merged.Reason)
		}
		return merged, asked, nil
	}
	notDone := ""
	for at, s := range parts {
		switch {
		case s.Verdict == Failed:
			if merged.Verdict != Failed {
				merged.Verdict, merged.Reason = Failed, fmt.Sprintf("shard %s: %s", label(at), s.Reason)
			}
		case notDone == "" && (s.Part == nil || !s.Part.Done):
			notDone = fmt.Sprintf("shard %s did not judge its part: %s", label(at), s.Reason)
		}
		merged.Seconds += s.Seconds
		for name, count := range s.Counts {
			merged.Count(name, count)
		}
		for _, seed := range s.Seeds {
			if !slices.Contains(merged.Seeds, seed) {
				merged.Seeds = append(merged.Seeds, seed)
			}
		}
		for _, plot := range s.Plots {
			plot.Title += ", shard " + label(at)
			merged.Plots = append(merged.Plots, plot)
		}
	}
	if notDone == "" && merged.Verdict != Failed && jobs != divided.Of {
		return merged, false, fmt.Errorf("%w: of the %d jobs of stage %s the shards had %d", ErrMerge, divided.Of, merged.Name, jobs)
	}
	merged.Facts = mergeFacts(parts, label)
	merged.Tables = mergeTables(parts, label)
	for _, check := range mergeChecks(parts, label) {
		merged.Add(check)
	}
	if notDone != "" && merged.Verdict != Failed {
		merged.Verdict, merged.Reason = Skipped, notDone
	}
	if merged.Verdict == "" {
		merged.Verdict, merged.Reason = Skipped, "none of its checks could run"
	}
	return merged, true, nil
}

// mergeFacts has each fact once. Where another shard says something else under the same name, the shard is in it.
func mergeFacts(parts []*Stage, label func(int) string) []Fact {
	var all []Fact
	for at, s := range parts {
		for _, fact := range s.Facts {
			if slices.ContainsFunc(parts, func(other *Stage) bool {
				return !slices.Contains(other.Facts, fact) && slices.ContainsFunc(other.Facts, func(f Fact) bool { return f.Name == fact.Name })
			}) {
				fact.Name += ", shard " + label(at)
			}
			if !slices.Contains(all, fact) {
				all = append(all, fact)
			}
		}
	}
	return all
}

// mergeTables adds up tables of counts, and puts the rows of others one after another, each once. Where shards have other columns under
// the same title, the shard is in it.
func mergeTables(parts []*Stage, label func(int) string) []Table {
	var all []Table
	for at, s := range parts {
		for _, table := range s.Tables {
			same := func(t Table) bool { return t.Title == table.Title && slices.Equal(t.Columns, table.Columns) }
			if i := slices.IndexFunc(all, same); i >= 0 {
				all[i].add(table)
				continue
			}
			rows := table.Rows
			table.Rows = nil
			table.add(Table{Rows: rows})
			if slices.ContainsFunc(all, func(t Table) bool { return t.Title == table.Title }) {
				table.Title += ", shard " + label(at)
			}
			all = append(all, table)
		}
	}
	return all
}

// add adds another table's rows: in a table of counts up, also its texts, where a new row comes behind the one that it was behind there.
func (t *Table) add(other Table) {
	if t.Key == 0 {
		for _, row := range other.Rows {
			if !slices.ContainsFunc(t.Rows, func(have []string) bool { return slices.Equal(have, row) }) {
				t.Rows = append(t.Rows, row)
			}
		}
		return
	}
	behind := -1
	for _, row := range other.Rows {
		at := slices.IndexFunc(t.Rows, func(have []string) bool { return slices.Equal(have[:t.Key], row[:t.Key]) })
		if at < 0 {
			behind++
			t.Rows = slices.Insert(t.Rows, behind, row)
			continue
		}
		sum := slices.Clone(t.Rows[at])
		for i := t.Key; i < len(sum); i++ {
			a, errA := strconv.Atoi(sum[i])
			b, errB := strconv.Atoi(row[i])
			switch {
			case errA == nil && errB == nil:
				sum[i] = strconv.Itoa(a + b)
			case sum[i] != row[i]:
				sum[i] += ", " + row[i]
			}
		}
		t.Rows[at], behind = sum, at
	}
}

// mergeChecks makes one check of those that several shards have under one name; where one shard has several, of the first ones, the
// second ones, and so on. It passed only if it passed in each of them. One that a shard was to judge for all, and did not, has failed.
func mergeChecks(parts []*Stage, label func(int) string) []Check {
	type key struct {
		name, subject, rule string
		nth                 int
	}
	type judged struct {
		owner  int
		checks []Check
		shards []int
	}
	found := map[key]*judged{}
	var order []key
	for at, s := range parts {
		seen := map[key]int{}
		for _, check := range s.Checks {
			k := key{check.Name, check.Subject, check.Rule, 0}
			seen[k]++
			k.nth = seen[k]
			if found[k] == nil {
				found[k] = &judged{}
				order = append(order, k)
			}
			if check.Shard != 0 {
				found[k].owner = check.Shard
				continue
			}
			found[k].checks, found[k].shards = append(found[k].checks, check), append(found[k].shards, at)
		}
	}
	var all []Check
	for _, k := range order {
		j := found[k]
		if len(j.checks) == 0 {
			all = append(all, Check{Name: k.name, Subject: k.subject, Rule: k.rule, Verdict: Failed,
				Detail: fmt.Sprintf("shard %s was to judge it, and did not", label(j.owner-1))})
			continue
		}
		one := j.checks[0]
		var details []string
		same := true
		for i, check := range j.checks {
			details = append(details, fmt.Sprintf("shard %s: %s", label(j.shards[i]), check.Detail))
			same = same && check.Detail == one.Detail
			if i == 0 {
				continue
			}
			if check.Verdict == Failed && one.Verdict != Failed {
				one.Verdict, one.Output, one.Artifact = Failed, check.Output, check.Artifact
			} else if check.Verdict != Passed && one.Verdict == Passed {
				one.Verdict = check.Verdict
			}
			one.Seconds += check.Seconds
			one.Cells, one.Findings = append(one.Cells, check.Cells...), append(one.Findings, check.Findings...)
		}
		if !same {
			one.Detail = strings.Join(details, "; ")
		}
		all = append(all, one)
	}
	return all
}
