package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"mpsforge/internal/fault"
)

// Objects reads a repository's objects and collects new ones in memory, so that a whole chain of commits can be built
// before anything is written. It is for one goroutine.
type Objects struct {
	repository *Repository
	storage    *filesystem.Storage
	sources    []*filesystem.ObjectStorage   // where objects are looked for, in this order
	trees      map[string][]object.TreeEntry // decoded once: a change looks at the same trees again and again
	pending    map[plumbing.Hash]*plumbing.MemoryObject
	order      []plumbing.Hash // of pending: blobs before their trees before their commits
}

// Entry is one entry of a tree. Mode is six octal digits as git prints them; an absent entry is the zero Entry.
type Entry struct {
	Mode string `json:"mode,omitempty"`
	ID   string `json:"id,omitempty"`
}

// Modes of tree entries.
const (
	ModeFile       = "100644"
	ModeExecutable = "100755"
	ModeSymlink    = "120000"
	ModeSubmodule  = "160000"
	ModeFolder     = "040000"
)

// Signature is a commit's author or committer.
type Signature struct {
	Name, Email string
	When        time.Time
}

// Commit is what this project needs of a commit.
type Commit struct {
	Tree    string
	Parents []string
	Author  Signature
	Message string
}

// Objects opens the object store directly, which works in layouts that go-git's PlainOpen refuses (worktreeConfig,
// sparse checkout, alternates; docs/dev/decisions/go-git-at-the-storer-only.md).
func (r *Repository) Objects() *Objects {
	layout := repositoryFiles{dotgit.NewRepositoryFilesystem(osfs.New(r.Dir), osfs.New(r.CommonDir)), r.CommonDir}
	options := filesystem.Options{AlternatesFS: osfs.New("/")}
	storage := filesystem.NewStorageWithOptions(layout, cache.NewObjectLRU(8*cache.MiByte), options)
	objects := &Objects{repository: r, storage: storage, trees: map[string][]object.TreeEntry{}, pending: map[plumbing.Hash]*plumbing.MemoryObject{}}
	// The storage would open its alternates, with their pack indexes, anew for each object that it does not have. An
	// alternate that cannot be opened this way, such as one with a relative path, is left to catFile.
	dot := dotgit.NewWithOptions(layout, dotgit.Options{AlternatesFS: options.AlternatesFS})
	if alternates, err := dot.Alternates(); err == nil {
		for _, alternate := range alternates {
			objects.sources = append(objects.sources, filesystem.NewObjectStorage(alternate, cache.NewObjectLRU(8*cache.MiByte)))
		}
	}
	objects.sources = append(objects.sources, &storage.ObjectStorage)
	return objects
}

// repositoryFiles lets go-git set the permissions of the objects it writes. Without it they stay readable by the owner
// alone, and another user of the checkout, such as a build, cannot read the patched commits.
type repositoryFiles struct {
	*dotgit.RepositoryFilesystem
	commonDir string
}

// Chmod is only called for objects and packs, which all lie in the common directory.
func (f repositoryFiles) Chmod(name string, mode os.FileMode) error {
	return os.Chmod(filepath.Join(f.commonDir, filepath.FromSlash(name)), mode)
}

// Close releases the open pack files.
func (o *Objects) Close() error {
	var errs []error
	for _, source := range o.sources {
		errs = append(errs, source.Close())
	}
	return errors.Join(errs...)
}

// read gives an object's content.
func (o *Objects) read(ctx context.Context, kind plumbing.ObjectType, id string) ([]byte, error) {
	hash := plumbing.NewHash(id)
	var encoded plumbing.EncodedObject
	if pending, found := o.pending[hash]; found {
		encoded = pending
	} else {
		var err error
		for _, source := range o.sourcesOf(hash) {
			if encoded, err = source.EncodedObject(kind, hash); !errors.Is(err, plumbing.ErrObjectNotFound) {
				break
			}
		}
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			return o.repository.catFile(ctx, kind.String(), id)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %s: %w", kind, id, err)
		}
	}
	if encoded.Type() != kind {
		return nil, fmt.Errorf("read %s %s: it is a %s", kind, id, encoded.Type())
	}
	reader, err := encoded.Reader()
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", kind, id, err)
	}
	defer reader.Close()
	data, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", kind, id, err)
	}
	return data, nil
}

