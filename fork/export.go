package fork

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/fork/git"
	"mpsforge/internal/events"
	"mpsforge/internal/words"
	"mpsforge/patches"
)

// Refusals of Export.
var (
	ErrMerge   = errors.New("a series must be a linear history, without merges")
	ErrDropped = errors.New("patches of the series are not among the commits")
)

// ExportOptions say what Export writes, and where.
type ExportOptions struct {
	// Dir is the baseline's folder of patches. With Check it may be empty.
	Dir string
	// Names gives patches other names than those they would get, by revision.
	Names map[string]string
	// Drop removes patches that have no commit.
	Drop bool
	// Cumulative writes the change as a whole as well. A folder that has it gets it anyway.
	Cumulative bool
	// Check makes the run stop before anything is written.
	Check bool
}

// Exported is what Export found and wrote.
type Exported struct {
	Checkout string          `json:"checkout"`
	Baseline string          `json:"baseline"`
	Dir      string          `json:"dir,omitempty"`
	Patches  []ExportedPatch `json:"patches"`
	Dropped  []string        `json:"dropped"`
	Files    []string        `json:"files"` // that changed, or with Check: would change
	Check    bool            `json:"check"`
}

// ExportedPatch is one commit as a patch.
type ExportedPatch struct {
	Name   string `json:"name"`
	Commit string `json:"commit"`
	Old    string `json:"old,omitempty"` // its former name, if that is another
	New    bool   `json:"new"`
	patches.PatchDifference
}

// Changed reports whether the patch file is another than before.
func (p ExportedPatch) Changed() bool { return p.New || p.Old != "" || !p.None() }

