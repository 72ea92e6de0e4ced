package msl

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"mpsforge/internal/run"
	"mpsforge/internal/suggest"
)

// Kinds of findings.
const (
	KindBounds  = "out of bounds"
	KindRace    = "race"
	KindBarrier = "barrier"
	KindNaN     = "nan"
	KindTime    = "time"
	KindCrash   = "crash"
	KindOutput  = "output"
)

// Finding is something that a kernel must not do.
type Finding struct {
	Kind     string `json:"kind"`
	Argument string `json:"argument,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"` // 0: not known
	Text     string `json:"text"`
}

// Dispatch is one run of a kernel.
type Dispatch struct {
	Kernel      string // may be empty, if the file has one
	Grid, Group []int  // threads, in up to three dimensions
	// Memory is what arguments are given, by name or index.
	Memory map[string]Memory
	Races  bool // looks for them
	NaN    bool // looks for results that are not numbers
}

// Result is what came of a dispatch.
type Result struct {
	File     string    `json:"file"`
	Kernel   string    `json:"kernel"`
	Grid     [3]int    `json:"grid"`
	Group    [3]int    `json:"group"`
	Written  []Written `json:"written"`
	Findings []Finding `json:"findings"`
	// More is how many findings are not listed.
	More int `json:"more,omitempty"`
}

// Written is an argument that the kernel has written to.
type Written struct {
	Argument string  `json:"argument"`
	Type     string  `json:"type"`
	Values   []Value `json:"values"`
}

// Value is a number, or nil for what was neither given nor written.
type Value struct{ Of any }

func (v Value) String() string {
	switch value := v.Of.(type) {
	case nil:
		return "unset"
	case float64:
		return strconv.FormatFloat(value, 'g', 7, 64)
	}
	return fmt.Sprint(v.Of)
}

// MarshalJSON writes what JSON has no number for as a string.
func (v Value) MarshalJSON() ([]byte, error) {
	if value, ok := v.Of.(float64); ok && (math.IsNaN(value) || math.IsInf(value, 0)) {
		return json.Marshal(v.String())
	}
	return json.Marshal(v.Of)
}

