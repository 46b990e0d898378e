package conventions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// namesOfLimits are the types of limits.
var namesOfLimits = map[string]bool{
	"TokenBucket": true, "LeakyBucket": true, "FixedWindow": true, "FirstWindow": true, "SlidingWindow": true, "SlidingLog": true, "RateGate": true, "Cycle": true, "Quota": true,
	"Concurrency": true, "Ban": true, "Unlimited": true, "DenyAll": true, "Bursty": true, "WarmUp": true, "NginxLimitReq": true,
}

// mayAskForTheType are the files and folders that act on a limit by its type, with the reason.
var mayAskForTheType = map[string]string{
	"cmd/weir/internal/explain/explain.go": "a Ban has no units to explain, but refusals and durations",
	"redislimit/internal/stored/limit.go":  "the engine has a script function and stored numbers for each type",
	"cmd/weir/internal/check/permits.go":   "draws the curve that only a WarmUp has",
	"internal/replay/need.go":              "the one number of a limit is another field in each",
	"bench/":                               "checks the engines against limits that it computes itself",
}

// A new limit changes no front: fronts, the program and the suite act on its description.
func TestNoFrontAsksForTheTypeOfALimit(t *testing.T) {
	asked := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.test || f.pkg == "." {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range limitsAskedFor(parsed) {
			where := exceptionOf(f.path)
			if asked[where] = true; where == "" {
				t.Errorf("%s asks whether a limit is a %s: use weir.Describe", f.path, name)
			}
		}
	}
	for where := range mayAskForTheType {
		if !asked[where] {
			t.Errorf("%s asks for no type of limit any more: remove the exception", where)
		}
	}
}

func exceptionOf(path string) string {
	for where := range mayAskForTheType {
		if strings.HasPrefix(path, where) {
			return where
		}
	}
	return ""
}

// limitsAskedFor returns the types of limits in the type assertions and type switches of a file.
func limitsAskedFor(file *ast.File) (names []string) {
	note := func(e ast.Expr) {
		if s, ok := e.(*ast.SelectorExpr); ok && lastName(s.X) == "weir" && namesOfLimits[s.Sel.Name] {
			names = append(names, s.Sel.Name)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeAssertExpr:
			note(n.Type)
		case *ast.IndexExpr: // a type argument
			note(n.Index)
		case *ast.CaseClause:
			for _, e := range n.List {
				note(e)
			}
		}
		return true
	})
	return names
}

func TestATypeSwitchOnLimitsIsFound(t *testing.T) {
	for _, code := range []string{
		"switch l.(type) { case nil, weir.Cycle: }", "_, ok := l.(weir.Concurrency)", "has[weir.LeakyBucket](l)",
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() { "+code+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if names := limitsAskedFor(parsed); len(names) != 1 {
			t.Errorf("%s: found %q, want one limit", code, names)
		}
	}
}

func TestTheNamesOfLimitsAreThoseThatTheCoreReads(t *testing.T) {
	found := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.test || f.pkg != "." {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if method, ok := d.(*ast.FuncDecl); ok && method.Name.Name == "describe" && method.Recv != nil && method.Type.Results != nil && lastName(method.Type.Results.List[0].Type) == "Description" {
				found[lastName(method.Recv.List[0].Type)] = true
			}
		}
	}
	for name := range namesOfLimits {
		if !found[name] {
			t.Errorf("%s is no limit of the root package", name)
		}
	}
	if len(found) != len(namesOfLimits) {
		t.Errorf("the root package has the limits %v, and this test knows %d", found, len(namesOfLimits))
	}
}
