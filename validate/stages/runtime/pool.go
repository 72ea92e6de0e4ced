package runtime

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/events"
	"mpsforge/reports"
	"mpsforge/validate/judge/corpus"
	"mpsforge/validate/judge/process"
	"mpsforge/validate/judge/programs"
)

// poolPatches are what the pool's programs need: guards, fences and leases.
var poolPatches = []string{"op-guards", "fences", "thread-leases"}

// errDifference is returned for a difference that does not fit its program.
var errDifference = errors.New("the text to replace is not in the program exactly once")

// pool runs the reference pool's programs on PyTorch's sources, through native/torch/backend/pool.cc, and compares: values
// and answers with what the programs expect, histories with the models. The checkers of the software Metal look on.
func (r *stageRun) pool(ctx context.Context, built *host.Build) error {
	if missing := r.waits(poolPatches); len(missing) > 0 {
		if r.env.Shard.Has(poolJob) {
			r.add(reports.Check{Name: poolJob, Subject: r.poolSubject(built), Verdict: reports.Skipped, Detail: "wait for " + strings.Join(missing, ", ")})
		}
		return nil
	}
	all, err := corpusOfPool()
	if err != nil {
		return err
	}
	err = together(ctx, r, all, func(ctx context.Context, r *stageRun, program corpus.Program) error {
		return r.poolProgram(ctx, built, program)
	})
	if err != nil {
		return err
	}
	if err := r.poolRandom(ctx, built); err != nil {
		return err
	}
	return r.poolHistories(ctx, built)
}

func (r *stageRun) poolSubject(built *host.Build) string {
	return r.hosts.Subject(built.Stamp.Patches) + ", " + string(built.Stamp.Flavour)
}

// poolJob is the one job of pool where patches that its programs need are missing.
const poolJob = "programs of the reference pool"

// poolJobs names the checks of pool.
func (r *stageRun) poolJobs() ([]string, error) {
	if len(r.waits(poolPatches)) > 0 {
		return []string{poolJob}, nil
	}
	all, err := corpusOfPool()
	var jobs []string
	for _, program := range all {
		jobs = append(jobs, programJob(program))
	}
	for _, shape := range programs.Shapes {
		jobs = append(jobs, "random: "+shape.Name)
	}
	for _, shape := range programs.Histories() {
		jobs = append(jobs, "history: "+shape.Name)
	}
	return jobs, err
}

func programJob(program corpus.Program) string { return program.Group + ": " + program.Name }

// corpusOfPool are the programs of the corpus over a pool.
func corpusOfPool() ([]corpus.Program, error) {
	all, err := corpus.Programs()
	if err != nil {
		return nil, err
	}
	return slices.Concat(corpus.Of(all, corpus.Pool), corpus.Of(all, corpus.Schedules)), nil
}

// poolProgram runs a program of the corpus in a process of its own: leases, births and numbers begin anew.
func (r *stageRun) poolProgram(ctx context.Context, built *host.Build, program corpus.Program) error {
	check := reports.Check{Name: programJob(program), Rule: program.Rules, Subject: r.poolSubject(built)}
	if !r.env.Shard.Has(check.Name) {
		return nil
	}
	text, different, err := translated(program)
	if err != nil {
		return err
	}
	if text == "" {
		check.Verdict, check.Detail = reports.Skipped, "on the reference pool only: "+different
		r.add(check)
		return nil
	}
	end := process.Result{}
	for try := 0; try < r.tries() && end.Problem == ""; try++ {
		if end, _, err = r.poolRun(ctx, built, check.Name, []string{text}, uint64(try), false); err != nil {
			return err
		}
		check.Seconds += end.Seconds
	}
	check.Detail = different
	return r.poolJudge(check, end, built)
}

// noticingProgram is the end of the first program of the corpus, if any, that goes wrong without a patch and is right with it: quoted,
// unlike scenarios. Without guards there is no pool to run them on.
func (r *stageRun) noticingProgram(ctx context.Context, built *host.Build) ([]process.Result, error) {
	if !slices.Contains(built.Stamp.Patches, poolPatches[0]) {
		return nil, nil
	}
	all, err := corpusOfPool()
	if err != nil {
		return nil, err
	}
	for _, program := range all {
		text, _, err := translated(program)
		if err != nil {
			return nil, err
		}
		if text == "" {
			continue
		}
		end, err := r.programOnce(ctx, built, program, text, 0)
		if err != nil {
			return nil, err
		}
		if end.Problem == "" {
			continue
		}
		broken, err := r.failsWhole(programJob(program), built.Stamp.Flavour, func(aside *stageRun, patched *host.Build) (end process.Result, err error) {
			for try := 0; try < r.tries() && end.Problem == "" && err == nil; try++ {
				end, err = aside.programOnce(ctx, patched, program, text, uint64(try))
			}
			return end, err
		})
		if err != nil {
			return nil, err
		}
		if !broken {
			end.Path = fmt.Sprintf("program %q, %s", program.Name, built.Stamp.Flavour)
			return []process.Result{end}, nil
		}
	}
	return nil, nil
}

// programOnce runs a program of the corpus, if no run before this one has kept how it ended.
func (r *stageRun) programOnce(ctx context.Context, built *host.Build, program corpus.Program, text string, try uint64) (process.Result, error) {
	return r.kept.once(built, fmt.Sprint(text, try), func() (process.Result, error) {
		end, _, err := r.poolRun(ctx, built, program.Name, []string{text}, try, false)
		return end, err
	})
}

