// Package logrules decides the logs of a command by its rules files: it opens both, and backtest decides.
package logrules

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/backtest"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/rulefiles"
	"github.com/weirflow/weir/internal/accesslog"
	"github.com/weirflow/weir/internal/replay"
)

// Load reads files for a command. Each is a configuration of its own, which decides requests by attributes.
func Load(command string, paths []string) (files []backtest.File, err error) {
	for _, path := range paths {
		config, err := rulefiles.LoadFor(command, path)
		if err != nil {
			return nil, err
		}
		if len(config.Rules) == 0 {
			return nil, cli.Fail(errors.New(command+": "+path+" has no rule"), "docs/reference/rules.md describes rules")
		}
		files = append(files, backtest.File{Name: path, Config: config})
	}
	return files, nil
}

// NoFormat returns the error of a flag --log-format that an access log cannot have.
func NoFormat(err error) error {
	return cli.Misusef("formats: "+strings.Join(accesslog.Formats(), ", ")+`; or a pattern: --log-format '$remote_addr [$time_local] "$request" $status'; or the names of fields: --log-format 'json time=when client=caller.ip'`, "--log-%s", err)
}

// Run is one run of a command over logs.
type Run struct {
	Command  string
	Files    []backtest.File
	Logs     []string // none stands for standard input
	In       io.Reader
	Reader   *accesslog.Reader
	Longest  time.Duration
	Host     Host
	Options  backtest.Options
	Progress *cli.Progress
}

// Report reads the logs and decides by the files.
func (r *Run) Report() (report replay.Report, err error) {
	traffic := backtest.New(r.Files...)
	logs := backtest.NewLogs(traffic, r.Reader, r.Longest)
	if r.Host.text != "" {
		logs.Assume(r.Host.name, r.Host.port)
	}
	if len(r.Logs) == 0 {
		r.Logs = []string{"-"}
	}
	for _, name := range r.Logs {
		err := cli.ReadLog(r.Command, name, r.In, r.Progress, func(name string, log io.Reader) error { return r.Reader.Read(name, log, logs.Entry) })
		if err != nil {
			return report, err
		}
	}
	r.Host.unused = r.Host.text != "" && !logs.Assumed()
	r.Options.Progress = r.Progress.Stage("deciding")
	if report, err = traffic.ReportRead(r.Reader, r.Options); err != nil {
		return report, cli.Fail(errors.New(r.Command+": "+err.Error()), "this is a bug in weir: please report it with the rules")
	}
	r.Progress.Stop()
	return report, nil
}
