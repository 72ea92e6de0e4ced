package trace

// chain is what does one thing after another: a thread, a callback, the commands of a queue.
type chain struct {
	last *node
	// published: what comes next is not known to those who know last.
	published bool
	number    int    // among the chains that access memory; -1: it has not
	accessed  uint32 // nodes with accesses, while the graph is walked
}

// node is a stretch of a chain within which nothing is learned of others, and which others know whole or not at all.
type node struct {
	chain    *chain
	after    []*node // what it knows; its forerunner in the chain is one of them
	accesses []access

	// While the graph is walked.
	left   int // of after
	before []*node
	users  int // of before, that have not been walked
	clock  []uint32
}

type access struct {
	buffer        *buffer
	offset, bytes uint64
	write         bool
	line          int
	verb          string
}

type buffer struct {
	number         int
	address, bytes uint64
	pieces         []piece // in order, without overlap; while the graph is walked
}

// graph holds the nodes of a run in the order in which they were made.
type graph struct {
	nodes  []*node
	chains []*chain
}

func (g *graph) chain() *chain {
	c := &chain{number: -1}
	g.chains = append(g.chains, c)
	return c
}

func (g *graph) node(c *chain, after ...*node) *node {
	n := &node{chain: c}
	for _, other := range after {
		if other != nil {
			n.after = append(n.after, other)
		}
	}
	g.nodes = append(g.nodes, n)
	return n
}

// open is the node that the chain's next access belongs to.
func (g *graph) open(c *chain) *node {
	if c.last == nil || c.published {
		c.last = g.node(c, c.last)
		c.published = false
	}
	return c.last
}

// publish is what the chain has done up to now.
func (g *graph) publish(c *chain) *node {
	if c.last == nil {
		g.open(c)
	}
	c.published = true
	return c.last
}

// learn has what comes next in the chain come after other nodes, too.
func (g *graph) learn(c *chain, others ...*node) *node {
	c.last = g.node(c, append([]*node{c.last}, others...)...)
	c.published = false
	return c.last
}
