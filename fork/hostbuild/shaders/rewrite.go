package shaders

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// translated is a library's code for this machine's compiler, and what its kernels are.
type translated struct {
	code    string
	kernels []kernel
}

type kernel struct {
	name      string
	symbol    string // of the function that runs threads
	waits     bool
	arguments []argument
}

var (
	addressSpace  = regexp.MustCompile(` addrspace\(\d+\)`)
	attachments   = regexp.MustCompile(`, ![\w.]+ !\d+`)
	checkedLoad   = regexp.MustCompile(`^  (%[\w.]+) = load (?:volatile )?(.+), ptr addrspace\([123]\) (\S+?), align (\d+)`)
	checkedStore  = regexp.MustCompile(`^  store (?:volatile )?(.+), ptr addrspace\([123]\) (\S+?), align (\d+)`)
	anyMemory     = regexp.MustCompile(`^  (?:%[\w.]+ = )?(?:load|store|atomicrmw|cmpxchg|fence) `)
	called        = regexp.MustCompile(`call [^@]*(@(?:"[^"]+"|[-\w$.]+))\(`)
	argumentMarks = regexp.MustCompile(
		` (?:nocapture|readonly|writeonly|readnone|noundef|nonnull|returned|align \d+|dereferenceable(?:_or_null)?\(\d+\)|"air-buffer-no-alias")\b` +
			`|"air-buffer-no-alias"`)
	attributeGroup = regexp.MustCompile(`^attributes (#\d+) = \{(.*)\}`)
	division       = regexp.MustCompile(`^  (%[\w.]+) = ([su])(div|rem)( exact)? ((?:i\d+)|(?:<\d+ x i\d+>)) (\S+), (%\S+)$`)
	sameBuffer     = regexp.MustCompile(`^  (%[\w.]+) = (?:getelementptr|bitcast) .*?ptr addrspace\(\d\) (%[\w.]+)(?:,| to ptr)`)
	castOfSpace    = regexp.MustCompile(`= addrspacecast (.*) to ptr`)
	// Variables in threadgroup memory: what such memory holds at first is not defined.
	variable      = regexp.MustCompile(`^(@(?:"[^"]+"|[-\w$.]+)) = internal unnamed_addr addrspace\(3\) global (.*) (?:undef|zeroinitializer), align \d+$`)
	variableUsed  = regexp.MustCompile(`ptr addrspace\(3\) (?:[^@,%]* )?(@(?:"[^"]+"|[-\w$.]+))`)
	constantPlace = regexp.MustCompile(`getelementptr inbounds \((.*?, ptr addrspace\(3\) @(?:"[^"]+"|[-\w$.]+), [^()]*)\)`)
	copyOfMemory  = regexp.MustCompile(`^  (?:tail )?call void @llvm\.memcpy\.p([03])\.p([03])\.i64\(ptr (.*?)(\S+), ptr (.*?)(\S+), i64 (\d+), i1 false\)`)
)

// rewriter goes over a library's text once to learn its functions, and once to change them.
type rewriter struct {
	section string
	defined map[string]*function
	order   []string
	needed  map[string]string // declarations of air, by name
	nodes   metadata
	place   int               // number of the last call that waits, or store
	roots   map[string]string // of the function: the pointer that one was made from by arithmetic
	// variables in threadgroup memory, with their numbers and types.
	variables map[string]int
	types     []string
}

// mostVariables of the kernels that are compiled together have slots of their own (kOwnMemory in native/shaders/run.h).
const mostVariables = 512

type function struct {
	calls     []string
	variables []int // that it uses itself
	waits     bool
}

