// Package docs holds the documentation and, as tests, what keeps it true: that the rules which the code cites are those
// of docs/dev/spec, and that nothing outside the repository is cited.
package docs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

// page is what a page of docs/dev/spec defines.
type page struct {
	names      map[int]string // of rules, by number
	signatures map[int]string // of crashes, by number
}

var (
	ruleHeading  = regexp.MustCompile(`(?m)^### .*$`)
	ruleName     = regexp.MustCompile(`^### ([1-9]\d*)\. ([a-z0-9]+(?:-[a-z0-9]+)+)$`)
	signatureRow = regexp.MustCompile(`(?m)^\| ([1-9]\d*) \| ([a-z0-9-]+) \|`)
)

// parsePage reads the rules of a page. Every third-level heading must be one, and numbers must count up from 1.
func parsePage(text string) (page, error) {
	p := page{map[int]string{}, map[int]string{}}
	seen := map[string]bool{}
	for _, heading := range ruleHeading.FindAllString(text, -1) {
		match := ruleName.FindStringSubmatch(heading)
		if match == nil {
			return p, fmt.Errorf("the heading %q is not of the form \"### 28. some-name\"", heading)
		}
		number, _ := strconv.Atoi(match[1])
		if number != len(p.names)+1 {
			return p, fmt.Errorf("rule %d is where rule %d should be", number, len(p.names)+1)
		}
		if seen[match[2]] {
			return p, fmt.Errorf("two rules are called %s", match[2])
		}
		p.names[number], seen[match[2]] = match[2], true
	}
	for _, row := range signatureRow.FindAllStringSubmatch(text, -1) {
		number, _ := strconv.Atoi(row[1])
		if p.signatures[number] != "" || slices.Contains(slices.Collect(maps.Values(p.signatures)), row[2]) {
			return p, fmt.Errorf("signature %d %s is listed twice", number, row[2])
		}
		p.signatures[number] = row[2]
	}
	if len(p.names) == 0 {
		return p, errors.New("no rules")
	}
	return p, nil
}

func readPages(t *testing.T) map[string]page {
	t.Helper()
	pages := map[string]page{}
	files, err := filepath.Glob("dev/spec/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("docs/dev/spec has no pages: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if pages[strings.TrimSuffix(filepath.Base(file), ".md")], err = parsePage(string(text)); err != nil {
			t.Errorf("docs/%s: %v", file, err)
		}
	}
	return pages
}

const numberOrName = `(?:\d+|[a-z0-9]+(?:-[a-z0-9]+)+)`

var (
	// comments that go on in the next line
	lineBreak = regexp.MustCompile(`[ \t]*\n[ \t]*(?://+|#|\*)?[ \t]*`)
	// "pool rule 15 (event-wait-orders-streams)", "Rules 1 to 3, 5 and 19", "metal rules 2-4", "rule some-name"
	citedRules = regexp.MustCompile(`\b(?:(\w+) )?[Rr]ules? (` + numberOrName +
		`(?:(?:, and | and |, | to | or |-)\d+)*)\b(?: \(([a-z0-9]+(?:-[a-z0-9]+)+)\))?`)
	// Rule: "2, 8" of a check, rules: "16" and rule: "8" of a scenario
	ruleField = regexp.MustCompile(`\b[Rr]ules?: +"([^"]*)"`)
	// "# rules: 2, 8" in the front matter of a program
	frontMatter = regexp.MustCompile(`(?m)^# rules: (.+)$`)
	// {"a scenario of the slot allocator", "2, 8", func(t *trial) {
	slotScenario    = regexp.MustCompile(`\{"[^"]+", "(\d[^"]*)", (?:func|growth)\(`)
	citedSignatures = regexp.MustCompile(`\b[Ss]ignatures? (\d+)\b`)
	numbersInCode   = regexp.MustCompile(`Number: +(\d+), Slug: +"([^"]+)"`)
	violationInCode = regexp.MustCompile(`\{Rule::(\w+), (\d+),`)
	numberList      = regexp.MustCompile(`(\d+)(?:( to |-)(\d+))?`)
)

