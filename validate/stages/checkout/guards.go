package checkout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mpsforge/reports"
)

// streamFunctions give a stream: who wants to encode needs one, or is given one by a caller that needed one.
var streamFunctions = []string{"getCurrentMPSStream", "getDefaultMPSStream", "getMPSStreamFromID"}

// guardType is the class of guards.
const guardType = "MPSOpGuard"

// Where operators are, and where the functions are that they register themselves for.
const (
	generatorFile = "torchgen/dest/register_dispatch_key.py"
	kernelsFolder = "aten/src/ATen/native"
	stubsFile     = "aten/src/ATen/native/DispatchStub.h" // its macros are not expanded, but read as they are: REGISTER_DISPATCH and its like
)

// operatorFolders hold functions that encode. What holds the stream, the guard and the events themselves, ATen/mps, is not among them.
var operatorFolders = []string{"aten/src/ATen/native/mps", "aten/src/ATen/native/sparse/mps", "torch/csrc/mps"}

// guarded says which functions that encode are covered.
type guarded struct {
	fetch   int         // how many ask for a stream by themselves
	covered int         // how many are reached through guards alone, callers on the way included
	others  int         // how many come to a stub or a function that asks for a stream, but with tensors of other devices only
	naked   []*function // nothing covers them
}

// guards traces each function that asks for a stream to the guards that cover it, through all that call it.
func guards(dir string) (*guarded, error) {
	ways, err := waysIn(dir)
	if err != nil {
		return nil, err
	}
	functions, mentioned, err := backendFunctions(dir)
	if err != nil {
		return nil, err
	}
	g := &guarded{}
	registered := map[string]bool{} // stubs that the operators' folders register a function for
	for _, f := range functions {
		if inOperatorFolder(f.file) && (f.calls["REGISTER_DISPATCH"] || f.calls["REGISTER_MPS_DISPATCH"]) {
			registered[f.name] = true
		}
	}
	callers := map[string][]*function{}
	for _, f := range functions {
		for name := range f.calls {
			callers[name] = append(callers[name], f)
		}
	}
	// From the functions that ask for a stream to those that call them, up to a guard.
	var open []*function
	for _, f := range functions {
		if inOperatorFolder(f.file) && slices.ContainsFunc(streamFunctions, func(name string) bool { return f.calls[name] }) {
			open = append(open, f)
			g.fetch++
		}
	}
	seen := map[*function]bool{}
	for len(open) > 0 {
		f := open[0]
		open = open[1:]
		if seen[f] { // not by its name, which overloads share
			continue
		}
		seen[f] = true
		if f.calls[guardType] {
			g.covered++
			continue
		}
		way := wayIn{}
		if known := ways[f.name]; known != nil {
			way = *known
		}
		otherDevice := way == wayIn{others: true} && !inOperatorFolder(f.file)
		above := slices.DeleteFunc(slices.Clone(callers[f.name]), func(caller *function) bool {
			// Far from the operators a name may mean another function, unless it is one of MPS or a kernel.
			near := inOperatorFolder(caller.file) || caller.file == f.file || strings.Contains(f.name, "mps") || registered[f.name] || otherDevice
			return !near || caller.file == f.file && caller.name == f.name
		})
		unused := f.local && mentioned[f.name] == 1
		switch {
		case way.bare && !way.guarded, !way.guarded && !otherDevice && len(above) == 0 && !unused:
			g.naked = append(g.naked, f)
			continue
		case otherDevice:
			g.others++
		default:
			g.covered++
		}
		open = append(open, above...)
	}
	return g, nil
}

func inOperatorFolder(file string) bool {
	return slices.ContainsFunc(operatorFolders, func(folder string) bool { return strings.HasPrefix(file, folder+"/") })
}

// backendFunctions reads the operators and what may call them, and says how often each name is written there.
func backendFunctions(dir string) (functions []*function, mentioned map[string]int, err error) {
	type source struct{ file, text string }
	var sources []source
	headers := macros{}
	_, err = eachSource(dir, []string{kernelsFolder, "torch/csrc/mps"}, func(file, text string) {
		text = blankLiterals(text)
		sources = append(sources, source{file, text})
		if filepath.Ext(file) == ".h" && file != stubsFile {
			_, own := expandMacros(text, macros{})
			for name, definitions := range own {
				headers[name] = append(headers[name], definitions...)
			}
		}
	})
	if err != nil {
		return nil, nil, err
	}
	mentioned = map[string]int{}
	for _, s := range sources {
		text, _ := expandMacros(s.text, headers)
		functions = append(functions, functionsOf(s.file, text, mentioned)...)
	}
	return functions, mentioned, nil
}

const noGuardsWritten = generatorFile + " of the checkout writes no guards: the patch op-guards is not applied"

// writesGuards says whether the checkout's torchgen writes guards into the wrappers of operators.
func writesGuards(dir string) (bool, error) {
	generator, err := os.ReadFile(filepath.Join(dir, generatorFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return strings.Contains(string(generator), guardType), err
}

// checkGuards adds the verdict on a checkout: every function that encodes is covered by a guard.
func checkGuards(dir string, report *reports.Stage) error {
	const name = "work without a guard"
	written, err := writesGuards(dir)
	if err != nil {
		return err
	}
	if !written {
		report.Add(reports.Check{Name: name, Subject: "checkout", Verdict: reports.Skipped, Detail: noGuardsWritten})
		return nil
	}
	g, err := guards(dir)
	if err != nil {
		return err
	}
	report.Count("functions that ask for a stream", int64(g.fetch))
	report.Count("functions covered by guards", int64(g.covered))
	report.Count("functions for other devices only", int64(g.others))
	for _, f := range g.naked {
		report.Add(reports.Check{Name: name, Subject: fmt.Sprintf("%s:%d", f.file, f.line), Verdict: reports.Failed,
			Detail: f.name + " asks for a stream, or calls a function that does, and can be called with no guard around it: add a guard " +
				"(MPSOpGuard) to it, or to what calls it"})
	}
	if len(g.naked) == 0 {
		report.Add(clean(name, "", g.fetch, "function that asks for a stream",
			"every function of the operators that asks for a stream is reached through guards only"))
	}
	return nil
}