// translate makes code for this machine of what llvm-dis wrote of a library: every access is checked, every function gets the run
// as its first argument, and each kernel gets a function that runs threads of a threadgroup.
func translate(section, text string) (*translated, error) {
	r := rewriter{section: section, defined: map[string]*function{}, needed: map[string]string{}, nodes: metadata{}, variables: map[string]int{}}
	lines := strings.Split(text, "\n")
	nodes, err := r.learn(lines)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	out.WriteString(interfaceOfRuns)
	for _, line := range lines {
		changed, err := r.line(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", section, err)
		}
		if changed != "" {
			out.WriteString(changed + "\n")
		}
	}
	var unknown []string
	for _, name := range sortedKeys(r.needed) {
		body, err := airFunction(r.needed[name])
		if err != nil {
			unknown = append(unknown, err.Error())
			continue
		}
		out.WriteString(body)
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("%s: %d functions of Metal are not known: %s", section, len(unknown), strings.Join(unknown, "; "))
	}
	result := &translated{}
	for number, node := range nodes {
		k, body, err := r.kernel(node, number, lines)
		if err != nil {
			return nil, err
		}
		out.WriteString(body)
		result.kernels = append(result.kernels, k)
	}
	result.code = out.String()
	return result, nil
}

// learn reads which functions, variables and metadata there are, and returns the nodes of the kernels.
func (r *rewriter) learn(lines []string) (kernels []string, err error) {
	current := ""
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "define "):
			s, err := parseSignature(line)
			if err != nil {
				return nil, err
			}
			current = s.name
			r.defined[current] = &function{}
			r.order = append(r.order, current)
		case strings.HasPrefix(line, "declare "):
			s, err := parseSignature(line)
			if err != nil {
				return nil, err
			}
			if strings.HasPrefix(s.name, "@air.") {
				r.needed[s.name] = line
			}
		case strings.HasPrefix(line, "!air.kernel = "):
			kernels = splitList(strings.TrimSuffix(strings.TrimPrefix(line, "!air.kernel = !{"), "}"))
		case strings.HasPrefix(line, "!"):
			r.nodes.add(line)
		case variable.MatchString(line):
			found := variable.FindStringSubmatch(line)
			r.variables[found[1]] = len(r.types)
			r.types = append(r.types, found[2])
		case strings.HasPrefix(line, "  "):
			f := r.defined[current]
			if f == nil {
				return nil, fmt.Errorf("%s: code outside of a function: %.100s", r.section, line)
			}
			for _, found := range variableUsed.FindAllStringSubmatch(line, -1) {
				if number, ok := r.variables[found[1]]; ok && !slices.Contains(f.variables, number) {
					f.variables = append(f.variables, number)
				}
			}
			if found := called.FindStringSubmatch(line); found != nil {
				f.calls = append(f.calls, found[1])
			}
		}
	}
	r.findWaits()
	if len(r.types) > mostVariables {
		return nil, fmt.Errorf("%s: %d variables in threadgroup memory", r.section, len(r.types))
	}
	return kernels, nil
}

// kernel makes the function that runs threads of the kernel of a node.
func (r *rewriter) kernel(node string, number int, lines []string) (k kernel, body string, err error) {
	name, arguments, err := r.nodes.arguments(node)
	if err != nil {
		return k, "", err
	}
	f := r.defined[name]
	if f == nil {
		return k, "", fmt.Errorf("the kernel %s has no code", name)
	}
	k = kernel{name: strings.Trim(strings.TrimPrefix(name, "@"), `"`), waits: f.waits, arguments: arguments,
		symbol: fmt.Sprintf("mpsforge_%s_%d", r.section, number)}
	if body, err = threadsFunction(k.symbol, name, lines, arguments); err != nil {
		err = fmt.Errorf("kernel %s: %w", k.name, err)
	}
	return k, body, err
}

// findWaits marks the functions that wait for other threads, by themselves or in what they call.
func (r *rewriter) findWaits() {
	for changed := true; changed; {
		changed = false
		for _, name := range r.order {
			f := r.defined[name]
			if f.waits {
				continue
			}
			f.waits = slices.ContainsFunc(f.calls, func(callee string) bool {
				return waits(callee) || r.defined[callee] != nil && r.defined[callee].waits
			})
			changed = changed || f.waits
		}
	}
}

