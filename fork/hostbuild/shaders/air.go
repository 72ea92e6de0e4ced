package shaders

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// waits reports whether a function of Metal has threads wait for others; it is given the run and the place of the call.
func waits(name string) bool {
	for _, prefix := range []string{"@air.wg.barrier", "@air.simdgroup.barrier", "@air.simd_", "@air.quad_", "@air.simdgroup_matrix_8x8_load",
		"@air.simdgroup_matrix_8x8_store", "@air.simdgroup_matrix_8x8_multiply"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// asks reports whether it needs the run without waiting: it reaches memory, or depends on the thread.
func asks(name string) bool {
	return strings.HasPrefix(name, "@air.atomic.") || strings.HasPrefix(name, "@air.simdgroup_matrix_8x8_init_diag")
}

// intrinsics are LLVM's functions that do the same, by the name in air. LLVM calls libm where the processor has no instruction.
var intrinsics = map[string]string{
	"fmax": "maxnum", "fmin": "minnum", "fabs": "fabs", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint", "round": "round",
	"sqrt": "sqrt", "exp": "exp", "exp2": "exp2", "exp10": "exp10", "log": "log", "log2": "log2", "log10": "log10", "sin": "sin", "cos": "cos", "tan": "tan",
	"asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "pow": "pow", "fma": "fma", "copysign": "copysign",
}

// libraryFunctions are C's, of float.
var libraryFunctions = map[string]string{
	"nextafter": "nextafterf", "asinh": "asinhf", "acosh": "acoshf", "atanh": "atanhf", "atan2": "atan2f", "fmod": "fmodf",
	"sinpi": "mpsforge_shader_sinpi",
}

// wholeIntrinsics are those of whole numbers, which air marks with s and u.
var wholeIntrinsics = map[string]string{"min.s": "smin", "min.u": "umin", "max.s": "smax", "max.u": "umax"}

var (
	conversion = regexp.MustCompile(`^@air\.convert\.([fsu])\.\w+\.([fsu])\.\w+$`)
	wholeMath  = regexp.MustCompile(`^@air\.(min|max)\.([su])\.\w+$`)
	realMath   = regexp.MustCompile(`^@air\.(?:fast_)?([a-z]+\d*)\.(v\d+)?(f32|f16|bf16)$`)
	atomic     = regexp.MustCompile(`^@air\.atomic\.global\.(\w+?)(?:\.(s|u|weak))?\.(i32|f32)$`)
	lanesMath  = regexp.MustCompile(`^@air\.simd_(sum|max)\.f32$`)
	shuffle    = regexp.MustCompile(`^@air\.simd_shuffle(|_down|_up|_and_fill_up)\.`)
	matrix     = regexp.MustCompile(`^@air\.simdgroup_matrix_8x8_(load|store|init_filled|init_diag|multiply_accumulate)\.`)
)

// air writes the body of one function of Metal.
type air struct {
	signature
	types []string // of the parameters
	text  strings.Builder
	names int
}

func (a *air) emit(format string, values ...any) { fmt.Fprintf(&a.text, "  "+format+"\n", values...) }

// value emits an instruction and returns its name.
func (a *air) value(format string, values ...any) string {
	a.names++
	name := "%v" + strconv.Itoa(a.names)
	a.text.WriteString("  " + name + " = " + fmt.Sprintf(format, values...) + "\n")
	return name
}

// airFunction makes the definition of a function of Metal from its declaration.
func airFunction(declaration string) (string, error) {
	s, err := parseSignature(declaration)
	if err != nil {
		return "", err
	}
	a := air{signature: s}
	var parameters []string
	switch {
	case waits(s.name):
		parameters = []string{"ptr %run", "i32 %place"}
	case asks(s.name):
		parameters = []string{"ptr %run"}
	}
	for i, p := range s.parameters {
		name, _ := cutType(addressSpace.ReplaceAllString(p, ""))
		a.types = append(a.types, name)
		parameters = append(parameters, fmt.Sprintf("%s %%%c", name, 'a'+i))
	}
	if len(a.types) == 0 && !strings.Contains(s.name, ".barrier") && s.name != "@air.get_simdgroup_size.i16" {
		return "", fmt.Errorf("%s without an argument", strings.TrimPrefix(s.name, "@"))
	}
	result, err := a.body()
	if err != nil {
		return "", err
	}
	if result == "" {
		result = "void"
	} else {
		result = s.result + " " + result
	}
	extra := ""
	if waits(s.name) {
		extra = " convergent"
	}
	return fmt.Sprintf("define internal %s %s(%s) alwaysinline nounwind%s {\n%s  ret %s\n}\n", s.result, s.name, strings.Join(parameters, ", "), extra,
		a.text.String(), result), nil
}

func (a *air) body() (string, error) {
	switch {
	case conversion.MatchString(a.name):
		found := conversion.FindStringSubmatch(a.name)
		return a.convert("%a", a.types[0], a.result, found[2], found[1]), nil
	case wholeMath.MatchString(a.name):
		found := wholeMath.FindStringSubmatch(a.name)
		return a.value("call %s @llvm.%s.%s(%s %%a, %s %%b)", a.result, wholeIntrinsics[found[1]+"."+found[2]], mangled(a.result), a.result, a.result), nil
	case strings.HasPrefix(a.name, "@air.dot.") && elementType(a.types[0]) == a.result:
		wide := withElement(a.types[0], "float")
		product := a.value("fmul %s %s, %s", wide, a.resize("%a", a.types[0], wide), a.resize("%b", a.types[0], wide))
		return a.resize(a.value("call float @llvm.vector.reduce.fadd.%s(float 0.0, %s %s)", mangled(wide), wide, product), "float", a.result), nil
	case a.name == "@air.abs.s.i32":
		return a.value("call i32 @llvm.abs.i32(i32 %%a, i1 false)"), nil
	case a.name == "@air.ldexp.f32":
		return a.value("call float @llvm.ldexp.f32.i32(float %%a, i32 %%b)"), nil
	case a.name == "@air.sincos.f32":
		a.emit("store float %s, ptr %%b", a.value("call float @llvm.cos.f32(float %%a)"))
		return a.value("call float @llvm.sin.f32(float %%a)"), nil
	case a.name == "@air.get_simdgroup_size.i16":
		return "32", nil
	case realMath.MatchString(a.name):
		if result := a.real(realMath.FindStringSubmatch(a.name)[1]); result != "" {
			return result, nil
		}
	case atomic.MatchString(a.name):
		return a.atomic(atomic.FindStringSubmatch(a.name))
	case strings.HasPrefix(a.name, "@air.wg.barrier"):
		a.emit("call void @mpsforge_shader_group_barrier(ptr %%run, i32 %%place, i32 %%a)")
		return "", nil
	case strings.HasPrefix(a.name, "@air.simdgroup.barrier"):
		a.emit("call void @mpsforge_shader_simd_barrier(ptr %%run, i32 %%place, i32 %%a)")
		return "", nil
	case lanesMath.MatchString(a.name):
		return a.value("call float @mpsforge_shader_simd_%s_f32(ptr %%run, i32 %%place, float %%a)", lanesMath.FindStringSubmatch(a.name)[1]), nil
	case shuffle.MatchString(a.name):
		return a.shuffle(shuffle.FindStringSubmatch(a.name)[1]), nil
	case matrix.MatchString(a.name):
		return a.matrix(matrix.FindStringSubmatch(a.name)[1])
	}
	return "", fmt.Errorf("%s", strings.TrimPrefix(a.name, "@"))
}

// mangled is a type as LLVM's names of intrinsics have it.
func mangled(typeName string) string {
	count, element := vectorType(typeName)
	short := map[string]string{"float": "f32", "half": "f16", "bfloat": "bf16", "double": "f64"}[element]
	if short == "" {
		short = element
	}
	if count > 0 {
		return fmt.Sprintf("v%d%s", count, short)
	}
	return short
}

// convert gives the value as another type. s, u and f say how both are meant.
func (a *air) convert(value, from, to, fromKind, toKind string) string {
	if from == to && fromKind == toKind {
		return value
	}
	size := func(name string) int {
		bits, _ := strconv.Atoi(strings.TrimPrefix(elementType(name), "i")) // 0: no whole number
		return bits
	}
	switch {
	case fromKind == "f" && toKind == "f":
		return a.resize(value, from, to)
	case fromKind == "f" && elementType(to) == "i1":
		return a.value("fcmp une %s %s, zeroinitializer", from, value) // as C++ has it: all but 0 is true
	case fromKind == "f":
		if elementType(from) != "float" {
			value, from = a.resize(value, from, withElement(from, "float")), withElement(from, "float")
		}
		// Out of range there are no rules; Apple's GPUs give the nearest number, and 0 for what is none.
		return a.value("call %s @llvm.fpto%si.sat.%s.%s(%s %s)", to, toKind, mangled(to), mangled(from), from, value)
	case toKind == "f":
		wide := withElement(to, "float")
		return a.resize(a.value("%sitofp %s %s to %s", fromKind, from, value, wide), wide, to)
	case size(from) == size(to):
		return value
	case size(from) > size(to):
		return a.value("trunc %s %s to %s", from, value, to)
	case fromKind == "s":
		return a.value("sext %s %s to %s", from, value, to)
	}
	return a.value("zext %s %s to %s", from, value, to)
}

// resize converts between floating-point types; half and bfloat by way of float.
func (a *air) resize(value, from, to string) string {
	if from == to {
		return value
	}
	if elementType(from) != "float" {
		value = a.value("fpext %s %s to %s", from, value, withElement(from, "float"))
	}
	if elementType(to) == "float" {
		return value
	}
	return a.value("fptrunc %s %s to %s", withElement(to, "float"), value, to)
}

// real is a function of floating-point numbers, computed as float.
func (a *air) real(function string) string {
	wide := withElement(a.result, "float")
	var arguments []string
	for i, typeName := range a.types {
		arguments = append(arguments, wide+" "+a.resize(fmt.Sprintf("%%%c", 'a'+i), typeName, wide))
	}
	switch function {
	case "rsqrt":
		root := a.value("call %s @llvm.sqrt.%s(%s)", wide, mangled(wide), arguments[0])
		return a.resize(a.value("fdiv %s %s, %s", wide, splat(wide, "1.0"), root), wide, a.result)
	case "fract":
		below := a.value("call %s @llvm.floor.%s(%s)", wide, mangled(wide), arguments[0])
		rest := a.value("fsub %s, %s", arguments[0], below)
		// The largest number below 1, which Metal names.
		return a.resize(a.value("call %s @llvm.minnum.%s(%s %s, %s %s)", wide, mangled(wide), wide, rest, wide, splat(wide, "0x3FEFFFFFE0000000")),
			wide, a.result)
	}
	if name := intrinsics[function]; name != "" {
		return a.resize(a.value("call %s @llvm.%s.%s(%s)", wide, name, mangled(wide), strings.Join(arguments, ", ")), wide, a.result)
	}
	if name := libraryFunctions[function]; name != "" && wide == "float" {
		if function == "nextafter" && a.result != "float" {
			return a.nextafter()
		}
		return a.resize(a.value("call float @%s(%s)", name, strings.Join(arguments, ", ")), wide, a.result)
	}
	return ""
}

// nextafter of 16 bits is not that of floats: one step of the bits, towards the other number.
func (a *air) nextafter() string {
	bits := a.value("bitcast %s %%a to i16", a.result)
	magnitude := a.value("and i16 %s, 32767", bits)
	isZero := a.value("icmp eq i16 %s, 0", magnitude)
	up := a.value("fcmp olt %s %%a, %%b", a.result)
	equal := a.value("fcmp oeq %s %%a, %%b", a.result)
	unordered := a.value("fcmp uno %s %%a, %%b", a.result)
	negative := a.value("icmp slt i16 %s, 0", bits)
	away := a.value("xor i1 %s, %s", up, negative)
	step := a.value("select i1 %s, i16 1, i16 -1", away)
	moved := a.value("add i16 %s, %s", bits, step)
	least := a.value("select i1 %s, i16 1, i16 -32767", up)
	result := a.value("select i1 %s, i16 %s, i16 %s", isZero, least, moved)
	number := a.value("bitcast i16 %s to %s", result, a.result)
	other := a.value("select i1 %s, %s %%b, %s %s", equal, a.result, a.result, number)
	sum := a.value("fadd %s %%a, %%b", a.result)
	return a.value("select i1 %s, %s %s, %s %s", unordered, a.result, sum, a.result, other)
}

var atomicOperations = map[string]string{"add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor", "xchg": "xchg", "max.s": "max",
	"min.s": "min", "max.u": "umax", "min.u": "umin"}

// Bits of an access, kRead and kWrite in native/shaders/run.h.
const reads, writes = 1, 2

// atomic is an operation on device memory, all with the relaxed order of Metal's.
func (a *air) atomic(found []string) (string, error) {
	operation, kind, typeName := found[1], found[2], map[string]string{"i32": "i32", "f32": "float"}[found[3]]
	address := a.value("ptrtoint ptr %%a to i64")
	reach := func(access int) string {
		return a.value("call ptr @mpsforge_shader_atomic(ptr %%run, i64 %s, i64 4, i32 %d)", address, access)
	}
	switch {
	case operation == "load":
		return a.value("load atomic %s, ptr %s monotonic, align 4", typeName, reach(reads)), nil
	case operation == "store":
		a.emit("store atomic %s %%b, ptr %s monotonic, align 4", typeName, reach(writes))
		return "", nil
	case operation == "cmpxchg":
		expected := a.value("load %s, ptr %%b", typeName)
		pair := a.value("cmpxchg ptr %s, %s %s, %s %%c monotonic monotonic, align 4", reach(reads|writes), typeName, expected, typeName)
		old := a.value("extractvalue { %s, i1 } %s, 0", typeName, pair)
		a.emit("store %s %s, ptr %%b", typeName, old)
		return old, nil
	}
	name := atomicOperations[operation]
	if operation == "max" || operation == "min" {
		name = atomicOperations[operation+"."+kind]
	}
	if typeName == "float" {
		name = map[string]string{"add": "fadd", "sub": "fsub", "xchg": "xchg"}[operation]
	}
	if name == "" {
		return "", fmt.Errorf("%s", strings.TrimPrefix(a.name, "@"))
	}
	return a.value("atomicrmw %s ptr %s, %s %%b monotonic, align 4", name, reach(reads|writes), typeName), nil
}

// shuffle gives a lane another one's value.
func (a *air) shuffle(how string) string {
	value, filling, result := a.value("alloca %s", a.result), "null", a.value("alloca %s", a.result)
	a.emit("store %s %%a, ptr %s", a.result, value)
	switch how {
	case "":
		lane := a.value("zext i16 %%b to i32")
		a.emit("call void @mpsforge_shader_simd_take(ptr %%run, i32 %%place, ptr %s, ptr %s, i64 %d, i32 %s)", value, result, typeSize(a.result), lane)
		return a.value("load %s, ptr %s", a.result, result)
	case "_and_fill_up":
		filling = a.value("alloca %s", a.result)
		a.emit("store %s %%b, ptr %s", a.result, filling)
		distance, modulo := a.value("zext i16 %%c to i32"), a.value("zext i16 %%d to i32")
		a.emit("call void @mpsforge_shader_simd_fill_up(ptr %%run, i32 %%place, ptr %s, ptr %s, ptr %s, i64 %d, i32 %s, i32 %s)", value, filling,
			result, typeSize(a.result), distance, modulo)
		return a.value("load %s, ptr %s", a.result, result)
	}
	distance := a.value("zext i16 %%b to i32")
	if how == "_up" {
		distance = a.value("sub i32 0, %s", distance)
	}
	a.emit("call void @mpsforge_shader_simd_shuffle(ptr %%run, i32 %%place, ptr %s, ptr %s, i64 %d, i32 %s)", value, result, typeSize(a.result), distance)
	return a.value("load %s, ptr %s", a.result, result)
}

// matrix is a function of the SIMD group's 8 x 8 matrices. A lane has two elements of one, the first two of the 64 that its type
// has: kernels change those (thread_elements). Which they are: native/shaders/runtime.cc.
func (a *air) matrix(function string) (string, error) {
	whole := func(typeName, two string) string {
		element := elementType(typeName)
		return a.value("shufflevector <2 x %s> %s, <2 x %s> poison, <64 x i32> <i32 0, i32 1%s>", element, two, element, strings.Repeat(", i32 poison", 62))
	}
	two := func(typeName, value string) string {
		return a.value("shufflevector %s %s, %s poison, <2 x i32> <i32 0, i32 1>", typeName, value, typeName)
	}
	inMemory := func(element, value string) string {
		memory := a.value("alloca <2 x %s>", element)
		if value != "" {
			a.emit("store <2 x %s> %s, ptr %s", element, value, memory)
		}
		return memory
	}
	move := func(memory, address, element string, argument int, store int) {
		name := func(i int) string { return fmt.Sprintf("%%%c", 'a'+argument+i) }
		place := a.value("ptrtoint ptr %s to i64", address)
		column, line := a.value("extractelement <2 x i64> %s, i32 0", name(1)), a.value("extractelement <2 x i64> %s, i32 1", name(1))
		transposed := a.value("zext i1 %s to i32", name(2))
		a.emit("call void @mpsforge_shader_matrix_move(ptr %%run, i32 %%place, ptr %s, i64 %s, i64 %d, i64 %s, i64 %s, i64 %s, i32 %s, i32 %d)", memory,
			place, typeSize(element), name(0), column, line, transposed, store)
	}
	element := elementType(a.types[0])
	switch function {
	case "load":
		element = elementType(a.result)
		memory := inMemory(element, "")
		move(memory, "%a", element, 1, 0)
		return whole(a.result, a.value("load <2 x %s>, ptr %s", element, memory)), nil
	case "store":
		move(inMemory(element, two(a.types[0], "%a")), "%b", element, 2, 1)
		return "", nil
	case "init_filled", "init_diag":
		filled := a.value("insertelement <2 x %s> poison, %s %%a, i32 0", element, element)
		filled = a.value("shufflevector <2 x %s> %s, <2 x %s> poison, <2 x i32> zeroinitializer", element, filled, element)
		if function == "init_diag" {
			bits := a.value("call i32 @mpsforge_shader_matrix_diagonal(ptr %%run)")
			bits = a.value("trunc i32 %s to i2", bits)
			filled = a.value("select <2 x i1> %s, <2 x %s> %s, <2 x %s> zeroinitializer", a.value("bitcast i2 %s to <2 x i1>", bits), element, filled, element)
		}
		return whole(a.result, filled), nil
	}
	if len(a.types) != 3 {
		return "", fmt.Errorf("%s of %d matrices", function, len(a.types))
	}
	var memory []any
	for i, typeName := range a.types {
		value := two(typeName, fmt.Sprintf("%%%c", 'a'+i))
		memory = append(memory, inMemory("float", a.resize(value, fmt.Sprintf("<2 x %s>", elementType(typeName)), "<2 x float>")))
	}
	a.emit("call void @mpsforge_shader_matrix_multiply(ptr %%run, i32 %%place, ptr %s, ptr %s, ptr %s)", memory...)
	sum := a.value("load <2 x float>, ptr %s", memory[2])
	return whole(a.result, a.resize(sum, "<2 x float>", fmt.Sprintf("<2 x %s>", elementType(a.result)))), nil
}