// numbersOf gives the numbers of a list such as "1 to 3, 5 and 19".
func numbersOf(list string) []int {
	var numbers []int
	for _, part := range numberList.FindAllStringSubmatch(list, -1) {
		first, _ := strconv.Atoi(part[1])
		last := first
		if part[3] != "" {
			last, _ = strconv.Atoi(part[3])
		}
		for number := first; number <= last; number++ {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// checkCitations finds what a text cites that the pages do not have. Without the name of a page a number is one of the
// page called own.
func checkCitations(pages map[string]page, own, text string) (problems []string, cited int) {
	if !strings.Contains(text, "ule") && !strings.Contains(text, "ignature") {
		return nil, 0 // most files: the expressions are slow
	}
	fields := frontMatter.FindAllStringSubmatch(text, -1)
	text = lineBreak.ReplaceAllString(text, " ")
	check := func(where, of, list, name string) {
		p, known := pages[of]
		if !known {
			p = pages[own]
		}
		if list[0] < '0' || list[0] > '9' {
			if !known {
				return // prose
			}
			cited++
			if !slices.Contains(slices.Collect(maps.Values(p.names)), list) {
				problems = append(problems, fmt.Sprintf("%q: docs/dev/spec/%s.md has no rule called %s", where, of, list))
			}
			return
		}
		for _, number := range numbersOf(list) {
			cited++
			if p.names[number] == "" {
				problems = append(problems, fmt.Sprintf("%q: there is no rule %d", where, number))
			} else if name != "" && name != p.names[number] {
				problems = append(problems, fmt.Sprintf("%q: rule %d is called %s", where, number, p.names[number]))
			}
		}
	}
	for _, match := range citedRules.FindAllStringSubmatch(text, -1) {
		check(match[0], strings.ToLower(match[1]), match[2], match[3])
	}
	for _, match := range slices.Concat(fields, ruleField.FindAllStringSubmatch(text, -1), slotScenario.FindAllStringSubmatch(text, -1)) {
		if match[1] == "" || match[1][0] < '0' || match[1][0] > '9' {
			continue // "all"
		}
		check(match[0], "pool", match[1], "")
	}
	for _, match := range citedSignatures.FindAllStringSubmatch(text, -1) {
		cited++
		if number, _ := strconv.Atoi(match[1]); pages["metal"].signatures[number] == "" {
			problems = append(problems, fmt.Sprintf("%q: docs/dev/spec/metal.md has no such signature", match[0]))
		}
	}
	return problems, cited
}

// tracked gives the repository's files with their texts, by path. Binary files are left out.
func tracked(t *testing.T) map[string]string {
	t.Helper()
	listed, err := exec.Command("git", "-C", "..", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("git does not list this repository's files (no clone?): %v", err)
	}
	files := map[string]string{}
	for _, file := range strings.Split(strings.TrimSuffix(string(listed), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join("..", file))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		require.NoError(t, err)
		if !bytes.Contains(text, []byte{0}) {
			files[file] = string(text)
		}
	}
	return files
}

// isCode says whether a file may cite rules. The patches are PyTorch's; licences and reports of earlier runs are data.
func isCode(file string) bool {
	return strings.HasPrefix(file, "validate/judge/corpus/") || slices.Contains([]string{".go", ".cc", ".cpp", ".h", ".m", ".mm", ".py", ".sh", ".md"},
		path.Ext(file))
}

func TestCitedRulesExist(t *testing.T) {
	pages, total := readPages(t), 0
	for file, text := range tracked(t) {
		// Both tests hold citations that must be refused.
		if !isCode(file) || file == "docs/docs_test.go" || file == "validate/judge/corpus/corpus_test.go" || file == "docs/dev/README.md" {
			continue
		}
		own := "pool"
		if path.Dir(file) == "docs/dev/spec" {
			own = strings.TrimSuffix(path.Base(file), ".md")
		}
		problems, cited := checkCitations(pages, own, text)
		total += cited
		for _, problem := range problems {
			t.Errorf("%s: %s", file, problem)
		}
	}
	t.Logf("%d citations", total)
	if total < 200 {
		t.Errorf("only %d citations were found", total)
	}
}

// The table of crash signatures and the engine's violations, as the code has them, are those of the page.
func TestMetalPageIsComplete(t *testing.T) {
	text := require.One(os.ReadFile("dev/spec/metal.md"))(t)
	metal, signatures, violations := readPages(t)["metal"], 0, 0
	for file, code := range tracked(t) {
		for _, match := range numbersInCode.FindAllStringSubmatch(code, -1) {
			signatures++
			if number, _ := strconv.Atoi(match[1]); metal.signatures[number] != match[2] {
				t.Errorf("%s: signature %s is called %s; docs/dev/spec/metal.md says %q", file, match[1], match[2], metal.signatures[number])
			}
		}
		for _, match := range violationInCode.FindAllStringSubmatch(code, -1) {
			violations++
			if !strings.Contains(string(text), "`"+match[1]+"`") {
				t.Errorf("%s: docs/dev/spec/metal.md has no rule with the violation `%s`", file, match[1])
			}
			if number, _ := strconv.Atoi(match[2]); number != 0 && metal.signatures[number] == "" {
				t.Errorf("%s: %s has signature %d, which docs/dev/spec/metal.md does not list", file, match[1], number)
			}
		}
	}
	if signatures != len(metal.signatures) || violations < 30 {
		t.Errorf("the code has %d signatures (the page: %d) and %d violations", signatures, len(metal.signatures), violations)
	}
}

// Each rule of the page names its source, and those that the engine calls our own say "our own" there.
func TestMetalRulesNameTheirSources(t *testing.T) {
	text := require.One(os.ReadFile("dev/spec/metal.md"))(t)
	own, rules := map[string]bool{}, 0
	for _, rule := range regexp.MustCompile(`(?m)^### \d+\. `).Split(string(text), -1)[1:] {
		rules++
		name, rest, _ := strings.Cut(rule, "\n")
		rest, _, _ = strings.Cut(rest, "\n#")
		_, source, found := strings.Cut(rest, "Source: ")
		if !found {
			t.Errorf("docs/dev/spec/metal.md: %s names no source", name)
		}
		for _, violation := range regexp.MustCompile("`([A-Z]\\w+)`").FindAllStringSubmatch(rest, -1) {
			own[violation[1]] = own[violation[1]] || strings.Contains(source, "our own")
		}
	}
	engine := require.One(os.ReadFile("../native/metal/findings.cc"))(t)
	found := regexp.MustCompile(`\{Rule::(\w+),[^{}]*, true\}`).FindAllStringSubmatch(string(engine), -1)
	for _, violation := range found {
		if !own[violation[1]] {
			t.Errorf("native/metal/findings.cc calls %s a rule of our own; docs/dev/spec/metal.md does not", violation[1])
		}
	}
	if rules < 37 || len(found) == 0 {
		t.Errorf("rules: %d, of our own in the engine: %d", rules, len(found))
	}
}

var (
	// notes that are not part of the repository; apart, because an expression that begins with fixed text is fast
	privateFiles = []*regexp.Regexp{regexp.MustCompile(`SPEC-\w+`), regexp.MustCompile(`DESIGN\.md`), regexp.MustCompile(`baseline/README\.md`),
		regexp.MustCompile(`facts/[\w-]+\.md`),
		regexp.MustCompile(`seeds/\d+`), regexp.MustCompile(`shared/(?:facts|seeds|baseline|studies)`), regexp.MustCompile(`seed 0\d\d\b`)}
	// The question of the stage reference, and of reports of earlier runs.
	oldQuestion  = "does the reference pool obey SPEC-pool, race-free?"
	markdownLink = regexp.MustCompile(`\]\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)*)\)`)
	docsPath     = regexp.MustCompile(`docs/[\w./-]*\w`)
	headingLine  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchor  = regexp.MustCompile(`[^\w\- ]`)
)

// anchors gives the names that GitHub makes of a page's headings.
func anchors(text string) []string {
	var all []string
	for _, match := range headingLine.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return all
}

// checkFiles finds what the text of a file cites that the repository does not have.
func checkFiles(files map[string]string, file, text string) (problems []string) {
	for _, private := range privateFiles {
		for _, match := range private.FindAllString(strings.ReplaceAll(text, oldQuestion, ""), -1) {
			problems = append(problems, fmt.Sprintf("%s is not in the repository", match))
		}
	}
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join("..", name))
		return files[name] != "" || err == nil
	}
	for _, match := range docsPath.FindAllString(text, -1) {
		if path.Ext(match) == ".md" && !exists(match) {
			problems = append(problems, fmt.Sprintf("there is no %s", match))
		}
	}
	if path.Ext(file) != ".md" {
		return problems
	}
	for _, match := range markdownLink.FindAllStringSubmatch(text, -1) {
		target, anchor, _ := strings.Cut(match[1], "#")
		if strings.Contains(target, "://") {
			continue
		}
		name := path.Join(path.Dir(file), target)
		if target == "" {
			name = file
		}
		if !exists(name) {
			problems = append(problems, fmt.Sprintf("the link %s leads nowhere: there is no %s", match[1], name))
		} else if anchor != "" && !slices.Contains(anchors(files[name]), anchor) {
			problems = append(problems, fmt.Sprintf("the link %s leads nowhere: %s has no such heading", match[1], name))
		}
	}
	return problems
}

func TestNothingOutsideTheRepositoryIsCited(t *testing.T) {
	files := tracked(t)
	for file, text := range files {
		if file == "docs/docs_test.go" || file == "docs/paths_test.go" {
			continue
		}
		for _, problem := range checkFiles(files, file, text) {
			t.Errorf("%s: %s", file, problem)
		}
	}
}

// A glossary of words that nobody uses misleads.
func TestGlossaryHasOnlyWordsInUse(t *testing.T) {
	files := tracked(t)
	glossary := files["docs/glossary.md"]
	delete(files, "docs/glossary.md")
	var all strings.Builder
	for _, text := range files {
		all.WriteString(strings.ToLower(text))
	}
	words := regexp.MustCompile(`(?m)^\*\*([^*]+)\*\*:`).FindAllStringSubmatch(glossary, -1)
	if len(words) == 0 {
		t.Fatal("docs/glossary.md explains no words")
	}
	for _, match := range words {
		for word := range strings.SplitSeq(match[1], ", ") {
			if !strings.Contains(all.String(), strings.ToLower(word)) {
				t.Errorf("docs/glossary.md explains %q, which no other file uses", word)
			}
		}
	}
}

// The checks above find what is wrong.
func TestBrokenCitationsAreFound(t *testing.T) {
	metal := page{map[int]string{1: "commit-once"}, map[int]string{1: "double-commit"}}
	pages := map[string]page{"pool": {map[int]string{1: "first-rule", 2: "second-rule"}, nil}, "metal": metal}
	for text, broken := range map[string]bool{
		"// rule 1":                                false,
		"// Rules 1 and 2.":                        false,
		"// rules 1 to 2":                          false,
		"// pool rule 2 (second-rule)":             false,
		"// metal rule 1":                          false,
		"// pool rule second-rule":                 false,
		"// signature 1":                           false,
		`Rule: "1, 2"`:                             false,
		`Rule: "all"`:                              false,
		"// rule 3":                                true,
		"// rules 1 to 3":                          true,
		"// rules 1, 2 and 3":                      true,
		"// (a leaf, rule\n// 3)":                  true,
		"// pool rule 2 (first-rule)":              true,
		"// metal rule 2":                          true,
		"// metal rule second-rule":                true,
		"// signature 2":                           true,
		`reports.Check{Rule: "1, 3"}`:              true,
		`rules = {"a slot", "3", func(t *trial) {`: true,
		`{rules: "3", name: "x"}`:                  true,
	} {
		if problems, cited := checkCitations(pages, "pool", text); (len(problems) > 0) != broken || (cited == 0) != (text == `Rule: "all"`) {
			t.Errorf("%q: %d citations, %q", text, cited, problems)
		}
	}
	for text, want := range map[string]string{
		"### 1. a-b\n### 2. c-d\n":               "",
		"### 1. a-b\n### 1. c-d\n":               "where rule 2 should be",
		"### 1. a-b\n### 3. c-d\n":               "where rule 2 should be",
		"### 1. a-b\n### 2. a-b\n":               "two rules are called",
		"### 1. Some words\n":                    "not of the form",
		"### 1. a-b\n| 3 | x | |\n| 3 | y | |\n": "listed twice",
		"# a page\n":                             "no rules",
	} {
		if _, err := parsePage(text); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	files := map[string]string{"docs/a.md": "# A heading, with `code`\n", "docs/dev/spec/b.md": "text"}
	for text, broken := range map[string]bool{
		"[a](../../a.md)":                     false,
		"[a](../../a.md#a-heading-with-code)": false,
		"[a](https://example.org/f(_:))":      false,
		oldQuestion:                           false,
		"docs/dev/spec/b.md":                  false,
		"[a](../../c.md)":                     true,
		"[a](../../a.md#another-heading)":     true,
		"docs/dev/spec/c.md":                  true,
		"as SPEC-pool says":                   true,
		"see DESIGN.md":                       true,
		"facts/metal.md":                      true,
		"seeds/001":                           true,
		"shared/baseline":                     true,
		"the table of seed 004":               true,
	} {
		if problems := checkFiles(files, "docs/dev/spec/b.md", text); (len(problems) > 0) != broken {
			t.Errorf("%q: %q", text, problems)
		}
	}
}
