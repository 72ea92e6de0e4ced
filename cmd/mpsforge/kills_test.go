package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// killing runs a command again and again, each time in a fresh copy of the folder template, and ends it, by SIGKILL or by the SIGINT
// of Ctrl-C, which it must answer soon. Whatever the moment: after what status and recover ask for, all files are as before the
// command or as after it; no process is left; and the same command then goes through.
type killing struct {
	name    string
	args    []string
	source  string // the checkout that the command reads; target if it is empty
	target  string // a checkout that the command changes, or makes; may be empty
	series  string // the folder of the series that it writes; may be empty
	ignored func(path string) bool
	cache   string // the cache folder, if it is not the one in the folder

	before, after map[string]string
	took          time.Duration
	ends          map[string]int
}

// shortKills is how many moments go test has. They are mpsforge's alone: a git that is killed as well can leave a lock, which is open
// (docs/SECURITY.md), and the long form shows how often.
const shortKills = 14

// killings are the commands of a group: those that change files; build; and those that need a host build. Each is killed at one in so
// many of the N moments: those with a host build take long, and have a tenth of the others'.
func killings(group, baseline string) (all []*killing, oneIn int) {
	reports := func(path string) bool { return strings.HasPrefix(path, "out/") }
	switch group {
	case "build":
		products := func(path string) bool { return strings.HasPrefix(path, "built/build/") }
		return []*killing{{name: "build", args: []string{"build", "--checkout", "built", "--baseline", baseline}, target: "built", ignored: products}}, 9
	case "host":
		return []*killing{
			{name: "overlay build", args: []string{"overlay", "build", "--checkout", "pytorch", "--baseline", baseline, "--out", "dist"},
				source: "pytorch", cache: os.Getenv("KILLS_CACHE")},
			{name: "verify --stages runtime", args: []string{"verify", "--stages", "runtime", "--quick", "--only", "^hand-over", "--checkout",
				"pytorch", "--baseline", baseline,
				"--report", "out/report.json"}, source: "pytorch", ignored: reports, cache: os.Getenv("KILLS_CACHE")},
		}, 90
	}
	fetched := func(path string) bool { return strings.HasPrefix(path, "t/.git") }
	return []*killing{
		{name: "apply", args: []string{"apply", "--baseline", baseline, "--checkout", "pytorch"}, target: "pytorch"},
		{name: "unapply", args: []string{"unapply", "--checkout", "applied"}, target: "applied"},
		{name: "export", args: []string{"export", "--checkout", "changed", "--out", "patches/" + baseline}, source: "changed", series: "patches"},
		{name: "port", args: []string{"port", "--checkout", "changed", "--to", "next", "--out", "new/next"}, source: "changed", series: "new"},
		{name: "fetch", args: []string{"fetch", "--baseline", baseline, "--checkout", "t", "--from", "plain.tar"}, target: "t", ignored: fetched},
		{name: "fetch of a copy", args: []string{"fetch", "--baseline", baseline, "--checkout", "t", "--from", "pytorch"}, target: "t", ignored: fetched},
		{name: "recover", args: []string{"recover", "--checkout", "cut"}, target: "cut"},
		{name: "recover --patches", args: []string{"recover", "--patches", "half"}, series: "half"},
		{name: "verify", args: []string{"verify", "--stages", "series", "--report", "out/report.json"}, ignored: reports},
		{name: "clean", args: []string{"cache", "clean", "--days", "0"}},
	}, 10
}

