package replay

import (
	"fmt"
	"io"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/internal/accesslog"
	"github.com/weirflow/weir/internal/replay"
)

// printUnparsed shows the first rejected lines.
func printUnparsed(errs io.Writer, samples []accesslog.Rejected, report replay.Report) {
	for _, u := range samples {
		text := ""
		if u.Text != "" {
			text = ": " + cli.Printable(u.Text)
		}
		fmt.Fprintf(errs, "weir: %s:%d: the line %s%s\n", cli.Printable(u.Log), u.Line, u.Reason, text)
	}
	switch more := report.Unparsed - int64(len(samples)); {
	case more == 1:
		fmt.Fprintln(errs, "weir: 1 more line is unparsed")
	case more > 1:
		fmt.Fprintf(errs, "weir: %s more lines are unparsed\n", cli.Thousands(more))
	}
}

// checkCounted returns an error if no line counts, since then the log, the key or what is left out is probably not the intended one.
func (o *readOptions) checkCounted(report replay.Report) error {
	if err := plain.Uncounted(report); report.Keys > 0 || err != nil {
		return err
	}
	if len(o.lacking) > 0 {
		return cli.Fail(fmt.Errorf("replay: --where: no line%s has %q", o.inTime(), strings.Join(o.lacking, ", ")),
			"attributes are client, method, host, path, port and header.NAME, and the fields of the log, such as status; docs/reference/logs.md has those of each format")
	}
	flags, hints := o.leaving()
	left := cli.Plural(report.LeftOut, "line") + " left out by " + strings.Join(flags, " or ")
	if report.Unparsed > 0 {
		left += ", " + cli.Thousands(report.Unparsed) + " unparsed"
	}
	return cli.Fail(fmt.Errorf("replay: no line counts: %s", left), hints...)
}

func (o *readOptions) inTime() string {
	if o.since != "" || o.until != "" {
		return " of this time"
	}
	return ""
}

// leaving returns the flags that leave out lines, and a hint about them.
func (o *readOptions) leaving() (flags, hints []string) {
	if o.since != "" {
		flags = append(flags, "--since")
	}
	if o.until != "" {
		flags = append(flags, "--until")
	}
	if len(flags) > 0 {
		hints = append(hints, "without --since and --until the report shows the time of the log")
	}
	if len(o.where) > 0 {
		flags = append(flags, "--where")
		hints = append(hints, "a pattern of --where fits a whole value, unless it has a * or begins with ~")
	}
	return flags, hints
}
