package ci_test

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mpsforge/internal/require"

	"github.com/rhysd/actionlint"
	"go.yaml.in/yaml/v3"
)

const actionFile = "../.github/actions/verify/action.yml"

// asWorkflow turns the action into a workflow with the same inputs and steps, since actionlint does not look into actions, and one that
// uses it, which actionlint compares with its inputs.
func asWorkflow(t *testing.T) (same, caller string) {
	t.Helper()
	text := require.One(os.ReadFile(actionFile))(t)
	_, rest, hasInputs := strings.Cut(string(text), "\ninputs:\n")
	inputs, rest, hasRuns := strings.Cut(rest, "\nruns:\n")
	_, steps, hasSteps := strings.Cut(rest, "\n  steps:\n")
	if !hasInputs || !hasRuns || !hasSteps {
		t.Fatalf("%s: no inputs, runs or steps", actionFile)
	}
	inputs = regexp.MustCompile(`(?m)^    description:`).ReplaceAllString(inputs, "    type: string\n    description:")
	indent := func(text, by string) string { return regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(text, by+"$1") }
	same = "on:\n  workflow_call:\n    inputs:\n" + indent(inputs, "    ") + "\njobs:\n  verify:\n    runs-on: ubuntu-24.04\n    steps:\n" + indent(steps, "  ")
	caller = "on: push\njobs:\n  verify:\n    runs-on: ubuntu-24.04\n    container: debian:trixie-slim\n    steps:\n      - uses: " +
		"./.github/actions/verify\n        with:\n          patches: patches\n"
	return same, caller
}

func TestActionIsClean(t *testing.T) {
	same, caller := asWorkflow(t)
	root := t.TempDir()
	for _, folder := range []string{".git", ".github/actions", ".github/workflows"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, folder), 0o755))
	}
	require.NoError(t, os.CopyFS(filepath.Join(root, ".github/actions/verify"), os.DirFS(filepath.Dir(actionFile))))
	project := require.One(actionlint.NewProject(root))(t)
	lint := func(name, text string) []*actionlint.Error {
		t.Helper()
		linter := require.One(actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{}))(t)
		return require.One(linter.Lint(filepath.Join(root, ".github/workflows", name), []byte(text), project))(t)
	}
	for name, text := range map[string]string{"same.yml": same, "caller.yml": caller} {
		for _, fault := range lint(name, text) {
			t.Error(fault)
		}
	}
	for name, text := range map[string]string{"an input that is not there": strings.Replace(same, "inputs.baseline", "inputs.base", 1),
		"a misspelt input": strings.Replace(caller, "patches:", "patch:", 1)} {
		if len(lint("planted.yml", text)) == 0 {
			t.Errorf("%s is not found", name)
		}
	}
	for _, uses := range regexp.MustCompile(`uses: (\S+)`).FindAllStringSubmatch(same, -1) {
		if !pinned.MatchString(uses[1]) {
			t.Errorf("%s: %s is not pinned by a commit", actionFile, uses[1])
		}
	}
}

// Each command of the image and of the action is on ci/README.md, and the image has what the workflows install.
func TestPackagingCommandsAreInTheReadme(t *testing.T) {
	readme := require.One(os.ReadFile("README.md"))(t)
	action := require.One(os.ReadFile(actionFile))(t)
	image := require.One(os.ReadFile("Dockerfile"))(t)
	var commands []string
	for _, found := range regexp.MustCompile(`(?m)^RUN (.+)$|^ {6}run: ([^|].+)$|^ {8}(apt-get .+)$`).FindAllStringSubmatch(string(image)+"\n"+
		string(action), -1) {
		commands = append(commands, found[1]+found[2]+found[3])
	}
	if len(commands) < 8 {
		t.Fatalf("only %d commands: %q", len(commands), commands)
	}
	for _, command := range commands {
		if !strings.Contains(string(readme), "\n"+command+"\n") {
			t.Errorf("ci/README.md does not have this command in a line: %s", command)
		}
	}
}

// Issue forms are what GitHub takes: a name, a description and fields with names of their own. That for faults asks for what doctor says.
func TestIssueFormsAreWhole(t *testing.T) {
	paths, err := filepath.Glob("../.github/ISSUE_TEMPLATE/*.yml")
	if err != nil || len(paths) != 3 {
		t.Fatalf("%q, %v", paths, err)
	}
	for _, path := range paths {
		text := require.One(os.ReadFile(path))(t)
		if filepath.Base(path) == "config.yml" {
			continue
		}
		var form struct {
			Name, Description string
			Body              []struct {
				Type, ID   string
				Attributes struct{ Label, Description, Render string }
				Validation struct{ Required bool } `yaml:"validations"`
			}
		}
		decoder := yaml.NewDecoder(strings.NewReader(string(text)))
		decoder.KnownFields(true)
		if err := decoder.Decode(&form); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		seen := map[string]bool{}
		for _, field := range form.Body {
			if field.ID == "" || seen[field.ID] || field.Attributes.Label == "" || field.Type != "textarea" && field.Type != "input" {
				t.Errorf("%s: field %q of type %q, label %q", path, field.ID, field.Type, field.Attributes.Label)
			}
			seen[field.ID] = true
		}
		if form.Name == "" || form.Description == "" || !strings.Contains(string(text), "mpsforge doctor --json") {
			t.Errorf("%s: no name, no description, or nothing of mpsforge doctor --json", path)
		}
	}
}
