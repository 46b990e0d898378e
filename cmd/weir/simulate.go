package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/simulate"
)

// simulateOptions are the flags of weir simulate.
type simulateOptions struct {
	format string
}

func simulateCommand() *cobra.Command {
	var o simulateOptions
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Compare limits on made-up traffic in virtual time",
		Long: `Simulate drives every limit at 10 requests a second with a burst of 10, in
virtual time, and shows how fast each admits. It decides as the daemon does.

It runs eight phases, from 10 requests at 1 per second to 1000 requests at 100
per second. Each phase begins with a fresh state. A refused caller retries every
10 ms until it is admitted, and gives up after a minute. Limiters that people
write by hand stand below, each with its fault.`,
		Example: `  weir simulate
  weir simulate --format json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(args, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&o.format, "format", "table", "print a `table` or json")
	offer(cmd, "format", "table", "json")
	return cmd
}

// run simulates and writes the result to out.
func (o *simulateOptions) run(args []string, out io.Writer) error {
	switch {
	case len(args) > 0:
		return usageWithHint(fmt.Errorf("simulate: unexpected %q", args[0]), "simulate takes no arguments: weir simulate")
	case o.format != "table" && o.format != "json":
		return usageWithHint(fmt.Errorf("--format: %q is not a format", o.format), "formats: table, json")
	}
	if err := requireOutput("simulate", out); err != nil {
		return err
	}
	c, err := newClassic()
	if err != nil {
		return errorWithHint(errors.New("simulate: "+inner(err)), "this is a bug in weir: please report it")
	}
	return writeSimulation(out, o.format, c.reports, c.table)
}

// writeSimulation writes a value as JSON, or else the table.
func writeSimulation(out io.Writer, format string, value any, table func() string) (err error) {
	if format == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		err = encoder.Encode(value)
	} else {
		_, err = io.WriteString(out, table())
	}
	if err != nil {
		return errorWithHint(fmt.Errorf("simulate: standard output: %w", err), "is the disk full, or the reader of the pipe gone?")
	}
	return nil
}

// classic is a run of the classic driver.
type classic struct {
	limits, bad []simulate.Subject
	phases      []simulate.Phase
	reports     []simulate.PhaseReport // of the limits, then of the bad examples
	faults      []simulate.PollReport
}

func newClassic() (c classic, err error) {
	if c.limits, err = simulate.ClassicSubjects(); err != nil {
		return c, err
	}
	if c.bad, err = simulate.BadExamples(10); err != nil {
		return c, err
	}
	if c.faults, err = simulate.RoundingFaults(); err != nil {
		return c, err
	}
	driver := simulate.ClassicDriver()
	c.phases = driver.Phases
	c.reports, err = driver.Run(append(c.limits[:len(c.limits):len(c.limits)], c.bad...)...)
	return c, err
}
