package trace

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// commandBuffer is one root.
type commandBuffer struct {
	queue      *queue
	commands   []command
	encoded    []*node // what the threads knew that encoded it
	enqueued   bool
	fails      bool // executes nothing
	begin, end *node

	// Once it is committed.
	committed *node
	ran       int // commands; those behind a wait without end did not
}

type command struct {
	accesses []access
	bound    map[int]binding
	used     []*buffer
	signals  *event
	waits    *event
	value    uint64
	life     int   // of the event signalled, at the commit
	node     *node // once its command buffer is committed
}

type binding struct {
	buffer *buffer
	offset uint64
}

type encoder struct {
	into  *commandBuffer
	bound map[int]binding
	used  []*buffer
}

type queue struct {
	chain *chain
	order []*commandBuffer
}

// callback is what a handler, a listener or a block knows when it begins.
type callback struct {
	after func() []*node
	wait  awaited
}

// builder makes the graph of a run, line by line.
type builder struct {
	graph     graph
	threads   map[string][]*chain // the callbacks that each is in, innermost last
	buffers   map[string]*buffer
	made      int
	accesses  int
	queues    map[string]*queue
	roots     map[string]*commandBuffer
	encoders  map[string]*encoder
	events    map[string]*event
	serials   map[string]*node
	tokens    map[string]*node
	callbacks map[string]callback
	waits     []awaited
	engine    *Engine
}

func newBuilder() *builder {
	return &builder{threads: map[string][]*chain{}, buffers: map[string]*buffer{}, queues: map[string]*queue{}, roots: map[string]*commandBuffer{},
		encoders: map[string]*encoder{}, events: map[string]*event{}, serials: map[string]*node{}, tokens: map[string]*node{},
		callbacks: map[string]callback{}}
}

// line is one line of a trace, read word by word.
type line struct {
	*builder
	number int
	thread string
	verb   string
	words  []string
	err    error
}

var errShort = errors.New("words are missing")

func (l *line) word() string {
	if len(l.words) == 0 {
		l.fail(errShort)
		return ""
	}
	word := l.words[0]
	l.words = l.words[1:]
	return word
}

func (l *line) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

func (l *line) count() uint64 {
	value, err := strconv.ParseUint(l.word(), 10, 64)
	if err != nil {
		l.fail(err)
	}
	return value
}

// named is what an earlier line made.
func named[T any](l *line, what string, all map[string]*T) *T {
	name := l.word()
	found := all[name]
	if found == nil {
		l.fail(fmt.Errorf("no line made %s %s", what, name))
		found = new(T)
	}
	return found
}

func (l *line) root() *commandBuffer    { return named(l, "command buffer", l.roots) }
func (l *line) buffer() *buffer         { return named(l, "buffer", l.buffers) }
func (l *line) encoder() *encoder       { return named(l, "encoder", l.encoders) }
func (l *line) writes() bool            { return l.word() != "r" }
func (l *line) access(b *buffer) access { return access{buffer: b, line: l.number, verb: l.verb} }

func (l *line) event() *event {
	name := l.word()
	// The events of a process may be older than its trace.
	if l.events[name] == nil {
		l.events[name] = newEvent()
	}
	return l.events[name]
}

// chain is what the thread does now.
func (l *line) chain() *chain {
	stack := l.threads[l.thread]
	if len(stack) == 0 {
		stack = []*chain{l.graph.chain()}
		l.threads[l.thread] = stack
	}
	return stack[len(stack)-1]
}

func (l *line) publish() *node { return l.graph.publish(l.chain()) }

// wait has the thread know what came before an event reached a value.
func (l *line) wait(e *event, value uint64) {
	if value == 0 {
		return
	}
	e.saw(value)
	l.waits = append(l.waits, awaited{event: e, life: e.life(), value: value, node: l.graph.learn(l.chain())})
}