// kills is the program of the scripts kills*.txtar: kills GROUP N SEED [fault]. N is of all commands of the first group together. With
// fault, in a build with the tag faults, each command is killed at each of its fault points instead of N random moments.
func kills() int {
	flag.Parse()
	count, err := strconv.Atoi(flag.Arg(1))
	seed, seedErr := strconv.ParseUint(flag.Arg(2), 10, 64)
	if err := errors.Join(err, seedErr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	text, err := os.ReadFile("baseline")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	baseline := strings.TrimSpace(string(text))
	defer unmountAll()
	random := rand.New(rand.NewPCG(seed, 25))
	all, oneIn := killings(flag.Arg(0), baseline)
	each := (count + oneIn - 1) / oneIn
	failed := false
	for _, k := range all {
		if err := k.measure(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", k.name, err)
			return 1
		}
		points := each
		if flag.Arg(3) == "fault" {
			text, _ := os.ReadFile("points")
			points = len(text)
		}
		for point := range points {
			var moment string
			if flag.Arg(3) == "fault" {
				moment = fmt.Sprintf("fault point %d of %d", point+1, points)
				err = k.kill([]string{"MPSFORGE_FAULT_AT=" + strconv.Itoa(point+1)}, time.Hour, syscall.SIGKILL, point%2 == 1)
			} else {
				wait := time.Duration(random.Int64N(int64(k.took)))
				signal := []syscall.Signal{syscall.SIGKILL, syscall.SIGINT}[point%2]
				moment = fmt.Sprintf("after %v of %v, by signal %v", wait, k.took, signal)
				err = k.kill(nil, wait, signal, signal == syscall.SIGKILL && count > shortKills && random.IntN(2) == 1)
			}
			if err != nil {
				failed = true
				fmt.Printf("%s, ended at %s: %v\n", k.name, moment, err)
			}
		}
		fmt.Printf("%s: ended %d times: %v\n", k.name, points, k.ends)
		for try := range each {
			var apart time.Duration
			if try%2 == 1 {
				apart = time.Duration(random.Int64N(int64(k.took)))
			}
			if err := k.twice(apart); err != nil {
				failed = true
				fmt.Printf("%s, two at once, %v apart: %v\n", k.name, apart, err)
			}
		}
		for _, room := range rooms(flag.Arg(0), flag.Arg(3)) {
			if err := k.onDisk(room); errors.As(err, new(errNoMount)) {
				fmt.Printf("SKIP %s on a full disk and on one that cannot be written to: %v\n", k.name, err)
				break
			} else if err != nil {
				failed = true
				fmt.Printf("%s, with %d KiB of room: %v\n", k.name, room, err)
			}
		}
		if points == 0 {
			failed = true
		}
	}
	if failed {
		return 1
	}
	return 0
}

// rooms are on disks, see onDisk. The long form goes from none to enough in steps of a block.
func rooms(group, long string) (all []int) {
	if group == "host" {
		return []int{-4, 16}
	}
	if os.Getenv("KILLS_CHECKOUT") != "" {
		return []int{-4, 0, 4, 8, 16, 32, 64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 16 << 10, 64 << 10}
	}
	if long == "" {
		return []int{-1, 12}
	}
	for room := -4; room <= 400; room += 4 {
		all = append(all, room)
	}
	return all
}

// errNoMount says that this user, or this system, cannot mount a file system.
type errNoMount struct{ error }

// changes is where layer keeps what a run changes.
const changes = "disk/upper"

// mark is in the environment of all processes of a run, their children's included.
var mark = fmt.Sprintf("MPSFORGE_KILLS_MARK=%d", os.Getpid())

func (k *killing) command(env ...string) *exec.Cmd {
	command := exec.Command("mpsforge", append(k.args, "--quiet")...)
	command.Dir = "run"
	command.Env = append(append(os.Environ(), mark, "MPSFORGE_PATCHES=patches", "MPSFORGE_CACHE="+cmp.Or(k.cache, "cache")), env...)
	return command
}

// fresh makes the folder run as template is. A real tree takes long to copy: changes to it are kept apart, where that can be mounted.
func fresh() error {
	if err := cleared(); err != nil {
		return err
	}
	if os.Getenv("KILLS_CHECKOUT") != "" {
		if layer() == nil {
			return nil
		}
		if err := cleared(); err != nil { // of what it had made before it could not mount
			return err
		}
	}
	output, err := exec.Command("cp", "-a", "template", "run").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

// cleared removes what an earlier run left.
func cleared() error {
	unmountAll()
	return errors.Join(os.RemoveAll("run"), os.RemoveAll("disk"))
}

// measure runs the command undisturbed.
func (k *killing) measure() (err error) {
	k.ends = map[string]int{}
	if err := errors.Join(fresh(), os.RemoveAll("points")); err != nil {
		return err
	}
	if k.before, err = k.files(); err != nil {
		return err
	}
	maps.Copy(unchanged, k.before)
	points, err := filepath.Abs("points")
	if err != nil {
		return err
	}
	if k.cache != "" { // the first run compiles, the others take their objects from the cache
		if output, err := k.command().CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		if err := fresh(); err != nil {
			return err
		}
	}
	started := time.Now()
	if output, err := k.command("MPSFORGE_FAULT_COUNT=" + points).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	k.took = time.Since(started)
	if k.after, err = k.files(); err == nil && maps.Equal(k.before, k.after) && k.ignored == nil {
		err = errors.New("it changes nothing")
	}
	return err
}

// unchanged are the digests of files of the template by path: those of a real tree take long to compute.
var unchanged = map[string]string{}

// files gives the content of all files of the run by path; of a repository the commit of HEAD, and the index.
func (k *killing) files() (map[string]string, error) {
	found := map[string]string{}
	_, err := os.Stat(changes)
	layered := err == nil
	err = filepath.WalkDir("run", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, "run/")
		switch {
		case entry.IsDir() && filepath.Dir(path) == "run" && name != cmp.Or(k.source, k.target) && isCheckout(path):
			return fs.SkipDir
		case entry.Name() == ".git" && !strings.HasPrefix(name, "upstream/"):
			if k.ignored != nil && k.ignored(name) {
				return fs.SkipDir
			}
			for what, args := range map[string][]string{"HEAD": {"rev-parse", "HEAD^{tree}"}, "branch": {"symbolic-ref", "-q", "HEAD"},
				"index": {"ls-files", "--stage"}} {
				command := exec.Command("git", append([]string{"-C", filepath.Dir(path)}, args...)...)
				text, err := command.Output()
				if err != nil && what != "branch" {
					return fmt.Errorf("%v: %w", command, err)
				}
				found[name+"/"+what] = string(text)
			}
			return fs.SkipDir
		// What a kill may leave: nothing uses it, and the next run removes it. A log is written as it comes.
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == ".prepared" || entry.Name() == "logs"):
			return fs.SkipDir
		case entry.IsDir() || strings.HasSuffix(name, ".lock") || k.ignored != nil && k.ignored(name):
			return nil
		case entry.Type() == fs.ModeSymlink:
			found[name], err = os.Readlink(path)
			return err
		}
		if _, err := os.Lstat(filepath.Join(changes, name)); layered && err != nil && unchanged[name] != "" {
			found[name] = unchanged[name]
			return nil
		}
		text, err := os.ReadFile(path)
		found[name] = fmt.Sprintf("%x", sha256.Sum256(text))
		return err
	})
	return found, err
}

