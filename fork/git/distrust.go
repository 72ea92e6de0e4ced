package git

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
)

// A checkout's own configuration can name programs that git runs: who made the checkout would run them as its user. Below is what
// keeps our calls of git from it. Configuration that is not the checkout's, the user's own, is trusted.

// transports are what git may fetch by; without the list an address rewritten by the checkout could run a program ("ext::").
const transports = "GIT_ALLOW_PROTOCOL=file:git:http:https:ssh"

// distrusted reads the checkout's own configuration and gives settings for the command line that take back each program in it,
// and variables for the environment. It runs no program itself.
func distrusted(ctx context.Context, dir string) (pins, variables []string, err error) {
	output, err := runCommand(ctx, newCommand(dir, "config", "--list", "--null", "--show-scope", "--includes"))
	if err != nil {
		return nil, nil, err
	}
	fields := bytes.Split(output, []byte{0}) // scope, "key\nvalue", scope, ...
	if len(fields)%2 != 1 {
		return nil, nil, errors.New("git config printed an odd number of fields")
	}
	for i := 0; i+1 < len(fields); i += 2 {
		if scope := string(fields[i]); scope != "local" && scope != "worktree" {
			continue
		}
		key, _, _ := strings.Cut(string(fields[i+1]), "\n")
		section, rest, _ := strings.Cut(key, ".")
		name := rest[strings.LastIndexByte(rest, '.')+1:]
		switch section + "." + name {
		case "filter.clean", "filter.smudge", "filter.process", "diff.external", "diff.command", "diff.textconv", "core.askpass", "credential.helper":
			pins = append(pins, "-c", key+"=") // empty is none
		case "filter.required":
			pins = append(pins, "-c", key+"=false")
		case "core.alternaterefscommand":
			pins = append(pins, "-c", key+"=:") // the shell's own, which does nothing
		case "core.gitproxy":
			pins = append(pins, "-c", key+"=none")
		case "submodule.update":
			pins = append(pins, "-c", key+"=checkout")
		case "remote.uploadpack":
			pins = append(pins, "-c", key+"=git-upload-pack")
		case "core.sshcommand":
			if os.Getenv("GIT_SSH_COMMAND") == "" && os.Getenv("GIT_SSH") == "" {
				variables = append(variables, "GIT_SSH_COMMAND=ssh")
			}
		}
	}
	return pins, variables, nil
}
