package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"

	"mpsforge/internal/fault"
)

// RefUpdate moves one ref. Old is what it must hold before; NoObject if it must not exist.
type RefUpdate struct{ Name, New, Old string }

// Refs moves refs through one git process that is started early and serves several transactions: the start of a process
// costs more than a transaction. It is for one goroutine.
type Refs struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	stderr  bytes.Buffer
	reason  string
}

// StartRefs starts the process. Reason goes into the reflogs. The context does not end it: a transaction that was begun
// is carried out. Close it after use; when this program dies, git drops an open transaction by itself.
func (r *Repository) StartRefs(reason string) (*Refs, error) {
	prepared := r.command("update-ref", "-m", reason, "--create-reflog", "-z", "--stdin")
	refs := &Refs{command: exec.Command(prepared.Name, prepared.Args...), reason: reason}
	refs.command.Dir, refs.command.Env = prepared.Dir, prepared.Env
	refs.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C on the terminal is this program's to handle
	refs.command.Stderr = &refs.stderr
	var err error
	if refs.in, err = refs.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start git update-ref: %w", err)
	}
	out, err := refs.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start git update-ref: %w", err)
	}
	refs.out = bufio.NewReader(out)
	if err := refs.command.Start(); err != nil {
		return nil, fmt.Errorf("start git update-ref: %w", err)
	}
	return refs, nil
}

// Update moves all the refs or none of them. HEAD is followed to its branch. After an error the process is of no more
// use.
func (s *Refs) Update(updates ...RefUpdate) error {
	var script strings.Builder
	script.WriteString("start\x00")
	for _, update := range updates {
		fmt.Fprintf(&script, "update %s\x00%s\x00%s\x00", update.Name, update.New, update.Old)
	}
	script.WriteString("prepare\x00commit\x00")
	fault.Point()
	_, err := io.WriteString(s.in, script.String())
	for _, step := range []string{"start", "prepare", "commit"} {
		if err != nil {
			break
		}
		var answer string
		if answer, err = s.out.ReadString('\n'); err == nil && answer != step+": ok\n" {
			err = fmt.Errorf("git update-ref answered %q to %q", answer, step)
		}
	}
	if err == nil {
		fault.Point()
		return nil
	}
	// It ended by itself and says why on standard error, which is whole once it was waited for.
	waitErr := s.command.Wait()
	return fmt.Errorf("move refs (%s): %s: %w", s.reason, strings.TrimSpace(s.stderr.String()), errors.Join(err, waitErr))
}

// Close ends the process.
func (s *Refs) Close() error {
	if s.command.ProcessState != nil { // it failed and was waited for
		return nil
	}
	if err := errors.Join(s.in.Close(), s.command.Wait()); err != nil {
		return fmt.Errorf("end git update-ref: %s: %w", strings.TrimSpace(s.stderr.String()), err)
	}
	return nil
}

// UpdateRefs moves all the refs or none of them, in a process of its own.
func (r *Repository) UpdateRefs(ctx context.Context, reason string, updates ...RefUpdate) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	refs, err := r.StartRefs(reason)
	if err != nil {
		return err
	}
	return errors.Join(refs.Update(updates...), refs.Close())
}

// Branch is one local branch.
type Branch struct {
	Name, Commit string
	WorkTree     string // that has it checked out, or empty
}

// Branches lists the branch of that name, if there is one, and those in the folder of that name.
func (r *Repository) Branches(ctx context.Context, folder string) ([]Branch, error) {
	const format = "--format=%(refname:lstrip=2)%00%(objectname)%00%(worktreepath)"
	output, err := runCommand(ctx, r.command("for-each-ref", format, "refs/heads/"+folder))
	if err != nil {
		return nil, fmt.Errorf("list the branches: %w", err)
	}
	var branches []Branch
	for line := range strings.Lines(string(output)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\x00")
		if len(fields) != 3 {
			return nil, fmt.Errorf("list the branches: git for-each-ref printed %q", line)
		}
		branches = append(branches, Branch{Name: fields[0], Commit: fields[1], WorkTree: fields[2]})
	}
	return branches, nil
}
