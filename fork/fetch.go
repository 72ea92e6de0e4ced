package fork

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"mpsforge/fork/git"
	"mpsforge/internal/events"
	"mpsforge/patches"
)

// upstreamURL is where PyTorch lives.
const upstreamURL = "https://github.com/pytorch/pytorch.git"

// ErrNotEmpty is returned, wrapped, for a folder that holds something else than a checkout of the baseline.
var ErrNotEmpty = errors.New("the folder is not empty")

// FetchOptions say where a checkout comes from and goes to.
type FetchOptions struct {
	// Dir is the folder to make; it may exist when it is empty or holds an earlier fetch that did not end.
	Dir string
	// From is "debian", a folder, a tarball, or empty for what the baseline names.
	From string
	// URL is the repository to clone instead of upstream's.
	URL string
	// NoSubmodules leaves the submodules out of a clone: enough for the patches, not for a build.
	NoSubmodules bool
	// Cache is the folder for downloads.
	Cache string
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
	case options.From == "debian" || options.From == "" && options.URL == "" && source != nil:
		if source == nil {
			return nil, fmt.Errorf("fetch %s: Debian has no source package of this baseline; clone it (leave --from out) or name a folder or tarball", series.Baseline.Name)
		}
		var tarball string
		if tarball, err = debianSource(ctx, *source, options.Cache, sink); err == nil {
			fetched, err = fetchFiles(ctx, series, options.Dir, tarball, sink)
		}
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

// fetchLocal takes what is on this machine: a git work tree is adopted where it is, other folders and tarballs are
// imported into options.Dir.
func fetchLocal(ctx context.Context, series *patches.Series, options FetchOptions, sink events.Sink) (*Fetched, error) {
	info, err := os.Stat(options.From)
	if err != nil {
		return nil, fmt.Errorf("--from %s: %w", options.From, err)
	}
	if info.IsDir() {
		if _, err := os.Lstat(filepath.Join(options.From, ".git")); err == nil {
			return adopt(ctx, series, options.From)
		}
	}
	return fetchFiles(ctx, series, options.Dir, options.From, sink)
}

// adopt records the base of a git work tree that is there already.
func adopt(ctx context.Context, series *patches.Series, dir string) (*Fetched, error) {
	checkout, err := Open(ctx, dir, nil)
	if err != nil {
		return nil, err
	}
	defer checkout.Close()
	unlock, err := checkout.repository.Lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if state := checkout.state; state != nil && (state.Pending != nil || checkout.applied() >= 0) {
		// Otherwise HEAD was moved elsewhere by hand, which may well be another baseline.
		switch {
		case state.Pending != nil:
			return nil, fmt.Errorf("%w: a run of %s in %s was cut off; mend it first: mpsforge recover", ErrInterrupted, state.Pending.Command, checkout.Dir())
		case state.Baseline != series.Baseline.Name:
			return nil, fmt.Errorf("%w: %s is recorded as %s, and HEAD is where that record says", ErrWrongBaseline, checkout.Dir(), state.Baseline)
		}
		return checkout.fetched(ctx, true)
	}
	if err := checkout.settleBase(ctx, series, "adopted from "+checkout.Dir(), ""); err != nil {
		return nil, err
	}
	return checkout.fetched(ctx, false)
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
		proof = fmt.Sprintf("all %d files that the baseline's digests know are equal; the rest of the tree is not compared", same)
	}
	state := &State{Schema: stateSchema, Worktree: c.repository.WorktreeID, Baseline: series.Baseline.Name, Base: c.repository.Head,
		Proof: proof, Source: source, Applied: []Applied{}, Head: c.repository.Head}
	if c.state != nil {
		state.Port = c.state.Port // an adoption anew is no reason to lose it
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

// prepare makes the folder a repository that is marked as being fetched into. It gives nil when the folder holds the
// fetched baseline already.
func prepare(ctx context.Context, series *patches.Series, dir string) (checkout *Checkout, unlock func(), done *Fetched, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, nil, fmt.Errorf("make %s: %w", dir, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("look into %s: %w", dir, err)
	}
	if len(entries) == 0 {
		if err := git.Init(ctx, dir); err != nil {
			return nil, nil, nil, err
		}
	}
	refuse := func(why string) error {
		return fmt.Errorf("%w: %s %s; name another folder with --checkout, or adopt a git work tree with --from %s", ErrNotEmpty, dir, why, dir)
	}
	checkout, err = Open(ctx, dir, nil)
	if errors.Is(err, git.ErrNotRepository) {
		return nil, nil, nil, refuse("holds other files")
	}
	if err != nil {
		return nil, nil, nil, err
	}
	unlock, err = checkout.repository.Lock()
	if err != nil {
		return nil, nil, nil, errors.Join(err, checkout.Close())
	}
	fail := func(err error) (*Checkout, func(), *Fetched, error) {
		unlock()
		return nil, nil, nil, errors.Join(err, checkout.Close())
	}
	switch state := checkout.state; {
	case state == nil && checkout.repository.Head == "" && len(entries) <= 1:
		// Empty, or nothing but the .git of a fetch that was cut off at once.
		begun := &State{Schema: stateSchema, Worktree: checkout.repository.WorktreeID, Baseline: series.Baseline.Name,
			Applied: []Applied{}, Pending: &Pending{Command: "fetch", Applied: []Applied{}}}
		if err := checkout.record(ctx, "fetch: begin", begun, ""); err != nil {
			return fail(err)
		}
		return checkout, unlock, nil, nil
	case state == nil:
		return fail(refuse("holds another repository"))
	case state.Baseline != series.Baseline.Name:
		return fail(refuse("holds a checkout of " + state.Baseline))
	case state.Pending != nil && state.Pending.Command == "fetch":
		// Only an earlier fetch has worked here, and it is gone: its lock is ours now.
		if lock, held := checkout.repository.IndexLock(); held {
			if err := os.Remove(lock); err != nil {
				return fail(fmt.Errorf("remove the lock of the fetch that was cut off: %w", err))
			}
		}
		return checkout, unlock, nil, nil
	}
	defer unlock()
	done, err = checkout.fetched(ctx, true)
	return nil, nil, done, errors.Join(err, checkout.Close())
}

// fetchFiles imports a folder or tarball as the one commit of a new repository.
func fetchFiles(ctx context.Context, series *patches.Series, dir, from string, sink events.Sink) (*Fetched, error) {
	checkout, unlock, done, err := prepare(ctx, series, dir)
	if err != nil || done != nil {
		return done, err
	}
	defer unlock()
	defer func() { checkout.Close() }()
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
	source := "folder " + from
	if imported.sha256 != "" {
		source = fmt.Sprintf("%s, SHA-256 %s", imported.file, imported.sha256)
	}
	return checkOut(ctx, checkout, series, "refs/heads/"+importBranch, source, vouched, sink)
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
	checkout, unlock, done, err := prepare(ctx, series, options.Dir)
	if err != nil || done != nil {
		return done, err
	}
	defer unlock()
	defer func() { checkout.Close() }()
	url := options.URL
	if url == "" {
		url = upstreamURL
	}
	baseline := series.Baseline
	tag := "refs/tags/" + baseline.Tag
	finish := events.Step(sink, "clone")
	defer finish(events.Failed, "")
	if err := checkout.repository.FetchTag(ctx, url, tag, gitProgress(sink, "clone")); err != nil {
		return nil, fmt.Errorf("%w\ntry again: it goes on where it stopped; or name a mirror with --url, or a source tree that is here with --from", err)
	}
	finish(events.OK, url)
	commit, err := checkout.repository.ResolveCommit(ctx, tag)
	if err != nil {
		return nil, err
	}
	if baseline.Commit != "" && commit != baseline.Commit {
		return nil, fmt.Errorf("tag %s of %s is commit %s, the baseline is %s; this is not PyTorch's own tag", baseline.Tag, url, commit, baseline.Commit)
	}
	if !options.NoSubmodules {
		// Submodules come after the files of the tag, for .gitmodules is one of them, and before the base is recorded, so
		// that a run which is cut off in between is taken up again.
		if err := checkout.repository.CheckOut(ctx, tag, gitProgress(sink, "clone")); err != nil {
			return nil, err
		}
		finish := events.Step(sink, "submodules")
		defer finish(events.Failed, "")
		if err := checkout.repository.UpdateSubmodules(ctx, gitProgress(sink, "submodules")); err != nil {
			return nil, fmt.Errorf("%w\ntry again: it goes on where it stopped; or leave them out with --no-submodules", err)
		}
		finish(events.OK, "")
	}
	return checkOut(ctx, checkout, series, tag, "tag "+baseline.Tag+" of "+url, "", sink)
}
