// Package git reaches a user's repository in two ways: objects are read and written through go-git's object storage,
// and everything that touches the index, the work tree or refs goes through the git binary, one typed method each.
//
// go-git's own Worktree, Status and PlainOpen are not used: on real checkouts they ignore index.lock, commit CRLF bytes
// and refuse worktreeConfig (docs/dev/decisions/go-git-at-the-storer-only.md).
package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"mpsforge/internal/run"
	"mpsforge/internal/words"
)

// MinimumVersion is the oldest git that is supported; merge-tree --write-tree came with it.
const MinimumVersion = "2.38"

// Errors that callers distinguish.
var (
	ErrNotRepository = errors.New("not a git work tree")
	// ErrOwner is returned, wrapped, for a work tree of another user that git was not configured to trust.
	ErrOwner  = errors.New("the work tree belongs to another user, and git does not trust it")
	ErrNoGit  = errors.New("git is not installed")
	ErrLocked = errors.New("git's lock is held")
)

// Repository is one work tree of a git repository.
type Repository struct {
	WorkTree   string // absolute path of its top
	Dir        string // its git directory; for a linked work tree the private one
	CommonDir  string // the git directory shared by all work trees
	Head       string // commit id of HEAD when opened
	StateIDs   []string
	WorktreeID string // "main", or "linked-" and the linked work tree's name

	pins, variables []string // see distrusted

	prefetched map[string][]IndexEntry // of the paths in hinted
	hinted     map[string]bool
}

// pins keep a user's configuration from changing what the commands do or print.
var pins = []string{
	"-c", "core.quotepath=off", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
	"-c", "commit.gpgsign=false", "-c", "advice.detachedHead=false", "-c", "color.ui=false", "-c", "core.fsmonitor=false",
}

func environment() []string {
	// Variables such as GIT_DIR, set when a hook or an alias started this program, would point the children elsewhere.
	keep := map[string]bool{"GIT_SSH": true, "GIT_SSH_COMMAND": true, "GIT_ASKPASS": true, "GIT_CONFIG_GLOBAL": true,
		"GIT_CONFIG_SYSTEM": true, "GIT_CONFIG_NOSYSTEM": true, "GIT_EXEC_PATH": true, "GIT_SSL_CAINFO": true, "GIT_TRACE": true,
		"GIT_CONFIG_COUNT": true}
	drop := func(name string) bool {
		return strings.HasPrefix(name, "GIT_") && !keep[name] && !strings.HasPrefix(name, "GIT_CONFIG_KEY_") &&
			!strings.HasPrefix(name, "GIT_CONFIG_VALUE_") || name == "LC_ALL" || name == "LANGUAGE"
	}
	return run.Environment([]string{"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true",
		"GIT_PAGER=cat", "GIT_LITERAL_PATHSPECS=1", transports}, drop)
}

// newCommand prepares a git command in dir ("" for the current folder) with the pinned environment.
func newCommand(dir string, args ...string) run.Command {
	return run.Command{Name: "git", Args: append(append([]string{}, pins...), args...), Hidden: len(pins), Dir: dir, Env: environment()}
}

// command is a git command in the work tree, which runs none of the programs that the checkout's configuration names.
func (r *Repository) command(args ...string) run.Command {
	command := newCommand(r.WorkTree, append(slices.Clone(r.pins), args...)...)
	command.Hidden += len(r.pins)
	command.Env = append(command.Env, r.variables...)
	return command
}

// runCommand runs a command and gives its standard output; a usage error of git is most likely an old git.
func runCommand(ctx context.Context, command run.Command) ([]byte, error) {
	result, err := command.Run(ctx)
	if err != nil && errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("%w: install it (Debian: apt-get install git; macOS: xcode-select --install)", ErrNoGit)
	}
	if run.ExitCode(err) == 129 { // git's exit code for usage errors
		if version, versionErr := Version(ctx); versionErr == nil {
			return nil, fmt.Errorf("%w\ngit is version %s; mpsforge needs %s or newer", err, version, MinimumVersion)
		}
	}
	return result.Stdout, err
}

// Version returns the git binary's version, such as "2.39.5".
func Version(ctx context.Context) (string, error) {
	result, err := newCommand("", "version").Run(ctx)
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(result.Stdout)) // "git version 2.39.5 (Apple Git-154)"
	if len(fields) < 3 {
		return "", fmt.Errorf("git version printed %q", result.Stdout)
	}
	return fields[2], nil
}

// StateRef is the ref that keeps the state of this work tree. The work tree's name is part of it because linked work
// trees share refs.
func (r *Repository) StateRef() string { return "refs/mpsforge/" + r.WorktreeID + "/state" }

