package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"mpsforge/fork"
	"mpsforge/fork/builds"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
)

func shellCommand(std streams) *cli.Command {
	return newCommand(std, spec{
		name: "shell", usage: "open a shell in the environment that build has made",
		about: `The shell is yours ($SHELL), in the folder where you are; python and pip are those of the environment. Its Python does not
look for modules in the current folder, where a checkout's folder torch would hide the installed one.

  mpsforge shell
  mpsforge shell --command 'python -c "import torch; print(torch.__file__)"'`,
		flags: []cli.Flag{checkoutFlag(), venvFlag("`DIR` of the Python environment"), &cli.StringFlag{Name: "command",
			Usage: "run `TEXT` in the shell and end"}},
		action: func(ctx context.Context, c call) (result, error) {
			checkout, err := fork.Open(ctx, c.String("checkout"), nil)
			if isMissing(err) {
				err = c.noCheckout(err)
			}
			if err != nil && (c.IsSet("checkout") || c.String("venv") == "") {
				return result{}, fmt.Errorf("%w; or name the environment with --venv", err)
			}
			dir := ""
			if err == nil {
				dir = checkout.Dir()
				if err := checkout.Close(); err != nil {
					return result{}, err
				}
			}
			venv, err := c.venv(dir)
			if err != nil {
				return result{}, err
			}
			if c.String("command") == "" {
				c.sink.Emit(events.Message{Level: events.Info, Text: "if your shell's start files put another Python first: source " +
					filepath.Join(venv, "bin/activate")})
			}
			return result{}, openShell(venv, c.String("command"))
		},
	})
}

// openShell becomes a shell in the environment; it comes back only with an error.
func openShell(venv, command string) error {
	bin := filepath.Join(venv, "bin")
	installed, err := filepath.Glob(filepath.Join(venv, "lib/python3*/site-packages/torch/__init__.py"))
	if err != nil {
		return err
	}
	if len(installed) == 0 {
		return fmt.Errorf("%w: %s has no torch; make it with: mpsforge build", builds.ErrEnvironment, venv)
	}
	shell := cmp.Or(os.Getenv("SHELL"), "/bin/sh")
	args := []string{shell}
	if command != "" {
		args = append(args, "-c", command)
	}
	drop := func(name string) bool {
		return name == "PATH" || strings.HasPrefix(name, "PYTHON") || strings.HasPrefix(name, "CONDA_") || name == "VIRTUAL_ENV"
	}
	env := run.Environment([]string{"VIRTUAL_ENV=" + venv, "PATH=" + bin + ":" + os.Getenv("PATH"), "PYTHONSAFEPATH=1"}, drop)
	if err := syscall.Exec(shell, args, env); err != nil {
		return fmt.Errorf("start %s: %w; set SHELL to the path of a shell", shell, err)
	}
	return nil
}