// sourcesOf gives where to look for an object. A loose object of the repository itself, such as the state, is read
// without opening the pack indexes of alternates.
func (o *Objects) sourcesOf(hash plumbing.Hash) []*filesystem.ObjectStorage {
	own := o.sources[len(o.sources)-1:]
	if len(o.sources) > 1 {
		id := hash.String()
		if _, err := os.Lstat(filepath.Join(o.repository.CommonDir, "objects", id[:2], id[2:])); err != nil {
			return o.sources
		}
	}
	return own
}

// Blob gives a blob's bytes.
func (o *Objects) Blob(ctx context.Context, id string) ([]byte, error) {
	return o.read(ctx, plumbing.BlobObject, id)
}

// decode reads an object into one of go-git's types.
func (o *Objects) decode(ctx context.Context, kind plumbing.ObjectType, id string, into interface {
	Decode(plumbing.EncodedObject) error
}) error {
	data, err := o.read(ctx, kind, id)
	if err != nil {
		return err
	}
	memory := &plumbing.MemoryObject{}
	memory.SetType(kind)
	if _, err := memory.Write(data); err != nil {
		return fmt.Errorf("decode %s %s: %w", kind, id, err)
	}
	if err := into.Decode(memory); err != nil {
		return fmt.Errorf("decode %s %s: %w", kind, id, err)
	}
	return nil
}

// Commit reads a commit.
func (o *Objects) Commit(ctx context.Context, id string) (Commit, error) {
	var commit object.Commit
	if err := o.decode(ctx, plumbing.CommitObject, id, &commit); err != nil {
		return Commit{}, err
	}
	result := Commit{Tree: commit.TreeHash.String(), Message: commit.Message,
		Author: Signature{Name: commit.Author.Name, Email: commit.Author.Email, When: commit.Author.When}}
	for _, parent := range commit.ParentHashes {
		result.Parents = append(result.Parents, parent.String())
	}
	return result, nil
}

func (o *Objects) tree(ctx context.Context, id string) ([]object.TreeEntry, error) {
	if id == "" {
		return nil, nil
	}
	if entries, found := o.trees[id]; found {
		return entries, nil
	}
	var tree object.Tree
	if err := o.decode(ctx, plumbing.TreeObject, id, &tree); err != nil {
		return nil, err
	}
	o.trees[id] = tree.Entries
	return tree.Entries, nil
}

func modeText(mode filemode.FileMode) string { return fmt.Sprintf("%06o", uint32(mode)) }

// Find gives the entry at a path of a tree and, when a leading part of the path is not a folder, that part with its entry.
func (o *Objects) Find(ctx context.Context, tree, name string) (entry Entry, blocker string, err error) {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		entries, err := o.tree(ctx, tree)
		if err != nil {
			return Entry{}, "", fmt.Errorf("look up %s: %w", name, err)
		}
		found := Entry{}
		for _, candidate := range entries {
			if candidate.Name == part {
				found = Entry{Mode: modeText(candidate.Mode), ID: candidate.Hash.String()}
			}
		}
		switch {
		case i == len(parts)-1:
			return found, "", nil
		case found == Entry{}:
			return Entry{}, "", nil
		case found.Mode != ModeFolder:
			return found, strings.Join(parts[:i+1], "/"), nil
		}
		tree = found.ID
	}
	return Entry{}, "", nil
}

