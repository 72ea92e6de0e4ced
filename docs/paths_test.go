package docs

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mpsforge/internal/require"
)

var (
	// citedPath is a path that begins with a folder of the top level. One inside a longer path is another's. In documents it may
	// be a folder's.
	citedPath = regexp.MustCompile(
		`(?:^|[^\w./$*{}%-])((?:cmd|patches|fork|validate|native|ci|reports|internal|docs|\.ci|\.github)/[\w./*-]*[\w*]\.(?:go|cc|cpp` +
			`|h|mm|m|py|sh|md|tmpl|json|ya?ml|html|css|txt|patch))\b`)
	citedFolder = regexp.MustCompile(`(?:^|[^\w./$*{}%-])((?:cmd|patches|fork|validate|native|ci|reports|internal|docs)/[\w./*-]*[\w*])`)
	// placeholder is for any name in a cited path, as in patches/VERSION/NAME.patch.
	placeholder = regexp.MustCompile(`\b(?:VERSION|NAME)\b`)
	lineComment = regexp.MustCompile(`(?m)(?:^|\s)//.*$`)
)

// upstreamPaths begin like ours and are PyTorch's, from its top or, in calls of filepath.Join, from aten/src/ATen.
var upstreamPaths = []string{".github/PULL_REQUEST_TEMPLATE/", ".github/scripts/", "native/native_functions.yaml", "native/tags.yaml"}

// madeByCommands are paths in examples that a command makes.
var madeByCommands = []string{"patches/main"}

// checkPaths finds the paths that a text cites and the repository does not have. What tests say to code under test is made up:
// of them the comments count.
func checkPaths(file, text string, exists func(pattern string) bool) (problems []string, cited int) {
	if strings.HasSuffix(file, "_test.go") {
		text = strings.Join(lineComment.FindAllString(text, -1), "\n")
	}
	cites := citedPath
	if extension := path.Ext(file); extension == ".md" || extension == ".tmpl" {
		cites = citedFolder
	}
	for _, match := range cites.FindAllStringSubmatch(text, -1) {
		if slices.Contains(madeByCommands, match[1]) || slices.ContainsFunc(upstreamPaths, func(prefix string) bool {
			return strings.HasPrefix(match[1], prefix)
		}) {
			continue
		}
		cited++
		if !exists(placeholder.ReplaceAllString(match[1], "*")) {
			problems = append(problems, fmt.Sprintf("there is no %s", match[1]))
		}
	}
	return problems, cited
}

// onDisk says whether a file's path, which may hold asterisks, leads to something.
func onDisk(pattern string) bool {
	found, err := filepath.Glob(filepath.Join("..", pattern))
	return err == nil && len(found) > 0
}

// Paths of the repository that documents, comments and messages cite are there. The patches name PyTorch's files, and what
// is in testdata was written by earlier versions.
func TestCitedPathsExist(t *testing.T) {
	total := 0
	for file, text := range tracked(t) {
		if strings.HasPrefix(file, "patches/v") || strings.Contains(file, "/testdata/") || path.Base(file) == "licences.txt" || file == "docs/paths_test.go" {
			continue
		}
		if strings.HasPrefix(file, "docs/howto/") || strings.HasPrefix(file, "docs/dev/howto/") {
			text = proseOf(text) // its commands make files, and are run
		}
		problems, cited := checkPaths(file, text, onDisk)
		total += cited
		for _, problem := range problems {
			t.Errorf("%s: %s", file, problem)
		}
	}
	t.Logf("%d paths", total)
	if total < 50 {
		t.Errorf("only %d cited paths were found", total)
	}
}

func TestPathsThatAreNotThereAreFound(t *testing.T) {
	exists := func(pattern string) bool {
		return slices.Contains([]string{"native/metal/metal.h", "patches/*/*.patch", "docs/*.md"}, pattern)
	}
	for _, c := range []struct {
		file, text string
		cited      int
		broken     bool
	}{
		{"a.go", "// see native/metal/metal.h, which", 1, false},
		{"a.md", "`patches/VERSION/NAME.patch`", 1, false},
		{"a.md", "all of docs/*.md", 1, false},
		{"a.md", "the folder native/gone", 1, true},
		{"a.go", "the folder native/gone", 0, false},
		{"a.md", "mpsforge port --out patches/main", 0, false},
		{"a.go", `fmt.Errorf("%w: see native/metal/mettle.h")`, 1, true},
		{"a.md", "(validate/gone.go)", 1, true},
		{"a.md", "patches/VERSION/none.json", 1, true},
		{"a_test.go", "\tcheck(\"docs/made-up.md\") // as docs/gone.md", 1, true},
		{"a.go", "aten/src/ATen/native/mps/operations/Linear.mm", 0, false},
		{"a.go", `filepath.Join(source, "native/native_functions.yaml")`, 0, false},
		{"a.go", "native/script.Run", 0, false},
	} {
		if problems, cited := checkPaths(c.file, c.text, exists); cited != c.cited || (len(problems) > 0) != c.broken {
			t.Errorf("%s: %q: %d cited, %q", c.file, c.text, cited, problems)
		}
	}
}

var (
	layoutSection = regexp.MustCompile(`(?s)\n## Layout\n\n(.*?)\n\n`)
	changeSection = regexp.MustCompile(`(?s)\n## I want to change \.\.\.\n\n(.*?)\n\n`)
	folderInTable = regexp.MustCompile("`([\\w./-]+/)`")
)

