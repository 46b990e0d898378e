package conventions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// The rules of fronts are other names of front.Rule, so documentation tools show no fields of them. Their comments do.
func TestTheRulesOfFrontsListTheirFields(t *testing.T) {
	var fields []string
	typeRule(t, "front/options.go", func(s *ast.TypeSpec, _ string) {
		for _, f := range s.Type.(*ast.StructType).Fields.List {
			fields = append(fields, f.Names[0].Name)
		}
	})
	if len(fields) < 8 {
		t.Fatalf("front.Rule has the fields %v, want 8 at least", fields)
	}
	for _, path := range []string{"httplimit/name.go", "grpclimit/options.go"} {
		typeRule(t, path, func(_ *ast.TypeSpec, comment string) {
			listed := 0
			for line := range strings.Lines(comment) {
				if name, _, _ := strings.Cut(strings.TrimPrefix(line, "\t"), " "); strings.HasPrefix(line, "\t") {
					if listed >= len(fields) || name != fields[listed] {
						t.Errorf("%s: the comment of Rule lists %s where front.Rule has %v", path, name, fields)
					}
					listed++
				}
			}
			if listed != len(fields) {
				t.Errorf("%s: the comment of Rule lists %d fields, want %v", path, listed, fields)
			}
		})
	}
}

// typeRule calls see with the declaration of the type Rule in a file, and its comment.
func typeRule(t *testing.T, path string, see func(s *ast.TypeSpec, comment string)) {
	t.Helper()
	inRoot()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			for _, spec := range g.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok && s.Name.Name == "Rule" {
					see(s, g.Doc.Text())
					return
				}
			}
		}
	}
	t.Fatalf("%s declares no Rule", path)
}