func (b *builder) add(number int, words []string) error {
	l := &line{builder: b, number: number, thread: words[0], verb: words[1], words: words[2:]}
	verb, ok := verbs[l.verb]
	if !ok {
		return errors.New("no line begins so")
	}
	verb(l)
	return l.err
}

var verbs map[string]func(l *line)

func init() {
	verbs = map[string]func(l *line){
		"release": (*line).release, "acquire": func(l *line) { l.graph.learn(l.chain(), l.tokens[l.word()]) },
		"buffer": (*line).makeBuffer, "cpu": (*line).cpu,
		"queue": (*line).makeQueue, "failed": func(l *line) { l.root().fails = true },
		"cb": (*line).makeRoot, "enqueue": func(l *line) { l.root().enqueue() }, "commit": (*line).commit,
		"completed":    (*line).completed,
		"scheduled":    func(l *line) { l.graph.learn(l.chain(), l.root().commitKnows()...) },
		"on_completed": (*line).onCompleted, "on_scheduled": (*line).onScheduled,
		"signal":  func(l *line) { l.encode(l.root(), command{signals: l.event(), value: l.count()}) },
		"wait":    func(l *line) { l.encode(l.root(), command{waits: l.event(), value: l.count()}) },
		"encoder": func(l *line) { l.encoders[l.word()] = &encoder{into: l.root()} }, "fill": (*line).fill, "copy": (*line).copy,
		"bind": (*line).bind, "use": (*line).use, "dispatch": (*line).dispatch, "encode": (*line).encodeKernel,
		"touch": (*line).touch, "reach": (*line).reach,
		"event": func(l *line) { l.events[l.word()] = newEvent() }, "set": func(l *line) { l.event().set(l.count(), l.publish()) },
		"reached": func(l *line) { l.wait(l.event(), l.count()) }, "notify": (*line).notify,
		"serial": func(l *line) { l.serials[l.word()] = nil }, "async": (*line).async,
		"enter": func(l *line) { l.graph.learn(l.chain(), l.serials[l.word()]) }, "exit": func(l *line) { l.serials[l.word()] = l.publish() },
		"begin": (*line).begin, "leave": (*line).leave,
		"found": func(l *line) { l.engine = &Engine{l.count(), l.count()} },
	}
}

// --- order that the program declares (rule 27)

func (l *line) release() {
	token := l.word()
	l.tokens[token] = l.graph.node(nil, l.tokens[token], l.publish())
}

// --- memory (rules 21 and 28)

func (l *line) makeBuffer() {
	name := l.word()
	l.made++
	l.buffers[name] = &buffer{number: l.made, address: l.count(), bytes: l.count()}
}

func (l *line) cpu() {
	a := l.access(l.buffer())
	a.offset, a.bytes, a.write = l.count(), l.count(), l.writes()
	l.touches(l.graph.open(l.chain()), a)
}

func (l *line) touches(n *node, a access) {
	l.accesses++
	n.accesses = append(n.accesses, a)
}

// --- queues and command buffers (rules 17, 22, 23, 25)

func (l *line) makeQueue() {
	l.queues[l.word()] = &queue{chain: l.graph.chain()}
}

func (l *line) queue() *queue { return named(l, "queue", l.queues) }

func (l *line) makeRoot() {
	number, q := l.word(), l.queue()
	l.roots[number] = &commandBuffer{queue: q, begin: l.graph.node(q.chain), end: l.graph.node(q.chain)}
}

func (c *commandBuffer) enqueue() {
	if !c.enqueued && c.queue != nil { // a root that no line made has none
		c.enqueued = true
		c.queue.order = append(c.queue.order, c)
	}
}

