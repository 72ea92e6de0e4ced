package host

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mpsforge/fork/builds"
	"mpsforge/internal/cxx"
	"mpsforge/internal/run"
	"mpsforge/internal/suggest"
	"mpsforge/patches"
)

// Layout is how the compiler lays out a class: extensions are built with it.
type Layout struct {
	Class string `json:"class"`
	Size  int    `json:"size"` // bytes
	// Members are bases, the pointer to the virtual functions and the members, in their order; of an interface, its
	// virtual functions.
	Members []Member `json:"members"`
}

// Member is one line of a layout.
type Member struct {
	Offset string `json:"offset"` // bytes; of a virtual function, its place in the table
	Name   string `json:"name"`   // with its type
}

// layouts asks the compiler, once for each build: the answer is kept in the build's folder.
func (h *builder) layouts(ctx context.Context, flags []string, dir string) ([]Layout, error) {
	var all []Layout
	kept := filepath.Join(dir, "layouts.json")
	if text, err := os.ReadFile(kept); err == nil && json.Unmarshal(text, &all) == nil {
		return all, nil
	}
	all, _, err := Layouts(ctx, h.Root, h.Facts, h.Checkout, flags, dir)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return all, os.WriteFile(kept, text, 0o644)
}

// Layouts asks the compiler for the classes that extensions are built with, and gives what else it says of their headers: warnings. It
// writes into dir.
func Layouts(ctx context.Context, root *Root, facts patches.HostFacts, checkout string, flags []string, dir string) (all []Layout, warnings string, err error) {
	var probe strings.Builder
	whole := true // a checkout may hold only a part of PyTorch
	for _, header := range facts.LayoutHeaders {
		if builds.Exists(filepath.Join(checkout, "aten/src", header)) {
			fmt.Fprintf(&probe, "#include <%s>\n", header)
		} else {
			whole = false
		}
	}
	path := filepath.Join(dir, "layout.mm")
	if err := os.WriteFile(path, []byte(probe.String()), 0o644); err != nil {
		return nil, "", err
	}
	args := append(slices.Clone(flags), "-fsyntax-only", "-Xclang", "-fdump-record-layouts-complete", path)
	found, err := run.Command{Name: root.Tool("clang"), Args: args, Dir: checkout}.Run(ctx)
	if err != nil {
		return nil, "", compileError(cxx.Explain("the probe of class layouts", err))
	}
	known := parseLayouts(string(found.Stdout))
	if all, err = layoutsOf(known, facts.LayoutClasses, whole); err != nil {
		return nil, "", err
	}
	text, err := os.ReadFile(filepath.Join(checkout, "aten/src/ATen/mps/MPSAllocatorInterface.h"))
	if err != nil {
		return nil, "", err
	}
	table := Layout{Class: "at::mps::IMPSAllocator, virtual functions"}
	for i, function := range virtualFunction.FindAllSubmatch(text, -1) {
		table.Members = append(table.Members, Member{strconv.Itoa(i), strings.Join(strings.Fields(string(function[1])), " ")})
	}
	return append(all, table), string(found.Stderr), nil
}

// layoutsOf picks those of the classes. One that is not there is wrong, unless the checkout lacks headers.
func layoutsOf(known []Layout, classes []string, whole bool) (all []Layout, err error) {
	var names []string
	for _, l := range known {
		names = append(names, l.Class)
	}
	for _, class := range classes {
		if i := slices.Index(names, class); i >= 0 {
			all = append(all, known[i])
		} else if whole {
			return nil, fmt.Errorf("%w: layout_classes in host.json names %s, which none of layout_headers declares%s", builds.ErrSources, class,
				suggest.Meant(class, names))
		}
	}
	return all, nil
}

var (
	virtualFunction = regexp.MustCompile(`virtual ([^;{]*[^;{ ]) *(?:= 0|const = 0)?[;{]`)
	layoutLine      = regexp.MustCompile(`^ *([0-9:-]*) \| ( *)(.*)$`)
	layoutSize      = regexp.MustCompile(`\[sizeof=(\d+)`)
)

// parseLayouts reads what clang prints: for each class a line of its own, its members indented below, and its size.
func parseLayouts(text string) []Layout {
	var all []Layout
	for _, dump := range strings.Split(text, "*** Dumping AST Record Layout")[1:] {
		var l Layout
		for _, line := range strings.Split(dump, "\n") {
			if size := layoutSize.FindStringSubmatch(line); size != nil {
				l.Size, _ = strconv.Atoi(size[1]) // the expression has matched digits
				break
			}
			parts := layoutLine.FindStringSubmatch(line)
			switch {
			case parts == nil:
			case l.Class == "":
				_, name, _ := strings.Cut(parts[3], " ")
				l.Class = strings.TrimSuffix(name, " (empty)")
			case len(parts[2]) == 2:
				l.Members = append(l.Members, Member{parts[1], parts[3]})
			}
		}
		all = append(all, l)
	}
	return all
}

// CompareLayouts says how a class changed, and whether what was compiled with it as before still fits. Members may be renamed,
// and virtual functions added behind the others; a
// size, an offset or an order that changes is a failure.
func CompareLayouts(before, after Layout) (changed string, fits bool) {
	var changes []string
	names := func(members []Member) (names, offsets []string) {
		for _, m := range members {
			names, offsets = append(names, m.Name), append(offsets, m.Offset)
		}
		return names, offsets
	}
	namesBefore, offsetsBefore := names(before.Members)
	namesAfter, offsetsAfter := names(after.Members)
	if before.Size == 0 { // functions
		if len(namesAfter) < len(namesBefore) || !slices.Equal(namesBefore, namesAfter[:len(namesBefore)]) {
			return fmt.Sprintf("before: %s; after: %s", strings.Join(namesBefore, ", "), strings.Join(namesAfter, ", ")), false
		}
		if added := namesAfter[len(namesBefore):]; len(added) > 0 {
			return fmt.Sprintf("the %d functions as before, in their order; added behind them: %s", len(namesBefore), strings.Join(added, ", ")), true
		}
		return fmt.Sprintf("the %d functions as before, in their order", len(namesBefore)), true
	}
	if before.Size != after.Size {
		changes = append(changes, fmt.Sprintf("%d bytes before, %d after", before.Size, after.Size))
	}
	for i := range max(len(namesBefore), len(namesAfter)) {
		at := func(offsets, names []string) string {
			if i >= len(names) {
				return "nothing"
			}
			return names[i] + " at " + offsets[i]
		}
		if was, is := at(offsetsBefore, namesBefore), at(offsetsAfter, namesAfter); was != is {
			changes = append(changes, was+" is now "+is)
		}
	}
	if len(changes) == 0 {
		return fmt.Sprintf("%d bytes, %d members, as before", before.Size, len(before.Members)), true
	}
	return fmt.Sprintf("%d bytes; %s", before.Size, strings.Join(changes, "; ")), before.Size == after.Size && slices.Equal(offsetsBefore, offsetsAfter)
}
