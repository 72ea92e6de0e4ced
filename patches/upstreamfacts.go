package patches

import "fmt"

// UpstreamFile is the name of UpstreamFacts in a baseline's folder.
const UpstreamFile = "upstream.json"

// UpstreamFacts is what is known of how PyTorch's own tests end on the host build of a version (upstream.json), by the names
// FILE:Class.method. Each name is in one place at most.
type UpstreamFacts struct {
	Schema int `json:"schema"` // always 1
	// Failures are the tests that do not end as the suite expects, by cause. It may only shrink: one that ends as expected is deleted.
	Failures map[string][]string `json:"failures"`
	// UnexpectedSuccesses are tests that the suite expects to fail on a Mac and that rightly succeed here, by the reason why.
	UnexpectedSuccesses map[string][]string `json:"unexpected_successes"`
	// Flaky are tests that do not always end the same way, on stock sources, too, by what was seen.
	Flaky map[string][]string `json:"flaky"`
	// LeftOut are tests of files that were written for another device, by the reason why device mps cannot take its place in them. They do
	// not run.
	LeftOut map[string][]string `json:"left_out,omitempty"`
}

// UpstreamFacts reads those of the series' baseline; a baseline without any has empty ones.
func (s *Series) UpstreamFacts() (UpstreamFacts, error) {
	facts := UpstreamFacts{Schema: 1}
	err := s.readFacts(UpstreamFile, &facts, &facts.Schema)
	seen := map[string]string{}
	for section, groups := range map[string]map[string][]string{"failures": facts.Failures, "unexpected_successes": facts.UnexpectedSuccesses,
		"flaky": facts.Flaky, "left_out": facts.LeftOut} {
		for reason, tests := range groups {
			for _, test := range tests {
				where := section + ", " + reason
				if before, twice := seen[test]; twice && err == nil {
					err = fmt.Errorf("%s of %s names %s twice: under %s and %s", UpstreamFile, s.Baseline.Name, test, before, where)
				}
				seen[test] = where
			}
		}
	}
	return facts, err
}