// saidByGit is why git takes a folder for no work tree, if it gives another reason than that: a configuration that it cannot read, say.
func saidByGit(err error) string {
	var failed *run.Error
	if !errors.As(err, &failed) {
		return ": " + err.Error()
	}
	if strings.Contains(failed.Stderr, "not a git repository") {
		return ""
	}
	return ": " + strings.TrimSpace(failed.Stderr)
}

// Open finds the work tree that dir is the top of. The index entries of the hinted paths are read at the same time, for
// the first call of IndexEntries.
func Open(ctx context.Context, dir string, hint []string) (*Repository, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("open checkout %s: %w", dir, err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open checkout %s: %w: it is not a folder", dir, ErrNotRepository)
	}
	// One process for all that git knows about the place: a start of git costs as much as the rest of a status. It runs
	// beside the longer one that reads the index.
	places := []string{"rev-parse", "--path-format=absolute", "--show-toplevel", "--git-dir", "--git-common-dir", "--show-object-format"}
	var output []byte
	looked := make(chan error, 1)
	go func() {
		var err error
		output, err = runCommand(ctx, newCommand(dir, append(places, "HEAD^{commit}", "--glob=refs/mpsforge/*/state")...))
		looked <- err
	}()
	var pins, variables []string
	guarded := make(chan error, 1)
	go func() {
		var err error
		pins, variables, err = distrusted(ctx, dir)
		guarded <- err
	}()
	early := Repository{WorkTree: dir}
	prefetched, err := early.IndexEntries(ctx, hint)
	if err != nil {
		prefetched = nil // not a repository, or no index: whoever needs the entries asks again and sees the error
	}
	err, guardErr := <-looked, <-guarded
	unborn := false
	if err != nil && !errors.Is(err, ErrNoGit) && ctx.Err() == nil {
		placesOutput, placesErr := runCommand(ctx, newCommand(dir, places...))
		if placesErr != nil {
			said := saidByGit(placesErr)
			if _, folder, found := strings.Cut(said, "git config --global --add safe.directory "); found {
				return nil, fmt.Errorf("open checkout %s: %w; if you do: git config --global --add safe.directory %s", dir, ErrOwner, words.FirstLine(folder))
			}
			return nil, fmt.Errorf("open checkout %s: %w%s", dir, ErrNotRepository, said)
		}
		output, unborn = placesOutput, true
	} else if err != nil {
		return nil, fmt.Errorf("open checkout %s: %w", dir, err)
	}
	lines := strings.Split(strings.TrimSuffix(string(output), "\n"), "\n")
	if len(lines) < 4 {
		return nil, fmt.Errorf("open checkout %s: git rev-parse printed %q", dir, output)
	}
	if guardErr != nil {
		return nil, fmt.Errorf("open checkout %s: read its configuration: %w", dir, guardErr)
	}
	repository := &Repository{pins: pins, variables: variables, WorkTree: lines[0], Dir: lines[1], CommonDir: lines[2], WorktreeID: "main"}
	switch format := lines[3]; format {
	case "sha1":
	case "sha256":
		return nil, fmt.Errorf("open checkout %s: its object format is %s; PyTorch's patches name SHA-1 blobs, so clone it with SHA-1", dir, format)
	default: // not what is printed there
		return nil, fmt.Errorf("open checkout %q: a path with a line break cannot be used; move the checkout, or rename the folder", dir)
	}
	if repository.Dir != repository.CommonDir {
		repository.WorktreeID = "linked-" + filepath.Base(repository.Dir)
	}
	if same, sameErr := sameFolder(dir, repository.WorkTree); sameErr != nil || !same {
		return nil, fmt.Errorf("open checkout %s: %w: the folder lies inside the work tree %s; name that one if it is the checkout",
			dir, ErrNotRepository, repository.WorkTree)
	}
	if !unborn {
		repository.Head, repository.StateIDs = lines[4], lines[5:]
	} else if states, err := runCommand(ctx, newCommand(dir, "rev-parse", "--glob=refs/mpsforge/*/state")); err == nil {
		repository.StateIDs = strings.Fields(string(states))
	}
	if repository.prefetched = prefetched; prefetched != nil {
		repository.hinted = map[string]bool{}
		for _, path := range hint {
			repository.hinted[path] = true
		}
	}
	return repository, nil
}

func sameFolder(a, b string) (bool, error) {
	infoA, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	infoB, err := os.Stat(b)
	if err != nil {
		return false, err
	}
	return os.SameFile(infoA, infoB), nil
}

