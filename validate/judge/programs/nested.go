package programs

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// nestedProgram builds a program whose threads add to shared tensors, by operators that have operators, Python and raw
// work inside. Nothing orders the threads: additions may come in any order, so that the sums are known all the same, but
// none may be lost, and no two may wait for each other.
type nestedProgram struct {
	random *rand.Rand
	blocks strings.Builder
	count  int
	sums   [nestedTensors]int
	python bool // there is a GIL
}

const nestedTensors = 3

// maxNesting is how deep operators are inside each other.
const maxNesting = 2

func nestedPoolProgram(seed uint64, size int, environment string) string {
	p := nestedProgram{random: rand.New(rand.NewPCG(seed, 2))}
	var text strings.Builder
	if p.python = seed%2 == 1; p.python {
		text.WriteString("gil\n")
	}
	text.WriteString("pool " + environment + "\ntensor one 32\nset one 1\n")
	for i := range nestedTensors {
		fmt.Fprintf(&text, "tensor t%d 32\nset t%d 0\n", i, i)
	}
	for thread := range 3 {
		fmt.Fprintf(&text, "thread T%d\n", thread)
		for range 2 * size {
			text.WriteString(p.step(0, nil))
		}
	}
	text.WriteString("end\n")
	for i, sum := range p.sums {
		fmt.Fprintf(&text, "read t%d = %d\n", i, sum)
	}
	return text.String() + "statistic overtakes = 0\n" + p.blocks.String()
}

// step is one line of a thread or block, or some. written are the tensors that the operator around it writes.
func (p *nestedProgram) step(depth int, written []int) string {
	tensor := p.random.IntN(nestedTensors)
	kind := p.random.IntN(12)
	if depth == maxNesting && kind >= 6 {
		kind = 0
	}
	switch kind {
	case 0, 1, 2:
		by := 1 + p.random.IntN(9)
		p.sums[tensor] += by
		return fmt.Sprintf("increment t%d %d\n", tensor, by)
	case 3:
		p.sums[tensor]++
		return fmt.Sprintf("add_to t%d t%d one\n", tensor, tensor)
	case 4:
		return fmt.Sprintf("read t%d\n", tensor)
	case 5: // on the queue: the operator around it covers what it writes
		if len(written) == 0 {
			return ""
		}
		tensor = written[p.random.IntN(len(written))]
		p.sums[tensor]++
		return fmt.Sprintf("on_queue current %s\n", p.block(fmt.Sprintf("increment t%d 1\n", tensor)))
	case 6:
		return fmt.Sprintf("python %s\n", p.block(p.step(depth+1, nil)))
	case 7:
		return fmt.Sprintf("fallback %s reads t%d\n", p.block(p.step(depth+1, nil)), tensor)
	case 8: // memory that is freed inside
		name := fmt.Sprintf("m%d", p.count)
		inner := p.step(depth+1, nil)
		return fmt.Sprintf("tensor %s 32\nguard %s writes %s\n", name, p.block(fmt.Sprintf("set %s 1\nfree %s\n%s", name, name, inner)), name)
	default:
		order := p.random.Perm(nestedTensors)
		writes := order[:1+p.random.IntN(2)]
		var inner strings.Builder
		for range 1 + p.random.IntN(3) {
			inner.WriteString(p.step(depth+1, writes))
		}
		line := fmt.Sprintf("guard %s writes", p.block(inner.String()))
		for _, tensor := range writes {
			line += fmt.Sprintf(" t%d", tensor)
		}
		return line + fmt.Sprintf(" reads t%d\n", order[2])
	}
}

func (p *nestedProgram) block(lines string) string {
	name := fmt.Sprintf("b%d", p.count)
	p.count++
	fmt.Fprintf(&p.blocks, "block %s\n%s", name, lines)
	return name
}
