package patches

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"mpsforge/internal/require"
)

// tree is the baseline of these tests. The first header is one of the ABI, the .mm one with a bound of its own.
var tree = map[string]string{
	"a.h":                          "int main() {\n" + numbered(30),
	"notes":                        "last line\nno newline",
	"aten/src/ATen/mps/MPSEvent.h": "class Event {\n  // a comment\n  int id;\n};\n",
	"aten/src/ATen/native/mps/operations/Op.mm": numbered(40),
}

// edited is a.h with one line replaced.
func edited(old, new string) string { return strings.Replace(tree["a.h"], old+"\n", new+"\n", 1) }

func lint(t *testing.T, fsys fstest.MapFS) *LintResult {
	t.Helper()
	return require.One(Lint(fsys, "v1.0.0", []string{"slot-conformance", "x"}))(t)
}

// A right series has no findings; all its hunks are verified, also on a file that two patches change.
func TestLintPasses(t *testing.T) {
	two := edited("line 10", "ten")
	three := strings.Replace(two, "line 20\n", "twenty\n", 1)
	result := lint(t, fixture(tree,
		"one", good(changed("a.h", tree["a.h"], two), created("absent", "x\ny\n")),
		"two", good(changed("a.h", two, three), changed("absent", "x\ny\n", "x\nz\n")),
		"three", good(deleted("absent", "x\nz\n")),
	))
	require.Equal(t, result.Findings, nil, "findings")
	if result.Patches != 3 || result.Hunks != 5 || result.Verified != 5 || result.Unverified != 0 || result.Total != 10 {
		t.Errorf("counts: %+v", result)
	}
}

