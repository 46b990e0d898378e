package simulate

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/screen"
	"github.com/weirflow/weir/simulate"
)

// trafficTexts are an example of each traffic.
var trafficTexts = []string{
	"constant 50/s", "poisson 50/s", "burst 200/s for 1s every 10s", "ramp 1/s to 100/s over 1m", "diurnal 5/s to 50/s every 1d",
	"flash 10/s to 500/s at 20s for 5s", "storm 500 at 5s", "log access.log thin 10% speed 60",
	"poisson 50/s from 100 clients skew 1.1", "poisson 50/s cost 1 to 10", "constant 50/s retry every 100ms", "constant 50/s retry obeying jitter 1s",
}

// trafficForms are the hints below an unreadable traffic.
var trafficForms = []string{
	"traffic looks like: " + strings.Join(trafficTexts[:4], ", ") + "; join several with 'and'",
	"or: " + strings.Join(trafficTexts[4:8], ", "),
	"after it may follow: from 100 clients skew 1.1; cost 1 to 10; retry every 100ms; 'weir simulate --help' shows all",
}

// compare tries the limits on the traffic and writes the result to out.
func (o *options) compare(in io.Reader, out, errs io.Writer) error {
	pattern, err := simulate.ParsePattern(o.traffic)
	switch {
	case err != nil:
		return cli.LimitError("--traffic", err, trafficForms)
	case len(o.limits) == 0:
		return cli.Misuse(errors.New("simulate: no --limit to try"), "for example: weir simulate --traffic 'poisson 9/s' --limit 'token bucket 10/s burst 20'")
	}
	if err := o.checkScenario(); err != nil {
		return err
	}
	candidates, err := o.candidates()
	if err != nil {
		return err
	}
	progress := cli.NewProgress(errs, cli.ProgressDelay)
	defer progress.Stop()
	if err := o.readLogs(pattern, in, progress); err != nil {
		return err
	}
	o.setLength(pattern)
	o.scenario.Progress = progress.Stage("deciding")
	c, err := pattern.Compare(candidates, o.scenario)
	progress.Stop()
	if errors.Is(err, simulate.ErrShare) {
		return cli.Misuse(errors.New("simulate: "+cli.Inner(err)), "use fewer --processes, or a limit with a larger burst or count")
	}
	if err != nil {
		return cli.Fail(errors.New("simulate: "+cli.Inner(err)), "shorten the time with --for, lower the rate of the traffic, or bound its retries: up to 10 times")
	}
	drawn := comparisonPicture(c)
	if err := o.plot.File(drawn); err != nil {
		return err
	}
	return cli.WriteResult("simulate", out, o.format, c, func() string { return comparisonTable(c, o.scenario, cli.ScreenOf(out)) + o.plot.Below(out, drawn) })
}

// candidates parses the limits. With a server, the first row shows its latency without a limit.
func (o *options) candidates() ([]simulate.Candidate, error) {
	texts := o.limits
	if o.server != "" && !slices.Contains(texts, noLimit) {
		texts = append([]string{noLimit}, texts...)
	}
	candidates := make([]simulate.Candidate, len(texts))
	for i, text := range texts {
		var err error
		if candidates[i], err = simulate.ParseCandidate(text); err != nil {
			return nil, cli.LimitError("--limit", err, cli.LimitForms)
		}
	}
	return candidates, nil
}

const noLimit = "unlimited"

// checkScenario refuses flags that are out of bounds or do not fit together.
func (o *options) checkScenario() error {
	const durations = "it is a duration like 500ms, 10s or 1h30m"
	wrong := func(hint, format string, values ...any) error {
		return cli.Misuse(fmt.Errorf(format, values...), hint)
	}
	s := &o.scenario
	switch {
	case o.length <= 0 || o.length > weir.MaxPeriod:
		return wrong(durations, "--for: %s is not above 0 and at most 366 days", cli.Duration(o.length))
	case s.Wait < 0 || s.Wait > weir.MaxPeriod:
		return wrong(durations, "--wait: %s is not within 0 and 366 days", cli.Duration(s.Wait))
	case s.Processes < 1 || s.Processes > 1000:
		return wrong("each process holds its share of a limit, so there cannot be more processes than units", "--processes: %d is not within 1 and 1000", s.Processes)
	case s.Lose < 0:
		return wrong(durations, "--lose: %s is below 0", cli.Duration(s.Lose))
	case s.Lose > 0 && s.Processes < 2:
		return wrong("add processes, like: --processes 4 --lose 30s", "--lose without --processes")
	}
	if o.server == "" {
		return nil
	}
	rate, err := weir.ParseRate(o.server)
	if err != nil || rate.Count < 1 || rate.Period > weir.MaxPeriod {
		return wrong("a rate looks like 100/s or 5/10s", "--server: %q is not a rate", o.server)
	}
	s.Server = rate
	return nil
}

// readLogs reads the logs that the traffic names.
func (o *options) readLogs(pattern simulate.Pattern, in io.Reader, progress *cli.Progress) error {
	for _, name := range pattern.Logs() {
		key, err := simulate.ParseKey(o.keys...)
		if err != nil {
			return cli.Misuse(errors.New("--"+cli.Inner(err)), "fields: "+strings.Join(cli.LogFields, ", ")+", or any field of JSON lines; several: --key ip,path")
		}
		traffic := simulate.NewTraffic(key)
		if err := cli.ReadLog("simulate", traffic, name, in, progress); err != nil {
			return err
		}
		if err := pattern.UseLog(name, traffic); err != nil {
			return cli.Fail(errors.New("simulate: "+cli.Inner(err)), "a line needs a time and the fields of --key, in the combined or common format or as JSON")
		}
	}
	return nil
}

// setLength makes a log end at its end, unless --for says otherwise.
func (o *options) setLength(pattern simulate.Pattern) {
	o.scenario.Length = o.length
	if logs := pattern.Length(); logs > 0 && o.wholeLog {
		o.scenario.Length = min(logs, weir.MaxPeriod)
	}
}

// comparisonTable returns the comparison for people.
func comparisonTable(c simulate.Comparison, scenario simulate.Scenario, s screen.Screen) string {
	length := time.Duration(c.Seconds * float64(time.Second)).Round(time.Millisecond)
	if length > time.Minute {
		length = length.Round(time.Second)
	}
	head := fmt.Sprintf("%s, for %s: %s of %s\n%s\n", cli.Printable(c.Traffic), cli.Duration(length), cli.Plural(c.Requests, "request"), cli.Plural(int64(c.Clients), "client"), scenarioText(c, scenario))
	notes := "\nwait, starved, latency: seconds. starved: the longest run of refusals. most: units that go ahead within any such time;\n" +
		"the last columns are for the limit's own window, with the multiple of its count" + ofOneClient(scenario) + ".\n"
	if c.Clients > 1 {
		notes += "fairness: Jain's index of the units that each client gets, 1 if all get the same. shut out: clients never admitted.\n"
	}
	return s.Wrap(head, 2) + s.Table(fateTable(c, scenario)) + "\n" + s.Table(windowTable(c)) + s.Wrap(notes, 0)
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
	if s.Lose > 0 {
		parts = append(parts, "one of them is lost after "+cli.Duration(s.Lose))
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