// define is the head of a function, which gets the run and has the variables that it uses.
func (r *rewriter) define(line string) (string, error) {
	s, err := parseSignature(line)
	if err != nil {
		return "", err
	}
	parameters := []string{"ptr %mpsforge.run"}
	for _, p := range s.parameters {
		name, rest := cutType(addressSpace.ReplaceAllString(p, ""))
		parameters = append(parameters, name+" "+rest[strings.LastIndex(rest, " ")+1:])
	}
	calling := ""
	if strings.Contains(line, " fastcc ") {
		calling = "fastcc "
	}
	r.roots = map[string]string{}
	group := regexp.MustCompile(`#\d+`).FindString(s.attributes)
	text := fmt.Sprintf("define internal %s%s %s(%s) %s {", calling, s.result, s.name, strings.Join(parameters, ", "), group)
	for _, number := range r.defined[s.name].variables {
		text += fmt.Sprintf(
			"\n  %%mpsforge.variable.%d = call ptr @mpsforge_shader_variable(ptr %%mpsforge.run, i32 %d, i64 ptrtoint (ptr getelementptr (%s, "+
				"ptr null, i32 1) to i64))", number, number, r.types[number])
	}
	return text, nil
}

func (r *rewriter) line(line string) (string, error) {
	switch {
	case strings.HasPrefix(line, "define "):
		return r.define(line)
	case strings.HasPrefix(line, "declare "):
		name := line[strings.IndexByte(line, '@'):]
		if strings.HasPrefix(name, "@air.") || strings.HasPrefix(name, "@llvm.memcpy.") {
			return "", nil
		}
		return addressSpace.ReplaceAllString(line, ""), nil
	case strings.HasPrefix(line, "target "), strings.HasPrefix(line, "!"), strings.HasPrefix(line, ";"), strings.HasPrefix(line, "source_filename"):
		return "", nil
	case strings.HasPrefix(line, "attributes "):
		// What they say of memory does not hold: a barrier lets other threads run.
		found := attributeGroup.FindStringSubmatch(line)
		kept := "nounwind"
		if found == nil {
			return "", fmt.Errorf("not understood: %s", line)
		}
		if strings.Contains(found[2], "convergent") {
			kept += " convergent"
		}
		return fmt.Sprintf("attributes %s = { %s }", found[1], kept), nil
	case variable.MatchString(line):
		return "", nil
	case strings.HasPrefix(line, "@"):
		return "", fmt.Errorf("a global is not supported: %.100s", line)
	case !strings.HasPrefix(line, "  "):
		return line, nil
	}
	return r.instruction(line)
}

func (r *rewriter) instruction(line string) (string, error) {
	line = attachments.ReplaceAllString(line, "")
	if found := constantPlace.FindStringSubmatchIndex(line); found != nil {
		// As an instruction of its own, which is before the line: that must not be one of a block's first.
		if strings.Contains(line, " = phi ") {
			return "", fmt.Errorf("not understood: %s", line)
		}
		r.place++
		name := fmt.Sprintf("%%mpsforge.c%d", r.place)
		place, err := r.line(fmt.Sprintf("  %s = getelementptr inbounds %s", name, line[found[2]:found[3]]))
		if err != nil {
			return "", err
		}
		rest, err := r.line(line[:found[0]] + name + line[found[1]:])
		return place + "\n" + rest, err
	}
	line = variableUsed.ReplaceAllStringFunc(line, func(used string) string {
		at := strings.IndexByte(used, '@')
		if number, ok := r.variables[used[at:]]; ok {
			return fmt.Sprintf("%s%%mpsforge.variable.%d", used[:at], number)
		}
		return used
	})
	if found := copyOfMemory.FindStringSubmatch(line); found != nil {
		return r.copy(found)
	}
	if found := checkedLoad.FindStringSubmatch(line); found != nil {
		return r.load(found[1], addressSpace.ReplaceAllString(found[2], ""), found[3], found[4])
	}
	if found := checkedStore.FindStringSubmatch(line); found != nil {
		r.place++
		return r.store(addressSpace.ReplaceAllString(found[1], ""), found[2])
	}
	if anyMemory.MatchString(line) && addressSpace.MatchString(line) {
		return "", fmt.Errorf("not understood: %s", line)
	}
	if found := division.FindStringSubmatch(line); found != nil {
		return divide(found[1], found[2], found[3], found[5], found[6], found[7]), nil
	}
	if found := sameBuffer.FindStringSubmatch(line); found != nil {
		r.roots[found[1]] = r.root(found[2])
	}
	line = castOfSpace.ReplaceAllString(line, "= bitcast $1 to ptr")
	line = addressSpace.ReplaceAllString(line, "")
	// A pointer is no place in an object for LLVM, so it must not believe so.
	line = strings.Replace(line, "= getelementptr inbounds ", "= getelementptr ", 1)
	if found := called.FindStringSubmatchIndex(line); found != nil {
		if found[1] == len(line) {
			return "", fmt.Errorf("not understood: %s", line)
		}
		name := line[found[2]:found[3]]
		line = line[:found[1]] + argumentMarks.ReplaceAllString(line[found[1]:], "")
		first := ""
		switch {
		case r.defined[name] != nil || asks(name):
			first = "ptr %mpsforge.run"
		case waits(name):
			r.place++
			first = fmt.Sprintf("ptr %%mpsforge.run, i32 %d", r.place)
		}
		if first != "" {
			if line[found[1]] != ')' {
				first += ", "
			}
			line = line[:found[1]] + first + line[found[1]:]
		}
	}
	return line, nil
}

