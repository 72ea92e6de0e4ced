package shaders

import (
	"encoding/binary"
	"strings"
	"testing"
)

// library makes a metallib with one function.
func library(name string, bitcode []byte) []byte {
	field := func(tag string, value []byte) []byte {
		return append(binary.LittleEndian.AppendUint16([]byte(tag), uint16(len(value))), value...)
	}
	row := append(field("NAME", append([]byte(name), 0)), field("MDSZ", binary.LittleEndian.AppendUint64(nil, uint64(len(bitcode))))...)
	row = append(append(row, field("OFFT", make([]byte, 24))...), "ENDT"...)
	list := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 1), uint32(len(row)+4))
	list = append(list, row...)
	data := append([]byte("MTLB"), make([]byte, 84)...)
	put := func(at int, value int) { binary.LittleEndian.PutUint64(data[at:], uint64(value)) }
	put(24, len(data))
	put(32, len(list)-4)
	put(72, len(data)+len(list))
	put(80, len(bitcode))
	return append(append(data, list...), bitcode...)
}

func TestMetalLibraryIsRead(t *testing.T) {
	found, err := parseLibrary("metal_basic", library("fmax_float", []byte("code")))
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Modules) != 1 || found.Modules[0].Name != "fmax_float" || string(found.Modules[0].Bitcode) != "code" {
		t.Errorf("found %+v", found)
	}
}

// Wherever the file is cut, that is an error and no panic.
func TestCutMetalLibraryIsRefused(t *testing.T) {
	whole := library("fmax_float", []byte("code"))
	for size := range len(whole) {
		if _, err := parseLibrary("metal_basic", whole[:size]); err == nil {
			t.Errorf("%d of %d bytes are accepted", size, len(whole))
		}
	}
}

