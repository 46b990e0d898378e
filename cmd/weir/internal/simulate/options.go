package simulate

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/simulate"
)

// options are the flags of weir simulate.
type options struct {
	cli.LogCommand
	classic  bool // no traffic is given
	traffic  string
	length   time.Duration
	wholeLog bool // a log ends at its end
	scenario simulate.Scenario
	server   string
}

// usualLength is the time of traffic without a log.
const usualLength = time.Minute

const noLimit = "unlimited"

// limits returns the texts of the limits. With a server, the first row shows its latency without a limit.
func (o *options) limits() ([]string, error) {
	texts := o.Limits
	if o.server != "" && !slices.Contains(texts, noLimit) {
		texts = append([]string{noLimit}, texts...)
	}
	_, err := cli.Candidates(texts)
	return texts, err
}

// checkScenario refuses flags that are out of bounds or do not fit together.
func (o *options) checkScenario() error {
	const durations = "it is a duration like 500ms, 10s or 1h30m"
	s := &o.scenario
	switch {
	case o.length <= 0 || o.length > weir.MaxPeriod:
		return cli.Misusef(durations, "--for: %s is not above 0 and at most 366 days", cli.Duration(o.length))
	case s.Wait < 0 || s.Wait > weir.MaxPeriod:
		return cli.Misusef(durations, "--wait: %s is not within 0 and 366 days", cli.Duration(s.Wait))
	case s.Processes < 1 || s.Processes > 1000:
		return cli.Misusef("each process holds its share of a limit, so there cannot be more processes than units", "--processes: %d is not within 1 and 1000", s.Processes)
	case s.Lose < 0:
		return cli.Misusef(durations, "--lose: %s is below 0", cli.Duration(s.Lose))
	case s.Lose > 0 && s.Processes < 2 && s.Sticky < 2:
		return cli.Misusef("add processes, like: --processes 4 --lose 30s, or daemons, like: --sticky 4 --lose 30s", "--lose without --processes")
	}
	if err := o.checkSticky(); err != nil {
		return err
	}
	if o.server == "" {
		return nil
	}
	rate, err := weir.ParseRate(o.server)
	if err != nil || rate.Count < 1 || rate.Period > weir.MaxPeriod {
		return cli.Misusef("a rate looks like 100/s or 5/10s", "--server: %q is not a rate", o.server)
	}
	s.Server = rate
	return nil
}

// checkSticky refuses daemons that do not fit the other flags.
func (o *options) checkSticky() error {
	s := &o.scenario
	switch {
	case s.Sticky < 0 || s.Sticky > 1000:
		return cli.Misusef("a number of daemons is like: --sticky 8", "--sticky: %d is not within 0 and 1000", s.Sticky)
	case s.Sticky > 0 && (s.Processes > 1 || !s.PerClient):
		return cli.Misusef("add --per-client, and leave --processes out: each daemon has whole limits, for its clients", "--sticky without --per-client, or with --processes")
	case s.Return != 0 && (s.Lose == 0 || s.Return <= s.Lose):
		return cli.Misusef("lose it before, like: --lose 20s --return 40s", "--return: %s is not after --lose", cli.Duration(s.Return))
	}
	return nil
}

// readLogs reads the logs that the traffic names, and says on errs which lines are left out.
func (o *options) readLogs(pattern simulate.Pattern, in io.Reader, errs io.Writer) error {
	for _, name := range pattern.Logs() {
		key, err := o.Key()
		if err != nil {
			return err
		}
		var counted int
		var left []simulate.Reason
		progress := cli.NewProgress(errs, cli.ProgressDelay)
		err = cli.ReadLog("simulate", name, in, progress, func(_ string, log io.Reader) (err error) {
			counted, left, err = pattern.ReadLog(name, key.String(), log)
			return err
		})
		progress.Stop()
		if err != nil {
			return err
		}
		for _, left := range left {
			fmt.Fprintf(errs, "weir: %s: %s left out: the line %s\n", cli.Printable(name), cli.Plural(left.Lines, "line"), cli.Printable(left.Reason))
		}
		if counted == 0 {
			return cli.Fail(fmt.Errorf("simulate: traffic %q: no line of the log %s counts", pattern, name), "a line needs a time and the fields of --key, in the combined or common format or as JSON")
		}
	}
	return nil
}

// setLength makes a log end at its end, unless --for says otherwise.
func (o *options) setLength(pattern simulate.Pattern) {
	if len(pattern.Logs()) == 0 || !o.wholeLog {
		o.scenario.Length = o.length
	}
}
