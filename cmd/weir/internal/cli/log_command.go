package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/picture"
	"github.com/weirflow/weir/cmd/weir/internal/screen"
	"github.com/weirflow/weir/cmd/weir/internal/unpack"
	"github.com/weirflow/weir/internal/replay"
)

// logFields are the fields that every log format can have.
var logFields = []string{"ip", "method", "path", "query", "uri", "status", "user", "referer", "agent", "host"}

// LogCommand is a command that tries limits on the traffic of logs, and reports what they do as a table, as JSON and as a plot.
type LogCommand struct {
	Limits  []string
	Config  []string // rules files, whose limits are tried, too
	Report  string   // the file of a page; empty for none
	keys    []string
	format  string
	plot    *Plot
	command string
}

// AddFlags adds the flags --key, --limit, --format and --plot, with the meanings of three of them.
func (t *LogCommand) AddFlags(cmd *cobra.Command, key, limit, plot string) {
	t.command, t.plot = cmd.Name(), AddPlot(cmd, plotAuto, plot)
	flags := cmd.Flags()
	flags.StringArrayVar(&t.keys, "key", []string{"ip"}, key)
	flags.StringArrayVar(&t.Limits, "limit", nil, limit)
	flags.StringArrayVar(&t.Config, "config", nil, "try the limits of the rules in this `FILE`, or in a directory, too")
	flags.StringVar(&t.format, "format", "table", "print a `table` or json")
	flags.StringVar(&t.Report, "report", "", "write a page with pictures and tables to `FILE`, an .html to send by mail")
	Offer(cmd, "key", logFields...)
	Offer(cmd, "format", "table", "json")
	_ = cmd.RegisterFlagCompletionFunc("limit", CompleteLimit(slices.Concat(RuleLimits, OneSubjectLimits)))
}

// Check refuses a report that cannot be written.
func (t *LogCommand) Check(out io.Writer) error {
	if t.format != "table" && t.format != "json" {
		return Misusef("formats: table, json", "--format: %q is not a format", t.format)
	}
	if t.Report != "" && !strings.EqualFold(filepath.Ext(t.Report), ".html") {
		return Misusef("name a file like report.html, which browsers open", "--report: %q does not end in .html", t.Report)
	}
	if err := t.plot.Check(); err != nil {
		return err
	}
	return RequireOutput(t.command, out)
}

// Apart refuses one file for two purposes: the logs and those of --config are read, and those of --report and --plot written.
func (t *LogCommand) Apart(logs []string, in io.Reader, out io.Writer) error {
	uses := t.plot.uses(out)
	for _, path := range t.Config {
		uses = append(uses, FileUse{Purpose: "--config", Path: path})
	}
	for _, name := range logs {
		use := FileUse{Purpose: "the log", Path: name}
		if name == "-" {
			use = StreamUse("standard input", in, false)
		}
		uses = append(uses, use)
	}
	return Apart(t.command, append(uses, FileUse{Purpose: "--report", Path: t.Report, Writes: true})...)
}

// Candidates parses limits.
func Candidates(limits []string) ([]replay.Candidate, error) {
	candidates := make([]replay.Candidate, len(limits))
	for i, text := range limits {
		var err error
		if candidates[i], err = replay.ParseCandidate(text); err != nil {
			return nil, LimitError("--limit", err, LimitForms)
		}
	}
	return candidates, nil
}

// Key parses the key of the lines of logs.
func (t *LogCommand) Key() (replay.Key, error) {
	key, err := replay.ParseKey(t.keys...)
	if err != nil {
		return key, Misusef("fields: "+strings.Join(logFields, ", ")+", or any field of JSON lines; several: --key ip,path", "--%s", inner(err))
	}
	return key, nil
}

// ReadLog has read read a file, or standard input for "-". Its error is that of the command.
func ReadLog(command, name string, in io.Reader, progress *Progress, read func(name string, log io.Reader) error) error {
	if name == "-" {
		name = "standard input"
	} else {
		file, err := os.Open(name)
		if err != nil {
			return explainLog(command, err)
		}
		defer file.Close()
		in = file
	}
	return explainLog(command, read(name, unpack.Reader(progress.reading(name, in))))
}

// explainLog adds a hint to an error of reading a log.
func explainLog(command string, err error) error {
	if err == nil {
		return nil
	}
	hint := "the log may be damaged or still being written: 'gzip -t FILE' checks a compressed one"
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint = "check the path; '-' reads standard input"
	case errors.Is(err, fs.ErrPermission):
		hint = "run it as a user who may read the log, or pipe it in: sudo cat FILE | weir replay --limit LIMIT"
	case errors.As(err, &path):
		hint = "name files, not directories; '-' reads standard input"
	}
	return Fail(errors.New(command+": "+inner(err)), hint)
}

// Of returns an error of a simulation as one of the command.
func (t *LogCommand) Of(err error) error { return errors.New(t.command + ": " + inner(err)) }

// inner returns the message without the prefix of the package.
func inner(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "simulate: "), "replay: ")
}

// Unreported explains why the page of --report was not written, or returns nil.
func (t *LogCommand) Unreported(err error) error {
	if err == nil {
		return nil
	}
	return Fail(fmt.Errorf("%s: --report: %w", t.command, err), "name a file in a folder that exists and that this user may write to")
}

// Write writes the plot to the file of --plot, and the value as JSON or as text. The text gets the plot, drawn with
// characters, if it belongs there. Without a plot, drawn is nil.
func (t *LogCommand) Write(out io.Writer, value any, drawn picture.Picture, text func(s screen.Screen, drawn string) string) (err error) {
	inText := ""
	if drawn != nil {
		if err := t.plot.File(drawn); err != nil {
			return err
		}
		inText = t.plot.Text(out, drawn)
	}
	if t.format == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		err = encoder.Encode(value)
	} else {
		_, err = io.WriteString(out, text(ScreenOf(out), inText))
	}
	return Unwritable(t.command, err)
}
