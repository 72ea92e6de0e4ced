package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"mpsforge/reports"
	"mpsforge/validate"
	"mpsforge/validate/stage"
)

// lastFailed has verify run what failed in the last run: it sets flags, keeps them in c.chosen, and gives the report that they are from.
// No flag is set where nothing failed.
func (c *call) lastFailed() (path string, err error) {
	for _, name := range []string{"stages", "only", "operators", "tests", "shard"} {
		if c.IsSet(name) && c.fromFile[name] == "" {
			return "", usagef("--last-failed decides what runs: leave out --%s", name)
		}
	}
	path = c.String("report")
	if _, err := os.Stat(path); path == "" || err != nil {
		if path, err = latestReport(); err != nil {
			return "", err
		}
		if path == "" {
			return "", usagef("--last-failed: there is no report of a run in the cache")
		}
	}
	report, err := reports.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--last-failed: %w", err)
	}
	c.chosen = failedFlags(report)
	for name, value := range c.chosen {
		if name != "stages" && c.IsSet(name) {
			delete(c.chosen, name)
			continue
		}
		if err := c.Set(name, value); err != nil {
			return "", fmt.Errorf("--last-failed: --%s %s: %w", name, value, err)
		}
		delete(c.fromFile, name)
	}
	return path, nil
}

// failedFlags are the flags that choose the stages that failed, with the report's random choices and form. Of the stages python and
// upstream it is the tests that failed, where their checks name nothing else and no other failed stage reads the same flag.
func failedFlags(report *reports.Report) map[string]string {
	failed := map[string][]string{}
	var stages []string
	for _, stage := range report.Stages {
		if stage.Verdict != reports.Failed || validate.CheckNames([]string{stage.Name}) != nil {
			continue
		}
		stages = append(stages, stage.Name)
		for _, check := range stage.Checks {
			if check.Verdict == reports.Failed {
				failed[stage.Name] = append(failed[stage.Name], check.Name)
			}
		}
	}
	if len(stages) == 0 {
		return nil
	}
	divided := slices.ContainsFunc(validate.Stages(), func(s validate.Stage) bool { return s.Splits && slices.Contains(stages, s.Name) })
	flags := map[string]string{"stages": strings.Join(stages, ","), "seed": fmt.Sprint(report.Seed)}
	if report.Quick {
		flags["quick"] = "true"
	}
	if report.Shard != nil && divided {
		flags["shard"] = report.Shard.String()
	}
	tests := pythonTestNames(nil)
	alone := func(name string, others ...string) bool {
		return len(failed[name]) > 0 && !slices.ContainsFunc(others, func(other string) bool { return slices.Contains(stages, other) })
	}
	if alone("python", "bench", "overlay") && !slices.ContainsFunc(failed["python"], func(name string) bool { return !slices.Contains(tests, name) }) {
		flags["only"] = eachOnce(failed["python"])
	}
	if alone("upstream", "overlay") && !slices.ContainsFunc(failed["upstream"], func(name string) bool { return !upstreamTest.MatchString(name) }) {
		flags["tests"] = eachOnce(failed["upstream"])
	}
	return flags
}

// upstreamTest is the name of one of PyTorch's own tests.
var upstreamTest = regexp.MustCompile(`^\w+:\w+\.\w+$`)

// eachOnce is a regular expression for these names and no others.
func eachOnce(names []string) string {
	return stage.Exactly(slices.Compact(slices.Sorted(slices.Values(names))))
}