// Find gives a kernel by its name, or the file's only one.
func (l *Library) Find(name string) (*Kernel, error) {
	var names []string
	for i, kernel := range l.Kernels {
		if kernel.Name == name || name == "" && len(l.Kernels) == 1 {
			return &l.Kernels[i], nil
		}
		names = append(names, kernel.Name)
	}
	if name == "" {
		return nil, fmt.Errorf("%w: %s has several kernels: %s", ErrRequest, l.file, strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("%w: %s has no kernel %q%s", ErrRequest, l.file, name, suggest.Meant(name, names))
}

// bound is an argument with its memory.
type bound struct {
	Argument
	element
	data []byte
	set  bool
}

// bind gives each argument its memory.
func (k *Kernel) bind(memory map[string]Memory) ([]bound, error) {
	var all []bound
	var missing []string
	used, total := map[string]bool{}, 0
	for _, a := range k.Arguments {
		key := a.Name
		if _, named := memory[key]; !named && !a.Threadgroup {
			key = strconv.Itoa(a.Index)
		}
		given, there := memory[key]
		if !there {
			missing = append(missing, fmt.Sprintf("%s (%s)", a.Name, cmp.Or(a.Type, "a struct")))
			continue
		}
		used[key] = true
		data, e, set, err := given.bytesOf(a)
		if err != nil {
			return nil, err
		}
		if total += len(data); total > mostMemory {
			return nil, fmt.Errorf("%w: its arguments have more than %d MiB", ErrRequest, mostMemory>>20)
		}
		all = append(all, bound{a, e, data, set})
	}
	for key := range memory {
		if !used[key] {
			return nil, fmt.Errorf("%w: %s has no argument %s", ErrRequest, k.Name, key)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w: %s needs memory for %s: --set NAME=VALUES, --length NAME=N or --file NAME=FILE", ErrRequest, k.Name,
			strings.Join(missing, ", "))
	}
	return all, nil
}

func size(what string, given []int) ([3]int, error) {
	all := [3]int{1, 1, 1}
	if len(given) < 1 || len(given) > 3 {
		return all, fmt.Errorf("%w: a %s has one to three dimensions", ErrRequest, what)
	}
	for d, n := range given {
		if n < 1 || n > math.MaxInt32 {
			return all, fmt.Errorf("%w: the %s is %d in dimension %d", ErrRequest, what, n, d)
		}
		all[d] = n
	}
	return all, nil
}

// Run runs a kernel once.
func (l *Library) Run(ctx context.Context, d Dispatch) (*Result, error) {
	kernel, err := l.Find(d.Kernel)
	if err != nil {
		return nil, err
	}
	result := &Result{File: l.file, Kernel: kernel.Name, Written: []Written{}, Findings: []Finding{}}
	if result.Grid, err = size("grid", d.Grid); err != nil {
		return nil, err
	}
	if result.Group, err = size("threadgroup", d.Group); err != nil {
		return nil, err
	}
	if threads := result.Group[0] * result.Group[1] * result.Group[2]; threads > mostGroup {
		return nil, fmt.Errorf("%w: a threadgroup has at most %d threads, not %d", ErrRequest, mostGroup, threads)
	}
	arguments, err := kernel.bind(d.Memory)
	if err != nil {
		return nil, err
	}
	var request bytes.Buffer
	g, t := result.Grid, result.Group
	races := map[bool]int{true: 1}[d.Races]
	fmt.Fprintf(&request, "kernel %s\nthreads %d %d %d\ngroup %d %d %d\nraces %d\n", kernel.Name, g[0], g[1], g[2], t[0], t[1], t[2], races)
	most := mostWritten
	for _, a := range arguments {
		fmt.Fprintf(&request, "memory %d %d\n", a.place, len(a.data))
		request.Write(a.data)
		request.WriteString("\n")
		most += 2 * len(a.data)
	}
	request.WriteString("run\n")
	ended, err := l.start(ctx, "run", request.Bytes(), most, l.limit)
	if err != nil {
		return nil, err
	}
	if err := l.read(ctx, ended.answer, arguments, d, result); err != nil {
		return nil, err
	}
	if ended.finding != nil {
		result.Findings = append(result.Findings, *ended.finding)
	}
	return result, nil
}

// read takes the program's answer apart.
func (l *Library) read(ctx context.Context, answer []byte, arguments []bound, d Dispatch, result *Result) error {
	for len(answer) > 0 {
		end := bytes.IndexByte(answer, '\n')
		if end < 0 {
			return nil // it was ended meanwhile
		}
		fields := strings.Fields(string(answer[:end]))
		answer = answer[end+1:]
		if len(fields) < 2 {
			return fmt.Errorf("read the kernel's results: %q", fields)
		}
		number, err := strconv.Atoi(fields[1])
		if err != nil {
			return fmt.Errorf("read the kernel's results: %w", err)
		}
		switch fields[0] {
		case "finding":
			finding, err := l.finding(ctx, fields[1:], arguments)
			if err != nil {
				return fmt.Errorf("read a finding: %w", err)
			}
			result.Findings = append(result.Findings, finding)
		case "signal":
			signal := syscall.Signal(number)
			finding := Finding{Kind: KindCrash, Text: fmt.Sprintf("the kernel's process ended by a signal: %v", signal)}
			if signal == syscall.SIGALRM || signal == syscall.SIGXCPU {
				finding = Finding{Kind: KindTime, Text: timeText(l.limit)}
			}
			finding.File, finding.Line = l.line(ctx, fields[2:])
			result.Findings = append(result.Findings, finding)
		case "done":
			result.More = max(0, number-len(result.Findings))
		case "memory":
			i := slices.IndexFunc(arguments, func(a bound) bool { return a.place == number })
			if i < 0 {
				return fmt.Errorf("read the kernel's results: no argument at %d", number)
			}
			length := len(arguments[i].data)
			if len(answer) < length+(length+7)/8 {
				return nil
			}
			arguments[i].results(answer[:length], answer[length:length+(length+7)/8], d, result)
			answer = answer[length+(length+7)/8:]
		default:
			return fmt.Errorf("read the kernel's results: %q", fields)
		}
	}
	return nil
}

// results gives the values of an argument that was written to; bits say which bytes were.
func (a bound) results(data, bits []byte, d Dispatch, result *Result) {
	if a.Threadgroup || bytes.Equal(bits, make([]byte, len(bits))) {
		return
	}
	written := Written{Argument: a.Name, Type: a.scalar}
	wrong, first := 0, 0
	size := scalarSizes[a.scalar]
	for i := 0; i+a.stride <= len(data); i += a.stride {
		for k := i; k < i+a.count*size; k += size {
			touched := bits[k/8]>>(k%8)&1 != 0
			value := Value{get(data[k:], a.scalar)}
			if !touched && !a.set {
				value = Value{}
			}
			if number, isFloat := value.Of.(float64); d.NaN && touched && isFloat && math.IsNaN(number) {
				if wrong == 0 {
					first = len(written.Values)
				}
				wrong++
			}
			written.Values = append(written.Values, value)
		}
	}
	result.Written = append(result.Written, written)
	if wrong > 0 {
		result.Findings = append(result.Findings, Finding{Kind: KindNaN, Argument: a.Name,
			Text: fmt.Sprintf("it wrote NaN to %s: %d of %d values, the first is [%d]", a.Name, wrong, len(written.Values), first)})
	}
}

// Bits of an access (native/shaders/run.h).
const (
	accessWrite  = 2
	accessAtomic = 4
)

func does(access int) string {
	text := " reads "
	if access&accessWrite != 0 {
		text = " writes "
	}
	if access&accessAtomic != 0 {
		text = " atomically" + text
	}
	return text
}

// finding makes sentences of the numbers of mpsforge::shaders::Refused.
func (l *Library) finding(ctx context.Context, fields []string, arguments []bound) (Finding, error) {
	if len(fields) < 12 {
		return Finding{}, fmt.Errorf("%q is too short", fields)
	}
	n, err := atoi(fields[:12])
	if err != nil {
		return Finding{}, err
	}
	problem, slot, offset, size, access := n[0], n[1], n[2], n[3], n[4]
	place := func(at []int) string { return fmt.Sprintf("thread (%d, %d, %d)", at[0], at[1], at[2]) }
	var f Finding
	f.File, f.Line = l.line(ctx, fields[12:])
	const outOfRange, divergence, ownMemory = 0, 1, 1023 // of native/shaders/run.h
	if problem == divergence {
		f.Kind, f.Text = KindBarrier, "not all threads of a threadgroup reach the same barrier"
		return f, nil
	}
	memory := "memory outside of its arguments"
	switch {
	case slot > 0 && slot <= len(arguments):
		a := arguments[slot-1]
		f.Argument = a.Name
		memory = fmt.Sprintf("%s, which has %d", a.Name, len(a.data))
	case slot == ownMemory:
		memory = "threadgroup memory"
	}
	accessed := fmt.Sprintf("%s%s%d bytes at byte %d of %s", place(n[5:8]), does(access), size, offset, memory)
	switch {
	case problem != outOfRange:
		f.Kind, f.Text = KindRace, fmt.Sprintf("%s; %s%sthem, too, and nothing orders the two", accessed, place(n[9:12]), does(n[8]))
	case size == 0:
		f.Kind, f.Text = KindBounds, place(n[5:8])+" has an index beyond an array of its own"
	case slot == 0:
		f.Kind, f.Text = KindBounds, fmt.Sprintf("%s%s%d bytes of %s", place(n[5:8]), does(access), size, memory)
	default:
		f.Kind, f.Text = KindBounds, accessed
	}
	return f, nil
}

// line is where the first of the places in the library's code that is the file's own is; addresses are hexadecimal.
func (l *Library) line(ctx context.Context, addresses []string) (file string, line int) {
	if len(addresses) == 0 {
		return "", 0
	}
	args := []string{"--obj=" + l.path, "--output-style=GNU", "--functions=none"}
	for _, address := range addresses {
		args = append(args, "0x"+address)
	}
	found, err := run.Command{Name: l.runner.root.Tool("llvm-symbolizer"), Args: args}.Run(ctx)
	if err != nil {
		return "", 0 // the finding is whole without
	}
	for text := range strings.Lines(string(found.Stdout)) {
		parts := strings.Split(strings.TrimSpace(text), ":")
		if len(parts) >= 2 && path.Base(parts[0]) == sourceName {
			if number, err := strconv.Atoi(parts[1]); err == nil && number > 0 {
				return l.file, number
			}
		}
	}
	return "", 0
}