// Each case trips exactly one rule, on the line that is wrong.
func TestLintRules(t *testing.T) {
	change := changed("a.h", tree["a.h"], edited("line 10", "ten"))
	after := edited("line 10", "ten")
	with := func(old, new string) string { return strings.Replace(good(change), old, new, 1) }
	patch := func(text string) fstest.MapFS { return fixture(tree, "p", text) }
	body := func(trailers string) fstest.MapFS { return patch(mailed("[MPS] S", "Body.\n\n"+trailers, change)) }
	alter := func(fsys fstest.MapFS, name, old, new string) fstest.MapFS {
		file := fsys["v1.0.0/"+name]
		file.Data = []byte(strings.Replace(string(file.Data), old, new, 1))
		return fsys
	}
	const pending, scenario = "Upstream-Status: Pending\n", "Scenario: x"
	event := tree["aten/src/ATen/mps/MPSEvent.h"]
	const operation = "aten/src/ATen/native/mps/operations/Op.mm"
	mode := func(m string) fstest.MapFS {
		return patch(strings.Replace(good(created("absent", "x\n")), "100644", m, 1))
	}
	for name, c := range map[string]struct {
		fsys fstest.MapFS
		rule string
		say  string
	}{
		"listed file is missing":     {alter(fixture(tree), "series", "", "gone.patch\n"), RuleSeries, "gone.patch is listed"},
		"patch is not listed":        {alter(patch(good(change)), "series", "p.patch", "#p.patch"), RuleSeries, "not listed"},
		"listed twice":               {alter(patch(good(change)), "series", "", "p.patch\n"), RuleSeries, "line 1 already"},
		"option in the series":       {alter(patch(good(change)), "series", "", "q.patch -p0\n"), RuleSeries, "-p0"},
		"name is not a slug":         {alter(patch(good(change)), "series", "", "Big_Name.patch\n"), RuleSeries, "slug"},
		"name is numbered":           {alter(patch(good(change)), "series", "", "0001-x.patch\n"), RuleSeries, "number"},
		"not a mail":                 {alter(patch(good(change)), "p.patch", "From ", "from "), RuleParse, "From line"},
		"two mails":                  {patch(good(change) + good(change)), RuleParse, "second mail"},
		"signature":                  {patch(good(change) + "-- \n2.39.5\n\n"), RuleCanonical, "-- "},
		"From line not zeroed":       {patch(with("From 0", "From 1")), RuleCanonical, "From 1"},
		"diffstat":                   {patch(with("\n\ndiff --git", "\n---\n a.h | 2 +-\n\ndiff --git")), RuleCanonical, "---"},
		"[PATCH 1/2]":                {patch(with("[MPS]", "[PATCH 1/2] [MPS]")), RuleCanonical, "PATCH"},
		"one-line range in long":     {patch(strings.Replace(good(created("absent", "x\n")), "+1 @@", "+1,1 @@", 1)), RuleCanonical, "+1,1"},
		"short blob ids":             {patch(with(blobID([]byte(after)), "1234567")), RuleCanonical, "abbreviated"},
		"subject without tag":        {patch(mailed("Fix it", goodBody, change)), RuleMessage, "[MPS]"},
		"subject too long":           {patch(mailed("[MPS] "+strings.Repeat("ab ", 22)+"x", goodBody, change)), RuleMessage, "73 characters"},
		"no body":                    {patch(mailed("[MPS] S", pending+scenario, change)), RuleMessage, "no body"},
		"prose that looks like diff": {patch(mailed("[MPS] S", "diff --git is cut here\n\n"+pending+scenario, change)), RuleMessage, "start of a diff"},
		"no status":                  {body(scenario), RuleTrailers, "0 Upstream-Status"},
		"two statuses":               {body(pending + pending + scenario), RuleTrailers, "2 Upstream-Status"},
		"unknown status":             {body("Upstream-Status: Maybe\n" + scenario), RuleTrailers, "Maybe"},
		"submitted without URL":      {body("Upstream-Status: Submitted\n" + scenario), RuleTrailers, "Submitted"},
		"no scenario":                {body("Upstream-Status: Pending"), RuleTrailers, "no Scenario"},
		"unknown scenario": {body(pending + "Scenario: slot-conformanse"), RuleTrailers,
			`no scenario "slot-conformanse" (did you mean "slot-conformance"?)`},
		"another patch's test file": {body(pending + "Scenario: test_other.py"), RuleTrailers, `no scenario "test_other.py"`},
		"misspelt trailer":          {body(pending + scenario + "\nScenarios: y"), RuleTrailers, `no trailer Scenarios (did you mean "Scenario"?)`},
		"Fixes no issue":            {body(pending + "Fixes: the crash\n" + scenario), RuleTrailers, "the crash"},
		"path leaves the tree":      {patch(good(created("../x", "x\n"))), RulePath, "component .."},
		"path into .git":            {patch(good(created("x/.GIT/hooks", "x\n"))), RulePath, "leads into .git"},
		"path with a backslash": {patch(strings.NewReplacer("a/NAME", `"a/x\\y"`, "b/NAME", `"b/x\\y"`).Replace(good(created("NAME", "x\n")))),
			RulePath, "backslash"},
		"symbolic link": {mode("120000"), RulePath, "symbolic link"},
		"submodule":     {mode("160000"), RulePath, "submodule"},
		"odd mode":      {mode("100777"), RuleParse, "100777"},
		"binary": {patch(good("diff --git a/notes b/notes\nindex " + zeroID + ".." + zeroID +
			" 100644\nGIT binary patch\nliteral 0\nHcmV?d00001\n\n")), RulePath, "binary"},
		"trailing space": {patch(good(changed("a.h", tree["a.h"], edited("line 10", "ten ")))), RuleWhitespace, "white space"},
		"CR":             {patch(good(changed("a.h", tree["a.h"], edited("line 10", "ten\r")))), RuleWhitespace, "CR"},
		"no newline at the end": {patch(good("diff --git a/notes b/notes\nindex " + blobID([]byte(tree["notes"])) + ".." + blobID([]byte("last line\nstill")) +
			" 100644\n--- a/notes\n+++ b/notes\n@@ -1,2 +1,2 @@\n last line\n-no newline\n" +
			"\\ No newline at end of file\n+still\n\\ No newline at end of file\n")), RuleWhitespace, "does not end"},
		"context line differs": {patch(with(" line 9\n", " line nine\n")), RuleContext, "line 10 of the file is not \"line nine\""},
		"removed line differs": {patch(with("-line 10\n", "-line X\n")), RuleContext, "line 11 of the file"},
		"hunk one line off":    {patch(with("@@ -8,7 +8,7", "@@ -9,7 +9,7")), RuleContext, "line 9 of the file"},
		"beyond the end":       {patch(with("@@ -8,7 +8,7", "@@ -98,7 +98,7")), RuleContext, "beyond the end"},
		"newline differs":      {patch(good(changed("notes", "last line\nno newline\n", "last line\nx\n"))), RuleContext, ""},
		"little context":       {patch(strings.Replace(with(" line 7\n", ""), "@@ -8,7 +8,7", "@@ -9,6 +9,6", 1)), RuleContext, "fewer than three"},
		"old id differs":       {patch(with(blobID([]byte(tree["a.h"])), zeroID)), RuleContext, "from blob"},
		"new id of a new file": {patch(strings.Replace(good(created("absent", "x\n")), blobID([]byte("x\n")), blobID([]byte("y\n")), 1)),
			RuleContext, "becomes blob"},
		"mode differs":           {patch(with(" 100644\n", " 100755\n")), RuleContext, "mode 100644"},
		"creates what is there":  {patch(good(created("a.h", "x\n"))), RuleContext, "exists"},
		"deletes a part":         {patch(good(deleted("a.h", "int main() {\n"))), RuleContext, ""},
		"second patch forgets":   {fixture(tree, "one", good(change), "two", good(change)), RuleContext, "is not \"line 10\""},
		"changes a deleted file": {fixture(tree, "one", good(deleted("a.h", tree["a.h"])), "two", good(change)), RuleContext, "absent at this point"},
		"heading of nowhere":     {patch(with("8,7 @@\n", "8,7 @@ int other()\n")), RuleHeading, "int other()"},
		"patch too long":         {patch(good(created("absent", numbered(601)))), RuleBounds, "601 changed lines"},
		"series too long":        {long(t), RuleBounds, "outside test/"},
		"operations file too much": {patch(good(changed(operation, tree[operation], numbered(12)+"x\n"+numbered(40)[len(numbered(12)):]+numbered(15)))),
			RuleBounds, "changed lines in " + operation},
		"touched lacks a path":   {alter(patch(good(change)), "baseline.json", `"a.h"`, `"notes"`), RuleBaseline, ""},
		"touched blob differs":   {alter(patch(good(change)), "baseline.json", blobID([]byte(tree["a.h"])), zeroID), RuleBaseline, "digests.json"},
		"digests of another tag": {alter(patch(good(change)), "digests.json", `"tag": "v1.0.0"`, `"tag": "v2"`), RuleBaseline, "v2"},
		"baseline.json damaged":  {alter(patch(good(change)), "baseline.json", `"schema": 1`, `"schema": 2`), RuleBaseline, "schema"},
		"header of the ABI": {patch(good(changed("aten/src/ATen/mps/MPSEvent.h", event, strings.Replace(event, "int id", "long id", 1)))), RuleABI,
			`before ["int id;"], after ["long id;"]`},
		"result nobody has seen": {alter(patch(good(change)), "blobs.json", `"a.h"`, `"notes"`), RuleBlobs, "nobody has seen"},
		"result made up": {alter(patch(good(change)), "p.patch", blobID([]byte(edited("line 10", "ten"))), strings.Repeat("1", 40)), RuleBlobs,
			"with the exact text it became"},
		"result of another tag": {alter(patch(good(change)), "blobs.json", `"tag": "v1.0.0"`, `"tag": "v2"`), RuleBlobs, "v2"},
		"result of no patch":    {alter(patch(good(change)), "blobs.json", `"p"`, `"q"`), RuleBlobs, "not a patch of the series"},
		"blobs.json damaged":    {alter(patch(good(change)), "blobs.json", `"schema": 1`, `"schema": 2`), RuleBlobs, "schema"},
		"file without digests":  {patch(good(changed("unknown", "x\n", "y\n"))), RuleUnverified, "no digests"},
		"new file, path unknown": {alter(alter(patch(good(created("new", "x\n"))), "baseline.json", "\"absent\",\n  \"new\"", `"absent"`),
			"baseline.json", `"new": null`, `"new": "`+zeroID+`"`), RuleUnverified, "not known"},
	} {
		t.Run(name, func(t *testing.T) {
			result := lint(t, c.fsys)
			var rules []string
			for _, f := range result.Findings {
				if f.Rule == RuleBaseline && c.rule != RuleBaseline && strings.Contains(f.Message, "touch") {
					continue // a fixture's touched lists only what the baseline has or is known to lack
				}
				if f.Rule == RuleBlobs && c.rule != RuleBlobs {
					continue // a change that is made by hand has no recorded result
				}
				rules = append(rules, f.Rule)
			}
			rules = slices.Compact(rules)
			if len(rules) != 1 || rules[0] != c.rule || !strings.Contains(fmt.Sprint(result.Findings), c.say) {
				t.Errorf("want one finding of %s that says %q, got %v", c.rule, c.say, result.Findings)
			}
			for _, f := range result.Findings {
				if f.File == "" || f.Message == "" || f.Do == "" && f.Rule != RuleBaseline {
					t.Errorf("finding %+v lacks a file, a message or what to do", f)
				}
			}
			if c.rule == RuleUnverified && (result.Unverified != 1 || result.Verified != 0) {
				t.Errorf("an unverified hunk is counted as %+v", result)
			}
			if c.rule == RuleContext && result.Hunks == result.Verified {
				t.Errorf("a wrong hunk is counted as verified: %+v", result)
			}
		})
	}
}

