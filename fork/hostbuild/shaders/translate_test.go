package shaders_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mpsforge/fork/hostbuild/host/hosttest"
	"mpsforge/fork/hostbuild/shaders"
	"mpsforge/internal/require"
	"mpsforge/internal/run"
	"mpsforge/native"
)

// A kernel as text: BODY is of arguments %0 (constant), %1 (device) and %2 (its thread), and calls its first value %4.
const kernelText = `target datalayout = "e"
DECLARED
define weak_odr void @k(ptr addrspace(2) noundef "air-buffer-no-alias" %0, ptr addrspace(1) align 16 dereferenceable(16) %1, i32 %2) local_unnamed_addr #0 {
BODY
  ret void
}
attributes #0 = { nounwind memory(none) "frame-pointer"="all" }
!air.kernel = !{!1}
!1 = !{ptr @k, !2, !3}
!2 = !{}
!3 = !{!4, !5, !6}
!4 = !{i32 0, !"air.buffer", !"air.location_index", i32 5, i32 1, !"air.read", !"air.address_space", i32 2, !"air.arg_type_size", i32 4, !"air.arg_type_align_size", i32 4, !"air.arg_type_name", !"float", !"air.arg_name", !"in"}
!5 = !{i32 1, !"air.buffer", !"air.location_index", i32 6, i32 1, !"air.read_write", !"air.address_space", i32 1, !"air.arg_type_name", !"void", !"air.arg_name", !"out"}
!6 = !{i32 2, !"air.thread_position_in_grid", !"air.arg_type_name", !"uint", !"air.arg_name", !"tid"}
!9 = !{}
`

// translation makes code and a table's row of a kernel's text.
type translation func(t *testing.T, text string) (code, row string, err error)

func translator(t *testing.T) translation {
	root, _ := hosttest.Root(t)
	dir := t.TempDir()
	tools := shaders.Tools{Clang: root.Tool("clang"), Linker: root.Tool("ld.lld"), LLVM: root.LLVMFlags()}
	program := require.One(shaders.MakeTranslator(t.Context(), tools, native.Sources, dir))(t)
	return func(t *testing.T, text string) (code, row string, err error) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "k.ll"), []byte(text), 0o644))
		if _, err := (run.Command{Name: program, Args: []string{"s", "k.ll"}, Dir: dir}).Run(t.Context()); err != nil {
			return "", "", err
		}
		table := require.One(os.ReadFile(filepath.Join(dir, "s.inc")))(t)
		args := []string{"-S", "-emit-llvm", "-Wno-override-module", "-Xclang", "-disable-llvm-passes", "-o", "-", "s.bc"}
		made := require.One(run.Command{Name: tools.Clang, Args: args, Dir: dir}.Run(t.Context()))(t)
		return string(made.Stdout), string(table), nil
	}
}

func kernel(declared, body string) string {
	return strings.NewReplacer("DECLARED", declared, "BODY", body).Replace(kernelText)
}

// A call of what needs the run: the kernel's parameters are one further than before.
const reads, writes = "@mpsforge_shader_read(ptr %0, i64 %5, i64 %6, i64 ", "@mpsforge_shader_write(ptr %0, i64 %5, i64 %6, i64 "

const variables = "declare void @llvm.memcpy.p3.p0.i64(ptr addrspace(3), ptr, i64, i1)\n" +
	"@tile = internal unnamed_addr addrspace(3) global [4 x float] undef, align 4\n"

// The program that both are about takes seconds to compile.
func TestTranslation(t *testing.T) {
	translate := translator(t)
	t.Run("translated", func(t *testing.T) { kernelsAreTranslated(t, translate) })
	t.Run("refused", func(t *testing.T) { unknownCodeIsRefused(t, translate) })
}

