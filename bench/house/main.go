// Command house measures what a reader of Weir has to hold in their head: the exported names of the root package, and the
// files and functions of ours that a call passes once it is warm. bench/README.md has the figures.
//
//	go run ./bench/house           # names and walks; needs redis-server
//	go run ./bench/house -names    # every name
//	go run ./bench/house -files    # also the files of each walk
//
// It runs in the root of the repository.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weirflow/weir/bench/internal/localredis"
)

func main() {
	list := flag.Bool("names", false, "print every name of the root package, and no walks")
	files := flag.Bool("files", false, "print the files of each walk, and how often it enters a function of each")
	flag.Parse()
	if err := run(*list, *files); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(list, files bool) error {
	found, err := namesIn(".")
	if err != nil {
		return err
	}
	fmt.Println(found)
	if list {
		fmt.Println(strings.Join(append(found.top, found.methods...), "\n"))
		return nil
	}
	if err := printPublic("."); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "weir-house")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	redis, end, err := localredis.Start()
	if err != nil {
		return err
	}
	defer end()
	b, err := build(folder, "redis://"+redis)
	if err != nil {
		return err
	}
	for _, w := range b.walks() {
		passed, err := w.passed(folder)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		fmt.Printf("%s: %d files, %d calls\n", w.name, len(passed), passed.calls())
		if files {
			passed.print(os.Stdout)
		}
	}
	return nil
}

// built are the programs that count what they pass.
type built struct{ folder, library, program, redis string }

// build builds them: the one of package main in library, and the program weir.
func build(folder, redis string) (*built, error) {
	b := &built{folder, filepath.Join(folder, "library"), filepath.Join(folder, "weir"), redis}
	for binary, pkg := range map[string]string{b.library: "./bench/house/library", b.program: "./cmd/weir"} {
		c := exec.Command("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+module+"/...", "-o", binary, pkg)
		if out, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", strings.Join(c.Args, " "), err, out)
		}
	}
	return b, nil
}
