package main

import (
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
)

// paceCommandLine is the command that weir pace runs for each line.
type paceCommandLine struct {
	argv []string

	mu          sync.Mutex
	ran, failed int
	first       error // the first failure
}

// commandGrace is the time that interrupted commands have to end before they are killed.
const commandGrace = 5 * time.Second

// linePlace is replaced by the line in the arguments of a command.
const linePlace = "{}"

// splitCommand returns the arguments before -- and the command behind it, or nil without one.
func splitCommand(cmd *cobra.Command, args []string) (limits []string, command *paceCommandLine, err error) {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		return args, nil, nil
	}
	const hint = "name a program behind --: weir pace 5/s -- curl -sO {}"
	argv := args[dash:]
	if len(argv) == 0 {
		return nil, nil, usageWithHint(errors.New("pace: no command after --"), hint)
	}
	if _, err := exec.LookPath(argv[0]); err != nil {
		return nil, nil, usageWithHint(fmt.Errorf("pace: the command: %w", err), hint)
	}
	return args[:dash], &paceCommandLine{argv: argv}, nil
}

// work returns the work of a filter on a line: to run the command and wait for its end.
func (c *paceCommandLine) work(out, errs io.Writer) func(ctx context.Context, line []byte) error {
	return func(ctx context.Context, line []byte) error {
		argv := c.argvFor(string(line))
		run := exec.CommandContext(ctx, argv[0], argv[1:]...)
		run.Stdout, run.Stderr = out, errs
		run.Cancel = func() error { return run.Process.Signal(syscall.SIGTERM) }
		run.WaitDelay = commandGrace
		err := run.Run()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ran++
		if err != nil {
			c.failed++
			if c.first == nil {
				c.first = fmt.Errorf("%s: %w", printable(strings.Join(argv, " ")), err)
			}
		}
		return nil
	}
}

// argvFor puts a line into the arguments, or behind them.
func (c *paceCommandLine) argvFor(line string) []string {
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

// result returns an error if a command has failed.
func (c *paceCommandLine) result() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == 0 {
		return nil
	}
	return errorWithHint(fmt.Errorf("pace: %d of %s failed, the first: %w", c.failed, plural(int64(c.ran), "command"), c.first),
		"the other lines were worked on")
}
