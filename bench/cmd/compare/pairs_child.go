package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weirflow/weir/bench/internal/measure"
)

// A child is a process of one build that measures a window whenever it is asked. It reads a cell per line, as JSON, and
// answers with an answer per line. It ends with its standard input.

// asker measures the next window of a cell and returns the time of a decision in ns.
type asker interface {
	ask(measure.Cell) (float64, error)
}

type answer struct {
	Ns    float64
	Error string `json:",omitempty"`
}

type child struct {
	process *exec.Cmd
	cells   io.WriteCloser
	answers *json.Decoder
}

func startChild(path string, flags []string) (*child, error) {
	c := &child{process: exec.Command(path, append([]string{"-serve"}, flags...)...)}
	c.process.Stderr = os.Stderr
	in, err := c.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.cells, c.answers = in, json.NewDecoder(out)
	return c, c.process.Start()
}

func (c *child) ask(cell measure.Cell) (float64, error) {
	if err := json.NewEncoder(c.cells).Encode(cell); err != nil {
		return 0, err
	}
	var a answer
	if err := c.answers.Decode(&a); err != nil {
		return 0, fmt.Errorf("%s: no answer: %w", c.process.Path, err)
	}
	if a.Error != "" {
		return 0, fmt.Errorf("%s: %s", c.process.Path, a.Error)
	}
	return a.Ns, nil
}

func (c *child) stop() {
	c.cells.Close()
	_ = c.process.Wait() // all its answers are read
}

// serve is the child's side.
func serve(c measure.Config, in io.Reader, out io.Writer) error {
	windows := measure.NewWindows(c)
	cells, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var cell measure.Cell
		if err := cells.Decode(&cell); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var a answer
		ns, err := windows.Measure(cell)
		if a.Ns = ns; err != nil {
			a = answer{Error: err.Error()}
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}

// checkOut makes a worktree of a commit whose comparison is the present one. So both builds speak with each other and
// run the same workload. It needs the parts of the API that internal/peers and internal/measure use.
func checkOut(tree, commit string) error {
	if err := command("", "git", "worktree", "add", "--detach", "--quiet", tree, commit); err != nil {
		return err
	}
	for _, room := range []string{"bench/internal", "bench/cmd/compare"} {
		old := filepath.Join(tree, room)
		if err := os.RemoveAll(old); err != nil {
			return err
		}
		if err := os.CopyFS(old, os.DirFS(room)); err != nil {
			return err
		}
	}
	return nil
}

// build builds this program of a tree. Each round has another layout of the code.
func build(tree, binary string, round int) error {
	return command(tree, "go", "build", "-ldflags", fmt.Sprint("-randlayout=", round+1), "-o", binary, "./bench/cmd/compare")
}

// command runs a program in a folder. Its output belongs to the error.
func command(folder, name string, arguments ...string) error {
	c := exec.Command(name, arguments...)
	c.Dir = folder
	if output, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(arguments, " "), err, output)
	}
	return nil
}