// long is a series over the bound, each of its patches within its own; its tests do not count.
func long(t testing.TB) fstest.MapFS {
	t.Helper()
	var patches []string
	for i := range maxSeries/maxPatch + 1 {
		patches = append(patches, fmt.Sprintf("p%c", 'a'+i), good(created(fmt.Sprintf("new%d", i), numbered(maxPatch))))
	}
	return fixture(tree, append(patches, "tests", good(created("test/t.py", numbered(500))))...)
}

// After a patch that cannot be read, nothing is checked against lines, and nothing is called verified.
func TestLintAfterAnUnreadablePatch(t *testing.T) {
	result := lint(t, fixture(tree, "one", "junk", "two", good(changed("a.h", tree["a.h"], edited("line 10", "ten")))))
	if result.Verified != 0 || result.Unverified != 1 || len(result.Of(SeverityError)) != 1 {
		t.Errorf("%+v", result)
	}
}

// After a hunk that does not fit, later patches on that file are unverified; other files are checked on.
func TestLintAfterAConflict(t *testing.T) {
	bad := strings.Replace(good(changed("a.h", tree["a.h"], edited("line 10", "ten"))), " line 9\n", " line nine\n", 1)
	result := lint(t, fixture(tree, "one", bad, "two", good(changed("a.h", tree["a.h"], edited("line 10", "ten"))), "three", good(created("absent", "x\n"))))
	if result.Verified != 1 || result.Unverified != 1 || len(result.Of(SeverityError)) != 1 {
		t.Errorf("%+v", result)
	}
}

