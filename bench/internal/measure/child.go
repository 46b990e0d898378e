package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Asker measures the next window of a row.
type Asker[Row, Figures any] interface {
	Ask(Row) (Figures, error)
}

// Child is a process of one build that measures a window whenever it is asked. It reads a row per line, as JSON, and
// answers with a line each. It ends with its standard input. A Child is not safe for concurrent use.
type Child[Row, Figures any] struct {
	process *exec.Cmd
	rows    io.WriteCloser
	answers *json.Decoder
}

type answer[Figures any] struct {
	Figures Figures
	Error   string `json:",omitempty"`
}

// StartChild starts a program that calls Serve.
func StartChild[Row, Figures any](path string, arguments ...string) (*Child[Row, Figures], error) {
	c := &Child[Row, Figures]{process: exec.Command(path, arguments...)}
	c.process.Stderr = os.Stderr
	in, err := c.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.rows, c.answers = in, json.NewDecoder(out)
	return c, c.process.Start()
}

// Ask has the child measure a window of a row.
func (c *Child[Row, Figures]) Ask(row Row) (Figures, error) {
	var a answer[Figures]
	if err := json.NewEncoder(c.rows).Encode(row); err != nil {
		return a.Figures, err
	}
	if err := c.answers.Decode(&a); err != nil {
		return a.Figures, fmt.Errorf("%s: no answer: %w", c.process.Path, err)
	}
	if a.Error != "" {
		return a.Figures, fmt.Errorf("%s: %s", c.process.Path, a.Error)
	}
	return a.Figures, nil
}

// Stop ends the child.
func (c *Child[Row, Figures]) Stop() {
	_ = c.rows.Close()
	_ = c.process.Wait() // all its answers are read
}

// Kill kills the child, in the middle of its answer.
func (c *Child[Row, Figures]) Kill() { _ = c.process.Process.Kill() }

// Serve is the child's side: it measures the rows that it reads, until in ends.
func Serve[Row, Figures any](in io.Reader, out io.Writer, measure func(Row) (Figures, error)) error {
	rows, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var row Row
		if err := rows.Decode(&row); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var a answer[Figures]
		figures, err := measure(row)
		if a.Figures = figures; err != nil {
			a = answer[Figures]{Error: err.Error()}
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}
