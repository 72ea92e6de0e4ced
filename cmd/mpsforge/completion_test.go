package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mpsforge/internal/require"

	"github.com/creack/pty"
	"github.com/urfave/cli/v2"
)

// output is what a command line prints; it must end well.
func output(t *testing.T, words ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := execute(context.Background(), append([]string{"mpsforge"}, words...), streams{out: &out, err: &errs}); code != exitOK {
		t.Fatalf("mpsforge %q: exit code %d\n%s", words, code, &errs)
	}
	return out.String()
}

// offered are the words that a TAB offers, and what kind of paths.
func offered(t *testing.T, shell string, words ...string) string {
	t.Helper()
	var all []string
	for line := range strings.Lines(output(t, append([]string{"__complete", shell}, words...)...)) {
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

// What a TAB offers; the last word is the one that it is pressed in.
func TestCompletionOffers(t *testing.T) {
	t.Setenv("MPSFORGE_PATCHES", "")
	for _, c := range []struct{ words, want string }{
		{"u", "unapply"},
		{"metal ", "explain classify run run-shader order compare selectors"},
		{"help un", "unapply"},
		{"apply --ch", "--check --checkout"},
		{"apply --check --ch", "--checkout"}, // a flag that is there already is not offered
		{"export --name a=b --na", "--name"}, // but one that may be repeated is
		{"apply -", "--part --until --check --checkout --baseline --patches --json --progress --quiet -q --help -h"},
		{"apply --part ", "fixes streams extras"},
		{"apply --until stream-", "stream-discipline stream-pool"},
		{"port --patch=hand", "--patch=hand-over"},
		{"status --baseline ", "v2.6.0 v2.9.1"},
		{"verify --stages ref", "reference"},
		{"metal run --name two-queues-wr", "two-queues-write"},
		{"verify --stages series,checkout,r", "series,checkout,reference series,checkout,runtime"},
		{"verify --stages series,s", ""}, // each stage once
		{"verify --ablate al", "allocator-streams all"},
		{"build --flavour ", "plain tsan asan"},
		{"lint --progress ", "auto tty plain json"},
		{"verify --checkout p", ":folders"},
		{"verify --checkout=p", ":folders"},
		{"verify --report ", ":files"},
		{"fetch --from ", "debian :files"},
		{"report ", "diff github merge :files"}, // a command below it, or its argument
		{"report a ", ""},                       // it takes one
		{"metal classify a ", ":files"},
		{"repro lin", "linear"},
		{"metal explain invalid", "invalid-kernel-dag"},
		{"completion ", "bash zsh fish"},
		{"docs m", "man markdown"},
		{"__", ""}, // what is hidden stays so
		{"nonsense ", ""},
		{"apply --nonsense=x", ""},
		{"shell --command ", ""}, // free text
	} {
		require.Equal(t, offered(t, "zsh", strings.Split(c.words, " ")...), c.want, "mpsforge", c.words, "<TAB> offers")
	}
}

// bash takes = for a word of its own and replaces only what comes after it.
func TestCompletionPutsBashWordsTogether(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"verify", "--stages", "=", "ref"}, "reference"},
		{[]string{"build", "--flavour", "="}, "plain tsan asan"},
		{[]string{"verify", "--stages", "=", "series,conf"}, "series,conformance"},
		{[]string{"apply", "--patches", "=", "dir", "--ch"}, "--check --checkout"},
	} {
		require.Equal(t, offered(t, "bash", c.words...), c.want, c.words, "offers")
	}
}

// Every flag whose value is a name has a set to take it from, and no set is for a flag that is gone.
func TestEveryNamedValueHasASet(t *testing.T) {
	sets := valueSets()
	used := map[string]bool{}
	var walk func(commands []*cli.Command)
	walk = func(commands []*cli.Command) {
		for _, command := range commands {
			walk(command.Subcommands)
			for _, flag := range visibleFlags(command) {
				name := flag.Names()[0]
				_, known := sets[name]
				used[name] = true
				if flag.TakesValue() && !known && slices.Contains([]string{"", "NAME", "LIST", "MODE", "FORM", "FORMAT"}, placeholder(flag)) &&
					name != "threads" {
					t.Errorf("mpsforge %s --%s %s: add its values to valueSets in completion.go, or call the value something else in its usage",
						command.Name, name, placeholder(flag))
				}
			}
		}
	}
	walk(newApp(streams{out: io.Discard, err: io.Discard}).Commands)
	for name := range sets {
		if !used[name] {
			t.Errorf("valueSets has %q, and no command has such a flag", name)
		}
	}
}

// shellAt is an interactive shell that knows mpsforge.
type shellAt struct {
	t        *testing.T
	terminal *os.File
	mutex    sync.Mutex
	screen   bytes.Buffer
}