// Of a file without digests nobody has seen the result: its hunks are unverified, and its blob id is an error.
func TestLintOfAFileWithoutDigests(t *testing.T) {
	result := lint(t, fixture(tree, "p", good(changed("unknown", "x\n", "y\n"))))
	if !slices.ContainsFunc(result.Of(SeverityError), func(f LintFinding) bool {
		return f.Rule == RuleBlobs && strings.Contains(f.Message, "nobody has seen")
	}) {
		t.Errorf("%v", result.Findings)
	}
}

// A finding says whether the hunk is elsewhere or is there already.
func TestLintSaysWhatToDo(t *testing.T) {
	change := good(changed("a.h", tree["a.h"], edited("line 10", "ten")))
	moved := lint(t, fixture(tree, "p", strings.Replace(change, "@@ -8,7 +8,7", "@@ -10,7 +10,7", 1)))
	twice := lint(t, fixture(tree, "one", change, "two", change))
	if len(moved.Findings) != 1 || !strings.Contains(moved.Findings[0].Do, "would be at line 8") {
		t.Errorf("moved: %v", moved.Findings)
	}
	if !strings.Contains(fmt.Sprint(twice.Findings), "there already") {
		t.Errorf("twice: %v", twice.Findings)
	}
}

// BenchmarkLint lints 13 patches of 3,200 changed lines in all.
func BenchmarkLint(b *testing.B) {
	var patches []string
	text, big := map[string]string{}, numbered(1200)
	for i := range 13 {
		path := fmt.Sprintf("dir/file%d.mm", i)
		text[path] = big
		patches = append(patches, fmt.Sprintf("p%c", 'a'+i), good(changed(path, big, numbered(500)+strings.Repeat("new line of code\n", 123)+
			big[len(numbered(623)):])))
	}
	fsys := fixture(text, patches...)
	for b.Loop() {
		result, err := Lint(fsys, "v1.0.0", []string{"slot-conformance", "x"})
		if err != nil || len(result.Findings) != 0 || result.Verified != 13 {
			b.Fatalf("%v, %+v", err, result)
		}
	}
}