func (l *line) commit() {
	c := l.root()
	if l.err != nil || c.committed != nil {
		return // twice is a violation, and has no effect
	}
	c.enqueue()
	c.ran = len(c.commands)
	c.committed = l.publish()
	// Its nodes are a chain of their own for now: judge puts them behind those of the queue's earlier command buffers.
	c.begin.after = c.commitKnows()
	at := c.begin
	for i := range c.commands {
		each := &c.commands[i]
		if each.waits != nil {
			at = l.graph.node(c.queue.chain, at)
			l.waits = append(l.waits, awaited{each.waits, each.waits.life(), each.value, at, c, i})
		}
		each.node = at
		for _, a := range each.accesses {
			l.touches(at, a)
		}
		if each.signals != nil {
			each.life = each.signals.life()
			each.signals.signal(signal{each.value, at, c})
			at = l.graph.node(c.queue.chain, at)
		}
	}
	c.end.after = append(c.end.after, at)
}

func (l *line) completed() {
	c := l.root()
	l.graph.learn(l.chain(), c.end)
	for _, each := range c.commands {
		if each.signals != nil && each.life == each.signals.life() {
			each.signals.saw(each.value)
		}
	}
}

// commitKnows is what came before the commit.
func (c *commandBuffer) commitKnows() []*node { return append(slices.Clone(c.encoded), c.committed) }

func (l *line) encode(c *commandBuffer, made command) {
	if known := l.publish(); len(c.encoded) > 0 && c.encoded[len(c.encoded)-1].chain == known.chain {
		c.encoded[len(c.encoded)-1] = known
	} else {
		c.encoded = append(c.encoded, known)
	}
	c.commands = append(c.commands, made)
}

// --- encoders

func (l *line) fill() {
	into, a := l.encoder(), l.access(l.buffer())
	a.offset, a.bytes, a.write = l.count(), l.count(), true
	l.encodeOn(into, command{accesses: []access{a}})
}

func (l *line) copy() {
	into, from := l.encoder(), l.access(l.buffer())
	from.offset = l.count()
	to := l.access(l.buffer())
	to.offset, to.bytes, to.write = l.count(), l.count(), true
	from.bytes = to.bytes
	l.encodeOn(into, command{accesses: []access{from, to}})
}

func (l *line) encodeOn(e *encoder, made command) {
	if l.err == nil {
		l.encode(e.into, made)
	}
}

func (l *line) bind() {
	e, index, name := l.encoder(), int(l.count()), l.word()
	bound := make(map[int]binding, len(e.bound)+1)
	for i, other := range e.bound { // dispatches hold the old one
		bound[i] = other
	}
	bound[index] = binding{l.buffers[name], l.count()}
	e.bound = bound
}

func (l *line) use() {
	e := l.encoder()
	e.used = append(slices.Clip(e.used), l.buffer())
}

func (l *line) dispatch() {
	e := l.encoder()
	l.encodeOn(e, command{bound: e.bound, used: e.used})
}

func (l *line) encodeKernel() {
	c, bound := l.root(), map[int]binding{}
	for i := 0; len(l.words) > 0; i++ {
		bound[i] = binding{l.buffers[l.word()], l.count()}
	}
	l.encode(c, command{bound: bound})
}

// --- what a kernel does to memory

func (l *line) running() *command {
	c, number := l.root(), l.count()
	if number == 0 || number > uint64(len(c.commands)) {
		l.fail(fmt.Errorf("the command buffer has no command %d", number))
		return &command{}
	}
	return &c.commands[number-1]
}

// touched adds an access of a kernel. That an MPSGraph has committed by itself is written when its encoding has ended: the kernel may have
// run before.
func (l *line) touched(on *command, a access) {
	if on.node == nil {
		on.accesses = append(on.accesses, a)
	} else {
		l.touches(on.node, a)
	}
}

func (l *line) touch() {
	on, index := l.running(), int(l.count())
	bound, ok := on.bound[index]
	if !ok || bound.buffer == nil {
		l.fail(fmt.Errorf("no buffer is bound to argument %d", index))
		return
	}
	a := l.access(bound.buffer)
	a.offset, a.bytes, a.write = bound.offset+l.count(), l.count(), l.writes()
	l.touched(on, a)
}