// OperationInProgress names the git operation that is under way in the work tree, or gives "".
func (r *Repository) OperationInProgress() string {
	for _, operation := range []struct{ file, name string }{
		{"rebase-merge", "a rebase"}, {"rebase-apply", "a rebase or git am"}, {"MERGE_HEAD", "a merge"},
		{"CHERRY_PICK_HEAD", "a cherry-pick"}, {"REVERT_HEAD", "a revert"}, {"BISECT_LOG", "a bisection"},
	} {
		if _, err := os.Lstat(filepath.Join(r.Dir, operation.file)); err == nil {
			return operation.name
		}
	}
	return ""
}

// Locks gives git's lock files of what a change moves: the index, HEAD, its branch and the recorded state. One exists while a git
// changes that, and after such a git was killed.
func (r *Repository) Locks() []string {
	candidates := []string{filepath.Join(r.Dir, "index.lock"), filepath.Join(r.Dir, "HEAD.lock"), filepath.Join(r.CommonDir, r.StateRef()+".lock")}
	head, err := os.ReadFile(filepath.Join(r.Dir, "HEAD"))
	if branch, found := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: "); err == nil && found && filepath.IsLocal(branch) {
		candidates = append(candidates, filepath.Join(r.CommonDir, branch+".lock"))
	}
	return slices.DeleteFunc(candidates, func(path string) bool {
		_, err := os.Lstat(path)
		return err != nil
	})
}

// Moved reports whether HEAD or a recorded state is another than when the repository was opened.
func (r *Repository) Moved(ctx context.Context) (bool, error) {
	output, err := runCommand(ctx, r.command("rev-parse", "--revs-only", "HEAD^{commit}", "--glob=refs/mpsforge/*/state"))
	if err != nil {
		return false, fmt.Errorf("read the refs of %s again: %w", r.WorkTree, err)
	}
	known := r.StateIDs
	if r.Head != "" {
		known = append([]string{r.Head}, known...)
	}
	return !slices.Equal(strings.Fields(string(output)), known), nil
}

// Lock keeps a second mpsforge from changing the same work tree; the returned function gives it back. The kernel drops
// the lock when the process dies, so it cannot go stale.
func (r *Repository) Lock() (func(), error) {
	path := filepath.Join(r.Dir, "mpsforge.lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock checkout %s: %w", r.WorkTree, err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock checkout %s: another mpsforge is changing it; wait until it ends (%s: %w)", r.WorkTree, path, err)
	}
	return func() { file.Close() }, nil
}

// IndexEntry is what the index holds for one path.
type IndexEntry struct {
	Mode  string // six octal digits as in a tree
	ID    string
	Stage int // 0, or 1 to 3 while a conflict is open
}

// mostArguments is how many paths are given to one git. Systems bound the length of a command line, and git compares each entry of the
// index with each path that it was given.
const mostArguments = 200

// IndexEntries gives the index entries of the given paths; a path that is not in the index is left out.
func (r *Repository) IndexEntries(ctx context.Context, paths []string) (map[string][]IndexEntry, error) {
	if len(paths) == 0 {
		return map[string][]IndexEntry{}, nil
	}
	if r.prefetched != nil && !slices.ContainsFunc(paths, func(path string) bool { return !r.hinted[path] }) {
		entries := r.prefetched
		r.prefetched = nil // it is an earlier state of the index: good for one answer
		return entries, nil
	}
	args := []string{"ls-files", "--stage", "-z", "--"}
	if len(paths) <= mostArguments {
		args = append(args, paths...)
	}
	output, err := runCommand(ctx, r.command(args...))
	if err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	wanted := map[string]bool{}
	for _, path := range paths {
		wanted[path] = true
	}
	entries := map[string][]IndexEntry{}
	for _, record := range bytes.Split(bytes.TrimSuffix(output, []byte{0}), []byte{0}) {
		if len(record) == 0 {
			continue
		}
		meta, path, found := strings.Cut(string(record), "\t") // "<mode> <id> <stage>\t<path>"
		fields := strings.Fields(meta)
		if !found || len(fields) != 3 {
			return nil, fmt.Errorf("read the index: git ls-files printed %q", record)
		}
		stage, err := strconv.Atoi(fields[2])
		if err != nil {
			return nil, fmt.Errorf("read the index: git ls-files printed %q", record)
		}
		if !wanted[path] {
			continue
		}
		entry := IndexEntry{Mode: fields[0], ID: fields[1], Stage: stage}
		entries[path] = append(entries[path], entry)
	}
	return entries, nil
}

// HashWorkFile gives the blob id that git would store for a file of the work tree, with the filters (end of line and
// the like) that apply to its path.
func (r *Repository) HashWorkFile(ctx context.Context, path string) (string, error) {
	output, err := runCommand(ctx, r.command("hash-object", "--", path))
	if err != nil {
		return "", fmt.Errorf("hash %s: %w", path, err)
	}
	return strings.TrimSpace(string(output)), nil
}

