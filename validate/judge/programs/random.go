// Package programs makes programs over a stream pool from seeds, with models of the outcomes that are right. The stage reference runs
// them on the reference pool, the stage runtime on PyTorch's own sources.
package programs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// poolProgram builds a program over a pool in which threads pass tensors around. The threads are ordered as a right
// program on stock PyTorch must order them, by the CPU alone: whoever uses a tensor awaits the post of every earlier
// step that conflicts. Nothing synchronizes the GPU. The values are computed here, step by step.
type poolProgram struct {
	random  *rand.Rand
	threads []string // the lines of each
	tensors []poolTensor
	steps   int
	start   []string
	end     []string
}

type poolTensor struct {
	name    string
	value   int32
	written poolStep
	read    []poolStep
}

// poolStep is a step that was done by a thread; thread -1 is the set-up.
type poolStep struct{ thread, number int }

func newPoolProgram(seed uint64, threads, tensors int, environment string) *poolProgram {
	p := &poolProgram{random: rand.New(rand.NewPCG(seed, 0)), threads: make([]string, threads)}
	p.start = append(p.start, "pool "+environment)
	for i := range tensors {
		name := fmt.Sprintf("t%d", i)
		value := int32(p.random.IntN(100))
		p.start = append(p.start, fmt.Sprintf("tensor %s 32", name), fmt.Sprintf("set %s %d", name, value))
		p.tensors = append(p.tensors, poolTensor{name: name, value: value, written: poolStep{-1, 0}})
	}
	return p
}

// step has the thread do one operation that reads and writes tensors. It returns after the bookkeeping; the caller has
// changed the value.
func (p *poolProgram) step(thread int, line string, reads []int, write int) {
	p.steps++
	this := poolStep{thread, p.steps}
	var awaited []int
	await := func(s poolStep) {
		if s.thread >= 0 && s.thread != thread && !slices.Contains(awaited, s.number) {
			awaited = append(awaited, s.number)
		}
	}
	for _, tensor := range reads {
		await(p.tensors[tensor].written)
	}
	if write >= 0 {
		await(p.tensors[write].written)
		for _, s := range p.tensors[write].read {
			await(s)
		}
	}
	var lines strings.Builder
	for _, number := range awaited {
		fmt.Fprintf(&lines, "await s%d\n", number)
	}
	fmt.Fprintf(&lines, "%s\npost s%d\n", line, p.steps)
	p.threads[thread] += lines.String()
	for _, tensor := range reads {
		p.tensors[tensor].read = append(p.tensors[tensor].read, this)
	}
	if write >= 0 {
		p.tensors[write].written, p.tensors[write].read = this, nil
	}
}

// path is the way an operator goes.
func (p *poolProgram) path() string {
	switch p.random.IntN(8) {
	case 0:
		return fmt.Sprintf(" matrix %d", p.random.IntN(2))
	case 1:
		return fmt.Sprintf(" graph %d", p.random.IntN(2))
	case 2:
		return " blit"
	default:
		return ""
	}
}

func (p *poolProgram) kernelPath() string {
	if path := p.path(); path != " blit" {
		return path
	}
	return ""
}

func (p *poolProgram) add(thread, to, from int) {
	p.tensors[to].value += p.tensors[from].value
	p.step(thread, fmt.Sprintf("add_to %s %s %s%s", p.tensors[to].name, p.tensors[to].name, p.tensors[from].name, p.kernelPath()), []int{from}, to)
}

func (p *poolProgram) copy(thread, to, from int) {
	p.tensors[to].value = p.tensors[from].value
	p.step(thread, fmt.Sprintf("copy_to %s %s%s", p.tensors[to].name, p.tensors[from].name, p.path()), []int{from}, to)
}

func (p *poolProgram) increment(thread, tensor int, by int32) {
	p.tensors[tensor].value += by
	p.step(thread, fmt.Sprintf("increment %s %d", p.tensors[tensor].name, by), nil, tensor)
}

func (p *poolProgram) read(thread, tensor int) {
	p.step(thread, fmt.Sprintf("read %s = %d", p.tensors[tensor].name, p.tensors[tensor].value), []int{tensor}, -1)
}

// replace frees the tensor and makes another one of its name: the memory may be given out again.
func (p *poolProgram) replace(thread, tensor int) {
	value := int32(p.random.IntN(100))
	p.tensors[tensor].value = value
	name := p.tensors[tensor].name
	p.step(thread, fmt.Sprintf("free %s\ntensor %s 32\nset %s %d", name, name, name, value), nil, tensor)
}

