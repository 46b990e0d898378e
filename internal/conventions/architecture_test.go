package conventions

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// This file holds the import rules of docs/develop/architecture.md. architecture_layers_test.go has their tables.

const modulePath = "github.com/weirflow/weir"

func TestImportsFollowTheArchitecture(t *testing.T) {
	used := map[[2]string]bool{}
	for _, f := range goFiles(t) {
		for _, imported := range f.imports {
			if broken := violation(t, f.pkg, f.test, imported); broken != "" {
				t.Errorf("%s: %s", f.path, broken)
			}
			used[[2]string{f.pkg, relative(imported)}] = used[[2]string{f.pkg, relative(imported)}] || !f.test
		}
	}
	for _, exception := range exceptions {
		if !used[[2]string{exception.pkg, exception.imported}] {
			t.Errorf("nothing in package %q imports %q any more: delete the exception", exception.pkg, exception.imported)
		}
	}
}

// violation names the broken rule, and where to change it, if a file of pkg (relative to the root) imports the path. It is
// empty if no rule is broken.
func violation(t *testing.T, pkg string, test bool, imported string) string {
	from, known := layerOf(pkg)
	if !known {
		return fmt.Sprintf("package %q belongs to no layer: add it to one in architecture_layers_test.go, and to the table of docs/develop/architecture.md", pkg)
	}
	name := relative(imported)
	if broken := requirementViolation(t, pkg, imported); broken != "" || test || excepted(pkg, name) {
		return broken
	}
	switch {
	case isStandard(imported):
		return standardViolation(pkg, from, imported)
	case name == imported: // a third party's
		return ""
	}
	if to, _ := layerOf(name); !slices.Contains(from.mayUse, to.name) {
		return fmt.Sprintf("package %q of the layer %q may not import %q of the layer %q: arrows point inwards, and adapters, engines, commands and fronts never import one another; an exception is a line with its reason in architecture_layers_test.go", pkg, from.name, name, to.name)
	}
	return ""
}

// Rules are read from bytes: no package on the way there reads a file, watches one, or knows a terminal.
func TestRulesAreReadWithoutATerminalOrAFile(t *testing.T) {
	reached := walk(t, bytesAlone, func(pkg, imported string) {
		if imported == "os" || strings.HasPrefix(imported, "os/") || imported == "syscall" || !isStandard(imported) && !slices.Contains(byBytes, imported) {
			t.Errorf("package %q imports %q, and rules are read through it: bytesAlone in architecture_layers_test.go says what may be", pkg, imported)
		}
	})
	if reached < 10 {
		t.Errorf("%d packages were looked at", reached)
	}
}

// The program of the page "Try it" is at most 3 MB, compressed: scripts/playground.sh measures it. Nothing in it knows a terminal, a
// network or a database, and no template makes the linker keep every method.
func TestThePlaygroundHasOnlyWhatItNeeds(t *testing.T) {
	reached := walk(t, []string{"cmd/weir/internal/playground"}, func(pkg, imported string) {
		if imported == "text/template" || imported == "html/template" || imported == "net/http" || imported == "os/exec" || imported == "os/signal" ||
			!isStandard(imported) && !slices.Contains(byBytes, imported) && imported != "github.com/klauspost/compress/zstd" {
			t.Errorf("package %q imports %q, and the page \"Try it\" would have it: texts are in package plain, not in cli", pkg, imported)
		}
	})
	if reached < 20 {
		t.Errorf("%d packages were looked at", reached)
	}
}

// walk visits all imports of packages of others, and of the standard library, of the packages and of those of ours that they import.
func walk(t *testing.T, from []string, visit func(pkg, imported string)) (reached int) {
	t.Helper()
	imports := map[string][]string{}
	for _, f := range goFiles(t) {
		if !f.test {
			imports[f.pkg] = append(imports[f.pkg], f.imports...)
		}
	}
	queue, seen := slices.Clone(from), map[string]bool{}
	for len(queue) > 0 {
		pkg := queue[0]
		queue = queue[1:]
		if seen[pkg] {
			continue
		}
		seen[pkg] = true
		if imports[pkg] == nil {
			t.Errorf("there is no package %q", pkg)
		}
		for _, imported := range imports[pkg] {
			if name := relative(imported); name != imported {
				queue = append(queue, name)
			} else {
				visit(pkg, imported)
			}
		}
	}
	return len(seen)
}

func layerOf(pkg string) (layer, bool) {
	for _, l := range layers {
		for _, pattern := range l.packages {
			if matches, _ := path.Match(pattern, pkg); matches {
				return l, true
			}
		}
	}
	return layer{}, false
}

func excepted(pkg, imported string) bool {
	for _, exception := range exceptions {
		if exception.pkg == pkg && exception.imported == imported {
			return true
		}
	}
	return false
}

func standardViolation(pkg string, from layer, imported string) string {
	if from.name == "functions" && !slices.Contains(pure, imported) {
		return fmt.Sprintf("package %q may not import %q: the four functions are pure; if it brings no clock, lock or I/O, add it to pure in architecture_layers_test.go", pkg, imported)
	}
	guard := imported
	if _, below, deeper := strings.Cut(imported, "/"); deeper && guarded[guard] == "" {
		guard = strings.TrimSuffix(imported, below)
	}
	if why := guarded[guard]; why != "" && !slices.Contains(from.standard, guard) {
		return fmt.Sprintf("package %q of the layer %q may not import %q: %s; an exception is a line with its reason in architecture_layers_test.go", pkg, from.name, imported, why)
	}
	return ""
}

