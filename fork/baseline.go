package fork

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"mpsforge/fork/builds"
	"mpsforge/fork/git"
	"mpsforge/internal/events"
	"mpsforge/patches"
)

// probeLimit bounds how long a repository may take to answer before anything is fetched from it.
const probeLimit = 15 * time.Second

// Recognise gives the name of the baseline among those of files that the checkout is at, or is based on, or "". One that is
// not recorded is proven by its commit or tree, HEAD's or that of a commit not far below, or by all the files that its
// series touches.
func (c *Checkout) Recognise(ctx context.Context, files fs.FS) (string, error) {
	if c.state != nil {
		return c.state.Baseline, nil
	}
	return c.recognise(ctx, patches.KnownBaselines(files))
}

func (c *Checkout) recognise(ctx context.Context, known []patches.Baseline) (string, error) {
	if c.repository.Head == "" {
		return "", nil
	}
	shallow, err := c.repository.Shallow()
	if err != nil {
		return "", err
	}
	id := c.repository.Head
	var head git.Commit
	for distance := 0; distance <= ownCommits; distance++ {
		commit, err := c.objects.Commit(ctx, id)
		if err != nil {
			return "", err
		}
		if distance == 0 {
			head = commit
		}
		for _, baseline := range known {
			if id == baseline.Commit || commit.Tree == baseline.Tree {
				return baseline.Name, nil
			}
		}
		if len(commit.Parents) == 0 || slices.Contains(shallow, id) {
			break
		}
		id = commit.Parents[0]
	}
	return sameFiles(known, func(path string) (string, error) {
		entry, _, err := c.objects.Find(ctx, head.Tree, path)
		return entry.ID, err
	})
}

// sameFiles gives the name of the baseline of which all files that its series touches are the same. Blob gives the id of
// the content at a path, or "".
func sameFiles(known []patches.Baseline, blob func(path string) (string, error)) (string, error) {
	for _, baseline := range known {
		same := false
		for path, want := range baseline.Touched {
			got, err := blob(path)
			if err != nil {
				return "", err
			}
			if want == nil && got != "" || want != nil && got != *want {
				same = false
				break
			}
			same = same || want != nil
		}
		if same {
			return baseline.Name, nil
		}
	}
	return "", nil
}

// Contradicts is the error of a checkout that is another baseline than the series'.
func (c *Checkout) Contradicts(ctx context.Context, series *patches.Series) error {
	var is string
	var err error
	if c.state != nil {
		is = c.state.Baseline
	} else if is, err = c.recognise(ctx, series.Neighbours()); err != nil {
		return err
	}
	if is == "" || is == series.Baseline.Name {
		return nil
	}
	return fmt.Errorf("%w: %s is %s, not %s: use --baseline %s", ErrWrongBaseline, c.Dir(), is, series.Baseline.Name, is)
}

// Choose loads the series of the baseline that Fetch is to get with these options. Name is the one that the user named;
// without one it is the baseline of what --from or the folder holds, else the default one, where its repository answers or the
// cache has a tree of it, which is then what Fetch copies, else the newest that Debian has. A message says which and why.
func Choose(ctx context.Context, files fs.FS, name string, options *FetchOptions, sink events.Sink) (*patches.Series, error) {
	if name == "" {
		var err error
		if name, err = choose(ctx, files, options, events.OrDiscard(sink)); err != nil {
			return nil, err
		}
	}
	return patches.Load(files, name)
}

// CachedTree is where a cache has its checkout of a baseline, which make demo and tests use.
func CachedTree(cache, baseline string) string { return filepath.Join(cache, "trees", baseline) }