// poolJudge fills the check by how its last process ended, and adds it.
func (r *stageRun) poolJudge(check reports.Check, end process.Result, built *host.Build) error {
	check.Verdict = reports.Passed
	if end.Problem != "" {
		r.fails(check.Name, built.Stamp.Flavour, true)
		check.Findings = process.Findings([]process.Result{end})
		if err := r.fail(&check, end, built); err != nil {
			return err
		}
	}
	r.add(check)
	return nil
}

// poolRun runs programs one after another in one process, in the environment that they ask for. Their files stay if
// something went wrong.
func (r *stageRun) poolRun(ctx context.Context, built *host.Build, name string, texts []string, try uint64, record bool) (process.Result,
	scenarioResult, error) {
	one := hostRun{built: built, tools: r.hosts.Root, threads: 1, seed: (r.env.Seed + try) % 1_000_000_007, limit: process.Patient, record: record,
		series: r.hasSeries(built), more: poolEnvironment(texts[0])}
	if len(built.Stamp.Patches) < len(r.env.Series.Patches) {
		one.limit = process.Impatient
	}
	for _, text := range texts {
		path, err := r.poolFile(name, text)
		if err != nil {
			return process.Result{}, scenarioResult{}, err
		}
		one.programs = append(one.programs, path)
	}
	tell := events.RunPart(r.env.Sink, events.Part{Step: r.step, Subject: r.poolSubject(built), Name: name})
	end, result, err := one.run(ctx)
	if err != nil {
		return end, result, err
	}
	tell(end.Finished(len(built.Stamp.Patches) < len(r.env.Series.Patches)))
	r.stage.Count("processes run", 1)
	r.stage.Count("steps of pool programs", end.Values)
	if end.Problem == "" {
		for _, path := range one.programs {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // a text may be there twice
				return end, result, err
			}
		}
	}
	return end, result, nil
}

// poolFile writes a check's program to where it can be run again, and says where. Two checks may have the same text, at the same time.
func (r *stageRun) poolFile(check, text string) (string, error) {
	digest := sha256.Sum256([]byte(check + "\n" + text))
	path := filepath.Join(r.env.Artifacts, fmt.Sprintf("program-%x.txt", digest[:6]))
	if err := os.MkdirAll(r.env.Artifacts, 0o755); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(text), 0o644)
}

// poolEnvironment are the variables that a program names for its pool: PyTorch reads them once in a process.
func poolEnvironment(text string) []string {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == "pool" {
			return words[1:]
		}
	}
	return nil
}

// notRandom are kinds of random programs that the sources need not do, and why not.
var notRandom = map[string]string{
	"operators inside operators while the second stream comes to life": afterBirth,
}

// poolRandom runs random programs, those of one process one after another.
func (r *stageRun) poolRandom(ctx context.Context, built *host.Build) error {
	processes, each := 10, 8
	if r.env.Quick {
		processes, each = 1, 6
	}
	return together(ctx, r, programs.Shapes, func(ctx context.Context, r *stageRun, shape programs.Shape) error {
		check := reports.Check{Name: "random: " + shape.Name, Rule: "16, 17", Subject: r.poolSubject(built)}
		if !r.env.Shard.Has(check.Name) {
			return nil
		}
		if why := notRandom[shape.Name]; why != "" {
			check.Verdict, check.Detail = reports.Skipped, "on the reference pool only: "+why
			r.add(check)
			return nil
		}
		end := process.Result{}
		for i := 0; i < processes && end.Problem == ""; i++ {
			var texts []string
			for j := range each {
				texts = append(texts, withoutCounters(shape.Build(r.env.Seed+uint64(i*each+j), 1+j)))
			}
			var err error
			if end, _, err = r.poolRun(ctx, built, check.Name, texts, uint64(i), false); err != nil {
				return err
			}
			check.Seconds += end.Seconds
		}
		check.Detail = fmt.Sprintf("%d programs in %d processes", processes*each, processes)
		return r.poolJudge(check, end, built)
	})
}

// poolHistories records what threads do at the same time and decides whether the model allows it.
func (r *stageRun) poolHistories(ctx context.Context, built *host.Build) error {
	rounds, operations := 20, 1000
	if r.env.Quick {
		rounds, operations = 2, 400
	}
	return together(ctx, r, programs.Histories(), func(ctx context.Context, r *stageRun, shape programs.History) error {
		check := reports.Check{Name: "history: " + shape.Name, Rule: shape.Rules, Subject: r.poolSubject(built)}
		if !r.env.Shard.Has(check.Name) {
			return nil
		}
		end, total := process.Result{}, 0
		for round := 0; round < rounds && end.Problem == ""; round++ {
			seed := r.env.Seed + uint64(round)
			text, made := shape.Program(seed, operations)
			var result scenarioResult
			var err error
			if end, result, err = r.poolRun(ctx, built, check.Name, []string{text}, uint64(round), true); err != nil {
				return err
			}
			check.Seconds += end.Seconds
			if end.Problem == "" {
				var n int
				n, end.Problem = shape.Judge(result.Records, made, true, r.env.Artifacts, seed)
				total += n
				if end.Output = text; end.Problem != "" {
					if _, err := r.poolFile(check.Name, text); err != nil {
						return err
					}
				}
			}
		}
		check.Detail = fmt.Sprintf("%d histories, %d operations, linearizable", rounds, total)
		r.stage.Count("operations of histories", int64(total))
		return r.poolJudge(check, end, built)
	})
}
