package conventions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// mayDrawAnew are tests that draw other numbers in each run.
var mayDrawAnew = map[string]string{
	"bench_test.go":                      "the goroutines of a benchmark begin at different keys, and no answer is checked",
	"examples/obedient/obedient_test.go": "an example imports only what users may, and waits in it only spread requests",
	"internal/testprocess/port.go":       "two runs on one machine look for different ports",
	"internal/randtest/randtest.go":      "it gives the others their seeds",
}

// A normal run of the tests draws the same each time, so that it does not fail by chance for somebody who changed something
// else, and that whoever it fails for can run it again.
func TestRandomTestsTakeTheirSeedsFromRandtest(t *testing.T) {
	drew := map[string]bool{}
	for _, f := range goFiles(t) {
		if from, _ := layerOf(f.pkg); !f.test && from.name != "proofs" {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, f.path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range drawnAnew(parsed) {
			if drew[f.path] = true; mayDrawAnew[f.path] == "" {
				t.Errorf("%s draws other numbers in each run: take a seed from internal/randtest", set.Position(call.Pos()))
			}
		}
	}
	for path := range mayDrawAnew {
		if !drew[path] {
			t.Errorf("%s draws nothing anew any more: delete the exception", path)
		}
	}
}

// drawnAnew returns the calls of a file that draw from the global generator, or make a seed from the clock.
func drawnAnew(file *ast.File) (found []*ast.CallExpr) {
	seeded := []string{"rand.New", "rand.NewPCG", "rand.NewChaCha8", "rand.NewZipf"}
	global := slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"math/rand/v2"` })
	for n := range ast.Preorder(file) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			continue
		}
		name := selected(call.Fun)
		if index, generic := call.Fun.(*ast.IndexExpr); generic {
			name = selected(index.X)
		}
		if global && strings.HasPrefix(name, "rand.") && !slices.Contains(seeded, name) || isClockSeed(call) {
			found = append(found, call)
		}
	}
	return found
}

// isClockSeed reports whether a call converts what a clock shows, as in uint64(time.Now().UnixNano()).
func isClockSeed(call *ast.CallExpr) bool {
	to, ok := call.Fun.(*ast.Ident)
	if !ok || to.Name != "uint64" || len(call.Args) != 1 {
		return false
	}
	from, ok := call.Args[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	read, ok := from.Fun.(*ast.SelectorExpr)
	return ok && strings.HasPrefix(read.Sel.Name, "Unix")
}

// Each row is the body of a function.
func TestNumbersDrawnAnewAreNoticed(t *testing.T) {
	for body, want := range map[string]int{
		"rand.IntN(7)":                                1,
		"rand.N[int](7)":                              1,
		"rand.N(time.Second)":                         1,
		"seed := uint64(time.Now().UnixNano())":       1,
		"rand.New(rand.NewPCG(rand.Uint64(), 0))":     1,
		"rand.New(rand.NewPCG(randtest.Seed(t), 0))":  0,
		"random.IntN(7)":                              0,
		"rand.NewZipf(random, 2, 2, 9)":               0,
		"now := time.Now().UnixNano()":                0,
		"at := uint64(now)":                           0,
		"id := strconv.FormatInt(now.UnixNano(), 36)": 0,
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "", "package p\nimport \"math/rand/v2\"\nfunc f() { "+body+" }", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(drawnAnew(parsed)); n != want {
			t.Errorf("%s: %d found, want %d", body, n, want)
		}
	}
}