func choose(ctx context.Context, files fs.FS, options *FetchOptions, sink events.Sink) (string, error) {
	wanted, err := patches.LoadBaseline(files, patches.DefaultBaseline)
	if err != nil {
		return "", err
	}
	known := patches.KnownBaselines(files)
	instead := slices.IndexFunc(known, func(b patches.Baseline) bool { return b.Source != nil })
	switch {
	case options.From == debian && wanted.Source == nil && instead >= 0:
		return known[instead].Name, nil
	case options.From != "" && options.From != debian:
		name, err := baselineOf(ctx, known, options.From)
		if err != nil || name != "" {
			return name, err
		}
		return wanted.Name, nil
	case options.From == debian || options.URL != "":
		return wanted.Name, nil
	}
	if held, err := heldBaseline(ctx, options.Dir); err != nil || held != "" {
		return held, err
	}
	if wanted.Source != nil {
		return wanted.Name, nil // it comes from Debian anyway
	}
	why := git.Answers(ctx, upstreamURL, "refs/tags/"+wanted.Tag, probeLimit)
	switch {
	case why == nil:
		options.answered = true
		sink.Emit(events.Message{Level: events.Info, Text: fmt.Sprintf("baseline %s: GitHub answers", wanted.Name)})
		return wanted.Name, nil
	case ctx.Err() != nil:
		return "", why
	}
	tree, held := CachedTree(options.Cache, wanted.Name), ""
	if options.Cache != "" {
		if held, err = heldBaseline(ctx, tree); err != nil {
			return "", err
		}
	}
	switch {
	case held == wanted.Name:
		options.From, options.Adopt = tree, false
		sink.Emit(events.Message{Level: events.Warning, Text: fmt.Sprintf("baseline %s: GitHub cannot be reached (%v): using the cache's tree, %s",
			wanted.Name, why, tree)})
		return wanted.Name, nil
	case instead < 0:
		return "", fmt.Errorf("fetch %s: %w", wanted.Name, noAnswer(wanted, upstreamURL, why))
	}
	sink.Emit(events.Message{Level: events.Warning, Text: fmt.Sprintf("GitHub cannot be reached (%v): using Debian's PyTorch %s (baseline %s) instead of %s",
		why, known[instead].Tag[1:], known[instead].Name, wanted.Name)})
	return known[instead].Name, nil
}

// heldBaseline is the baseline that the folder for the checkout has been fetched for, or "" when nothing is there that a
// fetch could go on with.
func heldBaseline(ctx context.Context, dir string) (string, error) {
	checkout, err := look(ctx, dir)
	if err != nil || checkout == nil {
		return "", err
	}
	defer checkout.Close()
	if checkout.fetching() {
		if resumable, err := checkout.hasTag(ctx); err != nil || !resumable {
			return "", err
		}
	}
	return checkout.Baseline(), nil
}

// baselineOf recognises the baseline of a git work tree, a folder or a tarball; "" when it is none that is known.
func baselineOf(ctx context.Context, known []patches.Baseline, from string) (string, error) {
	info, err := os.Stat(from)
	if err != nil {
		return "", fmt.Errorf("--from %s: %w", from, err)
	}
	if !info.IsDir() {
		for _, baseline := range known {
			if baseline.Source != nil && baseline.Source.Size == info.Size() {
				if sum, err := builds.FileSHA256(from); err != nil || sum == baseline.Source.SHA256 {
					return baseline.Name, err
				}
			}
		}
		return "", nil
	}
	if _, err := os.Lstat(filepath.Join(from, ".git")); err != nil {
		return sameFiles(known, func(path string) (string, error) {
			entry, _, err := readWorkFile(filepath.Join(from, filepath.FromSlash(path)))
			return entry.ID, err
		})
	}
	checkout, err := Open(ctx, from, nil)
	if err != nil {
		return "", err
	}
	defer checkout.Close()
	if state := checkout.state; state != nil && (state.Pending != nil || checkout.applied() >= 0) {
		return state.Baseline, nil
	}
	name, err := checkout.recognise(ctx, known) // HEAD was moved manually, maybe to another baseline
	if err == nil && name == "" {
		name = checkout.Baseline()
	}
	return name, err
}

// noAnswer says what to do when the repository of a baseline does not answer.
func noAnswer(baseline patches.Baseline, url string, why error) error {
	if url != upstreamURL {
		return fmt.Errorf("%w: %s does not answer (%w); try again, or name another repository with --url, or a local source: mpsforge fetch "+
			"--baseline %s --from DIR|TARBALL",
			ErrUnavailable, url, why, baseline.Name)
	}
	instead := ""
	for _, other := range patches.KnownBaselines(patches.Embedded()) {
		if other.Source != nil && other.Name != baseline.Name && runtime.GOOS != "darwin" { // it needs apt-get
			instead = fmt.Sprintf("; or take Debian's PyTorch: --baseline %s", other.Name)
			break
		}
	}
	return fmt.Errorf("%w: GitHub cannot be reached (%w); name a mirror with --url, or a local source: mpsforge fetch --baseline %s --from DIR|TARBALL%s",
		ErrUnavailable, why, baseline.Name, instead)
}

// fetchFailed is the error of a fetch from url that failed: ErrUnavailable when the repository does not answer any more.
func fetchFailed(ctx context.Context, baseline patches.Baseline, url string, err error) error {
	if why := git.Answers(ctx, url, "HEAD", probeLimit); why != nil && ctx.Err() == nil {
		return errors.Join(noAnswer(baseline, url, why), err)
	}
	return err
}
