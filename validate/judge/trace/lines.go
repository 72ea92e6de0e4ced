package trace

import (
	"errors"
	"fmt"
	"maps"
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
	callbacks map[string]func(c *chain) // has a chain know what the handler, listener or block knows when it begins
	waits     []awaited
	engine    *Engine
}

func newBuilder() *builder {
	return &builder{threads: map[string][]*chain{}, buffers: map[string]*buffer{}, queues: map[string]*queue{}, roots: map[string]*commandBuffer{},
		encoders: map[string]*encoder{}, events: map[string]*event{}, serials: map[string]*node{}, tokens: map[string]*node{},
		callbacks: map[string]func(c *chain){}}
}

// line is one line of a trace, read word by word.
type line struct {
	*builder
	number int
	thread string
	verb   string
	words  []string
}

// lineError is what fail ends the reading of a line with; add returns it.
type lineError struct{ error }

func (l *line) fail(err error) { panic(lineError{err}) }

func (l *line) word() string {
	if len(l.words) == 0 {
		l.fail(errors.New("words are missing"))
	}
	word := l.words[0]
	l.words = l.words[1:]
	return word
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

func (b *builder) add(number int, words []string) (err error) {
	verb, ok := verbs[words[1]]
	if !ok {
		return errors.New("no line begins so")
	}
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case lineError:
			err = failed.error
		default:
			panic(failed)
		}
	}()
	verb(&line{builder: b, number: number, thread: words[0], verb: words[1], words: words[2:]})
	return nil
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
		"encoder": func(l *line) { l.encoders[l.word()] = &encoder{into: l.root(), bound: map[int]binding{}} }, "fill": (*line).fill, "copy": (*line).copy,
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
	l.accesses++
	n := l.graph.open(l.chain())
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
	if !c.enqueued {
		c.enqueued = true
		c.queue.order = append(c.queue.order, c)
	}
}

func (l *line) commit() {
	c := l.root()
	if c.committed != nil {
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
	e, a := l.encoder(), l.access(l.buffer())
	a.offset, a.bytes, a.write = l.count(), l.count(), true
	l.encode(e.into, command{accesses: []access{a}})
}

func (l *line) copy() {
	e, from := l.encoder(), l.access(l.buffer())
	from.offset = l.count()
	to := l.access(l.buffer())
	to.offset, to.bytes, to.write = l.count(), l.count(), true
	from.bytes = to.bytes
	l.encode(e.into, command{accesses: []access{from, to}})
}

func (l *line) bind() {
	e, index, name := l.encoder(), int(l.count()), l.word()
	e.bound[index] = binding{l.buffers[name], l.count()}
}

func (l *line) use() {
	e := l.encoder()
	e.used = append(e.used, l.buffer())
}

func (l *line) dispatch() {
	e := l.encoder()
	l.encode(e.into, command{bound: maps.Clone(e.bound), used: slices.Clone(e.used)})
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
	}
	return &c.commands[number-1]
}

func (l *line) touch() {
	on, index := l.running(), int(l.count())
	bound, ok := on.bound[index]
	if !ok || bound.buffer == nil {
		l.fail(fmt.Errorf("no buffer is bound to argument %d", index))
	}
	a := l.access(bound.buffer)
	a.offset, a.bytes, a.write = bound.offset+l.count(), l.count(), l.writes()
	on.accesses = append(on.accesses, a)
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
		on.accesses = append(on.accesses, a)
		return
	}
	l.fail(errors.New("the command can reach no buffer there"))
}

// --- callbacks (rules 24, 26, 27)

func (l *line) onCompleted() {
	b, c, id, added := l.builder, l.root(), l.word(), l.publish()
	b.callbacks[id] = func(handler *chain) { b.graph.learn(handler, c.end, added) }
}

func (l *line) onScheduled() {
	b, c, id := l.builder, l.root(), l.word()
	b.callbacks[id] = func(handler *chain) { b.graph.learn(handler, c.commitKnows()...) }
}

func (l *line) notify() {
	b, e, value, id := l.builder, l.event(), l.count(), l.word()
	life := e.life()
	b.callbacks[id] = func(listener *chain) {
		b.waits = append(b.waits, awaited{event: e, life: life, value: value, node: b.graph.learn(listener)})
	}
}

func (l *line) async() {
	b, _, id, creator := l.builder, l.word(), l.word(), l.publish()
	b.callbacks[id] = func(block *chain) { b.graph.learn(block, creator) }
}

func (l *line) begin() {
	id := l.word()
	know, ok := l.callbacks[id]
	if !ok {
		l.fail(fmt.Errorf("no line made callback %s", id))
	}
	delete(l.callbacks, id)
	l.chain() // the thread's own, below
	c := l.graph.chain()
	l.threads[l.thread] = append(l.threads[l.thread], c)
	know(c)
}

func (l *line) leave() {
	stack := l.threads[l.thread]
	if len(stack) < 2 {
		l.fail(errors.New("the thread is in no callback"))
	}
	l.threads[l.thread] = stack[:len(stack)-1]
}

// --- the end

func (b *builder) judge() Run {
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
		b.link(q)
	}
	run := Run{Accesses: b.accesses, Races: []Race{}, Engine: b.engine}
	seen := map[[2]int]bool{}
	whole := b.graph.walk(func(on *buffer, from, to uint64, first, second past) {
		lines := [2]int{first.line, second.line}
		if seen[lines] {
			return
		}
		seen[lines] = true
		run.Races = append(run.Races, Race{on.number, from, to - from, first.String(), second.String()})
	})
	if !whole {
		run.Problem = "its order goes round in a circle: calls of two threads on one queue are in the trace in another order than they took effect"
	}
	return run
}

// link puts the queue's command buffers in their order, and what their commands access into the graph. Behind one that has not ended
// nothing ran.
func (b *builder) link(q *queue) {
	var last *node
	stopped := false
	for _, c := range q.order {
		if c.committed == nil {
			stopped = true
			continue
		}
		if c.fails {
			c.ran = 0
		}
		for i, each := range c.commands {
			b.accesses += len(each.accesses)
			if !stopped && i < c.ran {
				each.node.accesses = append(each.node.accesses, each.accesses...)
			}
		}
		if stopped = stopped || (c.ran < len(c.commands) && !c.fails); stopped {
			continue
		}
		if last != nil {
			c.begin.after = append(c.begin.after, last)
		}
		last = c.end
	}
}
