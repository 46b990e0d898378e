package conventions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// This file checks the documents against the code: their examples compile, the tests and files that they name exist,
// and they omit nothing.

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// An example in the README is the body of an Example in example_test.go, so that it compiles and prints what the text
// says. scripts/readme.sh runs the complete program.
func TestReadmeExamplesAreRunnableExamples(t *testing.T) {
	bodies := exampleBodies(t)
	blocks := goBlock.FindAllStringSubmatch(readFile(t, "README.md"), -1)
	if len(blocks) == 0 {
		t.Fatal("README.md has no go block, want the library example")
	}
	for _, block := range blocks {
		if !strings.HasPrefix(block[1], "package main\n") && !slices.Contains(bodies, strings.TrimSpace(block[1])) {
			t.Errorf("README.md shows this, which is the body of no Example in example_test.go:\n%s", block[1])
		}
	}
}

// Code in another document also stands in a test or an example, in the same form, so that it compiles; or it is the program of
// the README.
func TestCodeInDocumentsStandsInTests(t *testing.T) {
	var sources strings.Builder
	sources.WriteString(readFile(t, "README.md"))
	for _, f := range goFiles(t) {
		if f.test || strings.HasPrefix(f.path, "examples/") {
			sources.WriteString(readFile(t, f.path))
		}
	}
	for _, document := range documents(t) {
		for _, block := range goBlock.FindAllStringSubmatch(readFile(t, document), -1) {
			if !strings.Contains(sources.String(), block[1]) {
				t.Errorf("%s shows this, which is in no test or example:\n%s", document, block[1])
			}
		}
	}
}

// indentedGo matches a line of Go in a block that is only indented, which no test compiles.
var indentedGo = regexp.MustCompile(`(?m)^    .*(?: := |\berr != nil\b).*$`)

func TestCodeInDocumentsIsMarkedAsGo(t *testing.T) {
	for _, document := range documents(t) {
		if strings.HasPrefix(document, "docs/from/") {
			continue // compares calls line by line
		}
		for _, line := range indentedGo.FindAllString(fenced.ReplaceAllString(readFile(t, document), ""), -1) {
			t.Errorf("%s shows Go that no test compiles: %s", document, strings.TrimSpace(line))
		}
	}
}

// exampleBodies returns the bodies of the Example functions without their indentation and without the expected
// output.
func exampleBodies(t *testing.T) (bodies []string) {
	t.Helper()
	source := readFile(t, "example_test.go")
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "example_test.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, declaration := range parsed.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(f.Name.Name, "Example") {
			continue
		}
		body := source[files.Position(f.Body.Lbrace).Offset+1 : files.Position(f.Body.Rbrace).Offset]
		body, _, _ = strings.Cut(body, "\t// Output:")
		bodies = append(bodies, strings.TrimSpace(strings.ReplaceAll(body, "\n\t", "\n")))
	}
	return bodies
}

func TestDocumentsNameEveryPackageAndDependency(t *testing.T) {
	architecture := readFile(t, "docs/develop/architecture.md")
	packages := map[string]bool{}
	for _, f := range goFiles(t) {
		packages[f.pkg] = true
	}
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		name := pkg
		if pkg == "." {
			name = "weir"
		}
		if !strings.Contains(architecture, "`"+name+"`") && !strings.Contains(architecture, "`"+path.Dir(name)+"/*`") {
			t.Errorf("docs/develop/architecture.md does not name the package `%s`", name)
		}
	}
	dependencies := readFile(t, "docs/develop/dependencies.md")
	for _, dir := range modules(t) {
		for _, required := range directRequirements(t, dir) {
			if !strings.HasPrefix(required, modulePath) && !strings.Contains(dependencies, "`"+required+"`") {
				t.Errorf("docs/develop/dependencies.md does not say why %s requires `%s`", dir, required)
			}
		}
	}
}