// MoveWorkTree makes the given paths, in the index and in the work tree, what they are in the tree or commit called
// to: changed files are written, paths that it lacks are removed. Other paths are not looked at.
func (r *Repository) MoveWorkTree(ctx context.Context, to string, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	command := r.command("-c", "core.preloadIndex=false", "restore", "--source="+to, "--staged", "--worktree", "--no-overlay", "--pathspec-from-file=-",
		"--pathspec-file-nul")
	command.Stdin = strings.NewReader(strings.Join(paths, "\x00"))
	if _, err := runCommand(ctx, command); err != nil {
		if locks := r.Locks(); len(locks) > 0 {
			return fmt.Errorf("%w: %s: %w", ErrLocked, strings.Join(locks, ", "), err)
		}
		return fmt.Errorf("move the work tree to %s: %w", to, err)
	}
	return nil
}

// RemoveUntracked removes files that are not in the index; those that are not there are passed over.
func (r *Repository) RemoveUntracked(ctx context.Context, paths []string) error {
	var there []string
	for _, path := range paths {
		if _, err := os.Lstat(filepath.Join(r.WorkTree, filepath.FromSlash(path))); err == nil {
			there = append(there, path)
		}
	}
	for some := range slices.Chunk(there, mostArguments) {
		if _, err := runCommand(ctx, r.command(append([]string{"clean", "--force", "--quiet", "-x", "--"}, some...)...)); err != nil {
			return fmt.Errorf("remove files: %w", err)
		}
	}
	return nil
}

// IsSparse reports whether the work tree leaves out a part of the files on purpose.
func (r *Repository) IsSparse(ctx context.Context) (bool, error) {
	output, err := runCommand(ctx, r.command("config", "--type=bool", "--default=false", "core.sparseCheckout"))
	return strings.TrimSpace(string(output)) == "true", err
}

// NoObject is the id that means "no object".
const NoObject = "0000000000000000000000000000000000000000"

// catFile reads an object through the git binary, which fetches it when it is missing from a partial clone.
func (r *Repository) catFile(ctx context.Context, kind, id string) ([]byte, error) {
	output, err := runCommand(ctx, r.command("cat-file", kind, id))
	if err != nil {
		return nil, fmt.Errorf("read object %s: %w", id, err)
	}
	return output, nil
}

// Init makes an empty repository in dir, which must exist, with settings that keep file contents byte for byte.
func Init(ctx context.Context, dir string) error {
	if _, err := runCommand(ctx, newCommand(dir, "-c", "init.defaultBranch=main", "init", "--quiet", "--object-format=sha1", "--template=")); err != nil {
		return fmt.Errorf("make a repository in %s: %w", dir, err)
	}
	for _, setting := range [][2]string{{"core.autocrlf", "false"}, {"core.safecrlf", "false"}} {
		if _, err := runCommand(ctx, newCommand(dir, "config", setting[0], setting[1])); err != nil {
			return fmt.Errorf("configure %s: %w", dir, err)
		}
	}
	return nil
}

// FastImport feeds a fast-import stream, written by the given function, into the repository.
func (r *Repository) FastImport(ctx context.Context, write func(io.Writer) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reader, writer := io.Pipe()
	writeErr := make(chan error, 1)
	go func() {
		err := write(writer)
		if err != nil {
			cancel() // before the pipe closes, or git would take the cut stream for a whole one
		}
		writer.CloseWithError(err)
		writeErr <- err
	}()
	command := r.command("fast-import", "--quiet", "--done", "--date-format=raw", "--force")
	command.Stdin = reader
	_, err := runCommand(ctx, command)
	reader.CloseWithError(errors.New("git fast-import ended"))
	if streamErr := <-writeErr; streamErr != nil && !strings.Contains(streamErr.Error(), "git fast-import ended") {
		return streamErr
	}
	if err != nil {
		return fmt.Errorf("import files: %w", err)
	}
	return nil
}

// ModifiedFiles lists the tracked files that differ between HEAD, index and work tree. Changes inside submodules'
// files do not count, another commit of a submodule does.
func (r *Repository) ModifiedFiles(ctx context.Context) ([]string, error) {
	output, err := runCommand(ctx, r.command("status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames", "--ignore-submodules=dirty"))
	if err != nil {
		return nil, fmt.Errorf("compare the work tree with HEAD: %w", err)
	}
	var paths []string
	for _, record := range bytes.Split(bytes.TrimSuffix(output, []byte{0}), []byte{0}) {
		if len(record) > 3 { // two letters, a space, the path
			paths = append(paths, string(record[3:]))
		}
	}
	return paths, nil
}
