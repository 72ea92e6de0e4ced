package fork

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"mpsforge/fork/git"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
	"mpsforge/patches"
)

// upstreamURL is where PyTorch lives.
const upstreamURL = "https://github.com/pytorch/pytorch.git"

// debian is the value of FetchOptions.From for Debian's source package.
const debian = "debian"

// ErrNotEmpty is returned, wrapped, for a place that holds something else than a checkout of the baseline.
var ErrNotEmpty = errors.New("the folder is not free for a checkout")

// ErrNoSource is returned, wrapped, when Debian's source package of a baseline is asked for that has none.
var ErrNoSource = errors.New("there is no source package of this baseline in Debian")

// FetchOptions say where a checkout comes from and goes to.
type FetchOptions struct {
	// Dir is the folder to make; it may exist when it is empty or holds an earlier fetch that did not end.
	Dir string
	// From is "debian", a folder, a tarball, or empty for what the baseline names.
	From string
	// Adopt uses a git work tree that From names where it is, instead of copying its base into Dir.
	Adopt bool
	// URL is the repository to clone instead of upstream's.
	URL string
	// NoSubmodules leaves the submodules out of a clone: enough for the patches, not for a build.
	NoSubmodules bool
	// Cache is the folder for downloads.
	Cache string

	answered bool // upstream's repository has answered just now
}

// Fetched is what Fetch did.
type Fetched struct {
	Checkout string `json:"checkout"`
	Baseline string `json:"baseline"`
	Base     string `json:"base"`   // commit id
	Tree     string `json:"tree"`   // its tree id
	Proof    string `json:"proof"`  // how it is known to be the baseline
	Source   string `json:"source"` // where it came from
	Already  bool   `json:"already"`
}

// Fetch gets a checkout of the series' baseline: a git work tree whose base commit is verified and recorded. A run that
// was cut off goes on where it stopped when it is started again.
func Fetch(ctx context.Context, series *patches.Series, options FetchOptions, sink events.Sink) (*Fetched, error) {
	sink = events.OrDiscard(sink)
	finish := events.Step(sink, "fetch")
	defer finish(events.Failed, "")
	sink = events.Under(sink, "fetch")
	var fetched *Fetched
	var err error
	source := series.Baseline.Source
	switch {
	case options.From == debian || options.From == "" && options.URL == "" && source != nil:
		if source == nil {
			return nil, fmt.Errorf("fetch %s: %w; clone it (leave --from out) or name a folder or tarball", series.Baseline.Name, ErrNoSource)
		}
		fetched, err = fetchFiles(ctx, series, options.Dir, func() (string, error) {
			return debianSource(ctx, series.Baseline, options.Cache, sink)
		}, sink)
	case options.From == "":
		fetched, err = fetchClone(ctx, series, options, sink)
	default:
		fetched, err = fetchLocal(ctx, series, options, sink)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", series.Baseline.Name, err)
	}
	detail := fetched.Base
	if fetched.Already {
		detail = "nothing to do"
	}
	finish(events.OK, detail)
	return fetched, nil
}

// fetchLocal takes what is on this machine: a git work tree is adopted where it is, or its base is copied into options.Dir;
// other folders and tarballs are imported into options.Dir.
func fetchLocal(ctx context.Context, series *patches.Series, options FetchOptions, sink events.Sink) (*Fetched, error) {
	info, err := os.Stat(options.From)
	if err != nil {
		return nil, fmt.Errorf("--from %s: %w", options.From, err)
	}
	if info.IsDir() {
		if _, err := os.Lstat(filepath.Join(options.From, ".git")); err == nil {
			if into, err := os.Stat(options.Dir); options.Adopt || err == nil && os.SameFile(info, into) {
				return adopt(ctx, series, options.From)
			}
			return fetchCopy(ctx, series, options, sink)
		}
	}
	return fetchFiles(ctx, series, options.Dir, func() (string, error) { return options.From, nil }, sink)
}