// needShell gives a shell as a command, in a folder with some files; where it is not installed, the test is skipped. mpsforge
// is on the path: TestMain has put this very program there.
func needShell(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath(args[0])
	if err != nil {
		t.Skipf("SKIP %s: it is not installed (Debian: apt-get install %s)", args[0], args[0])
	}
	dir := t.TempDir()
	for _, name := range []string{"here/torch dir", "here/tree"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "here/report.json"), nil, 0o644))
	shell := exec.Command(path, args[1:]...)
	shell.Dir = filepath.Join(dir, "here")
	shell.Env = []string{"HOME=" + dir, "ZDOTDIR=" + dir, "TERM=xterm", "LC_ALL=C.UTF-8", "PATH=" + os.Getenv("PATH")}
	return shell
}

// startShell starts a shell on a pseudo-terminal and has it run the setup.
func startShell(t *testing.T, setup string, args ...string) *shellAt {
	t.Helper()
	shell := needShell(t, args...)
	terminal := require.One(pty.StartWithSize(shell, &pty.Winsize{Rows: 50, Cols: 200}))(t)
	t.Cleanup(func() {
		terminal.Close()
		_ = shell.Process.Kill() // it may have ended with its terminal
		_ = shell.Wait()
	})
	s := &shellAt{t: t, terminal: terminal}
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := terminal.Read(buffer)
			s.mutex.Lock()
			s.screen.Write(buffer[:n])
			s.mutex.Unlock()
			if err != nil { // the shell ended: Linux gives EIO then
				return
			}
		}
	}()
	s.typed(setup+"; echo SET''UP\n", "SETUP\r")
	return s
}

// typed types text and waits until the screen shows the wanted text after it.
func (s *shellAt) typed(text, want string) {
	s.t.Helper()
	s.mutex.Lock()
	s.screen.Reset()
	s.mutex.Unlock()
	require.One(io.WriteString(s.terminal, text))(s.t)
	shown := func() string {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		return s.screen.String()
	}
	for deadline := time.Now().Add(patience); !strings.Contains(shown(), want); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("typed %q; the screen has no %q: %q", text, want, shown())
		}
	}
}

// completes types a line and a TAB, and then goes to its beginning (^A) and types a command that prints the line's words,
// each in brackets. A shell takes keys in their order, so the TAB is done by then.
func (s *shellAt) completes(line, want string) {
	s.t.Helper()
	s.typed(line+"\t\x01printf '<%s>' \x05\n", want)
}

// typedLines are lines with a TAB behind them, and the words that they become.
var typedLines = [][2]string{
	{"mpsforge unap", "<mpsforge><unapply>"},
	{"mpsforge apply --unt", "<mpsforge><apply><--until>"},
	{"mpsforge apply --until stream-d", "<mpsforge><apply><--until><stream-discipline>"},
	{"mpsforge verify --stages series,conf", "<mpsforge><verify><--stages><series,conformance>"},
	{"mpsforge verify --stages=conf", "<mpsforge><verify><--stages=conformance>"},
	{"mpsforge status --checkout tr", "<mpsforge><status><--checkout><tree/>"},
	{"mpsforge status --checkout=tr", "<mpsforge><status><--checkout=tree/>"},
	{"mpsforge status --checkout to", "<mpsforge><status><--checkout><torch dir/>"},
	{"mpsforge report rep", "<mpsforge><report><report.json>"},
	{"mpsforge status --checkout rep", "<mpsforge><status><--checkout><rep>"}, // no folder is called so
	{"mpsforge repro transf", "<mpsforge><repro><transformer>"},
}

func TestCompletionInBash(t *testing.T) {
	shell := startShell(t, "source <(mpsforge completion bash)", "bash", "--norc", "--noprofile", "-i")
	for _, line := range typedLines {
		shell.completes(line[0], line[1])
	}
}

func TestCompletionInZsh(t *testing.T) {
	shell := startShell(t, "bindkey -e; unsetopt auto_remove_slash; autoload -Uz compinit; compinit -u; source <(mpsforge completion zsh)", "zsh", "-f", "-i")
	for _, line := range typedLines {
		shell.completes(line[0], line[1])
	}
}

// fish says by itself what it would offer: whole words, each with a tab before its description.
func TestCompletionInFish(t *testing.T) {
	shell := needShell(t, "fish", "--no-config")
	script := "mpsforge completion fish | source\n"
	var want strings.Builder
	for _, line := range typedLines {
		script += fmt.Sprintf("echo '%s: '(complete -C '%[1]s' | string replace -r '\\t.*' '')\n", line[0])
		word := strings.TrimSuffix(line[1][strings.LastIndex(line[1], "<")+1:], ">")
		if strings.HasSuffix(line[0], " "+word) { // nothing is offered, and fish drops a word that is joined to nothing
			want.WriteString("\n")
			continue
		}
		fmt.Fprintf(&want, "%s: %s\n", line[0], word)
	}
	shell.Stdin = strings.NewReader(script)
	shown, err := shell.CombinedOutput()
	if err != nil || string(shown) != want.String() {
		t.Errorf("%v\n%s\nwant\n%s", err, shown, &want)
	}
}
