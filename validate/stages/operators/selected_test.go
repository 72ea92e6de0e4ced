package operators

import (
	"errors"
	"strings"
	"testing"

	"mpsforge/patches"
	"mpsforge/reports"
	"mpsforge/validate/stage"
)

var database = []entry{{Name: "unfold", DTypes: []string{"float32", "int64"}}, {Name: "matmul", DTypes: []string{"float16"}},
	{Name: "attention"}}

// Names that the database does not have would run nothing, and leave a stage that says nothing of them.
func TestOptionsThatNameNothingAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		asked stage.OperatorOptions
		want  error
		says  string
	}{
		"all exist":   {stage.OperatorOptions{Names: []string{"unfold"}, Forms: []string{"basic", "out+group:matmul"}, DTypes: []string{"float16"}}, nil, ""},
		"an operator": {stage.OperatorOptions{Names: []string{"unfold", "matmol"}}, ErrNoOperator, `"matmol" (did you mean "matmul"?)`},
		"a type":      {stage.OperatorOptions{Names: []string{"unfold"}, DTypes: []string{"flaot32"}}, ErrDType, `"flaot32" (did you mean "float32"?)`},
		"no type":     {stage.OperatorOptions{Names: []string{"attention"}}, ErrDType, `"attention" none that Metal has`},
		"a form": {stage.OperatorOptions{Names: []string{"unfold"}, Forms: []string{"out+strided+bakward"}}, ErrForm,
			`"bakward" (did you mean "backward"?)`},
		"a group": {stage.OperatorOptions{Names: []string{"unfold"}, Forms: []string{"group:matmol"}}, ErrNoOperator, `form group:matmol: `},
	} {
		err := checkAsked(c.asked, database)
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v with %s", name, err, c.want, c.says)
		}
	}
}

// A row of operators.json that names nothing excuses nothing, and must go.
func TestRowsOfOperatorsThatNameNothingFail(t *testing.T) {
	for name, c := range map[string]struct {
		known patches.KnownOperators
		says  string // nothing: no check
	}{
		"all exist": {patches.KnownOperators{NotAlone: map[string]string{"unfold": "R"},
			Failures: []patches.OperatorFailure{{Operator: "*", Form: "strided"}, {Operator: "matmul", Form: "basic"}}}, ""},
		"not_alone": {patches.KnownOperators{NotAlone: map[string]string{"unfodl": "R"}}, `"unfodl" (did you mean "unfold"?)`},
		"some":      {patches.KnownOperators{SomeNotAlone: map[string]string{"unfodl": "R"}}, `"unfodl"`},
		"a failure": {patches.KnownOperators{Failures: []patches.OperatorFailure{{Operator: "matmol", Form: "basic"}}}, `"matmol"`},
		"its form":  {patches.KnownOperators{Failures: []patches.OperatorFailure{{Operator: "*", Form: "stridid"}}}, `"stridid" (did you mean "strided"?)`},
	} {
		var report reports.Stage
		judgeRows("patched", c.known, names(database), &report)
		switch {
		case c.says == "" && len(report.Checks) > 0, c.says != "" && (report.Verdict != reports.Failed || !strings.Contains(report.Checks[0].Detail, c.says)):
			t.Errorf("%s: %+v, want %s", name, report.Checks, c.says)
		}
	}
}