// Twin gives the path in a tree whose name, or that of a folder on the way, is another than in the path given but for small and capital
// letters: macOS takes the two for one file. It is empty when there is none.
func (o *Objects) Twin(ctx context.Context, tree, name string) (string, error) {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		entries, err := o.tree(ctx, tree)
		if err != nil {
			return "", fmt.Errorf("look up %s: %w", name, err)
		}
		tree = ""
		for _, entry := range entries {
			if entry.Name != part && strings.EqualFold(entry.Name, part) {
				return path.Join(path.Join(parts[:i]...), entry.Name), nil
			}
			if entry.Name == part && entry.Mode == filemode.Dir {
				tree = entry.Hash.String()
			}
		}
		if tree == "" {
			return "", nil
		}
	}
	return "", nil
}

// add keeps an object in memory and gives its id.
func (o *Objects) add(kind plumbing.ObjectType, data []byte) (string, error) {
	hash := plumbing.ComputeHash(kind, data)
	if _, found := o.pending[hash]; found {
		return hash.String(), nil
	}
	memory := &plumbing.MemoryObject{}
	memory.SetType(kind)
	if _, err := memory.Write(data); err != nil {
		return "", fmt.Errorf("make %s: %w", kind, err)
	}
	o.pending[hash] = memory
	o.order = append(o.order, hash)
	return hash.String(), nil
}

func (o *Objects) encode(kind plumbing.ObjectType, from interface {
	Encode(plumbing.EncodedObject) error
}) (string, error) {
	memory := &plumbing.MemoryObject{}
	if err := from.Encode(memory); err != nil {
		return "", fmt.Errorf("make %s: %w", kind, err)
	}
	reader, err := memory.Reader()
	if err != nil {
		return "", fmt.Errorf("make %s: %w", kind, err)
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		return "", fmt.Errorf("make %s: %w", kind, err)
	}
	return o.add(kind, data)
}

// AddBlob makes a blob.
func (o *Objects) AddBlob(data []byte) (string, error) { return o.add(plumbing.BlobObject, data) }

// BlobID gives the id that data has as a blob.
func BlobID(data []byte) string { return plumbing.ComputeHash(plumbing.BlobObject, data).String() }

// AddCommit makes a commit whose committer is its author, so that the same series gives the same commit ids everywhere.
func (o *Objects) AddCommit(commit Commit) (string, error) {
	who := object.Signature{Name: commit.Author.Name, Email: commit.Author.Email, When: commit.Author.When}
	encoded := object.Commit{Author: who, Committer: who, Message: commit.Message, TreeHash: plumbing.NewHash(commit.Tree)}
	for _, parent := range commit.Parents {
		encoded.ParentHashes = append(encoded.ParentHashes, plumbing.NewHash(parent))
	}
	return o.encode(plumbing.CommitObject, &encoded)
}

// EditTree gives the tree that results when the entries in changes are put into the tree called id ("" for an empty
// one). The zero Entry removes a path; folders left empty go with it.
func (o *Objects) EditTree(ctx context.Context, id string, changes map[string]Entry) (string, error) {
	tree, err := o.editTree(ctx, id, changes)
	if err != nil || tree != "" {
		return tree, err
	}
	return o.encode(plumbing.TreeObject, &object.Tree{}) // every path was removed
}

func (o *Objects) editTree(ctx context.Context, id string, changes map[string]Entry) (string, error) {
	entries, err := o.tree(ctx, id)
	if err != nil {
		return "", err
	}
	byName := map[string]object.TreeEntry{}
	for _, entry := range entries {
		byName[entry.Name] = entry
	}
	below := map[string]map[string]Entry{}
	for name, entry := range changes {
		folder, rest, nested := strings.Cut(name, "/")
		if nested {
			if below[folder] == nil {
				below[folder] = map[string]Entry{}
			}
			below[folder][rest] = entry
			continue
		}
		if entry == (Entry{}) {
			delete(byName, name)
			continue
		}
		mode, err := filemode.New(entry.Mode)
		if err != nil {
			return "", fmt.Errorf("edit tree: mode %q of %s: %w", entry.Mode, name, err)
		}
		byName[name] = object.TreeEntry{Name: name, Mode: mode, Hash: plumbing.NewHash(entry.ID)}
	}
	for folder, inside := range below {
		subtree := ""
		if entry, found := byName[folder]; found && entry.Mode == filemode.Dir {
			subtree = entry.Hash.String()
		}
		edited, err := o.editTree(ctx, subtree, inside)
		if err != nil {
			return "", err
		}
		if edited != "" {
			byName[folder] = object.TreeEntry{Name: folder, Mode: filemode.Dir, Hash: plumbing.NewHash(edited)}
		} else if entry, found := byName[folder]; found && entry.Mode == filemode.Dir {
			delete(byName, folder)
		}
	}
	if len(byName) == 0 {
		return "", nil
	}
	tree := object.Tree{}
	for _, entry := range byName {
		tree.Entries = append(tree.Entries, entry)
	}
	sort.Sort(object.TreeEntrySorter(tree.Entries))
	edited, err := o.encode(plumbing.TreeObject, &tree)
	if err == nil {
		o.trees[edited] = tree.Entries
	}
	return edited, err
}

