package fork

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/fork/git"
	"mpsforge/internal/events"
	"mpsforge/patches"
)

// Refusals of Port.
var (
	ErrPortStopped = errors.New("a port is stopped at a conflict")
	ErrNoPort      = errors.New("no port is stopped here")
	ErrNotResolved = errors.New("a conflict is not resolved")
	ErrNoTarget    = errors.New("the version to port to was not found")
)

// PortOutcome is what became of a patch.
type PortOutcome string

// The outcomes of a patch.
const (
	PortUnchanged PortOutcome = "unchanged"        // its files are the same in both versions
	PortMoved     PortOutcome = "moved"            // the same hunks at other line numbers
	PortMerged    PortOutcome = "merged"           // a merge without conflicts changed its hunks
	PortResolved  PortOutcome = "resolved"         // its conflicts were resolved manually
	PortUpstream  PortOutcome = "already upstream" // the version has the whole change: the patch is left out
	PortKept      PortOutcome = "kept"             // the version's own patch, which was not to be ported
	PortLeftOut   PortOutcome = "left out"         // not to be ported, and the version's series has it not
	PortConflicts PortOutcome = "conflict"         // the port stopped here
	PortNotTried  PortOutcome = "not tried"        // it comes after a conflict
)

// PortOptions say where a series is carried.
type PortOptions struct {
	// To is the version as the user named it: a baseline or a commit.
	To string
	// From is a repository, or a checkout of the baseline To, that has the version if this repository has not.
	From string
	// Dir is the folder of patches to write.
	Dir string
	// Only names the patches to carry; the others are taken from the version's own series. Empty means all.
	Only []string
	// Drop lets patches of the version's series go that are not among those carried.
	Drop bool
	// Check makes the run write nothing, conflicts neither.
	Check bool
}

// Ported is what Port did.
type Ported struct {
	Checkout string        `json:"checkout"`
	From     string        `json:"from"`   // baseline
	To       string        `json:"to"`     // as the user named it
	Target   string        `json:"target"` // commit
	Proof    string        `json:"proof"`  // how it is known to be that baseline
	Patches  []PortedPatch `json:"patches"`
	Dropped  []string      `json:"dropped"`
	Dir      string        `json:"dir"`
	Files    []string      `json:"files"` // that changed; with Check, that would change
	Check    bool          `json:"check"`
	// Conflicts are those that the port stopped at, to be resolved in files below Fix.
	Conflicts []PortConflict `json:"conflicts"`
	Fix       string         `json:"fix,omitempty"`

	made []*patches.Patch // of Patches, those that are on the version; nil after a conflict
}

// PortedPatch is what became of one patch.
type PortedPatch struct {
	Name    string      `json:"name"`
	Outcome PortOutcome `json:"outcome"`
	// Commit is the patch on the version; empty for one that is not on it.
	Commit string `json:"commit,omitempty"`
	// Present are the paths of the patch whose whole change the version has already.
	Present []string `json:"present,omitempty"`
}

// Port is a port that stopped at a conflict, as the state keeps it. What is not here is worked out again: merges in the
// object store always give the same commits.
type Port struct {
	To      string        `json:"to"`
	Target  string        `json:"target"`
	Dir     string        `json:"dir"`
	Only    []string      `json:"only"`
	Drop    bool          `json:"drop"`
	Series  string        `json:"series"` // digest of what is carried
	Done    []PortedPatch `json:"done"`
	Stopped string        `json:"stopped"` // name of the patch
}

// StoppedPort gives the options of the port that is stopped at a conflict.
func (c *Checkout) StoppedPort() (PortOptions, error) {
	if c.state == nil || c.state.Port == nil {
		return PortOptions{}, fmt.Errorf("%w: %s", ErrNoPort, c.Dir())
	}
	port := c.state.Port
	return PortOptions{To: port.To, Dir: port.Dir, Only: port.Only, Drop: port.Drop}, nil
}

// Port carries the series to another version of PyTorch, by three-way merges in the object store, one patch at a time.
// target is the version's baseline with the series it has now. Neither HEAD nor the work tree is touched. At a conflict
// the port stops, and ContinuePort takes it up; the patch files are written when all patches are through.
func (c *Checkout) Port(ctx context.Context, series, target *patches.Series, options PortOptions, sink events.Sink) (*Ported, error) {
	sink = events.OrDiscard(sink)
	return c.lockedPort(ctx, series, target, options, sink, func() (*porting, error) {
		if stopped := c.state.Port; stopped != nil && !options.Check {
			return nil, fmt.Errorf("%w: the port to %s at %s, in %s; go on: %s, or give it up: %s",
				ErrPortStopped, stopped.To, stopped.Stopped, c.Dir(), c.command("port", "--continue"), c.command("port", "--abort"))
		}
		commit, err := c.findTarget(ctx, target, options, sink)
		return &porting{Port: Port{Target: commit}}, err
	})
}

