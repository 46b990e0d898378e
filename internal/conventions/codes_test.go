package conventions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/weirflow/weir"
)

// limitErrors returns the places in the project's own code that make a LimitError, with the expression of its Code;
// the expression is empty if there is none.
func limitErrors(t *testing.T) map[string]string {
	t.Helper()
	made := map[string]string{}
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, f.path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if ok && lastName(literal.Type) == "LimitError" {
				made[files.Position(literal.Pos()).String()] = codeOf(literal)
			}
			return true
		})
	}
	return made
}

func codeOf(literal *ast.CompositeLit) string {
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok && lastName(pair.Key) == "Code" {
			return lastName(pair.Value)
		}
	}
	return ""
}

func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func TestEveryLimitErrorIsMadeWithACode(t *testing.T) {
	made := limitErrors(t)
	for place, code := range made {
		if code == "" {
			t.Errorf("%s: a LimitError without a Code", place)
		}
	}
	if len(made) < 10 {
		t.Errorf("found %d places where a LimitError is made, want 10 at least", len(made))
	}
}

// codeConstants are the names of the constants of type Code.
func codeConstants(t *testing.T) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if constant, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(constant.Names[0].Name, "Code") {
			names = append(names, constant.Names[0].Name)
		}
		return true
	})
	return names
}

func TestEveryCodeHasAName(t *testing.T) {
	inRoot()
	constants := codeConstants(t)
	for i, constant := range constants {
		if weir.Code(i+1).String() == "" {
			t.Errorf("%s has no name in codeNames", constant)
		}
	}
	if name := weir.Code(len(constants) + 1).String(); len(constants) == 0 || name != "" || weir.Code(0).String() != "" {
		t.Errorf("%d constants, and the next code is named %q, want none", len(constants), name)
	}
}