// layoutFolders gives the folders that a table of folders names. A name in the second column may be below the row's first one.
func layoutFolders(table string, exists func(string) bool) (folders, problems []string) {
	for _, row := range strings.Split(table, "\n") {
		first := ""
		for _, match := range folderInTable.FindAllStringSubmatch(row, -1) {
			name := strings.TrimSuffix(match[1], "/")
			switch {
			case first == "":
				first = name
			case exists(first + "/" + name):
				name = first + "/" + name
			}
			if !exists(name) {
				problems = append(problems, fmt.Sprintf("there is no folder %s", match[1]))
			}
			folders = append(folders, name)
		}
	}
	return folders, problems
}

// The table of folders is true, and names each folder that holds code, down to the second level.
func TestLayoutTableIsTrue(t *testing.T) {
	files := tracked(t)
	section := layoutSection.FindStringSubmatch(files["docs/dev/architecture.md"])
	if section == nil {
		t.Fatal("docs/dev/architecture.md has no section Layout")
	}
	named, problems := layoutFolders(section[1], func(folder string) bool { return onDisk(folder + "/") })
	for _, problem := range problems {
		t.Errorf("docs/dev/architecture.md, Layout: %s", problem)
	}
	missing := map[string]bool{}
	for file := range files {
		parts := strings.Split(path.Dir(file), "/")
		folder := strings.Join(parts[:min(2, len(parts))], "/")
		if isCode(file) && folder != "." && !strings.Contains(file, "/testdata/") && !slices.Contains(named, folder) {
			missing[folder] = true
		}
	}
	for folder := range missing {
		t.Errorf("docs/dev/architecture.md, Layout: %s is not in the table", folder)
	}
	if folders, problems := layoutFolders("| `a/` | `b/`, `gone/` |", func(folder string) bool {
		return folder == "a" || folder == "a/b"
	}); !slices.Equal(folders, []string{"a", "a/b", "gone"}) || len(problems) != 1 {
		t.Errorf("%q, %q", folders, problems)
	}
}

// Who wants to change something finds its folder in a table, whose folders exist.
func TestTableOfChangesIsTrue(t *testing.T) {
	section := changeSection.FindStringSubmatch(tracked(t)["docs/dev/architecture.md"])
	if section == nil {
		t.Fatal("docs/dev/architecture.md has no section I want to change ...")
	}
	rows := strings.Split(section[1], "\n")[2:]
	if len(rows) < 25 {
		t.Errorf("%d rows", len(rows))
	}
	for _, row := range rows {
		named, problems := layoutFolders(row, func(folder string) bool { return onDisk(folder + "/") })
		if len(named) == 0 || len(problems) > 0 {
			t.Errorf("docs/dev/architecture.md: %s: %q", row, problems)
		}
	}
}

// packageComments counts the package comments of the Go files of a folder that are compiled together, with cgo and without.
func packageComments(dir string) (with, without int, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return 0, 0, err
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return 0, 0, err
		}
		if parsed.Doc == nil || strings.HasSuffix(file, "_test.go") && !onlyTests(files) {
			continue
		}
		for cgo, count := range map[bool]*int{true: &with, false: &without} {
			wanted := build.Default
			wanted.CgoEnabled = cgo
			matches, err := wanted.MatchFile(dir, filepath.Base(file))
			if err != nil {
				return 0, 0, err
			}
			if matches {
				*count++
			}
		}
	}
	return with, without, nil
}

func onlyTests(files []string) bool {
	return !slices.ContainsFunc(files, func(file string) bool { return !strings.HasSuffix(file, "_test.go") })
}

// go doc introduces each package.
func TestEveryPackageHasOneComment(t *testing.T) {
	folders := map[string]bool{}
	for file := range tracked(t) {
		if path.Ext(file) == ".go" && !strings.Contains(file, "/testdata/") {
			folders[path.Dir(file)] = true
		}
	}
	for folder := range folders {
		with, without, err := packageComments(filepath.Join("..", folder))
		require.NoError(t, err)
		if with != 1 || without > 1 {
			t.Errorf("package %s has %d package comments (%d without cgo), not 1", folder, with, without)
		}
	}
	if len(folders) < 30 {
		t.Errorf("only %d packages were found", len(folders))
	}
}

// citedName is a name of one of our packages, such as fork.Open, or of a method, such as fork.Checkout.Apply.
var citedName = regexp.MustCompile("`([a-z]+)\\.([A-Z]\\w*)(?:\\.([A-Z]\\w*))?")

// The functions and types that docs/dev/architecture.md, the how-tos and CONTRIBUTING.md name are there.
func TestNamesInDocumentsExist(t *testing.T) {
	files, names, checked := tracked(t), map[string]map[string]bool{}, 0
	for file, text := range files {
		if path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/testdata/") {
			continue
		}
		parsed := require.One(parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution))(t)
		own := names[parsed.Name.Name]
		if own == nil {
			own = map[string]bool{}
			names[parsed.Name.Name] = own
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.FuncDecl:
				own[node.Name.Name] = true
				return false
			case *ast.TypeSpec:
				own[node.Name.Name] = true
			case *ast.Field:
				for _, name := range node.Names {
					own[name.Name] = true
				}
			case *ast.ValueSpec:
				for _, name := range node.Names {
					own[name.Name] = true
				}
			}
			return true
		})
	}
	for file, text := range files {
		if path.Ext(file) != ".md" || !slices.Contains([]string{"docs", "docs/howto", "docs/dev", "docs/dev/howto"}, path.Dir(file)) {
			continue
		}
		for _, match := range citedName.FindAllStringSubmatch(text, -1) {
			own, known := names[match[1]]
			if match[1] == "io" {
				continue // Go's own
			}
			if !known {
				t.Errorf("%s: there is no package %s", file, match[1])
				continue
			}
			for _, name := range match[2:] {
				checked++
				if name != "" && !own[name] {
					t.Errorf("%s: package %s has no %s", file, match[1], name)
				}
			}
		}
	}
	if checked == 0 {
		t.Error("no name was found")
	}
}
