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
	all, err := h.askLayouts(ctx, flags, dir)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return all, os.WriteFile(kept, text, 0o644)
}

func (h *builder) askLayouts(ctx context.Context, flags []string, dir string) ([]Layout, error) {
	var probe strings.Builder
	for _, header := range h.Facts.LayoutHeaders {
		if builds.Exists(filepath.Join(h.Checkout, "aten/src", header)) {
			fmt.Fprintf(&probe, "#include <%s>\n", header)
		}
	}
	path := filepath.Join(dir, "layout.mm")
	if err := os.WriteFile(path, []byte(probe.String()), 0o644); err != nil {
		return nil, err
	}
	args := append(slices.Clone(flags), "-fsyntax-only", "-Xclang", "-fdump-record-layouts-complete", path)
	found, err := run.Command{Name: h.Root.Tool("clang"), Args: args, Dir: h.Checkout}.Run(ctx)
	if err != nil {
		return nil, compileError(cxx.Explain("the probe of class layouts", err))
	}
	known := parseLayouts(string(found.Stdout))
	var all []Layout
	for _, class := range h.Facts.LayoutClasses {
		if i := slices.IndexFunc(known, func(l Layout) bool { return l.Class == class }); i >= 0 {
			all = append(all, known[i])
		}
	}
	text, err := os.ReadFile(filepath.Join(h.Checkout, "aten/src/ATen/mps/MPSAllocatorInterface.h"))
	if err != nil {
		return nil, err
	}
	table := Layout{Class: "at::mps::IMPSAllocator, virtual functions"}
	for i, function := range virtualFunction.FindAllSubmatch(text, -1) {
		table.Members = append(table.Members, Member{strconv.Itoa(i), strings.Join(strings.Fields(string(function[1])), " ")})
	}
	return append(all, table), nil
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