func kernelsAreTranslated(t *testing.T, translate translation) {
	t.Run("arguments", func(t *testing.T) {
		_, row, err := translate(t, kernel("", "  %4 = add i32 %2, 1"))
		const want = `KERNEL("k", mpsforge_s_0, 0, {ArgumentKind::Buffer, 5, kRead, 4, "float", "in"}, ` +
			`{ArgumentKind::Buffer, 6, kRead | kWrite, 0, "void", "out"}, {ArgumentKind::Position, 0, 0, 0, "uint", "tid"})` + "\n"
		if err != nil || row != want {
			t.Errorf("error %v, row\n%s, want\n%s", err, row, want)
		}
	})
	// Kernels that wait run as fibers; those that do not are a loop.
	for name, c := range map[string]struct{ declared, body, want string }{
		"waits": {"declare void @air.wg.barrier(i32, i32) #0", "  tail call void @air.wg.barrier(i32 2, i32 1) #0",
			`KERNEL("k", mpsforge_s_0, 1, `},
		"a function that waits": {"declare void @air.wg.barrier(i32, i32)\ndefine internal fastcc void @f() {\n" +
			"  call void @air.wg.barrier(i32 2, i32 1)\n  ret void\n}", "  call fastcc void @f()", `KERNEL("k", mpsforge_s_0, 1, `},
		"does not wait": {"declare float @air.exp.f32(float)",
			"  %4 = tail call float @air.exp.f32(float 1.000000e+00)", `KERNEL("k", mpsforge_s_0, 0, `},
	} {
		t.Run(name, func(t *testing.T) {
			if _, row, err := translate(t, kernel(c.declared, c.body)); err != nil || !strings.HasPrefix(row, c.want) {
				t.Errorf("error %v, row %s", err, row)
			}
		})
	}
	for name, c := range map[string]struct {
		declared, body string
		want           []string
	}{
		"vector of 3": {"", "  %4 = load <3 x i32>, ptr addrspace(2) %0, align 16, !tbaa !9", []string{reads + "12, i64 16)"}},
		"packed":      {"", "  %4 = load <3 x i32>, ptr addrspace(2) %0, align 4", []string{reads + "12, i64 12)"}},
		"store": {"", "  store half 0xH3C00, ptr addrspace(1) %1, align 2, !tbaa !9",
			[]string{writes + "2)", "store half 0xH3C00, ptr %7, align 1"}},
		"pointer": {"", "  %4 = load ptr addrspace(1), ptr addrspace(2) %0, align 8", []string{"call i64 @mpsforge_shader_adopt(ptr %0, i64 %8)"}},
		"copy": {"declare void @llvm.memcpy.p0.p1.i64(ptr, ptr addrspace(1), i64, i1)",
			"  %4 = alloca [16 x i8]\n" +
				"  call void @llvm.memcpy.p0.p1.i64(ptr noundef align 8 dereferenceable(16) %4, ptr addrspace(1) noundef %1, i64 16, i1 false)",
			[]string{"@mpsforge_shader_read(ptr %0, i64 %6, i64 %7, i64 16, i64 16)", "@llvm.memcpy.p0.p0.i64(ptr %5, ptr %8, i64 16, i1 false)"}},
		// What the code says of memory does not hold here.
		"marks": {"", "  %4 = alloca i32\n  %5 = load i32, ptr %4, align 4, !noalias !9",
			[]string{"load i32, ptr %5, align 4\n"}},
		// What is made of a buffer's pointer by arithmetic is checked against that buffer.
		"root": {"", "  %4 = getelementptr inbounds i8, ptr addrspace(1) %1, i64 8\n  %5 = bitcast ptr addrspace(1) %4 to ptr addrspace(1)\n" +
			"  store i32 1, ptr addrspace(1) %5, align 4", []string{"%7 = ptrtoint ptr %2 to i64\n", "%8 = ptrtoint ptr %6 to i64\n"}},
		// A variable in threadgroup memory is asked for where a function begins; a place in it is checked against it.
		"variable": {variables, "  %4 = getelementptr inbounds [4 x float], ptr addrspace(3) @tile, i64 0, i64 1\n" +
			"  store float 1.0, ptr addrspace(3) %4, align 4",
			[]string{"%7 = ptrtoint ptr %6 to i64\n", "%8 = ptrtoint ptr %5 to i64\n", "i64 %8, i64 %7, i64 4)"}},
		"constant place in a variable": {variables, "  %4 = load float, ptr addrspace(3) " +
			"getelementptr inbounds ([4 x float], ptr addrspace(3) @tile, i64 0, i64 3), align 4",
			[]string{"getelementptr [4 x float], ptr %5, i64 0, i64 3\n", "ptrtoint ptr %5 to i64\n"}},
		"copy to a variable": {variables, "  %4 = alloca [16 x i8]\n" +
			"  call void @llvm.memcpy.p3.p0.i64(ptr addrspace(3) @tile, ptr noundef %4, i64 16, i1 false), !tbaa.struct !9",
			[]string{"ptrtoint ptr %5 to i64\n", "@mpsforge_shader_write(ptr %0, i64 %7, i64 %8, i64 16)"}},
		"division": {"", "  %4 = sdiv i32 %2, %2\n  %5 = urem i32 7, %2",
			[]string{"icmp eq i32 %3, -2147483648\n", "sdiv i32 %3, %10\n", "urem i32 7, %13\n"}},
		"atomic": {"declare i32 @air.atomic.global.max.u.i32(ptr addrspace(1), i32, i32, i32, i1)",
			"  %4 = call i32 @air.atomic.global.max.u.i32(ptr addrspace(1) %1, i32 %2, i32 0, i32 2, i1 true)",
			[]string{"@mpsforge_shader_atomic(ptr %0, i64 %5, i64 4, i32 3)\n", "atomicrmw umax ptr %6, i32 %3 monotonic, align 4"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, err := translate(t, kernel(c.declared, c.body))
			require.NoError(t, err)
			_, code, _ = strings.Cut(code, "@k(ptr %0, ptr %1, ptr %2, i32 %3)")
			code, rest, _ := strings.Cut(code, "\n}")
			for _, want := range c.want {
				require.Contains(t, code, want)
			}
			const asked = "%5 = call ptr @mpsforge_shader_variable(ptr %0, i32 0, i64 ptrtoint (ptr getelementptr ([4 x float], ptr null, i32 1) to i64))"
			if c.declared == variables && strings.Count(code, "mpsforge_shader_variable") != strings.Count(code, asked) {
				t.Errorf("the variable is not asked for once in%s", code)
			}
			for _, left := range []string{"addrspace", "!", "inbounds", "@tile"} {
				if strings.Contains(code, left) || left != "inbounds" && left != "!" && strings.Contains(rest, left) {
					t.Errorf("%s is left in%s", left, code)
				}
			}
		})
	}
}