var existingModule = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `" + modulePath + "[^`]*` \\|")

func TestContributingListsTheModulesThatExist(t *testing.T) {
	var listed []string
	for _, row := range existingModule.FindAllStringSubmatch(readFile(t, "CONTRIBUTING.md"), -1) {
		listed = append(listed, row[1])
	}
	slices.Sort(listed)
	existing := modules(t)
	slices.Sort(existing)
	if !slices.Equal(listed, existing) {
		t.Errorf("CONTRIBUTING.md says that the modules %q exist, want %q", listed, existing)
	}
}

// namedTest matches a name in backquotes that can only be that of a test or, because of its length, of a subtest of
// the conformance suite.
var namedTest = regexp.MustCompile("`((?:Test|Fuzz|Example)[A-Z_][A-Za-z0-9_]*|[A-Z][A-Za-z]{15,})`")

var prefixed = regexp.MustCompile("^(?:Test|Fuzz|Example)[A-Z_]")

func TestDocumentsNameTestsThatExist(t *testing.T) {
	var sources strings.Builder
	for _, f := range goFiles(t) {
		if f.test || f.pkg == "limittest" {
			sources.WriteString(readFile(t, f.path))
		}
	}
	for _, document := range documents(t) {
		for _, match := range namedTest.FindAllStringSubmatch(readFile(t, document), -1) {
			name := match[1]
			if strings.HasPrefix(document, "docs/from/") && !prefixed.MatchString(name) {
				continue // a class of another system
			}
			if !strings.Contains(sources.String(), "func "+name+"(") && !strings.Contains(sources.String(), `"`+name+`"`) {
				t.Errorf("%s names %s, and there is no such test", document, name)
			}
		}
	}
}

// conflict matches the marks that a merge leaves where both sides changed the same lines.
var conflict = regexp.MustCompile(`(?m)^(<{7} |>{7} |={7}$)`)

func TestDocumentsHoldNoMergeConflicts(t *testing.T) {
	for _, document := range documents(t) {
		for _, line := range conflict.FindAllString(readFile(t, document), -1) {
			t.Errorf("%s has a line that begins with %q", document, line)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)

func TestDocumentsLinkToFilesThatExist(t *testing.T) {
	for _, document := range documents(t) {
		prose := goBlock.ReplaceAllString(readFile(t, document), "")
		for _, target := range link.FindAllStringSubmatch(prose, -1) {
			if strings.Contains(target[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(document), target[1])); err != nil {
				t.Errorf("%s links to %s: %v", document, target[1], err)
			}
		}
	}
}

// documents returns the Markdown files of the project.
func documents(t *testing.T) (paths []string) {
	t.Helper()
	inRoot()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		if err == nil && entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "node_modules") {
			return fs.SkipDir
		}
		if filepath.Ext(name) == ".md" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatalf("looking for documents: %v", err)
	}
	return paths
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	inRoot()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

var (
	whereRow = regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \|$`)
	whereTo  = regexp.MustCompile("^`[^`]+`(, `[^`]+`)*$")
)

// docs/develop/house.md answers each question with files that exist.
func TestTheFilesToChangeExist(t *testing.T) {
	_, page, _ := strings.Cut(readFile(t, "docs/develop/house.md"), "\n## Which file to change")
	rows := whereRow.FindAllStringSubmatch(page, -1)
	if lines := strings.Count(page, "\n|"); len(rows) < 10 || len(rows) != lines-1 { // the one below the head
		t.Fatalf("docs/develop/house.md has %d lines of a table, and %d of them are read, want at least 10, and all", lines, len(rows))
	}
	for _, row := range rows[1:] { // without the head
		if !whereTo.MatchString(row[2]) {
			t.Errorf("docs/develop/house.md: %s: %s, want files in backquotes", row[1], row[2])
		}
		for file := range strings.SplitSeq(strings.ReplaceAll(row[2], "`", ""), ", ") {
			if info, err := os.Stat(file); err != nil || info.IsDir() {
				t.Errorf("docs/develop/house.md: %s: %s is no file", row[1], file)
			}
		}
	}
}