// quiet adds a line that touches no tensor.
func (p *poolProgram) quiet(thread int, line string) { p.threads[thread] += line + "\n" }

func (p *poolProgram) text() string {
	for _, tensor := range p.tensors {
		p.end = append(p.end, fmt.Sprintf("read %s = %d", tensor.name, tensor.value))
	}
	text := strings.Join(p.start, "\n") + "\n"
	for i, lines := range p.threads {
		text += fmt.Sprintf("thread T%d\n%s", i, lines)
	}
	return text + "end\n" + strings.Join(p.end, "\n") + "\n"
}

// Shape is a kind of random programs.
type Shape struct {
	Name  string
	Build func(seed uint64, size int) string
}

// Shapes are all kinds.
var Shapes = []Shape{
	{"a ring of threads", func(seed uint64, size int) string {
		p := newPoolProgram(seed, 3, 2, "PYTORCH_MPS_STREAM_POOL_SIZE=4")
		for i := range 3 * size {
			p.increment(i%3, 0, int32(1+i))
			p.add((i+1)%3, 1, 0)
		}
		return p.text()
	}},
	{"a tree of threads", func(seed uint64, size int) string {
		p := newPoolProgram(seed, 4, 4, "PYTORCH_MPS_STREAM_POOL_SIZE=5")
		for range size {
			for i := range 4 {
				p.increment(i, i, 1)
			}
			p.add(0, 0, 1)
			p.add(2, 2, 3)
			p.add(0, 0, 2)
			p.copy(1, 1, 0)
			p.copy(3, 3, 0)
		}
		return p.text()
	}},
	{"a queue of tensors between threads", func(seed uint64, size int) string {
		p := newPoolProgram(seed, 3, 3, "PYTORCH_MPS_STREAM_POOL_SIZE=4")
		for i := range 2 * size {
			item := i % 3
			p.replace(0, item)
			p.increment(1, item, 3)
			p.read(2, item)
		}
		return p.text()
	}},
	{"two streams, each other's results", func(seed uint64, size int) string {
		p := newPoolProgram(seed, 2, 4, "PYTORCH_MPS_STREAM_POOL_SIZE=3")
		for range size {
			p.increment(0, 0, 1)
			p.increment(1, 1, 1)
			p.copy(0, 2, 1)
			p.copy(1, 3, 0)
			p.add(0, 0, 3)
			p.add(1, 1, 2)
		}
		return p.text()
	}},
	{"anything", func(seed uint64, size int) string {
		return randomPoolProgram(seed, size, "PYTORCH_MPS_STREAM_POOL_SIZE=4")
	}},
	{"anything, with threads that share the default stream", func(seed uint64, size int) string {
		return randomPoolProgram(seed, size, "PYTORCH_MPS_STREAM_POOL_SIZE=2")
	}},
	{"operators inside operators, in any order", func(seed uint64, size int) string {
		return nestedPoolProgram(seed, size, "PYTORCH_MPS_STREAM_POOL_SIZE=4")
	}},
	{"operators inside operators while the second stream comes to life", func(seed uint64, size int) string {
		return nestedPoolProgram(seed, size, "PYTORCH_MPS_STREAM_POOL_SIZE=2")
	}},
}

func randomPoolProgram(seed uint64, size int, environment string) string {
	p := newPoolProgram(seed, 3, 4, environment)
	for range 6 * size {
		thread, tensor, other := p.random.IntN(3), p.random.IntN(4), p.random.IntN(4)
		switch p.random.IntN(16) {
		case 0, 1, 2:
			p.increment(thread, tensor, int32(p.random.IntN(10)))
		case 3, 4, 5, 6:
			if tensor != other {
				p.copy(thread, tensor, other)
			}
		case 7, 8, 9:
			p.add(thread, tensor, other)
		case 10:
			p.read(thread, tensor)
		case 11:
			p.replace(thread, tensor)
		case 12:
			p.quiet(thread, "commit_stream current")
		case 13:
			p.quiet(thread, "synchronize current")
		case 14:
			p.quiet(thread, "use_pooled s"+fmt.Sprint(thread))
			p.add(thread, tensor, other)
			p.quiet(thread, "restore")
		case 15:
			p.quiet(thread, "release_slot")
		}
	}
	return p.text()
}
