package onethread

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

// kinds are the first words of programs' names, and how many of each the long and the short form draw. All kinds together are 200 and
// 40; where a kind has fewer, or none as where there are no tests, operators take their place.
var kinds = []struct {
	word        string
	long, quick int
}{
	{"shape", 38, 12},
	{"module", 28, 5},
	{"optimizer", 15, 3},
	{"sequence", 15, 2},
	{"test", 25, 4},
	{"operator", 79, 14},
}

const (
	longPrograms  = 200
	quickPrograms = 40
)

// controlWord begins the names of controls, which are no programs to draw from.
const controlWord = "control "

// draw picks the programs of a run by its seed, or those that the pattern names.
func draw(stock, patched []string, seed uint64, quick bool, pattern *regexp.Regexp, named bool) ([]string, error) {
	if !slices.Equal(stock, patched) {
		return nil, fmt.Errorf("there are %d programs on stock and %d on patched: they must be the same; something that decides which exist "+
			"differs between the two", len(stock), len(patched))
	}
	if named {
		if !slices.ContainsFunc(stock, pattern.MatchString) {
			return nil, fmt.Errorf("%w matches %q; names are as \"operator add float32 backward\", and begin with shape, module, optimizer, "+
				"sequence, test or operator", ErrPattern, pattern)
		}
		return slices.DeleteFunc(slices.Clone(stock), func(name string) bool { return strings.HasPrefix(name, controlWord) || !pattern.MatchString(name) }), nil
	}
	random := rand.New(rand.NewPCG(seed, 0))
	var drawn []string
	total := longPrograms
	if quick {
		total = quickPrograms
	}
	for i, kind := range kinds {
		var all []string
		for _, name := range stock {
			if strings.HasPrefix(name, kind.word+" ") {
				all = append(all, name)
			}
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		count := kind.long
		if quick {
			count = kind.quick
		}
		if i == len(kinds)-1 {
			count = total - len(drawn)
		}
		drawn = append(drawn, all[:min(count, len(all))]...)
	}
	return drawn, nil
}