// Change is one path whose entry differs between two trees.
type Change struct {
	Path     string
	Old, New Entry
}

// Diff lists the paths of files, links and submodules that differ between two trees ("" for an empty one), sorted.
func (o *Objects) Diff(ctx context.Context, from, to string) ([]Change, error) {
	changes, err := o.diff(ctx, "", from, to)
	if err != nil {
		return nil, fmt.Errorf("compare trees %s and %s: %w", from, to, err)
	}
	sort.Slice(changes, func(i, j int) bool { return changes[i].Path < changes[j].Path })
	return changes, nil
}

func (o *Objects) diff(ctx context.Context, folder, from, to string) ([]Change, error) {
	if from == to {
		return nil, nil
	}
	type pair struct{ old, new Entry }
	names := map[string]pair{}
	for side, id := range []string{from, to} {
		entries, err := o.tree(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			both := names[entry.Name]
			described := Entry{Mode: modeText(entry.Mode), ID: entry.Hash.String()}
			if side == 0 {
				both.old = described
			} else {
				both.new = described
			}
			names[entry.Name] = both
		}
	}
	var changes []Change
	for name, both := range names {
		if both.old == both.new {
			continue
		}
		full := path.Join(folder, name)
		change := Change{Path: full, Old: both.old, New: both.new}
		subtrees := [2]string{}
		if both.old.Mode == ModeFolder {
			subtrees[0], change.Old = both.old.ID, Entry{}
		}
		if both.new.Mode == ModeFolder {
			subtrees[1], change.New = both.new.ID, Entry{}
		}
		inside, err := o.diff(ctx, full, subtrees[0], subtrees[1])
		if err != nil {
			return nil, err
		}
		changes = append(changes, inside...)
		if change.Old != change.New {
			changes = append(changes, change)
		}
	}
	return changes, nil
}

// Flush writes the collected objects. Nothing refers to them yet, so a kill in between leaves only garbage that git
// collects.
func (o *Objects) Flush() error {
	for _, hash := range o.order {
		id := hash.String()
		// As git does, an object that is there is only marked as young, or a collection of garbage could take it.
		if now := time.Now(); os.Chtimes(filepath.Join(o.repository.CommonDir, "objects", id[:2], id[2:]), now, now) == nil {
			delete(o.pending, hash)
			continue
		}
		if _, err := o.storage.SetEncodedObject(o.pending[hash]); err != nil {
			return fmt.Errorf("write object %s into %s: %w", hash, o.repository.CommonDir, err)
		}
		fault.Point()
		delete(o.pending, hash)
	}
	o.order = nil
	return nil
}

// FileAt gives the bytes of the file called name in a commit.
func (o *Objects) FileAt(ctx context.Context, commit, name string) ([]byte, error) {
	read, err := o.Commit(ctx, commit)
	if err != nil {
		return nil, err
	}
	entry, _, err := o.Find(ctx, read.Tree, name)
	if err != nil {
		return nil, err
	}
	if entry == (Entry{}) {
		return nil, fmt.Errorf("commit %s has no %s", commit, name)
	}
	return o.Blob(ctx, entry.ID)
}
