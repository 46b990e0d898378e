package simulate

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/cmd/weir/internal/report"
	"github.com/weirflow/weir/cmd/weir/internal/rulefiles"
	"github.com/weirflow/weir/cmd/weir/internal/screen"
	"github.com/weirflow/weir/simulate"
)

// compare tries the limits on the traffic and writes the result to out.
func (o *options) compare(in io.Reader, out, errs io.Writer) error {
	texts, err := rulefiles.Texts("simulate", o.Config)
	if err != nil {
		return err
	}
	o.Limits = append(o.Limits, texts...)
	pattern, err := simulate.ParsePattern(o.traffic)
	switch {
	case err != nil:
		return cli.LimitError("--traffic", err, plain.TrafficForms)
	case len(o.Limits) == 0:
		return cli.Misuse(errors.New("simulate: no --limit and no --config to try"), "for example: weir simulate --traffic 'poisson 9/s' --limit 'token bucket 10/s burst 20'")
	}
	if err := o.checkScenario(); err != nil {
		return err
	}
	if err := o.Apart(pattern.Logs(), in, out); err != nil {
		return err
	}
	limits, err := o.limits()
	if err != nil {
		return err
	}
	if err := o.readLogs(pattern, in, errs); err != nil {
		return err
	}
	o.setLength(pattern)
	progress := cli.NewProgress(errs, cli.ProgressDelay)
	o.scenario.Progress = progress.Stage("deciding")
	c, err := pattern.Compare(limits, o.scenario)
	progress.Stop()
	if errors.Is(err, simulate.ErrShare) {
		return cli.Misuse(o.Of(err), "use fewer --processes, or a limit with a larger burst or count")
	}
	if err != nil {
		return cli.Fail(o.Of(err), "shorten the time with --for, lower the rate of the traffic, or bound its retries: up to 10 times")
	}
	for _, read := range c.Logs {
		if read.Format == "record" {
			fmt.Fprintf(errs, "weir: %s: the recorded costs are not read: each request costs 1, unless --traffic says cost; weir replay --cost cost reads them\n", cli.Printable(read.Log))
		}
	}
	if o.Report != "" {
		how := strings.TrimSpace(scenarioText(c, o.scenario))
		if err := o.Unreported(report.Write(o.Report, report.Comparison{Result: c, How: how})); err != nil {
			return err
		}
	}
	return o.Write(out, c, comparisonPicture(c), func(s screen.Screen, drawn string) string {
		return comparisonTable(c, o.scenario, s) + cli.Below(drawn)
	})
}

// comparisonTable returns the comparison for people.
func comparisonTable(c simulate.Comparison, scenario simulate.Scenario, s screen.Screen) string {
	length := time.Duration(c.Seconds * float64(time.Second)).Round(time.Millisecond)
	if length > time.Minute {
		length = length.Round(time.Second)
	}
	head := fmt.Sprintf("%s, for %s: %s of %s\n%s", cli.Printable(c.Traffic), cli.Duration(length), cli.Plural(c.Requests, "request"), cli.Plural(int64(c.Clients), "client"), scenarioText(c, scenario))
	notes := "\nwait, starved, latency: seconds. starved: the longest run of refusals. most: units that go ahead within any such time;\n" +
		"the last columns are for the limit's own window, with the multiple of its count" + ofOneClient(scenario) + ".\n"
	if c.Moved > 0 {
		notes += "over: units beyond those of the same run without the loss.\n"
	}
	if c.Clients > 1 {
		notes += "fairness: Jain's index of the units that each client gets, 1 if all get the same. shut out: clients never admitted.\n"
	}
	return s.Wrap(head, 2) + cli.LogLines(c.Logs, s) + "\n" + s.Table(fateTable(c, scenario)) + "\n" + s.Table(windowTable(c)) + s.Wrap(notes, 0)
}

func ofOneClient(s simulate.Scenario) string {
	if s.PerClient {
		return ", and for one client"
	}
	return ""
}

// scenarioText says how the requests are tried, if not in the usual way.
func scenarioText(c simulate.Comparison, s simulate.Scenario) string {
	var parts []string
	if s.PerClient {
		parts = append(parts, "a limit for each client")
	} else if c.Clients > 1 {
		parts = append(parts, "one limit for all clients")
	}
	if s.Wait > 0 {
		parts = append(parts, "callers wait up to "+cli.Duration(s.Wait))
	}
	if s.Processes > 1 {
		parts = append(parts, fmt.Sprintf("%d processes that share each limit", s.Processes))
	}
	if s.Sticky > 0 {
		parts = append(parts, fmt.Sprintf("%d daemons that each have their clients", s.Sticky))
	}
	if s.Lose > 0 {
		parts = append(parts, "one of them is lost after "+cli.Duration(s.Lose))
	}
	if s.Return > 0 {
		parts = append(parts, "and is back, empty, after "+cli.Duration(s.Return))
	}
	if c.Moved > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s move each time", cli.Thousands(int64(c.Moved)), cli.Plural(int64(c.Clients), "client")))
	}
	if s.Server.Period > 0 {
		parts = append(parts, fmt.Sprintf("a server of %s behind", s.Server))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "\n"
}

