package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"mpsforge/patches"
)

// listed is a baseline's upstream.json, by test.
type listed struct {
	failures, successes, flaky, leftOut map[string]string // to the cause or reason
}

func list(facts patches.UpstreamFacts) listed {
	byTest := func(groups map[string][]string) map[string]string {
		all := map[string]string{}
		for reason, tests := range groups {
			for _, test := range tests {
				all[test] = reason
			}
		}
		return all
	}
	return listed{byTest(facts.Failures), byTest(facts.UnexpectedSuccesses), byTest(facts.Flaky), byTest(facts.LeftOut)}
}

// empty says that nothing is listed: the version has no upstream.json yet.
func (l listed) empty() bool { return len(l.failures)+len(l.successes)+len(l.flaky) == 0 }

// written is an upstream.json as text: a line for each cause, so that a change is easy to read.
func written(facts patches.UpstreamFacts) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\n  \"schema\": 1")
	for _, section := range []struct {
		name   string
		groups map[string][]string
	}{{"unexpected_successes", facts.UnexpectedSuccesses}, {"flaky", facts.Flaky}, {"left_out", facts.LeftOut}, {"failures", facts.Failures}} {
		fmt.Fprintf(&out, ",\n  %q: {", section.name)
		for i, reason := range slices.Sorted(maps.Keys(section.groups)) {
			name, err := text(reason)
			if err != nil {
				return nil, err
			}
			tests, err := text(slices.Sorted(slices.Values(section.groups[reason])))
			if err != nil {
				return nil, err
			}
			separator := ","
			if i == 0 {
				separator = ""
			}
			fmt.Fprintf(&out, "%s\n    %s: %s", separator, name, tests)
		}
		out.WriteString("\n  }")
	}
	out.WriteString("\n}\n")
	return out.Bytes(), nil
}

// text is a value as JSON, with < and > as they are.
func text(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSpace(out.Bytes()), err
}
