// Command house measures what a reader of Weir has to hold in his head: the exported names of the root package, and the
// files and functions of ours that a call passes once it is warm. docs/develop/house.md has the figures.
//
//	go run ./internal/house           # names and walks; needs redis-server
//	go run ./internal/house -names    # every name
//	go run ./internal/house -files    # also the files of each walk
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
)

// program makes the walks.
const program = "./cmd/weir/internal/walks"

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
	folder, err := os.MkdirTemp("", "weir-house")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := makeWalks(folder); err != nil {
		return err
	}
	walks, err := filepath.Glob(filepath.Join(folder, "[0-9]"))
	for _, at := range walks {
		if err := printWalk(at, files); err != nil {
			return err
		}
	}
	return err
}

// makeWalks builds the program with coverage and runs it, so that the folder has what each walk passed.
func makeWalks(folder string) error {
	binary := filepath.Join(folder, "walks")
	// Counters are cleared before each call, which needs the atomic mode.
	build := exec.Command("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+module+"/...", "-o", binary, program)
	walk := exec.Command(binary, folder)
	walk.Env = append(os.Environ(), "GOCOVERDIR="+folder)
	for _, c := range []*exec.Cmd{build, walk} {
		c.Stderr = os.Stderr
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(c.Args, " "), err)
		}
	}
	return nil
}

func printWalk(folder string, files bool) error {
	name, err := os.ReadFile(filepath.Join(folder, "name"))
	if err != nil {
		return err
	}
	passed, err := passedIn(folder)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d files, %d calls\n", name, len(passed), passed.calls())
	if files {
		passed.print(os.Stdout)
	}
	return nil
}
