package pace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/filter"
)

// commandLine is the command that weir pace runs for each line.
type commandLine struct {
	argv  []string
	alone bool // at most one command runs at a time

	mu          sync.Mutex
	ran, failed int64
	failures    []string // the first ones
}

// shownFailures is the number of failed commands that the summary names.
const shownFailures = 5

// commandGrace is the time that interrupted commands have to end before they are killed.
const commandGrace = 5 * time.Second

// linePlace is replaced by the line in the arguments of a command.
const linePlace = "{}"

// splitCommand returns the arguments before -- and the command behind it, or nil without one.
func splitCommand(cmd *cobra.Command, args []string) (limits []string, command *commandLine, err error) {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		return args, nil, nil
	}
	const hint = "name a program behind --: weir pace 5/s -- curl -sO {}"
	argv := args[dash:]
	if len(argv) == 0 {
		return nil, nil, cli.Misuse(errors.New("pace: no command after --"), hint)
	}
	if _, err := exec.LookPath(argv[0]); err != nil {
		return nil, nil, cli.Misuse(fmt.Errorf("pace: the command: %w", err), hint)
	}
	return args[:dash], &commandLine{argv: argv}, nil
}

// work returns the work of a filter on a line: to run the command and wait for its end.
func (c *commandLine) work(out, errs io.Writer, shown *progress) func(ctx context.Context, line []byte) error {
	output := &commandOutput{out: shown.Above(out), errs: shown.Above(errs), direct: c.alone && shown.Progress == nil}
	if !c.alone {
		output.held = mostHeld
	}
	return func(ctx context.Context, line []byte) error {
		argv := c.argvFor(string(line))
		streams := output.begin()
		err := runCommand(ctx, argv, streams)
		c.count(argv, err)
		shown.ended(line, err != nil)
		return streams.end()
	}
}

// runCommand waits for a command, and up to commandGrace for programs that it leaves behind with a held stream.
func runCommand(ctx context.Context, argv []string, streams commandStreams) error {
	run := exec.CommandContext(ctx, argv[0], argv[1:]...)
	run.Stdout, run.Stderr = streams.out, streams.errs
	run.Cancel = func() error { return run.Process.Signal(syscall.SIGTERM) }
	run.WaitDelay = commandGrace
	if err := run.Run(); !errors.Is(err, exec.ErrWaitDelay) {
		return err
	}
	return nil
}

// count counts a command that has ended.
func (c *commandLine) count(argv []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ran++
	if err == nil {
		return
	}
	c.failed++
	if len(c.failures) < shownFailures {
		c.failures = append(c.failures, fmt.Sprintf("%s: %v", cli.Shorten(cli.Printable(strings.Join(argv, " "))), err))
	}
}

// argvFor puts a line into the arguments, or behind them.
func (c *commandLine) argvFor(line string) []string {
	argv, placed := []string{c.argv[0]}, false
	for _, arg := range c.argv[1:] {
		placed = placed || strings.Contains(arg, linePlace)
		argv = append(argv, strings.ReplaceAll(arg, linePlace, line))
	}
	if !placed {
		argv = append(argv, line)
	}
	return argv
}

// result returns an error with a summary if a command has failed.
func (c *commandLine) result() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == 0 {
		return nil
	}
	summary := strings.Join(c.failures, "\n  ")
	if more := c.failed - int64(len(c.failures)); more > 0 {
		summary += "\n  and " + cli.Plural(more, "more command")
	}
	hint := "mend the cause, and give the failed lines to weir pace again"
	if c.failed < c.ran {
		hint = "all other lines were worked on: " + hint
	}
	return cli.Fail(fmt.Errorf("pace: %s of %s failed:\n  %s", cli.Thousands(c.failed), cli.Plural(c.ran, "command"), summary), hint)
}

// mostHeld bounds what is held of a stream of a command that runs beside others.
const mostHeld = 1 << 20

// commandOutput is where the commands of weir pace write. It keeps the outputs of commands apart that run at a time, and
// those of any command from the progress on the terminal.
type commandOutput struct {
	out, errs io.Writer
	// held is the number of bytes of a stream that wait for the end of their command. Default: 0, so lines are passed on
	// as they come. Direct lets the commands write themselves.
	held   int
	direct bool

	mu sync.Mutex // held to write
}

// commandStreams are the two streams of one command.
type commandStreams struct{ out, errs io.Writer }

func (o *commandOutput) begin() commandStreams {
	if o.direct {
		return commandStreams{o.out, o.errs}
	}
	return commandStreams{&heldStream{of: o, to: o.out}, &heldStream{of: o, to: o.errs}}
}

// end passes on what is still held of a command that has ended.
func (s commandStreams) end() (err error) {
	for _, w := range []io.Writer{s.out, s.errs} {
		if held, ok := w.(*heldStream); ok {
			held.pass(len(held.text))
			if err == nil && held.failed != nil {
				err = &filter.StreamError{Op: "write", Err: held.failed}
			}
		}
	}
	return err
}

// heldStream passes on whole lines, except of a line longer than mostHeld. The goroutine of one command uses it.
type heldStream struct {
	of     *commandOutput
	to     io.Writer
	text   []byte
	failed error // of to; the rest is dropped
}

// Write never fails, so that a command can end although its output has nowhere to go.
func (s *heldStream) Write(b []byte) (int, error) {
	s.text = append(s.text, b...)
	if len(s.text) > s.of.held {
		whole := bytes.LastIndexByte(s.text, '\n') + 1
		if len(s.text)-whole > mostHeld {
			whole = len(s.text)
		}
		s.pass(whole)
	}
	return len(b), nil
}

// pass writes the first n held bytes.
func (s *heldStream) pass(n int) {
	if n > 0 && s.failed == nil {
		s.of.mu.Lock()
		_, s.failed = s.to.Write(s.text[:n])
		s.of.mu.Unlock()
	}
	s.text = s.text[n:]
}
