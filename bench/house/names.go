package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// conventional lists the methods that every Go programmer knows, so that they are no names to learn.
var conventional = []string{
	"As", "Error", "Format", "GoString", "Is", "MarshalJSON", "MarshalText", "String", "UnmarshalJSON", "UnmarshalText", "Unwrap",
}

// ofAuthors is the type that only authors of engines and fronts meet: its methods are no names for users.
const ofAuthors = "EngineKit"

// names are the exported names of a package: what its users may have to learn.
type names struct {
	top, methods, known []string // known are the conventional methods
	authors             []string // what only authors of engines meet
}

// learned counts the names that are not conventional.
func (n names) learned() int { return len(n.top) + len(n.methods) }

func (n names) String() string {
	return fmt.Sprintf("package weir: %d names (%d top-level, %d methods), %d methods that every Go programmer knows, and %d for authors of engines",
		n.learned(), len(n.top), len(n.methods), len(n.known), len(n.authors))
}

// namesIn returns the exported names of the package in a folder. Methods of unexported types and fields are none.
func namesIn(folder string) (names, error) {
	var found names
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return found, err
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return found, err
		}
		for _, d := range f.Decls {
			found.add(d)
		}
	}
	return found, nil
}

func (n *names) add(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		n.addFunction(d)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				n.addTop(spec.Name)
			case *ast.ValueSpec:
				n.addTop(spec.Names...)
			}
		}
	}
}

func (n *names) addTop(idents ...*ast.Ident) {
	for _, ident := range idents {
		if ident.IsExported() {
			n.top = append(n.top, ident.Name)
		}
	}
}

func (n *names) addFunction(f *ast.FuncDecl) {
	if f.Recv == nil {
		n.addTop(f.Name)
		return
	}
	receiver := receiverName(f.Recv.List[0].Type)
	switch name := receiver + "." + f.Name.Name; {
	case !f.Name.IsExported() || !ast.IsExported(receiver):
	case receiver == ofAuthors:
		n.authors = append(n.authors, name)
	case slices.Contains(conventional, f.Name.Name):
		n.known = append(n.known, name)
	default:
		n.methods = append(n.methods, name)
	}
}

// receiverName returns the name of a receiver's type, without its pointer and its parameters.
func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
