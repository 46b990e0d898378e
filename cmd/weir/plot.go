package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/picture"
)

// The values of --plot that are no file name.
const (
	plotAuto     = "auto"
	plotTerminal = "terminal"
	plotNone     = "none"
)

// plotFlag is the flag --plot of a command.
type plotFlag struct {
	command string
	where   string
}

// plotFlagOf adds the flag to the command.
func plotFlagOf(cmd *cobra.Command, usual, of string) *plotFlag {
	p := &plotFlag{command: cmd.Name()}
	meaning := "or 'terminal' to draw it with characters"
	if usual == plotAuto {
		meaning += ", as on a terminal by default; 'none' draws nothing"
	}
	cmd.Flags().StringVar(&p.where, "plot", usual, "draw "+of+" to `FILE`, a .png or .svg, "+meaning)
	_ = cmd.RegisterFlagCompletionFunc("plot", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{plotTerminal, plotNone, "plot.svg", "plot.png"}, cobra.ShellCompDirectiveDefault
	})
	return p
}

// check refuses a value that is neither a word nor a file that can be drawn.
func (p *plotFlag) check() error {
	switch p.where {
	case plotAuto, plotTerminal, plotNone:
		return nil
	}
	if _, ok := picture.Format(p.where); !ok {
		return usageWithHint(fmt.Errorf("--plot: %q does not end in %s", p.where, strings.Join(picture.Formats, " or ")), "name a file like plot.svg, or say: --plot terminal")
	}
	return nil
}

// inText reports whether the picture belongs on out, with characters.
func (p *plotFlag) inText(out io.Writer) bool {
	return p.where == plotTerminal || p.where == plotAuto && screenOf(out).Columns > 0
}

// below returns the picture with characters, below a table, or nothing if it does not belong on out.
func (p *plotFlag) below(out io.Writer, drawn picture.Picture) string {
	if !p.inText(out) {
		return ""
	}
	return "\n" + drawn.Terminal(screenOf(out))
}

// file writes the picture to the file of the flag, if it names one.
func (p *plotFlag) file(drawn picture.Picture) error {
	format, ok := picture.Format(p.where)
	if !ok {
		return nil
	}
	file, err := os.Create(p.where)
	if err == nil {
		err = errors.Join(picture.Write(file, format, drawn), file.Close())
	}
	if err != nil {
		return errorWithHint(fmt.Errorf("%s: --plot: %w", p.command, err), "name a file in a folder that exists and that this user may write to")
	}
	return nil
}
