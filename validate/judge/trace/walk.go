package trace

import (
	"fmt"
	"slices"
	"sort"
)

// piece is a range of a buffer whose bytes were all accessed by the same last accesses.
type piece struct {
	from, to uint64
	write    past   // the last; its chain is nil where there was none
	reads    []past // since then
}

// past is an access that was made: the chain's so-manieth node with accesses.
type past struct {
	chain *chain
	at    uint32
	line  int
	verb  string
}

func (p past) String() string { return fmt.Sprintf("line %d (%s)", p.line, p.verb) }

// known reports whether the access comes before the node.
func (p past) known(n *node) bool {
	return p.chain == n.chain || (p.chain.number < len(n.clock) && n.clock[p.chain.number] >= p.at)
}

// walk goes through the nodes, each after those that it knows, and checks every access against those on the same bytes that came
// earlier in the walk. It returns false if the graph has a circle, and so is none of an order.
func (g *graph) walk(found func(b *buffer, from, to uint64, first, second past)) bool {
	chains := 0
	for _, n := range g.nodes {
		if len(n.accesses) > 0 && n.chain.number < 0 {
			n.chain.number = chains
			chains++
		}
		n.left = len(n.after)
		for _, other := range n.after {
			other.before = append(other.before, n)
			other.users++
		}
	}
	var ready []*node
	for _, n := range g.nodes {
		if n.left == 0 {
			ready = append(ready, n)
		}
	}
	walked := 0
	for len(ready) > 0 {
		n := ready[0]
		ready = ready[1:]
		walked++
		n.know(chains)
		for _, a := range n.accesses {
			a.check(n, found)
		}
		for _, next := range n.before {
			if next.left--; next.left == 0 {
				ready = append(ready, next)
			}
		}
		n.forget()
	}
	return walked == len(g.nodes)
}

// know makes the node's clock of those of the nodes that it comes after.
func (n *node) know(chains int) {
	for i, other := range n.after {
		if i == 0 {
			n.clock = other.clock
			continue
		}
		if !covers(n.clock, other.clock) {
			n.clock = joined(n.clock, other.clock, chains)
		}
	}
	if len(n.accesses) == 0 {
		return
	}
	// Nodes share a clock until one of them has accesses of its own.
	n.clock = joined(n.clock, nil, chains)
	n.chain.accessed++
	n.clock[n.chain.number] = n.chain.accessed
}

// forget lets go of the clocks that nobody asks for any more.
func (n *node) forget() {
	for _, other := range n.after {
		if other.users--; other.users == 0 {
			other.clock = nil
		}
	}
	if n.users == 0 {
		n.clock = nil
	}
}

func covers(clock, other []uint32) bool {
	if len(other) > len(clock) {
		return false
	}
	for i, at := range other {
		if at > clock[i] {
			return false
		}
	}
	return true
}

func joined(one, other []uint32, chains int) []uint32 {
	both := make([]uint32, chains)
	copy(both, one)
	for i, at := range other {
		both[i] = max(both[i], at)
	}
	return both
}

// check compares the access with the last ones on its bytes, and is then among them.
func (a access) check(n *node, found func(b *buffer, from, to uint64, first, second past)) {
	b := a.buffer
	end := a.offset + a.bytes
	if a.bytes == 0 {
		return
	}
	me := past{n.chain, n.chain.accessed, a.line, a.verb}
	first := b.cut(a.offset)
	last := b.cut(end)
	for i := first; i < last; i++ {
		p := &b.pieces[i]
		if p.write.chain != nil && !p.write.known(n) {
			found(b, p.from, p.to, p.write, me)
		}
		if !a.write {
			// A later write that comes after this read comes after those that it knows, too.
			p.reads = append(slices.DeleteFunc(p.reads, func(r past) bool { return r.known(n) }), me)
			continue
		}
		for _, r := range p.reads {
			if !r.known(n) {
				found(b, p.from, p.to, r, me)
			}
		}
	}
	if a.write {
		b.pieces = slices.Replace(b.pieces, first, last, piece{from: a.offset, to: end, write: me})
	}
}

// cut has a piece begin at the offset, and returns its index. Bytes that nobody has accessed are a piece, too.
func (b *buffer) cut(offset uint64) int {
	if len(b.pieces) == 0 {
		b.pieces = []piece{{to: max(b.bytes, offset)}}
	}
	i := sort.Search(len(b.pieces), func(i int) bool { return b.pieces[i].to > offset })
	if i == len(b.pieces) || b.pieces[i].from == offset {
		return i
	}
	whole := b.pieces[i]
	b.pieces[i].to = offset
	b.pieces = slices.Insert(b.pieces, i+1, piece{offset, whole.to, whole.write, slices.Clone(whole.reads)})
	return i + 1
}