// A kernel as llvm-dis writes it: BODY is of arguments %0 (constant), %1 (device) and %2 (its thread).
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
`

func translateBody(declared, body string) (*translated, error) {
	return translate("s", strings.NewReplacer("DECLARED", declared, "BODY", body).Replace(kernelText))
}

func TestArgumentsComeFromMetadata(t *testing.T) {
	made, err := translateBody("", "  %4 = add i32 %2, 1")
	if err != nil {
		t.Fatal(err)
	}
	want := []argument{
		{kind: "buffer", location: 5, space: 2, size: 4, typeName: "float", name: "in"},
		{kind: "buffer", location: 6, space: 1, writes: true, typeName: "void", name: "out"},
		{kind: "thread_position_in_grid", typeName: "uint", name: "tid"},
	}
	if len(made.kernels) != 1 || len(made.kernels[0].arguments) != len(want) {
		t.Fatalf("kernels %+v", made.kernels)
	}
	for i, a := range made.kernels[0].arguments {
		if a != want[i] {
			t.Errorf("argument %d is %+v, want %+v", i, a, want[i])
		}
	}
}

func TestEveryAccessIsChecked(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"  %4 = load <3 x i32>, ptr addrspace(2) %0, align 16, !tbaa !9",
			"@mpsforge_shader_read(ptr %mpsforge.run, i64 %mpsforge.4.r, i64 %mpsforge.4.i, i64 12, i64 16)"},
		{"  %4 = load <3 x i32>, ptr addrspace(2) %0, align 4",
			"i64 %mpsforge.4.i, i64 12, i64 12)"}, // packed
		{"  store half 0xH3C00, ptr addrspace(1) %1, align 2, !tbaa !9",
			"@mpsforge_shader_write(ptr %mpsforge.run, i64 %mpsforge.s1.r, i64 %mpsforge.s1.i, i64 2)"},
		{"  %4 = load ptr addrspace(1), ptr addrspace(2) %0, align 8",
			"@mpsforge_shader_adopt(ptr %mpsforge.run, i64 %mpsforge.4.v)"},
		{"  %4 = alloca [16 x i8]\n" +
			"  call void @llvm.memcpy.p0.p3.i64(ptr noundef align 8 dereferenceable(16) %4, ptr addrspace(3) noundef %5, i64 16, i1 false)",
			"@mpsforge_shader_read(ptr %mpsforge.run, i64 %mpsforge.m1r.r, i64 %mpsforge.m1r.i, i64 16, i64 16)"},
		{"  call void @llvm.memcpy.p3.p0.i64(ptr addrspace(3) %4, ptr noundef %5, i64 16, i1 false), !tbaa.struct !9",
			"@mpsforge_shader_write(ptr %mpsforge.run, i64 %mpsforge.m1w.r, i64 %mpsforge.m1w.i, i64 16)"},
	} {
		made, err := translateBody("", c.body)
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		if !strings.Contains(made.code, c.want) || strings.Contains(made.code, "addrspace") || strings.Contains(made.code, "!tbaa") {
			t.Errorf("%s: no %s in\n%s", c.body, c.want, made.code)
		}
	}
}

// What is made of a buffer's pointer by arithmetic is checked against that buffer.
func TestAccessesAreOfTheBufferOfTheirPointer(t *testing.T) {
	made, err := translateBody("",
		"  %4 = getelementptr inbounds i8, ptr addrspace(1) %1, i64 8\n  %5 = bitcast ptr addrspace(1) %4 to ptr addrspace(1)\n  store i32 1, ptr "+
			"addrspace(1) %5, align 4")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"%mpsforge.s1.r = ptrtoint ptr %1 to i64", "%mpsforge.s1.i = ptrtoint ptr %5 to i64"} {
		if !strings.Contains(made.code, want) {
			t.Errorf("no %s in\n%s", want, made.code)
		}
	}
}

// A variable in threadgroup memory is asked for where a function begins; a place in it is checked against it.
func TestVariablesInThreadgroupMemoryAreSlots(t *testing.T) {
	const variables = "@other = internal unnamed_addr addrspace(3) global float undef, align 4\n@tile = internal unnamed_addr addrspace(3) global " +
		"[4 x float] undef, align 4"
	for _, c := range []struct{ body, want string }{
		{"  %4 = getelementptr inbounds [4 x float], ptr addrspace(3) @tile, i64 0, i64 1\n" +
			"  store float 1.0, ptr addrspace(3) %4, align 4",
			"%mpsforge.s1.r = ptrtoint ptr %mpsforge.variable.1 to i64"},
		{"  %4 = load float, ptr addrspace(3) getelementptr inbounds ([4 x float], ptr addrspace(3) @tile, i64 0, i64 3), align 4",
			"%mpsforge.c1 = getelementptr [4 x float], ptr %mpsforge.variable.1, i64 0, i64 3"},
		{"  call void @llvm.memcpy.p3.p0.i64(ptr addrspace(3) noundef align 8 dereferenceable(16) @tile, ptr noundef %5, i64 16, i1 false), !tbaa.struct !9",
			"%mpsforge.m1w.i = ptrtoint ptr %mpsforge.variable.1 to i64"},
	} {
		made, err := translateBody(variables, c.body)
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		const asked = "call ptr @mpsforge_shader_variable(ptr %mpsforge.run, i32 1, i64 ptrtoint (ptr getelementptr ([4 x float], ptr null, i32 1) to i64))"
		if strings.Count(made.code, asked) != 1 || !strings.Contains(made.code, c.want) || strings.Contains(made.code, "@tile") ||
			strings.Contains(made.code, "variable.0") {
			t.Errorf("%s: no %s in\n%s", c.body, c.want, made.code)
		}
	}
}

// Kernels that wait run as fibers; those that do not are a loop.
func TestKernelsThatWaitAreKnown(t *testing.T) {
	for call, want := range map[string]bool{
		"declare void @air.wg.barrier(i32, i32) #0\x00  tail call void @air.wg.barrier(i32 2, i32 1) #0":  true,
		"declare float @air.exp.f32(float) #0\x00  %4 = tail call float @air.exp.f32(float 1.000000e+00)": false,
	} {
		declared, body, _ := strings.Cut(call, "\x00")
		made, err := translateBody(declared, body)
		if err != nil {
			t.Errorf("%s: %v", body, err)
		} else if made.kernels[0].waits != want {
			t.Errorf("%s: waits is %v", body, !want)
		}
	}
}

// What is not known is an error with its name; it never becomes code that does something else.
func TestUnknownCodeIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ declared, body, want string }{
		"function": {"declare float @air.new_function.f32(float)", "  %4 = call float @air.new_function.f32(float 0.0)", "air.new_function.f32"},
		"global":   {"@memory = internal addrspace(1) global [4 x float] undef", "", "global is not supported"},
		"atomic":   {"", "  %4 = atomicrmw add ptr addrspace(1) %1, i32 1 monotonic, align 4", "not understood"},
		"type":     {"", "  %4 = load %struct.S, ptr addrspace(1) %1, align 4", "%struct.S"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := translateBody(c.declared, c.body); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
