package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/weirflow/weir"

// passed has the files of ours that a walk passed, and how often it entered a function of each.
type passed map[string]int

func (p passed) calls() (all int) {
	for _, n := range p {
		all += n
	}
	return all
}

func (p passed) print(w io.Writer) {
	for _, file := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(w, "%6d  %s\n", p[file], file)
	}
}

// block is a stretch of code with one counter, as profiles name it: LINE.COLUMN of its first byte.
type block struct{ file, start string }

// countsIn reads the counters of a process.
func countsIn(folder string) (map[block]int, error) {
	profile := filepath.Join(folder, "profile")
	if out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i="+folder, "-o="+profile).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go tool covdata: %w: %s", err, out)
	}
	f, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	counts := map[block]int{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// MODULE/FILE:LINE.COLUMN,LINE.COLUMN STATEMENTS COUNT
		file, rest, found := strings.Cut(strings.TrimPrefix(lines.Text(), module+"/"), ":")
		if start, counted, _ := strings.Cut(rest, ","); found && !strings.HasPrefix(file, "bench/") {
			var end string
			var statements, count int
			if _, err := fmt.Sscan(counted, &end, &statements, &count); err == nil && count > 0 {
				counts[block{file, start}] = count
			}
		}
	}
	return counts, lines.Err()
}

// callsOf adds up, for each file with a counter above 0, the counters at the beginning of functions.
func callsOf(counts map[block]int) (passed, error) {
	found := passed{}
	for b, n := range counts {
		if n > 0 {
			found[b.file] = 0
		}
	}
	for file := range found {
		starts, err := functionStarts(file)
		if err != nil {
			return nil, err
		}
		for _, start := range starts {
			found[file] += counts[block{file, start}]
		}
	}
	return found, nil
}

// functionStarts returns where the functions of a file begin, those without a name among them.
func functionStarts(file string) (starts []string, err error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		var body *ast.BlockStmt
		switch n := n.(type) {
		case *ast.FuncDecl:
			body = n.Body
		case *ast.FuncLit:
			body = n.Body
		}
		if body != nil {
			at := files.Position(body.Lbrace)
			starts = append(starts, fmt.Sprintf("%d.%d", at.Line, at.Column))
		}
		return true
	})
	return starts, nil
}
