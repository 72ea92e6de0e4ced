package patches

import "fmt"

// operatorsFile is the name of KnownOperators in a baseline's folder.
const operatorsFile = "operators.json"

// KnownOperators are the operators that are known to go wrong under threads on the patched sources of a baseline
// (operators.json). The list may only shrink: what passes again must leave it.
type KnownOperators struct {
	Schema   int               `json:"schema"` // always 1
	Failures []OperatorFailure `json:"failures"`
	// NotAlone gives, by entry of the operator database, the reason why it does not run alone in float32 on a host build. Nil: not judged.
	NotAlone map[string]string `json:"not_alone,omitempty"`
	// SomeNotAlone are entries, with reasons, of which some samples do not: the seed draws them, so that the entry may run alone or not.
	SomeNotAlone map[string]string `json:"some_not_alone,omitempty"`
}

// OperatorFailure is one job of the stage operators that goes wrong.
type OperatorFailure struct {
	// Operator is the full name of the entry in PyTorch's operator database. AnyOperator means all of them, where the form
	// goes wrong now for one and now for another; such a line is not run by itself, and has no type, threads and seed.
	Operator string `json:"operator"`
	DType    string `json:"dtype"`
	Form     string `json:"form"` // as the stage names it; a combination with more words is covered, too
	Threads  int    `json:"threads"`
	Seed     uint64 `json:"seed"` // with which it is run
	// Seen are the outcomes that occur, such as "wrong values" and "race". Another one is a new failure.
	Seen []string `json:"seen"`
	// Flaky: it may pass in a run. Without it a pass fails the stage.
	Flaky  bool   `json:"flaky,omitempty"`
	Reason string `json:"reason"` // what is wrong in the sources, as far as it is known
}

// AnyOperator is the name of a failure that may be of any operator.
const AnyOperator = "*"

// KnownOperators reads those of the series' baseline; one without the file has none.
func (s *Series) KnownOperators() (KnownOperators, error) {
	known := KnownOperators{Schema: 1}
	if err := s.readFacts(operatorsFile, &known, &known.Schema); err != nil {
		return known, err
	}
	for _, f := range known.Failures {
		switch all := f.Operator == AnyOperator; {
		case all && (f.DType != "" || f.Threads != 0 || f.Seed != 0 || !f.Flaky):
			return known, fmt.Errorf("%s of %s: a failure of any operator is flaky and has no dtype, threads and seed", operatorsFile, s.Baseline.Name)
		case f.Operator == "" || f.Form == "" || len(f.Seen) == 0 || f.Reason == "", !all && (f.DType == "" || f.Threads < 2):
			return known, fmt.Errorf("%s of %s: %q needs operator, dtype, form, threads from 2 on, seen and a reason", operatorsFile, s.Baseline.Name,
				f.Operator)
		}
	}
	return known, nil
}
