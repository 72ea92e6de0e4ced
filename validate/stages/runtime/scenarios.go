package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mpsforge/fork/hostbuild/host"
	"mpsforge/internal/run"
	"mpsforge/internal/suggest"
	"mpsforge/native"
	"mpsforge/validate/judge/process"
)

// scenario is one row of native/torch/scenarios/scenarios.json: what must come of a function of the program beside it. It is
// the one place for these facts; the program and the patches' trailers are checked against it.
type scenario struct {
	Name  string `json:"name"`
	About string `json:"about"`
	// Patches are those that it needs; where the series has not all of them yet, the scenario waits. The first is the one
	// whose trailer names it if it fails without that patch.
	Patches []string `json:"patches"`
	// Stock says what unpatched sources do.
	Stock process.Stock `json:"stock"`
	// Ends say how stock fails, as process.Result.Among has it, beside the ends of threads that encode on one stream at once.
	Ends []string `json:"ends"`
	// Without say in the same form how it fails when a patch is left out, where stock lives or fails in another way.
	Without []string `json:"without"`
	// Least is the fewest threads at which stock is expected to fail.
	Least int `json:"least"`
	// Threads, if not 0, is the one number of threads that it is run with.
	Threads int `json:"threads"`
	// Cold runs are not preceded by a run on one thread. While the patches for the first use are missing, the other
	// scenarios begin warm, so that they show what they are about; the report says so.
	Cold bool `json:"cold"`
	// Iterations of each thread.
	Iterations int `json:"iterations"`
	// Environment is set for the process.
	Environment []string `json:"environment"`
	// NoThread says why ThreadSanitizer cannot judge it; empty if it can.
	NoThread string `json:"no_thread_sanitizer"`
	// Why says what is not plain of the row.
	Why string `json:"why"`
}

// ScenarioNames are the names of the table's scenarios.
func ScenarioNames() []string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.Name)
	}
	return names
}

// ScenariosOf are the names of those whose rows have the patch.
func ScenariosOf(patch string) []string {
	var names []string
	for _, s := range scenarios() {
		if slices.Contains(s.Patches, patch) {
			names = append(names, s.Name)
		}
	}
	return names
}

// names reports whether stock's end is one that the row names. Another one shows nothing of what the scenario is about.
func (s scenario) names(end process.Result) bool {
	return s.Stock == process.StockLives || end.Races > 0 || end.Among(s.Ends)
}

// namesWithout reports whether the end without a patch is one that the row names. Another one is no evidence of what the patch does.
func (s scenario) namesWithout(end process.Result) bool {
	return end.Races > 0 || end.Among(slices.Concat(s.Ends, s.Without))
}

// EachScenario calls see with each scenario of the table, and what stock sources do in it.
func EachScenario(see func(name string, stock process.Stock)) {
	for _, s := range scenarios() {
		see(s.Name, s.Stock)
	}
}

// FirstScenario is the one that a build with host.First has what it needs for: a program of the field reports.
const FirstScenario = "parallel-basic"

// ErrNoScenario is of a name that the table does not have.
var ErrNoScenario = errors.New("no such scenario")

// CheckScenarios refuses names that the table does not have.
func CheckScenarios(names []string) error {
	_, err := chosen(names)
	return err
}

// chosen are the table's rows of these names, in their order; without names all.
func chosen(names []string) ([]scenario, error) {
	table := scenarios()
	if len(names) == 0 {
		return table, nil
	}
	var rows []scenario
	for _, name := range names {
		at := slices.IndexFunc(table, func(s scenario) bool { return s.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("%w: %q%s", ErrNoScenario, name, suggest.Names(name, ScenarioNames()))
		}
		if !slices.ContainsFunc(rows, func(s scenario) bool { return s.Name == name }) {
			rows = append(rows, table[at])
		}
	}
	return rows, nil
}

// scenarios is the table, read anew by each caller. The field reports' rows come first.
func scenarios() []scenario {
	text, err := native.Torch.ReadFile("torch/scenarios/scenarios.json")
	if err != nil {
		panic(err) // it is embedded
	}
	rows, err := readScenarios(text)
	if err != nil {
		panic(err) // each test of this package reads the same text
	}
	return rows
}

func readScenarios(text []byte) ([]scenario, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var rows []scenario
	if err := decoder.Decode(&rows); err != nil {
		return nil, fmt.Errorf("scenarios.json: %w", err)
	}
	seen := map[string]bool{}
	for _, s := range rows {
		var wrong string
		switch {
		case s.Name == "" || seen[s.Name]:
			wrong = "its name is missing or not its own"
		case s.About == "" || len(s.Patches) == 0 || s.Iterations < 1:
			wrong = "about, patches and iterations are needed"
		case s.Stock != process.StockFails && s.Stock != process.StockMay && s.Stock != process.StockLives:
			wrong = fmt.Sprintf("stock is %q, which is none of %q, %q and %q", s.Stock, process.StockFails, process.StockMay, process.StockLives)
		}
		if wrong != "" {
			return nil, fmt.Errorf("scenarios.json, scenario %q: %s", s.Name, wrong)
		}
		seen[s.Name] = true
	}
	return rows, nil
}

// threads are the thread counts of a scenario, long and short.
func (s scenario) threads(quick bool) []int {
	switch {
	case s.Threads > 0:
		return []int{s.Threads}
	case quick:
		return []int{1, 4}
	}
	return []int{1, 2, 3, 4, 5, 8, 16, 33}
}

// errTable is of a program that has other scenarios than the table.
var errTable = errors.New("the program and native/torch/scenarios/scenarios.json differ")

// operationsOf asks a build's program for what it has: its scenarios must be the table's, its operations are returned.
func operationsOf(ctx context.Context, built *host.Build, table []scenario) ([]string, error) {
	found, err := run.Command{Name: built.Driver, Args: []string{"--list"}}.Run(ctx)
	if err != nil {
		return nil, err
	}
	var listed []struct {
		Name      string `json:"name"`
		Operation bool   `json:"operation"`
	}
	if err := json.Unmarshal(found.Stdout, &listed); err != nil {
		return nil, fmt.Errorf("list of scenarios of %s: %w", built.Driver, err)
	}
	var operations, differ []string
	has := map[string]bool{}
	for _, one := range listed {
		has[one.Name] = true
		if one.Operation {
			operations = append(operations, one.Name)
		} else if !slices.ContainsFunc(table, func(s scenario) bool { return s.Name == one.Name }) {
			differ = append(differ, one.Name+" has no row")
		}
	}
	for _, s := range table {
		if !has[s.Name] {
			differ = append(differ, s.Name+" has no function")
		}
	}
	if len(differ) > 0 {
		return nil, fmt.Errorf("%w: %s", errTable, strings.Join(differ, ", "))
	}
	return operations, nil
}