// Export turns the commits on top of the baseline into the patch files of the series. It looks at commits alone; the
// work tree plays no part.
func (c *Checkout) Export(ctx context.Context, series *patches.Series, options ExportOptions, sink events.Sink) (*Exported, error) {
	sink = events.OrDiscard(sink)
	finish := events.Step(sink, "export")
	defer finish(events.Failed, "")
	if !options.Check {
		unlock, err := c.lock(ctx)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	commits, err := c.commitsOnBase(ctx, series)
	if err != nil {
		return nil, err
	}
	whole, err := c.takePatches(ctx, series, commits, options)
	if err != nil {
		return nil, err
	}
	result := &Exported{Checkout: c.Dir(), Baseline: series.Baseline.Name, Dir: options.Dir, Patches: whole.report, Dropped: whole.dropped,
		Check: options.Check}
	if len(whole.dropped) > 0 && !options.Drop && !options.Check {
		return nil, fmt.Errorf("%w: %s; put them on the checkout first (mpsforge apply), give a reworded commit its old name (--name REVISION=%s), "+
			"or remove them: --drop",
			ErrDropped, strings.Join(whole.dropped, ", "), whole.dropped[0])
	}
	write, err := c.prepareFiles(ctx, series, c.state.Base, whole, options, sink)
	if err != nil {
		return nil, err
	}
	if options.Check {
		if result.Files, err = write.differing(); err != nil {
			return nil, err
		}
	} else {
		if result.Files, err = patches.Rewrite(options.Dir, write.files, write.remove); err != nil {
			return nil, err
		}
		if err := c.recordExport(ctx, whole.patches, commits); err != nil {
			return nil, err
		}
	}
	if result.Files == nil {
		result.Files = []string{}
	}
	finish(events.OK, fmt.Sprintf("patches: %d, files changed: %d", len(result.Patches), len(result.Files)))
	return result, nil
}

// seriesCommit is one commit on top of the base.
type seriesCommit struct {
	id string
	git.Commit
}

// commitsOnBase lists the commits from the base, which it finds when none is recorded, to HEAD.
func (c *Checkout) commitsOnBase(ctx context.Context, series *patches.Series) ([]seriesCommit, error) {
	if operation := c.repository.OperationInProgress(); operation != "" {
		return nil, fmt.Errorf("%w: %s is under way in %s; finish or abort it first (git status shows how)", ErrBusy, operation, c.Dir())
	}
	if c.state != nil {
		if err := c.ensureBase(ctx, series); err != nil { // the baseline is the recorded one
			return nil, err
		}
		if err := c.Interrupted(); err != nil {
			return nil, err
		}
	}
	var commits []seriesCommit
	for id := c.repository.Head; ; {
		base, err := c.isBase(ctx, series, id)
		if err != nil {
			return nil, err
		}
		if base {
			break
		}
		commit, err := c.objects.Commit(ctx, id)
		if err != nil {
			return nil, err
		}
		if len(commit.Parents) > 1 {
			return nil, fmt.Errorf("%w: %s (%s) in %s has %d parents; rebase the commits onto the baseline (git rebase)", ErrMerge,
				id, words.FirstLine(commit.Message), c.Dir(), len(commit.Parents))
		}
		if len(commit.Parents) == 0 || len(commits) == ownCommits {
			return nil, fmt.Errorf("%w: the baseline %s is not among the last %d commits of HEAD (%s) in %s; check a branch out that begins there, "+
				"or adopt the baseline: %s",
				ErrWrongBaseline, series.Baseline.Name, len(commits)+1, c.repository.Head, c.Dir(), c.command("fetch", "--from", c.Dir()))
		}
		commits = append(commits, seriesCommit{id: id, Commit: commit})
		id = commit.Parents[0]
	}
	slices.Reverse(commits)
	return commits, nil
}

// isBase reports whether a commit is the recorded base or, where none is recorded, the baseline, which is then noted.
func (c *Checkout) isBase(ctx context.Context, series *patches.Series, id string) (bool, error) {
	if c.state != nil {
		return id == c.state.Base, nil
	}
	proof, err := c.identify(ctx, series, id)
	if err != nil || proof == "" {
		return false, err
	}
	c.state = &State{Schema: stateSchema, Worktree: c.repository.WorktreeID, Baseline: series.Baseline.Name, Base: id,
		Proof: proof, Source: "the user's own checkout", Head: id, Applied: []Applied{}}
	return true, nil
}

// taken is the commits as patches.
type taken struct {
	patches    []*patches.Patch
	report     []ExportedPatch
	dropped    []string // names of the series that have no commit
	cumulative []byte
}

// takePatches makes the patches of the commits, and compares them with those of the series.
func (c *Checkout) takePatches(ctx context.Context, series *patches.Series, commits []seriesCommit, options ExportOptions) (*taken, error) {
	known, err := c.knownPatches(series, commits, options)
	if err != nil {
		return nil, err
	}
	diffs, cumulative, err := c.diffsOf(ctx, commits, known, options)
	if err != nil {
		return nil, err
	}
	names, err := c.nameCommits(ctx, series, commits, diffs, options.Names)
	if err != nil {
		return nil, err
	}
	result := &taken{report: []ExportedPatch{}, dropped: []string{}, cumulative: cumulative}
	kept := map[string]bool{}
	for i, commit := range commits {
		patch := known[commit.id]
		if patch == nil {
			header := patches.NewHeader(commit.Author.Name, commit.Author.Email, commit.Author.When, commit.Message)
			if patch, err = patches.Format(names[i].name, header, diffs[i]); err != nil {
				return nil, fmt.Errorf("export %s of %s: %w", commit.id, c.Dir(), err)
			}
		}
		result.patches = append(result.patches, patch)
		report := ExportedPatch{Name: patch.Name, Commit: commit.id, New: names[i].old == nil}
		if old := names[i].old; old != nil {
			report.PatchDifference = patches.Compare(old, patch)
			if kept[old.Name] = true; old.Name != patch.Name {
				report.Old = old.Name
			}
		} else {
			report.PatchDifference = patches.PatchDifference{Header: []string{}, Paths: map[string]patches.Degree{}}
		}
		result.report = append(result.report, report)
	}
	for _, old := range series.Patches {
		if !kept[old.Name] {
			result.dropped = append(result.dropped, old.Name)
		}
	}
	return result, nil
}

// knownPatches gives, by commit, the patches of the series that need not be made again: recorded for that commit, and in
// the canonical form because export wrote them or they are mpsforge's own, which CI proves. A check trusts no record, and
// who names patches may give one another name.
func (c *Checkout) knownPatches(series *patches.Series, commits []seriesCommit, options ExportOptions) (map[string]*patches.Patch, error) {
	known := map[string]*patches.Patch{}
	if options.Check || len(options.Names) > 0 {
		return known, nil
	}
	shipped, err := patches.ShippedDigests(series.Baseline.Name)
	if err != nil {
		return nil, err
	}
	for _, commit := range commits {
		for _, applied := range c.state.Applied {
			for _, patch := range series.Patches {
				if applied.Commit == commit.id && applied.Name == patch.Name && applied.SHA256 == patch.SHA256 &&
					(applied.Exported || slices.Contains(shipped, patch.SHA256)) {
					known[commit.id] = patch
				}
			}
		}
	}
	return known, nil
}

// diffsOf gives the diff of each commit that has no known patch and, if it is wanted or there, that of all.
func (c *Checkout) diffsOf(ctx context.Context, commits []seriesCommit, known map[string]*patches.Patch, options ExportOptions) (diffs [][]byte,
	cumulative []byte, err error) {
	var pairs []git.CommitPair
	for _, commit := range commits {
		if known[commit.id] == nil {
			pairs = append(pairs, git.CommitPair{Old: commit.Parents[0], New: commit.id})
		}
	}
	made, err := c.repository.Diffs(ctx, pairs)
	if err != nil {
		return nil, nil, err
	}
	diffs = make([][]byte, len(commits))
	for i, commit := range commits {
		if known[commit.id] != nil {
			continue
		}
		diffs[i], made = made[0], made[1:]
		if len(diffs[i]) == 0 {
			return nil, nil, fmt.Errorf("commit %s (%s) in %s changes nothing; drop it (git rebase -i)", commit.id, words.FirstLine(commit.Message), c.Dir())
		}
	}
	if len(commits) > 0 {
		cumulative, err = c.cumulativeDiff(ctx, options, c.state.Base, c.repository.Head)
	}
	return diffs, cumulative, err
}

// cumulativeDiff gives the change as a whole, or nil if it is neither wanted nor there.
func (c *Checkout) cumulativeDiff(ctx context.Context, options ExportOptions, from, to string) ([]byte, error) {
	if _, err := os.Stat(filepath.Join(options.Dir, patches.CumulativeFile)); err != nil && !options.Cumulative {
		return nil, nil
	}
	whole, err := c.repository.Diffs(ctx, []git.CommitPair{{Old: from, New: to}})
	if err != nil {
		return nil, err
	}
	return whole[0], nil
}

// named is the name of a commit's patch, and the patch of the series that it was.
type named struct {
	name string
	old  *patches.Patch // nil for a new one
}

// nameCommits finds out which patch of the series each commit is: by what was asked for, the record of apply, the subject, the
// same added and removed lines, or its place in the order with a path in common. Others are new, and called after their subject.
func (c *Checkout) nameCommits(ctx context.Context, series *patches.Series, commits []seriesCommit, diffs [][]byte, wishes map[string]string) ([]named, error) {
	result := make([]named, len(commits))
	unused := slices.Clone(series.Patches)
	take := func(i int, which func(*patches.Patch) bool) {
		at := slices.IndexFunc(unused, which)
		if result[i].old != nil || at < 0 {
			return
		}
		result[i].old = unused[at]
		if result[i].name == "" {
			result[i].name = unused[at].Name
		}
		unused = slices.Delete(unused, at, at+1)
	}
	for revision, name := range wishes {
		id, err := c.repository.ResolveCommit(ctx, revision)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(commits, func(commit seriesCommit) bool { return commit.id == id })
		if at < 0 {
			return nil, fmt.Errorf("--name %s=%s: %s is not a commit on top of the baseline", revision, name, id)
		}
		if err := patches.CheckName(name); err != nil {
			return nil, fmt.Errorf("--name %s=%s: %w", revision, name, err)
		}
		result[at].name = name
		take(at, func(p *patches.Patch) bool { return p.Name == name })
	}
	for i, commit := range commits {
		for _, applied := range c.state.Applied {
			if applied.Commit == commit.id {
				take(i, func(p *patches.Patch) bool { return p.Name == applied.Name })
			}
		}
	}
	for i, commit := range commits {
		take(i, func(p *patches.Patch) bool { return p.Header.Subject == words.FirstLine(commit.Message) })
	}
	for i := range commits {
		if result[i].old != nil || len(unused) == 0 {
			continue
		}
		diff, err := patches.ParseDiff("", diffs[i])
		if err != nil {
			continue // Format says what is wrong with it
		}
		take(i, func(p *patches.Patch) bool { return patches.Compare(p, diff).Diff < patches.DegreeContent })
		take(i, func(p *patches.Patch) bool {
			place := slices.Index(series.Patches, p)
			follows := place == 0 && i == 0 || place > 0 && i > 0 && result[i-1].old == series.Patches[place-1]
			return follows && slices.ContainsFunc(p.Paths(), func(path string) bool { return slices.Contains(diff.Paths(), path) })
		})
	}
	used := map[string]string{}
	for i, commit := range commits {
		if result[i].name == "" {
			result[i].name = patches.Slug(words.FirstLine(commit.Message))
		}
		if other, twice := used[result[i].name]; twice {
			return nil, fmt.Errorf("commits %s and %s would both be called %s; name one: --name %s=NAME", other, commit.id, result[i].name, commit.id)
		}
		used[result[i].name] = commit.id
	}
	return result, nil
}

// rewrite is what a folder of patches is to become.
type rewrite struct {
	dir    string
	files  map[string][]byte
	remove []string
}

// differing lists the files that would change.
func (r *rewrite) differing() ([]string, error) {
	var list []string
	for name, content := range r.files {
		was, err := os.ReadFile(filepath.Join(r.dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("compare with %s: %w", r.dir, err)
		}
		if err != nil || string(was) != string(content) {
			list = append(list, name)
		}
	}
	for _, name := range r.remove {
		if _, err := os.Lstat(filepath.Join(r.dir, name)); err == nil {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list, nil
}

// prepareFiles works out the files of the series' folder: patches, series file and the facts of the touched paths.
func (c *Checkout) prepareFiles(ctx context.Context, series *patches.Series, base string, whole *taken, options ExportOptions,
	sink events.Sink) (*rewrite, error) {
	now := *series
	now.Patches = whole.patches
	var digests *patches.Digests
	var err error
	if now.Baseline, digests, err = c.refreshBaseline(ctx, series, base, now.TouchedPaths(), sink); err != nil {
		return nil, err
	}
	fresh := false
	if _, err := os.Stat(filepath.Join(options.Dir, patches.BaselineFile)); errors.Is(err, os.ErrNotExist) {
		fresh = true
	}
	exact := digests
	if exact == nil {
		known, err := series.Digests()
		if err != nil {
			return nil, err
		}
		exact = &known
	}
	if fresh {
		digests = exact
	}
	blobs, err := c.recordBlobs(ctx, &now, *exact, base)
	if err != nil {
		return nil, err
	}
	text, err := series.SeriesText()
	if err != nil {
		return nil, err
	}
	result := &rewrite{dir: options.Dir}
	if result.files, err = now.Files(text, digests, blobs); err != nil {
		return nil, err
	}
	if len(whole.cumulative) > 0 {
		result.files[patches.CumulativeFile] = whole.cumulative
	} else {
		result.remove = append(result.remove, patches.CumulativeFile) // a series that changes nothing has none
	}
	for _, old := range series.Patches {
		if name := patches.PatchFile(old.Name); result.files[name] == nil {
			result.remove = append(result.remove, name)
		}
	}
	return result, nil
}

// recordExport notes that the commits are the patches now, unless that is known.
func (c *Checkout) recordExport(ctx context.Context, exported []*patches.Patch, commits []seriesCommit) error {
	state := *c.state
	state.Applied, state.Head = []Applied{}, c.repository.Head
	for i, patch := range exported {
		state.Applied = append(state.Applied, Applied{Name: patch.Name, SHA256: patch.SHA256, Commit: commits[i].id, Paths: patch.Paths(), Exported: true})
	}
	// that what apply recorded is what export gives is not worth a new record
	same := func(a, b Applied) bool { return a.Name == b.Name && a.SHA256 == b.SHA256 && a.Commit == b.Commit }
	if c.stateID != git.NoObject && state.Head == c.state.Head && slices.EqualFunc(state.Applied, c.state.Applied, same) {
		return nil
	}
	if err := c.noteEntries(ctx, &state, nil); err != nil {
		return err
	}
	return c.record(ctx, "export", &state, "")
}

// refreshBaseline brings the facts about the touched paths up to date. The identity of the baseline stays what it is:
// commit may be known by digests alone. Digests are given only when they change.
func (c *Checkout) refreshBaseline(ctx context.Context, series *patches.Series, commit string, touched []string, sink events.Sink) (patches.Baseline,
	*patches.Digests, error) {
	baseline := series.Baseline
	known := func(path string) bool { _, found := baseline.Touched[path]; return found }
	if len(touched) == len(baseline.Touched) && !slices.ContainsFunc(touched, func(path string) bool { return !known(path) }) {
		return baseline, nil, nil
	}
	fail := func(err error) (patches.Baseline, *patches.Digests, error) { return patches.Baseline{}, nil, err }
	proof, err := c.identify(ctx, series, commit)
	if err != nil {
		return fail(err)
	}
	base, err := c.objects.Commit(ctx, commit)
	if err != nil {
		return fail(err)
	}
	digests, err := series.Digests()
	if err != nil {
		return fail(err)
	}
	if digests.Tag == "" { // none are recorded
		digests = patches.NewDigests(baseline.Tag)
	}
	digests.Files = slices.Clone(digests.Files)
	before := len(digests.Files)
	blobs := map[string]*string{}
	absent := slices.Clone(baseline.Absent)
	for _, path := range touched {
		entry, _, err := c.objects.Find(ctx, base.Tree, path)
		if err != nil {
			return fail(err)
		}
		hasDigests := slices.ContainsFunc(digests.Files, func(f patches.FileDigests) bool { return f.Path == path })
		switch {
		case entry == git.Entry{}:
			if blobs[path] = nil; !slices.Contains(absent, path) {
				absent = append(absent, path)
				if proof == "" {
					sink.Emit(events.Message{Level: events.Warning,
						Text: fmt.Sprintf("%s is recorded as absent from %s because commit %s lacks it, which is known by digests alone", path,
							baseline.Name, commit)})
				}
			}
			continue
		case hasDigests:
		case proof == "":
			sink.Emit(events.Message{Level: events.Warning,
				Text: fmt.Sprintf("%s has no digests in %s, and commit %s is known by digests alone: its hunks will count as unverified", path,
					baseline.Name, commit)})
		default:
			content, err := c.objects.Blob(ctx, entry.ID)
			if err != nil {
				return fail(err)
			}
			digests.Files = append(digests.Files, patches.DigestFile(path, entry.Mode, content))
		}
		blobs[path] = &entry.ID
	}
	slices.Sort(absent)
	slices.SortFunc(digests.Files, func(a, b patches.FileDigests) int { return strings.Compare(a.Path, b.Path) })
	baseline.Touched, baseline.Absent = blobs, absent
	if len(digests.Files) == before {
		return baseline, nil, nil
	}
	return baseline, &digests, nil
}
