package ci

import (
	"path/filepath"
	"slices"

	"mpsforge/internal/run"
)

const upstream = "pytorch/pytorch"

// commands are what the user may run next. From a fork one part goes at a time, since a pull request shows all commits
// that main lacks; a stack that shows each part alone needs branches in upstream's own repository. ghstack makes them.
func (p *Prepared) commands() []string {
	command := func(name string, args ...string) string { return run.Command{Name: name, Args: args}.String() }
	draft := []string{"--draft"}
	if p.Ready {
		draft = nil
	}
	first, last := p.Requests[0], p.Requests[len(p.Requests)-1]
	if first.Mail != "" {
		return []string{"# in a clone of PyTorch at " + p.Onto, "git am --keep-cr --keep-non-patch " + command(filepath.Dir(first.Mail)) + "/*.patch"}
	}
	label := "@pytorchbot label"
	for _, name := range first.Labels {
		label += ` "` + name + `"`
	}
	create := append([]string{"pr", "create", "--repo", upstream, "--base", "main", "--head", "YOU:" + first.Branch}, draft...)
	const fromFork = "# from your fork, remote FORK of user YOU:"
	one := []string{
		command("git", "-C", p.Checkout, "push", "FORK", first.Branch),
		command("gh", append(create, "--title", printable(first.Title), "--body-file", first.Text)...),
		command("gh", "pr", "comment", "NUMBER", "--repo", upstream, "--body", label),
	}
	if len(p.Requests) == 1 {
		return slices.Concat([]string{fromFork}, one)
	}
	inTurn := []string{
		fromFork + " the first part now; each later part once the one before it has landed, after",
		"# git fetch and mpsforge pr --onto origin/main --replace, which leaves out what has landed",
	}
	atOnce := []string{
		"# or all at once, with write access to " + upstream + ": ghstack pushes branches there; then each text below the list that it wrote",
		command("cd", p.Checkout) + " && " + command("git", "switch", last.Branch) + " && " + command("ghstack", append([]string{"submit"}, draft...)...),
		"{ gh pr view NUMBER --repo " + upstream + " --json body --jq .body | sed '/^$/q'; cat " + command(filepath.Dir(first.Text)) +
			"/NN-NAME.md; } | gh pr edit NUMBER --repo " + upstream + " --body-file -",
	}
	return slices.Concat(inTurn, one, atOnce)
}
