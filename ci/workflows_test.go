package ci_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mpsforge/internal/require"

	"github.com/rhysd/actionlint"
)

// workflows reads the workflow files, by name.
func workflows(t *testing.T) map[string]*actionlint.Workflow {
	t.Helper()
	paths, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no workflow files: %v", err)
	}
	all := map[string]*actionlint.Workflow{}
	for _, path := range paths {
		text := require.One(os.ReadFile(path))(t)
		workflow, faults := actionlint.Parse(text)
		if len(faults) > 0 {
			t.Fatalf("%s: %v", path, faults)
		}
		all[filepath.Base(path)] = workflow
	}
	return all
}

// actionlint, with shellcheck on the run blocks where it is installed, finds nothing.
func TestWorkflowsAreClean(t *testing.T) {
	shellcheck, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Log("SKIP shellcheck of the run blocks: it is not installed (Debian: apt-get install shellcheck)")
		shellcheck = ""
	}
	linter := require.One(actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{Shellcheck: shellcheck}))(t)
	found := require.One(linter.LintDir("../.github/workflows", nil))(t)
	for _, fault := range found {
		t.Error(fault)
	}
}

// Every command of a workflow is in a README, in a code block, as it is.
func TestWorkflowCommandsAreInAReadme(t *testing.T) {
	known := map[string]bool{}
	for _, path := range []string{"../README.md", "README.md"} {
		text := require.One(os.ReadFile(path))(t)
		inside := false
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "```") {
				inside = !inside
			} else if inside {
				command, _, _ := strings.Cut(line, "  #")
				known[strings.TrimSpace(command)] = true
			}
		}
	}
	for file, workflow := range workflows(t) {
		for _, job := range workflow.Jobs {
			for _, step := range job.Steps {
				run, ok := step.Exec.(*actionlint.ExecRun)
				if !ok {
					continue
				}
				for line := range strings.Lines(run.Run.Value) {
					if line = strings.TrimSpace(line); !known[line] {
						t.Errorf("%s:%d: neither README.md nor ci/README.md has this command: %s", file, step.Pos.Line, line)
					}
				}
			}
		}
	}
}

// schedules are the cron lines that a job's condition names.
var schedules = regexp.MustCompile(`github\.event\.schedule [!=]= '([^']*)'`)

// Each cron line that a condition names is one of its workflow's, so that a changed line neither starts the long form by the week nor
// leaves it out. A push and a pull request run every job but those of the long form.
func TestConditionsNameSchedulesOfTheirWorkflow(t *testing.T) {
	named := 0
	for file, workflow := range workflows(t) {
		crons := map[string]bool{}
		for _, event := range workflow.On {
			if scheduled, is := event.(*actionlint.ScheduledEvent); is {
				for _, one := range scheduled.Schedules {
					crons[one.Cron.Value] = true
				}
			}
		}
		for name, job := range workflow.Jobs {
			if job.If == nil {
				continue
			}
			for _, match := range schedules.FindAllStringSubmatch(job.If.Value, -1) {
				named++
				if !crons[match[1]] {
					t.Errorf("%s: job %s runs by the schedule %q, which the workflow does not have", file, name, match[1])
				}
			}
			if long := name == "long" || name == "merged"; file == "test.yml" && long == strings.Contains(job.If.Value, "!= '") {
				t.Errorf("%s: job %s: %s", file, name, job.If.Value)
			}
		}
	}
	if named < 5 {
		t.Errorf("only %d conditions name a schedule", named)
	}
}

// pinned is an action at a commit, not at a tag, which can be moved.
var pinned = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)

// A workflow can read this repository and nothing else, save the job that makes a release; its actions cannot change
// underneath it; what it checks out holds no token; and it ends.
func TestWorkflowsAskForLittle(t *testing.T) {
	readOnly := func(p *actionlint.Permissions) bool {
		return p != nil && p.All == nil && len(p.Scopes) == 1 && p.Scopes["contents"] != nil && p.Scopes["contents"].Value.Value == "read"
	}
	for file, workflow := range workflows(t) {
		if !readOnly(workflow.Permissions) {
			t.Errorf("%s: permissions are not contents: read", file)
		}
		if workflow.Concurrency == nil {
			t.Errorf("%s: no concurrency group", file)
		}
		for name, job := range workflow.Jobs {
			if job.TimeoutMinutes == nil {
				t.Errorf("%s: job %s has no timeout-minutes", file, name)
			}
			if job.Permissions != nil && (file != "release.yml" || name != "publish") {
				t.Errorf("%s: job %s has permissions of its own", file, name)
			}
			for _, step := range job.Steps {
				action, ok := step.Exec.(*actionlint.ExecAction)
				if !ok {
					continue
				}
				if !pinned.MatchString(action.Uses.Value) {
					t.Errorf("%s:%d: %s is not pinned by a commit", file, step.Pos.Line, action.Uses.Value)
				}
				if strings.HasPrefix(action.Uses.Value, "actions/checkout@") && (action.Inputs["persist-credentials"] == nil ||
					action.Inputs["persist-credentials"].Value.Value != "false") {
					t.Errorf("%s:%d: checkout keeps its token in the clone; add persist-credentials: false", file, step.Pos.Line)
				}
			}
		}
	}
}

// The version behind a pinned commit is the same wherever the commit is, so that a half-done update is seen.
func TestPinnedActionsTellTheirVersion(t *testing.T) {
	uses := regexp.MustCompile(`uses: ([\w.-]+/[\w.-]+)[\w./-]*@([0-9a-f]{40})(.*)`)
	versions := map[string]string{}
	paths := require.One(filepath.Glob("../.github/workflows/*.yml"))(t)
	for _, path := range append(paths, actionFile) {
		text := require.One(os.ReadFile(path))(t)
		for _, found := range uses.FindAllStringSubmatch(string(text), -1) {
			action, pin := found[1], found[2]+found[3]
			if !strings.HasPrefix(found[3], " # v") {
				t.Errorf("%s: %s@%s has no version", path, action, found[2])
			}
			if versions[action] != "" && versions[action] != pin {
				t.Errorf("%s: %s is at %s here and at %s elsewhere", path, action, pin, versions[action])
			}
			versions[action] = pin
		}
	}
}
