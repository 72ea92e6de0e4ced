package shaders

import (
	"fmt"
	"strings"
)

// positions gives, by what a kernel's argument is, the value of one dimension (0 to 2) in the loop of threadsFunction.
var positions = map[string]func(dimension int) string{
	"thread_position_in_grid":             func(d int) string { return fmt.Sprintf("%%grid.%d", d) },
	"thread_position_in_threadgroup":      func(d int) string { return fmt.Sprintf("%%in.%d", d) },
	"threadgroup_position_in_grid":        func(d int) string { return fmt.Sprintf("%%position.%d", d) },
	"threads_per_threadgroup":             func(d int) string { return fmt.Sprintf("%%this_group.%d", d) },
	"dispatch_threads_per_threadgroup":    func(d int) string { return fmt.Sprintf("%%group.%d", d) },
	"threads_per_grid":                    func(d int) string { return fmt.Sprintf("%%threads.%d", d) },
	"threadgroups_per_grid":               func(d int) string { return fmt.Sprintf("%%groups.%d", d) },
	"thread_index_in_threadgroup":         func(int) string { return "%thread" },
	"thread_index_in_simdgroup":           func(int) string { return "%lane" },
	"simdgroup_index_in_threadgroup":      func(int) string { return "%simd" },
	"threads_per_simdgroup":               func(int) string { return "32" },
	"thread_execution_width":              func(int) string { return "32" },
	"simdgroups_per_threadgroup":          func(int) string { return "%simds" },
	"dispatch_simdgroups_per_threadgroup": func(int) string { return "%simds" },
}

// threadsFunction writes the function of one kernel that runs count threads of the threadgroup from first on.
func threadsFunction(symbol, kernel string, lines []string, arguments []argument) (string, error) {
	var s signature
	for _, line := range lines {
		if strings.HasPrefix(line, "define ") && strings.Contains(line, kernel+"(") {
			var err error
			if s, err = parseSignature(line); err != nil {
				return "", err
			}
		}
	}
	if len(s.parameters) != len(arguments) {
		return "", fmt.Errorf("%d parameters, and metadata of %d", len(s.parameters), len(arguments))
	}
	var head, body strings.Builder
	pass := []string{"ptr %run"}
	for place, a := range arguments {
		typeName, _ := cutType(addressSpace.ReplaceAllString(s.parameters[place], ""))
		if a.kind == "buffer" {
			fmt.Fprintf(&head, "  %%a%d.i = call i64 @mpsforge_shader_argument(ptr %%run, i32 %d)\n  %%a%d = inttoptr i64 %%a%d.i to ptr\n", place,
				place, place, place)
			pass = append(pass, fmt.Sprintf("ptr %%a%d", place))
			continue
		}
		value := positions[a.kind]
		if value == nil {
			return "", fmt.Errorf("argument %d is of the kind %s, which is not supported", place, a.kind)
		}
		count, element := vectorType(typeName)
		name := fmt.Sprintf("%%p%d", place)
		result := "poison"
		for d := range max(count, 1) {
			from := value(d)
			switch element {
			case "i32":
			case "i16", "i8":
				fmt.Fprintf(&body, "  %s.t%d = trunc i32 %s to %s\n", name, d, from, element)
				from = fmt.Sprintf("%s.t%d", name, d)
			case "i64":
				fmt.Fprintf(&body, "  %s.t%d = zext i32 %s to i64\n", name, d, from)
				from = fmt.Sprintf("%s.t%d", name, d)
			default:
				return "", fmt.Errorf("argument %d is a position of type %s", place, typeName)
			}
			if count == 0 {
				result = from
				continue
			}
			fmt.Fprintf(&body, "  %s.v%d = insertelement %s %s, %s %s, i32 %d\n", name, d, typeName, result, element, from, d)
			result = fmt.Sprintf("%s.v%d", name, d)
		}
		pass = append(pass, typeName+" "+result)
	}
	text := strings.NewReplacer("SYMBOL", symbol, "HEAD", head.String(), "BODY", body.String(), "KERNEL", kernel, "PASS",
		strings.Join(pass, ", ")).Replace(threadsTemplate)
	return text, nil
}

var threadsTemplate = func() string {
	var places strings.Builder
	for d := range 3 {
		for _, what := range []string{"threads", "group", "this_group", "groups", "position"} {
			fmt.Fprintf(&places, "  %%%s.%d = call i32 @mpsforge_shader_%s(ptr %%run, i32 %d)\n", what, d, what, d)
		}
		fmt.Fprintf(&places, "  %%base.%d = mul i32 %%position.%d, %%group.%d\n", d, d, d)
	}
	return `define hidden void @SYMBOL(ptr noalias %run, i32 %first, i32 %count) nounwind {
entry:
` + places.String() + `  %xy = mul i32 %this_group.0, %this_group.1
  %all = mul i32 %xy, %this_group.2
  %all.up = add i32 %all, 31
  %simds = udiv i32 %all.up, 32
  %first.0 = urem i32 %first, %this_group.0
  %first.rest = udiv i32 %first, %this_group.0
  %first.1 = urem i32 %first.rest, %this_group.1
  %first.2 = udiv i32 %first.rest, %this_group.1
  %end = add i32 %first, %count
HEAD  br label %loop
loop:
  %thread = phi i32 [ %first, %entry ], [ %thread.next, %loop ]
  %in.0 = phi i32 [ %first.0, %entry ], [ %next.0, %loop ]
  %in.1 = phi i32 [ %first.1, %entry ], [ %next.1, %loop ]
  %in.2 = phi i32 [ %first.2, %entry ], [ %next.2, %loop ]
  call void @mpsforge_shader_thread(ptr %run, i32 %thread)
  %grid.0 = add i32 %base.0, %in.0
  %grid.1 = add i32 %base.1, %in.1
  %grid.2 = add i32 %base.2, %in.2
  %lane = and i32 %thread, 31
  %simd = lshr i32 %thread, 5
BODY  call void KERNEL(PASS)
  %x.up = add i32 %in.0, 1
  %x.wrap = icmp eq i32 %x.up, %this_group.0
  %next.0 = select i1 %x.wrap, i32 0, i32 %x.up
  %x.carry = zext i1 %x.wrap to i32
  %y.up = add i32 %in.1, %x.carry
  %y.wrap = icmp eq i32 %y.up, %this_group.1
  %next.1 = select i1 %y.wrap, i32 0, i32 %y.up
  %y.carry = zext i1 %y.wrap to i32
  %next.2 = add i32 %in.2, %y.carry
  %thread.next = add i32 %thread, 1
  %more = icmp ult i32 %thread.next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
`
}()
