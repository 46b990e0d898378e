package conventions

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"testing"
)

// A reader who meets make, max or clear takes it for the builtin. Fields and methods may have such a name.
func TestNoNameShadowsABuiltin(t *testing.T) {
	for _, f := range goFiles(t) {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, f.path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range shadows(parsed) {
			t.Errorf("%s: %s is a builtin: choose another name", set.Position(name.Pos()), name.Name)
		}
	}
}

// shadows returns the declarations of a file that shadow a builtin.
func shadows(file *ast.File) (found []*ast.Ident) {
	fields := map[*ast.FieldList]bool{} // of structs and interfaces, whose names shadow nothing
	for n := range ast.Preorder(file) {
		switch n := n.(type) {
		case *ast.StructType:
			fields[n.Fields] = true
		case *ast.InterfaceType:
			fields[n.Methods] = true
		}
		for _, name := range declared(n, fields) {
			if types.Universe.Lookup(name.Name) != nil {
				found = append(found, name)
			}
		}
	}
	return found
}

// declared returns the names that a node itself declares.
func declared(n ast.Node, fields map[*ast.FieldList]bool) (names []*ast.Ident) {
	switch n := n.(type) {
	case *ast.ImportSpec:
		if n.Name != nil {
			names = append(names, n.Name)
		}
	case *ast.FuncDecl:
		if n.Recv == nil {
			names = append(names, n.Name)
		}
	case *ast.TypeSpec:
		names = append(names, n.Name)
	case *ast.ValueSpec:
		names = n.Names
	case *ast.FieldList:
		for _, f := range n.List {
			if !fields[n] {
				names = append(names, f.Names...)
			}
		}
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			names = identifiers(n.Lhs...)
		}
	case *ast.RangeStmt:
		if n.Tok == token.DEFINE {
			names = identifiers(n.Key, n.Value)
		}
	}
	return names
}

func identifiers(all ...ast.Expr) (names []*ast.Ident) {
	for _, e := range all {
		if name, ok := e.(*ast.Ident); ok {
			names = append(names, name)
		}
	}
	return names
}

func TestAShadowedBuiltinIsFound(t *testing.T) {
	const source = `package p
import real "math"
type any struct{ make, len int } // two fields
type able interface{ close(); take(max int) }
var nil, x int
func new[error any](cap int) (copy int) {
	min := 1
	for print, y := range x {}
	min, close = y, x // no declaration of close
	switch append := v.(type) {}
	return func(panic int) {}
}
func (iota *T) clear() {}
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range shadows(file) {
		got = append(got, name.Name)
	}
	slices.Sort(got)
	want := []string{"any", "append", "cap", "copy", "error", "iota", "max", "min", "new", "nil", "panic", "print", "real"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
