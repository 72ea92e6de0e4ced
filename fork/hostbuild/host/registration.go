package host

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/internal/suggest"
)

// Torchgen registers every operator that has an MPS kernel. A host build has only some of the kernels, so the others'
// registrations are taken out of the generated text: such an operator then says that it has no kernel for MPS, or falls
// back to the CPU where that was asked for. What the filter knows of the text is its shape: wrappers and structured
// classes begin in the first column and end with a closing brace in the first column.

var (
	wrapperStart    = regexp.MustCompile(`^\S.*\b(wrapper_(?:Sparse|SparseCsr)?MPS_\w+)\(`)
	structuredStart = regexp.MustCompile(`^struct (structured_\w+) final : public at::native::(structured_\w+) \{`)
	plainStart      = regexp.MustCompile(`^(?:at::|::std|void|bool|int64_t|double)[^{]*\) \{$`)
	wrapperUse      = regexp.MustCompile(`\b(wrapper_(?:Sparse|SparseCsr)?MPS_\w+)\(`)
	kernelCall      = regexp.MustCompile(`at::native::(\w+)\(`)
	structuredUse   = regexp.MustCompile(`^(structured_\w+) op`)
	registration    = regexp.MustCompile(`m\.impl\("([^"]+)",\s*TORCH_FN\((wrapper_(?:Sparse|SparseCsr)?MPS_\w+)\)\);`)
	libraryStart    = regexp.MustCompile(`^TORCH_LIBRARY_IMPL\(aten, (\w+), m\)`)
)

// registered is what filterRegistration kept and dropped: names of operators, with the key behind them where that is not MPS.
type registered struct{ kept, dropped []string }

// checkDropped holds what was kept and dropped against the baseline's list of operators that host builds do not register, unless
// sources were left out (verification rule 31).
func (h *builder) checkDropped(found registered, excluded []Excluded) error {
	for _, source := range excluded {
		if source.Reason == NotNeeded || source.Reason == NotThere {
			return nil
		}
	}
	list := "host.json of " + h.Identity.Baseline
	for _, operator := range found.dropped {
		if h.Facts.Unregistered[operator] == "" {
			return fmt.Errorf(
				"%w: torchgen registers aten::%s for MPS, and none of the sources has its kernel; the %d operators without one: %s; if that is "+
					"right for host builds, list them with reasons under unregistered in %s",
				builds.ErrSources, operator, len(found.dropped), strings.Join(found.dropped, ", "), list)
		}
	}
	for operator := range h.Facts.Unregistered {
		switch {
		case !slices.Contains(found.kept, operator) && !slices.Contains(found.dropped, operator):
			return fmt.Errorf("%w: unregistered in %s names aten::%s, which torchgen does not register for MPS%s", builds.ErrSources, list, operator,
				suggest.Meant(operator, found.dropped))
		case slices.Contains(found.kept, operator):
			return fmt.Errorf("%w: aten::%s has a kernel now: delete it from unregistered in %s", builds.ErrSources, operator, list)
		}
	}
	return nil
}

// filterRegistration keeps the operators whose kernels are among the symbols, with the plain functions of at::mps that
// call them.
func filterRegistration(text []byte, has func(symbol string) bool) ([]byte, registered, error) {
	var out bytes.Buffer
	var result registered
	bases := map[string]string{}   // structured class to the class with its kernel
	missing := map[string]string{} // wrapper to the kernel that is not there
	wrappers := 0
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		line := lines.Text()
		if library := libraryStart.FindStringSubmatch(line); library != nil {
			key := ""
			if library[1] != "MPS" {
				key = " (" + library[1] + ")"
			}
			body := line + "\n" + untilBrace(lines)
			out.WriteString(registration.ReplaceAllStringFunc(body, func(entry string) string {
				match := registration.FindStringSubmatch(entry)
				if missing[match[2]] != "" {
					result.dropped = append(result.dropped, match[1]+key)
					return ""
				}
				result.kept = append(result.kept, match[1]+key)
				return entry
			}))
			continue
		}
		if match := structuredStart.FindStringSubmatch(line); match != nil {
			bases[match[1]] = match[2]
			body := untilBrace(lines)
			if has(match[2] + "::impl") {
				out.WriteString(line + "\n" + body)
			}
			continue
		}
		if match := wrapperStart.FindStringSubmatch(line); match != nil && strings.HasSuffix(line, "{") {
			wrappers++
			body := untilBrace(lines)
			if kernel := missingKernel(body, bases, has); kernel != "" {
				missing[match[1]] = kernel
			} else {
				out.WriteString(line + "\n" + body)
			}
			continue
		}
		if plain := plainStart.FindStringSubmatch(line); plain != nil {
			body := untilBrace(lines)
			if use := wrapperUse.FindStringSubmatch(body); use == nil || missing[use[1]] == "" {
				out.WriteString(line + "\n" + body)
			}
			continue
		}
		out.WriteString(line + "\n")
	}
	if err := lines.Err(); err != nil {
		return nil, result, err
	}
	if wrappers == 0 || len(result.kept) == 0 {
		return nil, result, fmt.Errorf("torchgen's registration of MPS kernels has another shape than expected: %d wrappers, %d registrations kept",
			wrappers, len(result.kept))
	}
	return out.Bytes(), result, nil
}

// untilBrace reads up to and with the closing brace in the first column.
func untilBrace(lines *bufio.Scanner) string {
	var body strings.Builder
	for lines.Scan() {
		body.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "}") {
			break
		}
	}
	return body.String()
}

func missingKernel(body string, bases map[string]string, has func(string) bool) string {
	for _, match := range kernelCall.FindAllStringSubmatch(body, -1) {
		if !has(match[1]) {
			return match[1]
		}
	}
	for _, line := range strings.Split(body, "\n") {
		if match := structuredUse.FindStringSubmatch(line); match != nil {
			if kernel := bases[match[1]] + "::impl"; !has(kernel) {
				return kernel
			}
		}
	}
	return ""
}

// kernelSymbols reads mangled names and returns those of namespace at::native: "name" of functions, "class::impl" of
// structured kernels.
func kernelSymbols(names []string) map[string]bool {
	const prefix = "_ZN2at6native"
	found := map[string]bool{}
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		first, rest := mangledName(rest)
		if second, _ := mangledName(rest); second == "impl" {
			first += "::impl"
		}
		found[first] = true
	}
	return found
}

// mangledName takes one length-prefixed name off the text.
func mangledName(text string) (name, rest string) {
	digits := 0
	for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
		digits++
	}
	length, err := strconv.Atoi(text[:digits])
	if err != nil || digits+length > len(text) {
		return "", text
	}
	return text[digits : digits+length], text[digits+length:]
}