// adopt records the base of a git work tree that is there already.
func adopt(ctx context.Context, series *patches.Series, dir string) (*Fetched, error) {
	checkout, err := Open(ctx, dir, nil)
	if err != nil {
		return nil, err
	}
	defer checkout.Close()
	unlock, err := checkout.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if state := checkout.state; state != nil && (state.Pending != nil || checkout.applied() >= 0) {
		// Otherwise HEAD was moved elsewhere manually, which may well be another baseline.
		if err := errors.Join(checkout.Interrupted(), checkout.Contradicts(ctx, series)); err != nil {
			return nil, err
		}
		return checkout.fetched(ctx, true)
	}
	if err := checkout.settleBase(ctx, series, "adopted from "+checkout.Dir(), ""); err != nil {
		return nil, err
	}
	return checkout.fetched(ctx, false)
}

// fetchCopy makes a checkout in options.Dir of the base of a git work tree, without history and submodules. The work tree is only read.
func fetchCopy(ctx context.Context, series *patches.Series, options FetchOptions, sink events.Sink) (*Fetched, error) {
	from, err := Open(ctx, options.From, nil)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	base, err := from.baseToCopy(ctx, series)
	if err != nil {
		return nil, err
	}
	return into(ctx, series, options.Dir, false, func(checkout *Checkout) (*Fetched, error) {
		changed, err := from.repository.ModifiedFiles(ctx)
		if err != nil {
			return nil, err
		}
		if len(changed) > 0 {
			sink.Emit(events.Message{Level: events.Warning, Text: fmt.Sprintf("uncommitted changes in %s are not copied; changed files: %d, the first: %s",
				from.Dir(), len(changed), changed[0])})
		}
		ref := "refs/heads/" + importBranch
		if err := checkout.repository.FetchCommit(ctx, from.Dir(), base, ref, gitProgress(sink, "fetch")); err != nil {
			return nil, err
		}
		return checkOut(ctx, checkout, series, ref, fmt.Sprintf("commit %s of %s", base, from.Dir()), "", sink)
	})
}

// baseToCopy is the recorded base, or HEAD when none of this baseline is recorded. It must be the baseline.
func (c *Checkout) baseToCopy(ctx context.Context, series *patches.Series) (string, error) {
	if c.fetching() {
		return "", c.Interrupted()
	}
	commit := c.repository.Head
	if c.state != nil {
		if c.applied() >= 0 { // otherwise HEAD was moved manually, which may well be another baseline
			if err := c.Contradicts(ctx, series); err != nil {
				return "", err
			}
		}
		if c.Baseline() == series.Baseline.Name {
			commit = c.state.Base
		}
	}
	_, err := c.proveTarget(ctx, series, commit)
	return commit, err
}

// settleBase verifies that HEAD is the baseline and records it.
// vouched is another proof, for the case that the commit and its tree are not known ones, or empty.
func (c *Checkout) settleBase(ctx context.Context, series *patches.Series, source, vouched string) error {
	proof, err := c.identify(ctx, series, c.repository.Head)
	if err != nil {
		return err
	}
	if proof == "" {
		proof = vouched
	}
	if proof == "" {
		same, differing, err := c.compareDigests(ctx, series, c.repository.Head)
		if err != nil {
			return err
		}
		if len(differing) > 0 || same == 0 {
			return c.wrongBaseline(ctx, series)
		}
		proof = partProof(series.Baseline, same)
	}
	state := &State{Schema: stateSchema, Worktree: c.repository.WorktreeID, Baseline: series.Baseline.Name, Base: c.repository.Head,
		Proof: proof, Source: source, Applied: []Applied{}, Head: c.repository.Head}
	if c.state != nil {
		state.Port = c.state.Port // an adoption anew is not a reason to lose it
	}
	if err := c.noteEntries(ctx, state, series.TouchedPaths()); err != nil {
		return err
	}
	return c.record(ctx, "fetch", state, "")
}

