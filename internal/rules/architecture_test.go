package rules

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// This file holds the import rule of docs/develop/architecture.md: arrows point to the
// root, adapters never import one another, and only cmd/weir reads flags,
// environment and files. A new package, edge, dependency or exception is one
// line in a table of an architecture_*_test.go file, with its reason.

const modulePath = "github.com/weirflow/weir"

// reasons gives the reason for each import path.
type reasons map[string]string

// packageRule lists the imports of one package besides the standard library. Import paths of ours are relative to the
// root, which is ".".
type packageRule struct {
	imports     reasons // in its own code, and so in its tests
	testImports reasons // in its tests alone
}

// packageRules lists every package of the project, each in one of the tables.
var packageRules = func() map[string]packageRule {
	all := map[string]packageRule{}
	for _, table := range []map[string]packageRule{coreRules, adapterRules, programRules, benchRules} {
		maps.Copy(all, table)
	}
	return all
}()

func TestImportsFollowTheArchitecture(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, imported := range f.imports {
			if broken := violation(f.pkg, f.test, imported); broken != "" {
				t.Errorf("%s: %s", f.path, broken)
			}
		}
	}
}

func TestEachPackageHasOneRule(t *testing.T) {
	if listed := len(coreRules) + len(adapterRules) + len(programRules) + len(benchRules); listed != len(packageRules) {
		t.Errorf("the tables list %d packages, and %d of them differ: a package is in two tables", listed, len(packageRules))
	}
}

// Engines in other projects cannot import internal packages, so ours does not either.
func TestTheRedisEngineNeedsNothingInternal(t *testing.T) {
	const rooms = "redislimit/internal/"
	for pkg, rule := range packageRules {
		if pkg != "redislimit" && !strings.HasPrefix(pkg, rooms) {
			continue
		}
		for name := range rule.imports {
			if strings.Contains(name+"/", "internal/") && !strings.HasPrefix(name, rooms) {
				t.Errorf("%s may import %q: what it needs of it belongs in enginekit", pkg, name)
			}
		}
	}
}

// violation names the broken rule, and where to change it, if a file of pkg (relative to the root) imports the path.
// It is empty if no rule is broken.
func violation(pkg string, test bool, imported string) string {
	rule, known := packageRules[pkg]
	switch {
	case !known:
		return fmt.Sprintf("package %q is unknown: add it to a table of architecture_*_test.go and to the table of docs/develop/architecture.md", pkg)
	case isStandard(imported) && test:
		return ""
	case isStandard(imported):
		return standardViolation(pkg, imported)
	}
	name := relative(imported)
	ownTest := test && name == pkg // a test from outside sees the package as its callers do
	if ownTest || rule.imports[name] != "" || test && rule.testImports[name] != "" {
		return ""
	}
	return fmt.Sprintf("package %q may not import %q: if the edge points to the root and has a reason, add it to a table of architecture_*_test.go", pkg, name)
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
		{".", false, "github.com/spf13/cobra", `may not import "github.com/spf13/cobra"`},
		{".", true, "github.com/spf13/cobra", `may not import "github.com/spf13/cobra"`},
		{".", false, "os", "only cmd/weir reads the environment and files"},
		{".", true, "os", ""},
		{".", false, "net/http", "the core speaks no protocol"},
		{".", false, "net/netip", "the core speaks no protocol"},
		{"internal/algorithm", false, "time", "the four functions are pure"},
		{"internal/algorithm", false, "sync", "the four functions are pure"},
		{"internal/algorithm", false, "math/bits", ""},
		{"internal/algorithm", false, modulePath, `may not import "."`},
		{"internal/memory", false, modulePath, `may not import "."`},
		{"simulate", false, modulePath + "/limittest", `may not import "limittest"`},
		{"simulate", false, "flag", "only cmd/weir reads flags"},
		{"cmd/weir/internal/api", false, modulePath + "/simulate", `may not import "simulate"`},
		{"cmd/weir/internal/api", false, "os", "only cmd/weir reads the environment and files"},
		{"cmd/weir/internal/serve", false, "os/signal", ""},
		{"util", false, "strings", `package "util" is unknown`},
	}
	for _, tt := range tests {
		got := violation(tt.pkg, tt.test, tt.imported)
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