// What is not known is an error with its name; it never becomes code that does something else.
func unknownCodeIsRefused(t *testing.T, translate translation) {
	for name, c := range map[string]struct{ declared, body, want string }{
		"function": {"declare float @air.new_function.f32(float)",
			"  %4 = call float @air.new_function.f32(float 0.0)", "air.new_function.f32"},
		"functions": {"declare void @air.a()\ndeclare void @air.b()", "  call void @air.b()\n  call void @air.a()",
			"air.a is not known; the function air.b"},
		"arguments": {"declare float @air.dot.v4f32()", "  %4 = call float @air.dot.v4f32()", "air.dot.v4f32 has 0 arguments"},
		"result": {"declare i32 @air.wg.barrier(i32, i32)", "  %4 = call i32 @air.wg.barrier(i32 2, i32 1)",
			"air.wg.barrier gives another type"},
		"other code": {"declare void @puts(ptr)", "  call void @puts(ptr null)", "k: a call of what is not known:  call void @puts"},
		"pointer":    {"", "  %4 = inttoptr i32 %2 to ptr\n  call void %4()", "k: a call of what is not known:"},
		"global": {"@memory = internal addrspace(1) global [4 x float] undef", "  %4 = load float, ptr addrspace(1) @memory",
			"the global memory is not supported"},
		"atomic": {"", "  %4 = atomicrmw add ptr addrspace(1) %1, i32 1 monotonic, align 4", "k: not understood:  %4 = atomicrmw"},
		"set": {"declare void @llvm.memset.p1.i64(ptr addrspace(1), i8, i64, i1)",
			"  call void @llvm.memset.p1.i64(ptr addrspace(1) %1, i8 0, i64 4, i1 false)",
			"k: not understood:  call void @llvm.memset"},
		"type":   {"%struct.S = type { i32 }", "  %4 = load %struct.S, ptr addrspace(1) %1, align 4", "%struct.S"},
		"syntax": {"", "  %4 = load", "k.ll: "},
		"not valid": {"declare float @air.fma.f32(i32, i32, i32)",
			"  %4 = call float @air.fma.f32(i32 0, i32 %2, i32 0)", "what it becomes is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := translate(t, kernel(c.declared, c.body))
			require.Says(t, err, c.want)
		})
	}
	for name, c := range map[string]struct{ old, changed, want string }{
		"kind":      {"air.thread_position_in_grid", "air.new_position", "k: an argument is of the kind air.new_position"},
		"arguments": {"!{!4, !5, !6}", "!{!4, !5}", "k: 3 parameters, and metadata of 2"},
		"type":      {"i32 %2)", "float %2)", "k asks for a position of another type"},
		"code":      {"ptr @k, !2", "null, !2", "kernel 0 has no code or no metadata"},
	} {
		t.Run("metadata, "+name, func(t *testing.T) {
			_, _, err := translate(t, strings.Replace(kernel("", ""), c.old, c.changed, 1))
			require.Says(t, err, c.want)
		})
	}
}
