package weir_test

import (
	"errors"
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

// Errors that a caller sees have a code, too, even if the error was copied to name its rule.
func TestRefusedLimitsTellTheirCode(t *testing.T) {
	_, noFunction := weir.NewKeyedFunc[int](nil, weir.Options{})
	_, noLimit := weir.New(nil)
	_, keyed := weir.NewKeyed[int](weir.WarmUp{Rate: weir.PerSecond(1), Over: 1e9})
	for _, test := range []struct {
		err  error
		want weir.Code
	}{
		{noFunction, weir.CodeMissing},
		{noLimit, weir.CodeMissing},
		{keyed, weir.CodeOneSubject},
		{ruleRefusal("=1/s"), weir.CodeName},
		{ruleRefusal("r=" + strings.Repeat("1/s and ", 16) + "1/s"), weir.CodeLimitCount},
		{ruleRefusal("r=0/s"), weir.CodeBounds},
		{ruleRefusal("r=1/s burst 9007199254740993"), weir.CodeBounds},
		{ruleRefusal("r=sliding log 1/s gap 2s"), weir.CodeBounds},
		{ruleRefusal("r=bursty 1/s over 1s"), weir.CodeOneSubject},
		{ruleRefusal("r=nginx limit_req 1/s"), weir.CodeDialect},
		{ruleRefusal("r=leaky bucket 1/s and 1/s"), weir.CodeAlone},
		{weir.NginxLimitReq{Rate: weir.PerHour(1)}.Validate(), weir.CodeDialect},
		{weir.NginxLimitReq{Rate: weir.PerSecond(1), NoDelay: true, Delay: 1}.Validate(), weir.CodeDialect},
		{weir.WarmUp{Rate: weir.PerSecond(1), Over: 1e9, Cold: 0.5}.Validate(), weir.CodeBounds},
	} {
		if refused, ok := errors.AsType[*weir.LimitError](test.err); !ok || refused.Code != test.want {
			t.Errorf("%v: got %+v, want the code %q", test.err, refused, test.want)
		}
	}
}

func ruleRefusal(text string) error {
	_, err := weir.ParseRule(text)
	return err
}
