// Package run starts other programs: each in a process group of its own, ended with its children when the context
// ends, with its words captured up to a limit.
package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"mpsforge/internal/fault"
	"mpsforge/internal/words"
)

// stderrLimit bounds what is kept of standard error, in bytes. The end is kept: that is where errors stand.
const stderrLimit = 1 << 20

// stdoutLimit bounds what is captured of standard output, in bytes: the largest file of a PyTorch tree fits many times. A program that
// writes more is ended.
const stdoutLimit = 256 << 20

// ErrFlood is returned, wrapped, for a program that wrote more to standard output than can be kept.
var ErrFlood = errors.New("it was stopped because it wrote too much")

// graceAfterTerminate is how long a program that was asked to end may take before it is killed. git removes its lock
// files on SIGTERM, so a kill at once would leave them behind.
var graceAfterTerminate = 5 * time.Second // a test shortens it

// Command is one program run.
type Command struct {
	Name string
	Args []string
	// Hidden is how many of the first Args messages leave out: settings that say nothing to a reader.
	Hidden int
	Dir    string
	Env    []string // the whole environment; nil inherits
	// Stdin may be nil.
	Stdin io.Reader
	// Stdout receives standard output as it comes; nil captures it into Result.Stdout.
	Stdout io.Writer
	// Stderr receives standard error as it comes, besides being captured; may be nil.
	Stderr io.Writer
	// Files become the program's file descriptors from 3 on.
	Files []*os.File
	// Started is called with the program's process id, which is its group's too, once it runs; may be nil.
	Started func(pid int)
}

// Result is what a finished program left.
type Result struct {
	Stdout []byte // empty when Command.Stdout was set
	Stderr []byte
}

// Error says how a program failed. It wraps the context's error when the context ended it.
type Error struct {
	Command  string // as a user would type it
	ExitCode int    // -1 when it did not exit by itself
	Stderr   string // the end of its standard error
	Err      error
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %v", e.Command, e.Err)
	if tail := words.LastLines(e.Stderr, 12); tail != "" {
		text += "\n  " + strings.ReplaceAll(tail, "\n", "\n  ")
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Run starts the program and waits for its end. A non-zero exit is an *Error; so is a program that is not there, for
// which errors.Is(err, exec.ErrNotFound) holds.
func (c Command) Run(ctx context.Context) (Result, error) {
	ctx, flooded := context.WithCancelCause(ctx)
	defer flooded(nil)
	command := exec.CommandContext(ctx, c.Name, c.Args...)
	command.Dir, command.Env, command.Stdin = c.Dir, c.Env, c.Stdin
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(command.SysProcAttr)
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = graceAfterTerminate

	stdout := capture{full: func() { flooded(ErrFlood) }}
	var stderr tail
	command.Stdout = &stdout
	if c.Stdout != nil {
		command.Stdout = c.Stdout
	}
	command.Stderr = &stderr
	if c.Stderr != nil {
		command.Stderr = io.MultiWriter(&stderr, c.Stderr)
	}
	command.ExtraFiles = c.Files
	fault.Point()
	err := command.Start()
	if err == nil {
		if c.Started != nil {
			c.Started(command.Process.Pid)
		}
		err = command.Wait()
	}
	fault.Point()
	if command.Process != nil && (ctx.Err() != nil || errors.Is(err, exec.ErrWaitDelay)) {
		// What the program started itself may outlive it; nothing of the group may.
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
	}
	result := Result{Stdout: stdout.kept.Bytes(), Stderr: stderr.Bytes()}
	isFlood := errors.Is(context.Cause(ctx), ErrFlood) // it may have ended well before it was ended
	if err == nil && !isFlood {
		return result, nil
	}
	failure := &Error{Command: c.String(), ExitCode: -1, Stderr: string(result.Stderr), Err: err}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		failure.ExitCode = exit.ExitCode()
	}
	switch {
	case isFlood:
		failure.Err = ErrFlood
	case ctx.Err() != nil:
		failure.Err = ctx.Err()
	}
	return result, failure
}

// String gives the command line, quoted where a shell would need it.
func (c Command) String() string {
	words := []string{quote(c.Name)}
	for _, arg := range c.Args[c.Hidden:] {
		words = append(words, quote(arg))
	}
	return strings.Join(words, " ")
}

func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,+@%^", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// userInfo is the name and password in an address.
var userInfo = regexp.MustCompile(`://[^/@\s]+@`)

// WithoutPasswords is text that others may see: streams, logs, records and error messages are passed on.
func WithoutPasswords(text string) string { return userInfo.ReplaceAllString(text, "://***@") }

// ExitCode returns the exit status of the program that err is about, or -1.
func ExitCode(err error) int {
	if failure := (*Error)(nil); errors.As(err, &failure) {
		return failure.ExitCode
	}
	return -1
}

// capture keeps what is written up to stdoutLimit, and then calls full.
type capture struct {
	kept bytes.Buffer // not embedded: copying into it must not go past Write
	full func()
}

func (c *capture) Write(p []byte) (int, error) {
	if c.kept.Len()+len(p) > stdoutLimit {
		c.full()
		return len(p), nil
	}
	return c.kept.Write(p)
}

// tail keeps the last stderrLimit bytes written to it.
type tail struct{ buffer bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	t.buffer.Write(p)
	if over := t.buffer.Len() - 2*stderrLimit; over > 0 {
		t.buffer.Next(over + stderrLimit)
	}
	return len(p), nil
}

func (t *tail) Bytes() []byte { return t.buffer.Bytes() }

// Environment returns the process's environment with the given "NAME=value" settings put over it and the names in
// drop taken out.
func Environment(set []string, drop func(name string) bool) []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if drop != nil && drop(name) {
			continue
		}
		env = append(env, entry)
	}
	return append(env, set...)
}

// Signalled returns the signal that ended the program that err is about, or 0: it exited, or the context ended it.
func Signalled(err error) syscall.Signal {
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) {
		return 0
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal()
	}
	return 0
}