// fateTable shows what became of the requests.
func fateTable(c simulate.Comparison, s simulate.Scenario) screen.Table {
	type report = simulate.ComparisonReport
	costly, served, shared := c.Units != c.Requests, s.Server.Period > 0, c.Clients > 1
	retried := slices.ContainsFunc(c.Limits, func(l report) bool { return l.Attempts != c.Requests })
	t := screen.Table{}
	offered, rows := []string{}, make([][]string, len(c.Limits))
	column := func(shown bool, column screen.Column, ofTraffic string, cell func(report) string) {
		if !shown {
			return
		}
		t.Columns, offered = append(t.Columns, column), append(offered, ofTraffic)
		for i, l := range c.Limits {
			rows[i] = append(rows[i], cell(l))
		}
	}
	column(true, screen.Column{Title: "limit"}, "(the traffic)", func(l report) string { return cli.Printable(l.Limit) })
	column(true, screen.Column{Title: "admitted", Colour: screen.Admitted}, "", func(l report) string { return cli.Thousands(l.Admitted) })
	column(true, screen.Column{Title: "refused", Colour: screen.Refused}, "", func(l report) string { return cli.Thousands(l.Refused) })
	column(true, screen.Column{Title: "share", Rank: 5}, "", func(l report) string { return cli.Percent(l.Refused, c.Requests) })
	column(costly, screen.Column{Title: "units", Rank: 3}, cli.Thousands(c.Units), func(l report) string { return cli.Thousands(l.Units) })
	column(c.Moved > 0, screen.Column{Title: "over", Rank: 1}, "", func(l report) string { return cli.Thousands(l.Over) })
	column(retried, screen.Column{Title: "attempts", Rank: 6}, "", func(l report) string { return cli.Thousands(l.Attempts) })
	column(true, screen.Column{Title: "wait p50", Rank: 7}, "", func(l report) string { return cli.Fixed(l.WaitP50) })
	column(true, screen.Column{Title: "p99", Rank: 2}, "", func(l report) string { return cli.Fixed(l.WaitP99) })
	column(true, screen.Column{Title: "queue", Rank: 8}, "", func(l report) string { return cli.Thousands(l.Queue) })
	column(true, screen.Column{Title: "starved", Rank: 4}, "", func(l report) string { return cli.Fixed(l.Starved) })
	column(served, screen.Column{Title: "latency p50", Rank: 7}, "", func(l report) string { return cli.Fixed(l.LatencyP50) })
	column(served, screen.Column{Title: "p99", Rank: 1}, "", func(l report) string { return cli.Fixed(l.LatencyP99) })
	column(shared, screen.Column{Title: "fairness", Rank: 5}, cli.Fixed(c.Jain), func(l report) string { return cli.Fixed(l.Jain) })
	column(shared, screen.Column{Title: "shut out", Rank: 6}, "", func(l report) string { return cli.Thousands(int64(l.ShutOut)) })
	if costly || shared {
		t.Rows = append(t.Rows, offered)
	}
	t.Rows = append(t.Rows, rows...)
	return t
}

// windowTable shows how much goes ahead within windows of time.
func windowTable(c simulate.Comparison) screen.Table {
	t, offered := screen.Table{Columns: []screen.Column{{Title: "most within any"}}}, []string{"(the traffic)"}
	for i, window := range simulate.ComparisonWindows() {
		t.Columns, offered = append(t.Columns, screen.Column{Title: cli.Duration(window), Rank: 2 + i}), append(offered, cli.Thousands(c.Most[i]))
	}
	t.Columns = append(t.Columns, screen.Column{Title: "own window", Rank: 1}, screen.Column{Title: "most"}, screen.Column{Title: "of its count"})
	t.Rows = append(t.Rows, offered)
	for _, l := range c.Limits {
		row := []string{cli.Printable(l.Limit)}
		for _, most := range l.Most {
			row = append(row, cli.Thousands(most))
		}
		if l.Window > 0 {
			window := time.Duration(l.Window * float64(time.Second)).Round(time.Nanosecond)
			row = append(row, cli.Duration(window), cli.Thousands(l.InWindow), cli.Fixed(l.Boundary)+"×")
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
