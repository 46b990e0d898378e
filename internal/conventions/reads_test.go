package conventions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// readsWhole are functions that read a file to its end. In a command a user names the file, which may be a pipe that never
// ends, so commands read up to a bound: with cli.ReadFile, or from an io.LimitReader.
var readsWhole = []string{"os.ReadFile", "fs.ReadFile", "tls.LoadX509KeyPair", "io.ReadAll"}

// mayReadWhole are files of commands that do so all the same.
var mayReadWhole = map[string]string{
	"cmd/weir/internal/rls/json.go": "the body is from an http.MaxBytesReader",
}

func TestCommandsReadFilesUpToABound(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test || !strings.HasPrefix(f.pkg, "cmd/weir") || mayReadWhole[f.path] != "" {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range wholeReads(parsed) {
			t.Errorf("%s calls %s: use cli.ReadFile or an io.LimitReader, which have a bound", f.path, call)
		}
	}
}

// wholeReads returns the functions that a file calls to read something without a bound.
func wholeReads(file *ast.File) (found []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := selected(call.Fun)
		bounded := len(call.Args) == 1 && isLimited(call.Args[0])
		if slices.Contains(readsWhole, name) && !bounded {
			found = append(found, name)
		}
		return true
	})
	return found
}

func isLimited(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	return ok && selected(call.Fun) == "io.LimitReader"
}

// selected returns the text of an expression like os.ReadFile, or "".
func selected(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return lastName(s.X) + "." + s.Sel.Name
	}
	return ""
}

func TestAReadWithoutABoundIsFound(t *testing.T) {
	for code, want := range map[string]int{
		"os.ReadFile(name)": 1, "io.ReadAll(file)": 1, "tls.LoadX509KeyPair(cert, key)": 1, "f(io.ReadAll(r))": 1,
		"io.ReadAll(io.LimitReader(file, 10))": 0, "os.Open(name)": 0,
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() { "+code+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := wholeReads(parsed); len(got) != want {
			t.Errorf("%s: found %q, want %d", code, got, want)
		}
	}
}
