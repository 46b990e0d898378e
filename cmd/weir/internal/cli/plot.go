package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/picture"
)

// The values of --plot that are no file name.
const (
	plotAuto     = "auto"
	plotTerminal = "terminal"
	PlotNone     = "none"
)

// Plot is the flag --plot of a command.
type Plot struct {
	command string
	Where   string
}

// AddPlot adds the flag to the command.
func AddPlot(cmd *cobra.Command, usual, of string) *Plot {
	p := &Plot{command: cmd.Name()}
	meaning := "or 'terminal' to draw it with characters"
	if usual == plotAuto {
		meaning += ", as on a terminal by default; 'none' draws nothing"
	}
	cmd.Flags().StringVar(&p.Where, "plot", usual, "draw "+of+" to `FILE`, an .svg, "+meaning)
	_ = cmd.RegisterFlagCompletionFunc("plot", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{plotTerminal, PlotNone, "plot.svg"}, cobra.ShellCompDirectiveDefault
	})
	return p
}

// Check refuses a value that is neither a word nor a file that can be drawn.
func (p *Plot) Check() error {
	switch p.Where {
	case plotAuto, plotTerminal, PlotNone:
		return nil
	}
	if !picture.IsFile(p.Where) {
		return Misuse(fmt.Errorf("--plot: %q does not end in %s", p.Where, picture.Ending),
			"name a file like plot.svg, which browsers and office programs open, or say: --plot terminal")
	}
	return nil
}

// uses are the file of the flag, and the output.
func (p *Plot) uses(out any) []FileUse {
	uses := []FileUse{StreamUse("standard output", out, true)}
	if picture.IsFile(p.Where) {
		uses = append(uses, FileUse{Purpose: "--plot", Path: p.Where, Writes: true})
	}
	return uses
}

// Apart refuses to draw into the file that standard output is.
func (p *Plot) Apart(out io.Writer) error { return Apart(p.command, p.uses(out)...) }

// Text returns the picture with characters, or nothing if it does not belong on out.
func (p *Plot) Text(out io.Writer, drawn picture.Picture) string {
	if p.Where != plotTerminal && (p.Where != plotAuto || ScreenOf(out).Columns == 0) {
		return ""
	}
	return drawn.Terminal(ScreenOf(out))
}

// Below returns a picture for the end of a text.
func Below(drawn string) string {
	if drawn == "" {
		return ""
	}
	return "\n" + drawn
}

// File writes the picture to the file of the flag, if it names one.
func (p *Plot) File(drawn picture.Picture) error {
	if !picture.IsFile(p.Where) {
		return nil
	}
	file, err := os.Create(p.Where)
	if err == nil {
		err = errors.Join(picture.Write(file, drawn), file.Close())
	}
	if err != nil {
		return Fail(fmt.Errorf("%s: --plot: %w", p.command, err), "name a file in a folder that exists and that this user may write to")
	}
	return nil
}