func (c *Checkout) fetched(ctx context.Context, already bool) (*Fetched, error) {
	base, err := c.objects.Commit(ctx, c.state.Base)
	if err != nil {
		return nil, err
	}
	return &Fetched{Checkout: c.Dir(), Baseline: c.state.Baseline, Base: c.state.Base, Tree: base.Tree, Proof: c.state.Proof,
		Source: c.state.Source, Already: already}, nil
}

// occupied is the error of a place for a checkout that something else is at.
func occupied(dir, why string) error {
	return fmt.Errorf("%w: %s %s; name another folder with --checkout, or adopt a git work tree with --from %s", ErrNotEmpty, dir, why, dir)
}

// canHold gives an error when dir cannot be the folder of a checkout. It may be missing.
func canHold(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %s is below a file; name another place with --checkout", ErrNotEmpty, dir)
	case err != nil:
		return fmt.Errorf("look at %s: %w", dir, err)
	case !info.IsDir():
		return fmt.Errorf("%w: %s is not a folder; name another place with --checkout", ErrNotEmpty, dir)
	}
	return nil
}

// look finds what a fetch into dir finds there: a checkout that an earlier fetch has made, ended or not, or nil for
// none. Anything else is an error. It changes nothing.
func look(ctx context.Context, dir string) (*Checkout, error) {
	if err := canHold(dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look into %s: %w", dir, err)
	}
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != staging }) {
		return nil, nil
	}
	checkout, err := Open(ctx, dir, nil)
	if errors.Is(err, git.ErrNotRepository) || errors.Is(err, ErrInterrupted) {
		return nil, occupied(dir, "holds other files")
	}
	if err != nil {
		return nil, err
	}
	if checkout.state == nil {
		return nil, errors.Join(occupied(dir, "holds another repository"), checkout.Close())
	}
	return checkout, nil
}

// hasTag reports whether an unfinished fetch has got a tag: worth keeping, since a clone goes on from there.
func (c *Checkout) hasTag(ctx context.Context) (bool, error) {
	refs, err := c.repository.AllRefs(ctx)
	for name := range refs {
		if strings.HasPrefix(name, "refs/tags/") {
			return true, nil
		}
	}
	return false, err
}

// hasBaseline reports whether the tag of the baseline is there, and is the baseline.
func (c *Checkout) hasBaseline(ctx context.Context, baseline patches.Baseline) bool {
	commit, err := c.repository.ResolveCommit(ctx, "refs/tags/"+baseline.Tag)
	return err == nil && (baseline.Commit == "" || commit == baseline.Commit)
}

// prepare makes the folder a repository that is marked as being fetched into, or finds such a one that a clone can go on
// with. It gives done when the folder holds the fetched baseline already. The caller holds the folder's lock, and made is what claim gave.
func prepare(ctx context.Context, series *patches.Series, dir string, made []string, clone bool) (checkout *Checkout, unlock func(), done *Fetched, err error) {
	defer func() {
		if checkout == nil {
			removeEmpty(made)
		}
	}()
	found, err := look(ctx, dir)
	if err != nil {
		return nil, nil, nil, err
	}
	if found != nil {
		if err := found.Close(); err != nil {
			return nil, nil, nil, err
		}
		made = []string{dir} // by the earlier fetch
		if checkout, unlock, done, err = goOn(ctx, series, dir, clone); err != nil || done != nil {
			return nil, nil, done, err
		}
	}
	if checkout == nil {
		if checkout, unlock, err = begin(ctx, series, dir); err != nil {
			return nil, nil, nil, err
		}
	}
	checkout.made = made
	return checkout, unlock, nil, nil
}

