package backtest

import (
	"errors"
	"io"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/rulefiles"
	"github.com/weirflow/weir/internal/accesslog"
	"github.com/weirflow/weir/internal/replay"
)

// DefaultLongest is how long a request is under way at most, where a log does not say.
const DefaultLongest = time.Second

// Load reads files for a command. Each is a configuration of its own, which decides requests by attributes.
func Load(command string, paths []string) (files []File, err error) {
	for _, path := range paths {
		config, err := rulefiles.LoadFor(command, path)
		if err != nil {
			return nil, err
		}
		if len(config.Rules) == 0 {
			return nil, cli.Fail(errors.New(command+": "+path+" has no rule"), "docs/reference/rules.md describes rules")
		}
		files = append(files, File{path, config})
	}
	return files, nil
}

// Run is one run of a command over logs.
type Run struct {
	Command  string
	Files    []File
	Logs     []string // none stands for standard input
	In       io.Reader
	Reader   *accesslog.Reader
	Longest  time.Duration
	Options  Options
	Progress *cli.Progress
}

// Report reads the logs and decides by the files.
func (r *Run) Report() (report replay.Report, err error) {
	traffic := New(r.Files...)
	logs := NewLogs(traffic, r.Reader, r.Longest)
	if len(r.Logs) == 0 {
		r.Logs = []string{"-"}
	}
	for _, name := range r.Logs {
		err := cli.ReadLog(r.Command, name, r.In, r.Progress, func(name string, log io.Reader) error { return r.Reader.Read(name, log, logs.Entry) })
		if err != nil {
			return report, err
		}
	}
	r.Reader.Leave(traffic.cut(r.Reader.Span()))
	r.Options.Progress = r.Progress.Stage("deciding")
	if report, err = traffic.Report(r.Options); err != nil {
		return report, cli.Fail(errors.New(r.Command+": "+err.Error()), "this is a bug in weir: please report it with the rules")
	}
	report.Logs, report.LeftOut = r.Reader.Found(), r.Reader.LeftOut()
	report.Lines, report.Unparsed, report.Reasons = r.Reader.Lines(), r.Reader.Rejected(), r.Reader.Reasons()
	r.Progress.Stop()
	return report, nil
}
