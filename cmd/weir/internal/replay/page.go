package replay

import (
	"github.com/weirflow/weir/cmd/weir/internal/backtest"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/report"
	"github.com/weirflow/weir/internal/replay"
)

// replayOptions asks for as much as the table, and the page of --report, show.
func (o *options) replayOptions(progress *cli.Progress) replay.Options {
	options := replay.Options{Top: o.top, Progress: progress.Stage("deciding")}
	if o.Report != "" {
		options.Top, options.Timelines = max(o.top, report.MostRows), report.MostTimelines
	}
	return options
}

// backtestOptions is the same for rules.
func (o *options) backtestOptions() backtest.Options {
	limits := o.replayOptions(nil)
	return backtest.Options{Top: limits.Top, Timelines: limits.Timelines}
}

// cut reduces the lists of a report to those of --top.
func (o *options) cut(r *replay.Report) {
	for i := range r.Limits {
		l := &r.Limits[i]
		l.WorstKeys, l.WorstMinutes = l.WorstKeys[:min(len(l.WorstKeys), o.top)], l.WorstMinutes[:min(len(l.WorstMinutes), o.top)]
		if l.Bans != nil {
			l.Bans.Worst = l.Bans.Worst[:min(len(l.Bans.Worst), o.top)]
		}
	}
	if d := r.Difference; d != nil {
		d.Keys = d.Keys[:min(len(d.Keys), o.top)]
	}
}

// writePage writes the page of --report, if it names a file.
func (o *options) writePage(files []string, key replay.Key, result replay.Report, found *replay.Suggestions) error {
	if o.Report == "" {
		return nil
	}
	page := report.Replay{Logs: files, Key: key.String(), Costs: o.cost != "", Result: result, Suggestions: found, Names: o.names}
	return o.Unreported(report.Write(o.Report, page))
}

// writePageOfRules writes the page of rules files.
func (o *options) writePageOfRules(logs []string, files []backtest.File, result replay.Report) error {
	if o.Report == "" {
		return nil
	}
	return o.Unreported(report.Write(o.Report, report.Rules{Logs: logs, Files: files, Result: result, Names: o.names, Price: o.price}))
}

// writePageOfSuggestions replays the proposed limit, so that the page shows what it would have done.
func (o *options) writePageOfSuggestions(traffic *replay.Traffic, key replay.Key, files []string, found replay.Suggestions, progress *cli.Progress) error {
	if o.Report == "" {
		return nil
	}
	var limits []string
	if found.Proposed != nil && !found.Proposed.ForAll {
		limits = append(limits, found.Proposed.Limit)
	}
	candidates, err := cli.Candidates(limits)
	if err != nil {
		return err
	}
	result, err := traffic.Replay(candidates, o.replayOptions(progress))
	if err != nil {
		return cli.Fail(o.Of(err), "this is a bug in weir: please report it with the target")
	}
	result.Name(o.named)
	return o.writePage(files, key, result, &found)
}