// goOn takes up what an earlier fetch has left in dir, whose lock the caller holds: done when it has ended, a checkout that a clone
// can go on with, or neither, and then it has removed what was the fetch's.
func goOn(ctx context.Context, series *patches.Series, dir string, clone bool) (checkout *Checkout, unlock func(), done *Fetched, err error) {
	if checkout, unlock, err = openLocked(ctx, dir); err != nil {
		return nil, nil, nil, err
	}
	end := func(done *Fetched, err error) (*Checkout, func(), *Fetched, error) {
		unlock()
		return nil, nil, done, errors.Join(err, checkout.Close())
	}
	same := checkout.Baseline() == series.Baseline.Name
	switch {
	case !checkout.fetching() && !same:
		return end(nil, fmt.Errorf("%w: %s holds a checkout of %s; name another folder with --checkout, or use --baseline %s", ErrNotEmpty, dir,
			checkout.Baseline(), checkout.Baseline()))
	case !checkout.fetching():
		return end(checkout.fetched(ctx, true))
	case clone && same && checkout.hasBaseline(ctx, series.Baseline):
		// Only an earlier fetch has worked here, and it is gone: its lock is ours now.
		for _, lock := range checkout.repository.Locks() {
			err = errors.Join(err, os.Remove(lock))
		}
		if err := errors.Join(err, os.RemoveAll(filepath.Join(dir, staging))); err != nil {
			return end(nil, fmt.Errorf("clean up after the interrupted fetch: %w", err))
		}
		return checkout, unlock, nil, nil
	}
	if kept, err := checkout.hasTag(ctx); err != nil {
		return end(nil, err)
	} else if kept && !(clone && same) { // a clone of the same would find the tag wrong
		return end(nil, checkout.Interrupted())
	}
	_, err = checkout.discard(ctx)
	if _, _, _, err := end(nil, err); err != nil {
		return nil, nil, nil, err
	}
	_, err = look(ctx, dir) // what was not the fetch's is still there
	return nil, nil, nil, err
}

// into prepares the folder and has get fill it. What it leaves when it fails is either worth going on with, or nothing.
func into(ctx context.Context, series *patches.Series, dir string, clone bool, get func(*Checkout) (*Fetched, error)) (*Fetched, error) {
	if err := canHold(dir); err != nil {
		return nil, err
	}
	made, release, err := claim(dir)
	if err != nil {
		return nil, err
	}
	defer release()
	checkout, unlock, done, err := prepare(ctx, series, dir, made, clone)
	if err != nil || done != nil {
		return done, err
	}
	fetched, err := get(checkout)
	if after := context.WithoutCancel(ctx); err != nil && (errors.Is(err, ErrWrongBaseline) || !checkout.hasBaseline(after, series.Baseline)) {
		_, discardErr := checkout.discard(after)
		err = errors.Join(err, discardErr)
	}
	unlock()
	return fetched, errors.Join(err, checkout.Close())
}

// fetchFiles imports a folder or tarball, which source gives, as the one commit of a new repository.
func fetchFiles(ctx context.Context, series *patches.Series, dir string, source func() (string, error), sink events.Sink) (*Fetched, error) {
	return into(ctx, series, dir, false, func(checkout *Checkout) (*Fetched, error) {
		from, err := source()
		if err != nil {
			return nil, err
		}
		imported, err := importFiles(ctx, checkout.repository, series.Baseline.Name, from, sink)
		if err != nil {
			return nil, err
		}
		vouched := ""
		if want := series.Baseline.Source; want != nil {
			if imported.sha256 == want.SHA256 {
				vouched = "the tarball's SHA-256 is " + want.SHA256
			} else if imported.file == want.File {
				return nil, fmt.Errorf("%s has SHA-256 %s, the baseline's %s has %s", from, imported.sha256, want.File, want.SHA256)
			}
		}
		origin := "folder " + from
		if imported.sha256 != "" {
			origin = fmt.Sprintf("%s, SHA-256 %s", imported.file, imported.sha256)
		}
		return checkOut(ctx, checkout, series, "refs/heads/"+importBranch, origin, vouched, sink)
	})
}