// requirementViolation says so if a module imports a package of a module that its go.mod does not require directly. The go
// command does not notice in a workspace.
func requirementViolation(t *testing.T, pkg, imported string) string {
	folder := moduleFolder(pkg)
	if isStandard(imported) || relative(imported) != imported && moduleFolder(relative(imported)) == folder {
		return ""
	}
	want := imported // a package of the required module
	if relative(imported) != imported {
		want = path.Join(modulePath, moduleFolder(relative(imported)))
	}
	for _, required := range directRequirements(t, folder) {
		if want == required || relative(imported) == imported && strings.HasPrefix(want, required+"/") {
			return ""
		}
	}
	return fmt.Sprintf("package %q imports %q, which the go.mod of its module %q does not require", pkg, imported, folder)
}

// moduleFolder returns the folder of the go.mod that applies to a package.
func moduleFolder(pkg string) string {
	for pkg != "." {
		if _, err := os.Stat(filepath.Join(pkg, "go.mod")); err == nil {
			return pkg
		}
		pkg = path.Dir(pkg)
	}
	return "."
}

// Each row breaks one rule, or is a near miss that breaks none.
func TestBrokenArchitectureIsNoticed(t *testing.T) {
	tests := []struct {
		pkg      string
		test     bool
		imported string
		want     string // a part of what is said; empty if allowed
	}{
		{".", false, modulePath + "/internal/algorithm", ""},
		{".", false, modulePath + "/simulate", `may not import "simulate"`},
		{".", true, modulePath + "/simulate", ""},
		{".", false, "github.com/spf13/cobra", `the go.mod of its module "." does not require`},
		{".", true, "github.com/spf13/cobra", `the go.mod of its module "." does not require`},
		{".", true, modulePath + "/redislimit", `the go.mod of its module "." does not require`},
		{".", false, "os", "only cmd/weir reads the environment and files"},
		{".", true, "os", ""},
		{".", false, "net/http", "the core speaks no protocol"},
		{".", false, "net/netip", "the core speaks no protocol"},
		{".", false, "math/rand", "math/rand/v2 replaces it"},
		{".", false, "testing", "production code does not link the test framework"},
		{"internal/algorithm", false, "time", "the four functions are pure"},
		{"internal/algorithm", false, "sync", "the four functions are pure"},
		{"internal/algorithm", false, "math/bits", ""},
		{"internal/algorithm", false, modulePath, `may not import "."`},
		{"internal/algorithm", false, modulePath + "/internal/table", `may not import "internal/table"`},
		{"internal/memory", false, modulePath, `may not import "."`},
		{"internal/memory", false, "unsafe", ""},
		{"internal/word", false, "unsafe", "a package that needs it says why"},
		{"internal/new", false, modulePath + "/internal/algorithm", ""},
		{"enginekit", false, modulePath + "/pace", `may not import "pace"`},
		{"pace", false, modulePath + "/sqllimit", `may not import "sqllimit"`},
		{"redislimit", false, modulePath + "/enginekit", ""},
		{"redislimit", false, modulePath + "/internal/compiled", `may not import "internal/compiled"`},
		{"redislimit", false, "github.com/redis/rueidis", ""},
		{"redislimit", false, "github.com/spf13/cobra", `the go.mod of its module "redislimit" does not require`},
		{"sqllimit", false, modulePath + "/layer", `may not import "layer"`},
		{"promlimit", false, modulePath + "/otellimit", `does not require`},
		{"simulate", false, modulePath + "/httplimit", `may not import "httplimit"`},
		{"simulate", false, modulePath + "/limittest", `may not import "limittest"`},
		{"simulate", false, "flag", "only programs read flags"},
		{"grpclimit", false, modulePath + "/httplimit", ""},
		{"cmd/weir/internal/api", false, modulePath + "/cmd/weir/internal/rls", `may not import "cmd/weir/internal/rls"`},
		{"cmd/weir/internal/api", false, "os", "only cmd/weir reads the environment and files"},
		{"cmd/weir/internal/cli", false, modulePath + "/cmd/weir/internal/pace", `may not import "cmd/weir/internal/pace"`},
		{"cmd/weir/internal/fetch", false, modulePath + "/cmd/weir/internal/pace", `may not import "cmd/weir/internal/pace"`},
		{"cmd/weir/internal/serve", false, "os/signal", ""},
		{"cmd/weir/internal/serve", false, "log", "a library does not log"},
		{"examples/worker", false, modulePath + "/internal/line", `may not import "internal/line"`},
		{"util", false, "strings", `package "util" belongs to no layer`},
	}
	inRoot()
	for _, tt := range tests {
		got := violation(t, tt.pkg, tt.test, tt.imported)
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("violation(%q, test %v, %q) = %q, want %q", tt.pkg, tt.test, tt.imported, got, tt.want)
		}
	}
}

func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// relative returns an import path of ours as seen from the root, and any other path unchanged.
func relative(path string) string {
	if path == modulePath {
		return "."
	}
	return strings.TrimPrefix(path, modulePath+"/")
}