// ContinuePort takes up the port that stopped at a conflict, which must be resolved in the files below Ported.Fix.
func (c *Checkout) ContinuePort(ctx context.Context, series, target *patches.Series, options PortOptions, sink events.Sink) (*Ported, error) {
	sink = events.OrDiscard(sink)
	if _, err := c.StoppedPort(); err != nil {
		return nil, err
	}
	return c.lockedPort(ctx, series, target, options, sink, func() (*porting, error) {
		if c.state.Port.Series != series.FilesDigest() {
			return nil, fmt.Errorf("%w: the series is not the one that the port to %s began with; name the same --patches, or begin again: %s",
				ErrSeriesChanged, options.To, c.command("port", "--abort"))
		}
		return &porting{Port: *c.state.Port, fixed: c.state.Port.Stopped}, nil
	})
}

// AbortPort gives up the port that stopped at a conflict. Nothing but the record and the conflicting files is there to undo.
func (c *Checkout) AbortPort(ctx context.Context) (string, error) {
	options, err := c.StoppedPort()
	if err != nil {
		return "", err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := c.recordPort(ctx, nil); err != nil {
		return "", err
	}
	return options.To, c.removeResolved("")
}

func (c *Checkout) lockedPort(ctx context.Context, series, target *patches.Series, options PortOptions, sink events.Sink,
	begin func() (*porting, error)) (*Ported, error) {
	finish := events.Step(sink, "port")
	defer finish(events.Failed, "")
	unlock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := c.ensureBase(ctx, series); err != nil {
		return nil, err
	}
	if err := c.Interrupted(); err != nil {
		return nil, err
	}
	for _, name := range options.Only {
		if _, err := position(series.Patches, name, func(p *patches.Patch) string { return p.Name }); err != nil {
			return nil, err
		}
	}
	p, err := begin()
	if err != nil {
		return nil, err
	}
	p.To, p.Dir, p.Only, p.Drop, p.Series = options.To, options.Dir, options.Only, options.Drop, series.FilesDigest()
	p.checkout, p.source, p.own, p.check = c, series, target, options.Check
	result, err := p.run(ctx, sink)
	switch {
	case err != nil:
	case len(result.Conflicts) > 0:
		finish(events.Failed, fmt.Sprintf("stopped, files in conflict: %d", len(result.Conflicts)))
	default:
		finish(events.OK, fmt.Sprintf("patches: %d", len(result.Patches)))
	}
	return result, err
}

// findTarget finds the commit of the version, fetching it if it must, and makes sure that it is the baseline's.
func (c *Checkout) findTarget(ctx context.Context, target *patches.Series, options PortOptions, sink events.Sink) (string, error) {
	wanted := options.To
	if wanted == target.Baseline.Name && target.Baseline.Commit != "" {
		wanted = target.Baseline.Commit
	}
	if options.From != "" {
		from, err := Open(ctx, options.From, nil)
		if err != nil {
			return "", fmt.Errorf("--from: %w", err)
		}
		if options.To == target.Baseline.Name && from.Baseline() == options.To { // its base may be another commit with the baseline's files
			wanted, _ = from.Base()
		}
		if err := from.Close(); err != nil {
			return "", err
		}
	}
	commit, err := c.repository.ResolveCommit(ctx, wanted)
	if err != nil && options.From != "" {
		from, absErr := filepath.Abs(options.From)
		if absErr != nil {
			return "", absErr
		}
		if err := c.repository.FetchCommit(ctx, from, wanted, "", gitProgress(sink, "port")); err != nil {
			return "", fmt.Errorf("%w: %w", ErrNoTarget, err)
		}
		commit, err = c.repository.ResolveCommit(ctx, wanted)
	}
	if err != nil {
		gets := ""
		if target.Baseline.Commit != "" {
			gets = fmt.Sprintf(" (mpsforge fetch --baseline %s gets one)", target.Baseline.Name)
		}
		return "", fmt.Errorf("%w: commit %s (%s) is not in %s; name a repository that has it: --from DIR%s: %w", ErrNoTarget, wanted, options.To, c.Dir(),
			gets, err)
	}
	_, err = c.proveTarget(ctx, target, commit)
	return commit, err
}

// proveTarget says how a commit is known to be a baseline.
func (c *Checkout) proveTarget(ctx context.Context, target *patches.Series, commit string) (string, error) {
	proof, err := c.identify(ctx, target, commit)
	if err != nil || proof != "" || target.Baseline.Commit == "" {
		return proof, err
	}
	same, differing, err := c.compareDigests(ctx, target, commit)
	if err != nil {
		return "", err
	}
	if len(differing) > 0 || same == 0 {
		return "", fmt.Errorf("%w: commit %s is not %s: %d of %d known files differ (the first: %s)", ErrWrongBaseline, commit, target.Baseline.Name,
			len(differing), same+len(differing), strings.Join(differing[:1], ""))
	}
	return partProof(target.Baseline, same), nil
}

// porting is a port that runs.
type porting struct {
	Port
	checkout    *Checkout
	source, own *patches.Series // what is carried, and the version's own series
	fixed       string          // the patch whose conflicts were resolved manually
	check       bool
	carried     map[string]*patches.Patch // of Done, by name
	parents     map[string]string         // of Done, by name
}

// line is a series as commits: where it begins, patch by patch.
type line struct {
	checkout *Checkout
	head     string
	made     []Applied // commits of the patches to come, as far as they are known
}

// advance puts the next patch on and gives the commit before and after.
func (l *line) advance(ctx context.Context, patch *patches.Patch) (before, after string, err error) {
	before = l.head
	if len(l.made) > 0 && l.made[0].SHA256 == patch.SHA256 {
		l.head, l.made = l.made[0].Commit, l.made[1:]
		return before, l.head, nil
	}
	l.made = nil
	l.head, err = l.checkout.commitPatch(ctx, before, patch)
	return before, l.head, err
}

// run carries the patches from the first that is not done on.
func (p *porting) run(ctx context.Context, sink events.Sink) (*Ported, error) {
	c := p.checkout
	result := &Ported{Checkout: c.Dir(), From: p.source.Baseline.Name, To: p.To, Target: p.Target, Dir: p.Dir, Check: p.check, Files: []string{},
		Conflicts: []PortConflict{}, Dropped: []string{}}
	var err error
	if result.Proof, err = c.proveTarget(ctx, p.own, p.Target); err != nil {
		return nil, err
	}
	done := p.Done
	p.Done, p.carried, p.parents = nil, map[string]*patches.Patch{}, map[string]string{}
	ours := &line{checkout: c, head: p.Target} // the version's own series, for patches that are kept
	theirs := &line{checkout: c, head: c.state.Base, made: c.state.Applied}
	onto := p.Target
	sink.Emit(events.PartsPlanned{Step: "port", Names: p.source.Names()})
	for i, patch := range p.source.Patches {
		tell := events.RunPart(sink, events.Part{Step: "port", Name: patch.Name})
		sink.Emit(events.StepProgress{Step: "port", Done: int64(i), Total: int64(len(p.source.Patches)), Unit: "patches", Note: patch.Name})
		before, after, err := theirs.advance(ctx, patch)
		if err != nil {
			return nil, err
		}
		carried, left := patch, false
		if own := p.ownPatch(patch.Name); own != nil && len(p.Only) > 0 {
			ownBefore, ownAfter, err := ours.advance(ctx, own)
			if err != nil {
				return nil, fmt.Errorf("the series in %s does not apply to %s: %w", p.Dir, p.To, err)
			}
			if !slices.Contains(p.Only, patch.Name) {
				carried, before, after = own, ownBefore, ownAfter
			}
		} else if len(p.Only) > 0 {
			left = !slices.Contains(p.Only, patch.Name)
		}
		p.parents[patch.Name], p.carried[patch.Name] = onto, carried
		var now PortedPatch
		switch {
		case i < len(done) && (carried == patch || done[i].Outcome == PortResolved):
			if now, err = p.takeUp(ctx, done[i], onto); err != nil {
				return nil, err
			}
		case left:
			now = PortedPatch{Name: patch.Name, Outcome: PortLeftOut}
		default:
			var conflicts []PortConflict
			if now, conflicts, err = p.carry(ctx, onto, before, after, carried); err != nil {
				return nil, err
			}
			if now.Outcome == PortUnchanged && carried != patch {
				now.Outcome = PortKept
			}
			if len(conflicts) > 0 {
				tell(events.PartFinished{Outcome: events.Failed, Detail: "conflicts in " + counted(len(conflicts), "file")})
				result.Conflicts = conflicts
				return p.stop(ctx, result, patch.Name)
			}
		}
		tell(events.PartFinished{Outcome: events.OK, Detail: string(now.Outcome)})
		p.Done = append(p.Done, now)
		if now.Commit != "" {
			onto = now.Commit
		}
	}
	return p.finish(ctx, result, sink)
}

// takeUp takes over a patch that was through before the port stopped, if the commits below it are the same still.
func (p *porting) takeUp(ctx context.Context, done PortedPatch, onto string) (PortedPatch, error) {
	if done.Commit == "" {
		return done, nil
	}
	commit, err := p.checkout.objects.Commit(ctx, done.Commit)
	if err == nil && !slices.Equal(commit.Parents, []string{onto}) {
		err = fmt.Errorf("%w: the series in %s was changed since the port to %s began; begin again: %s", ErrSeriesChanged, p.Dir, p.To,
			p.checkout.command("port", "--abort"))
	}
	return done, err
}

func (p *porting) ownPatch(name string) *patches.Patch {
	at := slices.IndexFunc(p.own.Patches, func(own *patches.Patch) bool { return own.Name == name })
	if at < 0 {
		return nil
	}
	return p.own.Patches[at]
}

// carry puts what after changed on before onto another commit.
func (p *porting) carry(ctx context.Context, onto, before, after string, patch *patches.Patch) (PortedPatch, []PortConflict, error) {
	c := p.checkout
	fail := func(err error) (PortedPatch, []PortConflict, error) {
		return PortedPatch{}, nil, fmt.Errorf("port %s to %s: %w", patch.Name, p.To, err)
	}
	var trees [3]string
	for i, id := range []string{before, after, onto} {
		commit, err := c.objects.Commit(ctx, id)
		if err != nil {
			return fail(err)
		}
		trees[i] = commit.Tree
	}
	same := map[string]git.Entry{} // what the patch makes of its paths, if it finds there what it found before
	for _, path := range patch.Paths() {
		var entries [3]git.Entry
		for i, tree := range trees {
			var err error
			if entries[i], _, err = c.objects.Find(ctx, tree, path); err != nil {
				return fail(err)
			}
		}
		if entries[0] != entries[2] {
			same = nil
			break
		}
		same[path] = entries[1]
	}
	result := PortedPatch{Name: patch.Name, Outcome: PortUnchanged}
	tree := ""
	var err error
	if same != nil {
		if tree, err = c.objects.EditTree(ctx, trees[2], same); err != nil {
			return fail(err)
		}
	} else {
		if result.Present, err = c.present(ctx, trees[2], patch); err != nil {
			return fail(err)
		}
		if len(result.Present) == len(patch.Files) {
			result.Outcome = PortUpstream
			return result, nil, nil
		}
		merge, err := c.merge(ctx, onto, before, after)
		if err != nil {
			return fail(err)
		}
		var conflicts []PortConflict
		result.Outcome = PortMerged
		if tree, conflicts, err = p.settle(ctx, merge, trees[2], patch, &result); err != nil {
			return fail(err)
		}
		if len(conflicts) > 0 {
			return result, conflicts, nil
		}
		if tree == trees[2] {
			result.Outcome = PortUpstream
			return result, nil, nil
		}
	}
	h := patch.Header
	result.Commit, err = c.objects.AddCommit(git.Commit{Tree: tree, Parents: []string{onto}, Message: h.Message(),
		Author: git.Signature{Name: h.AuthorName, Email: h.AuthorEmail, When: h.Date}})
	if err != nil {
		return fail(err)
	}
	return result, nil, nil
}

// present lists the paths of a patch whose whole change a tree has.
func (c *Checkout) present(ctx context.Context, tree string, patch *patches.Patch) ([]string, error) {
	var paths []string
	for _, file := range patch.Files {
		entry, _, err := c.objects.Find(ctx, tree, file.Path())
		if err != nil {
			return nil, err
		}
		var content []byte // nil for an absent file
		switch {
		case entry == git.Entry{}:
		case entry.Mode != git.ModeFile && entry.Mode != git.ModeExecutable,
			file.NewMode != 0 && entry.Mode != gitMode(file.NewMode):
			continue
		default:
			if content, err = c.objects.Blob(ctx, entry.ID); err != nil {
				return nil, err
			}
			if content == nil {
				content = []byte{}
			}
		}
		if file.Present(content) {
			paths = append(paths, file.Path())
		}
	}
	return paths, nil
}

// stop ends the run at a conflict: what is done is kept in the state, the conflicting files are ready to be edited.
func (p *porting) stop(ctx context.Context, result *Ported, name string) (*Ported, error) {
	c := p.checkout
	if err := p.classify(ctx, nil); err != nil {
		return nil, err
	}
	result.Patches = append(slices.Clone(p.Done), PortedPatch{Name: name, Outcome: PortConflicts})
	for _, patch := range p.source.Patches[len(result.Patches):] {
		result.Patches = append(result.Patches, PortedPatch{Name: patch.Name, Outcome: PortNotTried})
	}
	if p.check {
		return result, nil
	}
	// The files first: a record without its files would take them for deleted ones.
	if err := c.writeConflicts(name, result.Conflicts); err != nil {
		return nil, err
	}
	p.Stopped = name
	if err := c.recordPort(ctx, &p.Port); err != nil {
		return nil, err
	}
	result.Fix = c.fixDir(name)
	return result, c.removeResolved(name)
}

// finish writes the patch files.
func (p *porting) finish(ctx context.Context, result *Ported, sink events.Sink) (*Ported, error) {
	c := p.checkout
	whole := &taken{}
	var err error
	if err = p.classify(ctx, whole); err != nil {
		return nil, err
	}
	result.Patches = p.Done
	for _, own := range p.own.Patches {
		if !slices.ContainsFunc(whole.patches, func(patch *patches.Patch) bool { return patch.Name == own.Name }) {
			result.Dropped = append(result.Dropped, own.Name)
		}
	}
	if len(result.Dropped) > 0 && !p.Drop && !p.check {
		return nil, fmt.Errorf("%w: %s, of the series in %s; remove them with --drop", ErrDropped, strings.Join(result.Dropped, ", "), p.Dir)
	}
	if p.check && p.Dir == "" {
		result.made = whole.patches
		return result, nil
	}
	own := *p.own
	if own.Baseline.Commit == "" { // a version that is not a baseline yet
		commit, err := c.objects.Commit(ctx, p.Target)
		if err != nil {
			return nil, err
		}
		own.Baseline.Commit, own.Baseline.Tree = p.Target, commit.Tree
	}
	if head := p.head(); head != p.Target {
		if whole.cumulative, err = c.cumulativeDiff(ctx, ExportOptions{Dir: p.Dir}, p.Target, head); err != nil {
			return nil, err
		}
	}
	write, err := c.prepareFiles(ctx, &own, p.Target, whole, ExportOptions{Dir: p.Dir}, sink)
	if err != nil {
		return nil, err
	}
	if p.check {
		result.Files, err = write.differing()
		return result, err
	}
	if result.Files, err = patches.Rewrite(p.Dir, write.files, write.remove); err != nil {
		return nil, err
	}
	if c.state.Port == nil {
		return result, nil
	}
	if err := c.recordPort(ctx, nil); err != nil {
		return nil, err
	}
	return result, c.removeResolved("")
}

// head is the last commit so far.
func (p *Port) head() string {
	for _, done := range slices.Backward(p.Done) {
		if done.Commit != "" {
			return done.Commit
		}
	}
	return p.Target
}

// classify distinguishes moved patches from merged ones by what git prints of them and, unless into is nil, takes them all.
func (p *porting) classify(ctx context.Context, into *taken) error {
	c := p.checkout
	if err := c.objects.Flush(); err != nil {
		return err
	}
	var which []int
	var pairs []git.CommitPair
	for i, done := range p.Done {
		if done.Commit != "" && (into != nil || done.Outcome == PortMerged) {
			which = append(which, i)
			pairs = append(pairs, git.CommitPair{Old: p.parents[done.Name], New: done.Commit})
		}
	}
	diffs, err := c.repository.Diffs(ctx, pairs)
	if err != nil {
		return err
	}
	for k, i := range which {
		done := &p.Done[i]
		patch, err := patches.Format(done.Name, p.carried[done.Name].Header, diffs[k])
		if err != nil {
			return fmt.Errorf("port %s to %s: %w", done.Name, p.To, err)
		}
		if done.Outcome == PortMerged && patches.Compare(p.carried[done.Name], patch).Diff <= patches.DegreePlaces {
			done.Outcome = PortMoved
		}
		if into != nil {
			into.patches = append(into.patches, patch)
		}
	}
	return nil
}

// recordPort notes where a port stopped; nil that none is.
func (c *Checkout) recordPort(ctx context.Context, port *Port) error {
	state := *c.state
	state.Port = port
	if c.stateID == git.NoObject {
		if err := c.noteEntries(ctx, &state, nil); err != nil {
			return err
		}
	}
	return c.record(ctx, "port", &state, "")
}