// checkOut verifies a fetched commit, writes the work tree and records the base.
func checkOut(ctx context.Context, checkout *Checkout, series *patches.Series, ref, source, vouched string, sink events.Sink) (*Fetched, error) {
	finish := events.Step(sink, "check out")
	defer finish(events.Failed, "")
	progress := gitProgress(sink, "check out")
	if err := checkout.repository.CheckOut(ctx, ref, progress); err != nil {
		return nil, err
	}
	dir, former := checkout.Dir(), checkout.stateID
	reopened, err := git.Open(ctx, dir, nil)
	if err != nil {
		return nil, err
	}
	objects := reopened.Objects()
	defer objects.Close()
	settled := &Checkout{repository: reopened, objects: objects, stateID: former}
	if err := settled.settleBase(ctx, series, source, vouched); err != nil {
		return nil, err
	}
	finish(events.OK, "")
	return settled.fetched(ctx, false)
}

// fetchClone clones the baseline's tag without history.
func fetchClone(ctx context.Context, series *patches.Series, options FetchOptions, sink events.Sink) (*Fetched, error) {
	return into(ctx, series, options.Dir, true, func(checkout *Checkout) (*Fetched, error) {
		baseline := series.Baseline
		tag := "refs/tags/" + baseline.Tag
		url := cmp.Or(options.URL, upstreamURL)
		finish := events.Step(sink, "clone")
		defer finish(events.Failed, "")
		if checkout.hasBaseline(ctx, baseline) {
			// An earlier fetch has got it, maybe from elsewhere.
			origin, err := checkout.repository.Origin(ctx)
			if err != nil {
				return nil, err
			}
			url = cmp.Or(origin, url)
		} else if err := clone(ctx, checkout, baseline, url, options.answered, sink); err != nil {
			return nil, err
		}
		shown := run.WithoutPasswords(url)
		finish(events.OK, shown)
		if !options.NoSubmodules {
			// Submodules come after the files of the tag, for .gitmodules is one of them, and before the base is recorded,
			// so that a run which is cut off in between is taken up again.
			if err := checkout.repository.CheckOut(ctx, tag, gitProgress(sink, "clone")); err != nil {
				return nil, err
			}
			finish := events.Step(sink, "submodules")
			defer finish(events.Failed, "")
			if err := checkout.repository.UpdateSubmodules(ctx, gitProgress(sink, "submodules")); err != nil {
				return nil, fmt.Errorf("%w\ntry again: it goes on where it stopped; or leave them out with --no-submodules",
					fetchFailed(ctx, baseline, url, err))
			}
			finish(events.OK, "")
		}
		return checkOut(ctx, checkout, series, tag, "tag "+baseline.Tag+" of "+shown, "", sink)
	})
}

// clone gets the baseline's tag and makes sure that it is the baseline.
func clone(ctx context.Context, checkout *Checkout, baseline patches.Baseline, url string, answered bool, sink events.Sink) error {
	tag := "refs/tags/" + baseline.Tag
	if !answered {
		if why := git.Answers(ctx, url, tag, probeLimit); why != nil && ctx.Err() == nil {
			return noAnswer(baseline, url, why)
		}
	}
	if err := checkout.repository.FetchTag(ctx, url, tag, gitProgress(sink, "clone")); err != nil {
		return fmt.Errorf("%w\ntry again; or name a mirror with --url, or a local source tree with --from", fetchFailed(ctx, baseline, url, err))
	}
	commit, err := checkout.repository.ResolveCommit(ctx, tag)
	if err != nil {
		return err
	}
	if baseline.Commit != "" && commit != baseline.Commit {
		return fmt.Errorf("tag %s of %s is commit %s, the baseline is %s; this is not PyTorch's own tag", baseline.Tag, url, commit, baseline.Commit)
	}
	return nil
}