func isCheckout(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, ".git"))
	return err == nil
}

// kill runs the command, ends it after so long, all its children at the same moment or not, and looks at what is left.
func (k *killing) kill(env []string, wait time.Duration, signal syscall.Signal, children bool) error {
	if err := fresh(); err != nil {
		return err
	}
	command := k.command(env...)
	said, err := os.Create("said")
	if err != nil {
		return err
	}
	defer said.Close()
	command.Stderr = said
	if err := command.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // killed, mostly
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(wait):
	}
	_ = command.Process.Signal(signal) // it may have ended
	for _, pid := range marked() {
		if children {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		return errors.Join(fmt.Errorf("it goes on 20 s after signal %v", signal), command.Process.Kill())
	}
	// One that has just begun has no handler yet.
	if end := command.ProcessState; signal == syscall.SIGINT && end.Exited() && end.ExitCode() != exitOK && end.ExitCode() != exitInterrupted {
		text, _ := os.ReadFile("said")
		return fmt.Errorf("interrupted, it ends with exit code %d: %s", end.ExitCode(), text)
	}
	for deadline := time.Now().Add(20 * time.Second); len(marked()) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("processes are left: %v", marked())
		}
	}
	return k.look()
}

// marked are the processes of the run.
func marked() (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if env, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ")); err == nil && slices.Contains(strings.Split(string(env), "\x00"), mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (k *killing) look() error {
	open := false
	if made, err := os.ReadDir(filepath.Join("run", k.target)); k.target != "" && err == nil && len(made) > 0 {
		said, err := k.again("status", "--checkout", k.target)
		open = strings.Contains(said, "interrupted")
		if err != nil && !open {
			return fmt.Errorf("status: %w: %s", err, said)
		}
		recover := []string{"recover", "--checkout", k.target}
		if strings.Contains(said, "recover --remove-locks") {
			recover = append(recover, "--remove-locks")
			open = true
		}
		if said, err := k.again(recover...); err != nil {
			return fmt.Errorf("recover: %w: %s", err, said)
		} else if !open && !strings.Contains(said, "nothing to do") {
			return fmt.Errorf("status says that nothing is open, and recover: %s", said)
		}
	}
	if unfinished, err := filepath.Glob(filepath.Join("run", k.series, "*", ".pending")); err == nil && k.series != "" && unfinished != nil {
		if said, err := k.again("recover", "--patches", k.series); err != nil {
			return fmt.Errorf("recover: %w: %s", err, said)
		}
	}
	now, err := k.files()
	if err != nil {
		return err
	}
	end := "as before"
	switch {
	case k.name == "clean": // what it had removed is removed
		for path, content := range now {
			if k.before[path] != content {
				return fmt.Errorf("%s changed", path)
			}
		}
		for path := range k.after {
			if now[path] == "" {
				return fmt.Errorf("%s is gone", path)
			}
		}
	case maps.Equal(now, k.before) && !(open && maps.Equal(now, k.after)):
	case maps.Equal(now, k.after):
		end = "as after"
	default:
		return fmt.Errorf("files are neither as before nor as after: %s", differences(k.before, now, k.after))
	}
	if open {
		end += ", by recover"
	}
	k.ends[end]++
	if text, err := os.ReadFile("run/out/report.json"); err == nil && !json.Valid(text) {
		return fmt.Errorf("the report is cut off after %d bytes", len(text))
	}
	if output, err := k.command().CombinedOutput(); err != nil {
		return fmt.Errorf("the next run: %w: %s", err, output)
	}
	if now, err = k.files(); err == nil && !maps.Equal(now, k.after) {
		err = fmt.Errorf("after the next run: %s", differences(k.before, now, k.after))
	}
	return err
}

// again runs another command in the same place.
func (k *killing) again(args ...string) (string, error) {
	command := (&killing{args: args}).command()
	command.Args = slices.DeleteFunc(command.Args, func(arg string) bool { return arg == "--quiet" })
	output, err := command.CombinedOutput()
	return string(output), err
}

func differences(before, now, after map[string]string) string {
	var all []string
	for path := range now {
		if now[path] != before[path] && now[path] != after[path] || now[path] == before[path] != (now[path] == after[path]) {
			all = append(all, fmt.Sprintf("%s (as before: %t, as after: %t)", path, now[path] == before[path], now[path] == after[path]))
		}
	}
	for path := range before {
		if now[path] == "" {
			all = append(all, path+" is gone")
		}
	}
	slices.Sort(all)
	return strings.Join(all[:min(len(all), 12)], ", ")
}