func (r *rewriter) root(pointer string) string {
	if root := r.roots[pointer]; root != "" {
		return root
	}
	return pointer
}

// reach checks an access, and gives its address the name own.p.
func (r *rewriter) reach(own, how, address string, sizes ...int) string {
	var all string
	for _, size := range sizes {
		all += fmt.Sprintf(", i64 %d", size)
	}
	return fmt.Sprintf("  %s.r = ptrtoint ptr %s to i64\n  %s.i = ptrtoint ptr %s to i64\n  %s.p = call ptr @mpsforge_shader_%s(ptr "+
		"%%mpsforge.run, i64 %s.r, i64 %s.i%s)\n",
		own, r.root(address), own, address, own, how, own, own, all)
}

// load checks the address first. A pointer that is read gets the slot of the buffer that it leads to.
func (r *rewriter) load(name, typeName, address, alignment string) (string, error) {
	size := typeSize(typeName)
	if size == 0 {
		return "", fmt.Errorf("a load of type %s is not supported", typeName)
	}
	// A vector of 3 has the size of one of 4, unless it is packed. PyTorch does not always give the last one, but elements of an array
	// are reported to the checker as one range.
	touched := size
	if count, element := vectorType(typeName); count == 3 && alignment == strconv.Itoa(4*typeSize(element)) {
		touched = 4 * typeSize(element)
	}
	own := "%mpsforge." + strings.TrimPrefix(name, "%")
	text := r.reach(own, "read", address, size, touched)
	if typeName != "ptr" {
		return text + fmt.Sprintf("  %s = load %s, ptr %s.p, align 1", name, typeName, own), nil
	}
	return text + fmt.Sprintf("  %s.v = load i64, ptr %s.p, align 1\n  %s.t = call i64 @mpsforge_shader_adopt(ptr %%mpsforge.run, i64 %s.v)\n  %s "+
		"= inttoptr i64 %s.t to ptr", own, own, own, own, name, own), nil
}

// divide is a division that does not end the process, as none does on a GPU: by 0, and of the least number by -1, whose results Metal
// leaves open, it is by 1.
func divide(name, sign, operation, typeName, left, right string) string {
	own := "%mpsforge." + strings.TrimPrefix(name, "%")
	one := func(number string) string { return splat(typeName, number) }
	text := fmt.Sprintf("  %s.0 = icmp eq %s %s, %s\n", own, typeName, right, one("0"))
	wrong := own + ".0"
	if sign == "s" {
		least := fmt.Sprintf("-%d", uint64(1)<<(8*uint(typeSize(elementType(typeName)))-1))
		bit := withElement(typeName, "i1")
		text += fmt.Sprintf("  %s.1 = icmp eq %s %s, %s\n  %s.2 = icmp eq %s %s, %s\n  %s.3 = and %s %s.1, %s.2\n  %s.4 = or %s %s.0, %s.3\n",
			own, typeName, right, one("-1"), own, typeName, left, one(least), own, bit, own, own, own, bit, own, own)
		wrong = own + ".4"
	}
	return text + fmt.Sprintf("  %s.d = select %s %s, %s %s, %s %s\n  %s = %s%s %s %s, %s.d", own, withElement(typeName, "i1"), wrong, typeName,
		one("1"), typeName, right, name, sign, operation, typeName, left, own)
}

