package validate

import (
	"context"
	"mpsforge/reports"
	"slices"
)

// pythonStage runs the Python parallel tests.
func pythonStage(ctx context.Context, env *Env, stage *reports.Stage) error {
	selected, err := selectTests(pythonTests(), env.Python.Only)
	if err != nil {
		return err
	}
	selected = slices.DeleteFunc(selected, func(t pythonTest) bool { return t.section == benchSection })
	if len(selected) == 0 {
		return Skipf("no test of this stage matches %q", env.Python.Only)
	}
	patched, stock, err := provenPythons(ctx, env, stage)
	if err != nil {
		return err
	}
	r := pythonStageRun{env: env, stage: stage, step: StepName(stage.Name)}
	var jobs []pythonOutcome
	for _, t := range selected {
		jobs = append(jobs, r.pythonJobs(t, patched)...)
		if stock != nil {
			jobs = append(jobs, r.stockJobs(t, stock)...)
		}
	}
	all, err := r.runAll(ctx, jobs)
	if err != nil {
		return err
	}
	for _, t := range selected {
		of := func(s *pythonSubject) []pythonOutcome {
			return slices.DeleteFunc(slices.Clone(all), func(o pythonOutcome) bool { return o.test.name != t.name || o.subject != s })
		}
		if stock != nil {
			r.judgeStock(t, of(stock))
		}
		if err := r.judge(t, of(patched)); err != nil {
			return err
		}
	}
	stage.Tables = append(stage.Tables, pythonTables(all, patched, stock)...)
	return harnessOnly(patched, stage)
}
