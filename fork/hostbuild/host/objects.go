package host

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"mpsforge/internal/cxx"
	"mpsforge/internal/events"
	"mpsforge/internal/run"
)

// Objects are sources of a checkout that are compiled with flags of the caller's, which is package mac, by the root's clang and ccache.
type Objects struct {
	Root     *Root
	Cache    string
	Jobs     int
	Sink     events.Sink
	Step     string // of which each source is a part
	Checkout string
	// Header, unless empty, is compiled once for the sources that can have it, with Flags, which are theirs.
	Header string
	Flags  []string
	// Sources, by path in the checkout or an absolute one, with the flags of those that have others: they do without the header.
	Sources map[string][]string
	Dir     string // for the objects
	// Plan, unless nil, is given each compiler's command, in the order of the sources, and nothing is compiled.
	Plan func(command run.Command)
}

// Compile gives the objects by source, and what the compiler wrote of each. The caller holds the cache's lock.
func (o Objects) Compile(ctx context.Context) (objects, written map[string]string, err error) {
	c := compiler{root: o.Root, cache: o.Cache, jobs: o.Jobs, sink: events.OrDiscard(o.Sink), step: o.Step, plan: o.Plan}
	var prefix []string
	if o.Plan != nil {
		c.jobs = 1
	} else if o.Header != "" {
		prefixes, err := c.precompile(ctx, []header{{"header", o.Header, o.Checkout, o.Flags, false}})
		if err != nil {
			return nil, nil, err
		}
		prefix = prefixes[0]
	}
	objects, written = map[string]string{}, map[string]string{}
	var units []unit
	for _, path := range slices.Sorted(maps.Keys(o.Sources)) {
		flags := o.Sources[path]
		u := unit{dir: o.Checkout, path: path, flags: flags, object: filepath.Join(o.Dir, path+".o")}
		if flags == nil {
			u.flags, u.prefix = o.Flags, prefix
		}
		objects[path] = u.object
		units = append(units, u)
	}
	var guard sync.Mutex
	c.written = func(u cxx.Unit, text string) {
		guard.Lock()
		defer guard.Unlock()
		written[u.Path] = text
	}
	return objects, written, c.compile(ctx, units)
}