func (l *line) reach() {
	on, address, bytes, writes := l.running(), l.count(), l.count(), l.writes()
	reachable := slices.Clone(on.used)
	for _, bound := range on.bound {
		reachable = append(reachable, bound.buffer)
	}
	for _, b := range reachable {
		if b == nil || address < b.address || address+bytes > b.address+b.bytes {
			continue
		}
		a := l.access(b)
		a.offset, a.bytes, a.write = address-b.address, bytes, writes
		l.touched(on, a)
		return
	}
	l.fail(errors.New("the command can reach no buffer there"))
}

// --- callbacks (rules 24, 26, 27)

func (l *line) onCompleted() {
	c, id, added := l.root(), l.word(), l.publish()
	l.callbacks[id] = callback{after: func() []*node { return []*node{c.end, added} }}
}

func (l *line) onScheduled() {
	c, id := l.root(), l.word()
	l.callbacks[id] = callback{after: c.commitKnows}
}

func (l *line) notify() {
	e, value, id := l.event(), l.count(), l.word()
	l.callbacks[id] = callback{wait: awaited{event: e, life: e.life(), value: value}}
}

func (l *line) async() {
	_, id, creator := l.word(), l.word(), l.publish()
	l.callbacks[id] = callback{after: func() []*node { return []*node{creator} }}
}

func (l *line) begin() {
	id := l.word()
	started, ok := l.callbacks[id]
	if !ok {
		l.fail(fmt.Errorf("no line made callback %s", id))
		return
	}
	delete(l.callbacks, id)
	l.chain() // the thread's own, below
	c := l.graph.chain()
	l.threads[l.thread] = append(l.threads[l.thread], c)
	if started.after != nil {
		l.graph.learn(c, started.after()...)
		return
	}
	started.wait.node = l.graph.learn(c)
	l.waits = append(l.waits, started.wait)
}

func (l *line) leave() {
	stack := l.threads[l.thread]
	if len(stack) < 2 {
		l.fail(errors.New("the thread is in no callback"))
		return
	}
	l.threads[l.thread] = stack[:len(stack)-1]
}

// --- the end

func (b *builder) judge() Run {
	run := Run{Accesses: b.accesses, Races: []Race{}, Engine: b.engine}
	for _, w := range b.waits {
		if w.in != nil && w.in.fails { // nor has it waited
			continue
		}
		if first := w.event.first(w.life, w.value); first != nil {
			w.node.after = append(w.node.after, first)
		} else if w.in != nil {
			w.in.ran = min(w.in.ran, w.command)
		}
	}
	for _, q := range b.queues {
		q.link()
	}
	seen := map[[2]int]bool{}
	whole := b.graph.walk(func(on *buffer, from, to uint64, first past, second access) {
		lines := [2]int{first.line, second.line}
		if seen[lines] {
			return
		}
		seen[lines] = true
		run.Races = append(run.Races, Race{on.number, from, to - from, first.String(), fmt.Sprintf("line %d (%s)", second.line, second.verb)})
	})
	if !whole {
		run.Problem = "its order goes round in a circle: calls of two threads on one queue are in the trace in another order than they took effect"
	}
	return run
}

// link puts the queue's command buffers in their order. Behind one that has not ended nothing ran.
func (q *queue) link() {
	var last *node
	stopped := false
	for _, c := range q.order {
		if stopped || c.committed == nil || c.fails {
			c.ran = 0
		}
		for _, each := range c.commands[c.ran:] {
			if each.node != nil {
				each.node.accesses = nil
			}
		}
		if stopped = stopped || c.committed == nil || (c.ran < len(c.commands) && !c.fails); stopped {
			continue
		}
		if last != nil {
			c.begin.after = append(c.begin.after, last)
		}
		last = c.end
	}
}