func (r *rewriter) store(value, address string) (string, error) {
	typeName, _ := cutType(value)
	size := typeSize(typeName)
	if size == 0 || typeName == "ptr" {
		return "", fmt.Errorf("a store of type %s is not supported", typeName)
	}
	own := "%mpsforge.s" + strconv.Itoa(r.place)
	return r.reach(own, "write", address, size) + fmt.Sprintf("  store %s, ptr %s.p, align 1", value, own), nil
}

// copy checks those ends of a copy that are in a buffer or in threadgroup memory.
func (r *rewriter) copy(found []string) (string, error) {
	size, err := strconv.Atoi(found[7])
	if err != nil {
		return "", err
	}
	r.place++
	own := "%mpsforge.m" + strconv.Itoa(r.place)
	text, to, from := "", found[4], found[6]
	if found[1] != "0" {
		text += r.reach(own+"w", "write", to, size)
		to = own + "w.p"
	}
	if found[2] != "0" {
		text += r.reach(own+"r", "read", from, size, size)
		from = own + "r.p"
	}
	return text + fmt.Sprintf("  call void @llvm.memcpy.p0.p0.i64(ptr %s, ptr %s, i64 %d, i1 false)", to, from, size), nil
}

// interfaceOfRuns declares what native/shaders has, access.cc and runtime.cc.
const interfaceOfRuns = `declare ptr @mpsforge_shader_read(ptr nocapture, i64, i64, i64, i64)
declare ptr @mpsforge_shader_write(ptr nocapture, i64, i64, i64)
declare ptr @mpsforge_shader_atomic(ptr nocapture, i64, i64, i32)
declare i64 @mpsforge_shader_adopt(ptr nocapture, i64)
declare i64 @mpsforge_shader_argument(ptr nocapture, i32)
declare void @mpsforge_shader_thread(ptr nocapture, i32)
declare i32 @mpsforge_shader_threads(ptr nocapture, i32)
declare i32 @mpsforge_shader_group(ptr nocapture, i32)
declare i32 @mpsforge_shader_this_group(ptr nocapture, i32)
declare i32 @mpsforge_shader_groups(ptr nocapture, i32)
declare i32 @mpsforge_shader_position(ptr nocapture, i32)
declare void @mpsforge_shader_group_barrier(ptr nocapture, i32, i32) nounwind convergent
declare void @mpsforge_shader_simd_barrier(ptr nocapture, i32, i32) nounwind convergent
declare ptr @mpsforge_shader_variable(ptr nocapture, i32, i64)
declare float @mpsforge_shader_simd_sum_f32(ptr nocapture, i32, float) nounwind convergent
declare float @mpsforge_shader_simd_max_f32(ptr nocapture, i32, float) nounwind convergent
declare void @mpsforge_shader_simd_take(ptr nocapture, i32, ptr, ptr, i64, i32) nounwind convergent
declare void @mpsforge_shader_simd_fill_up(ptr nocapture, i32, ptr, ptr, ptr, i64, i32, i32) nounwind convergent
declare void @mpsforge_shader_simd_shuffle(ptr nocapture, i32, ptr, ptr, i64, i32) nounwind convergent
declare void @mpsforge_shader_matrix_move(ptr nocapture, i32, ptr, i64, i64, i64, i64, i64, i32, i32) nounwind convergent
declare void @mpsforge_shader_matrix_multiply(ptr nocapture, i32, ptr, ptr, ptr) nounwind convergent
declare i32 @mpsforge_shader_matrix_diagonal(ptr nocapture)
declare float @mpsforge_shader_sinpi(float)
declare float @nextafterf(float, float)
declare float @asinhf(float)
declare float @acoshf(float)
declare float @atanhf(float)
declare float @atan2f(float, float)
declare float @fmodf(float, float)
`
