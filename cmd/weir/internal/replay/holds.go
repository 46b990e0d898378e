package replay

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/screen"
	"github.com/weirflow/weir/front"
	"github.com/weirflow/weir/internal/replay"
)

// holdOptions are the flags of reservations.
type holdOptions struct {
	estimate    string
	percent     int // of it; 0 without one
	least, most int64
	took        time.Duration
}

func (o *holdOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.estimate, "estimate", "", "also try reservations that hold this `QUANTILE` of the last costs of their key, such as p95")
	flags.Int64Var(&o.least, "estimate-min", 0, "hold at least `N` units (default 1)")
	flags.Int64Var(&o.most, "estimate-max", 0, "hold at most `N` units, and until 20 costs of a key are known (default the capacity of the limit)")
	flags.DurationVar(&o.took, "took", 0, "settle each reservation after this `TIME`")
	cli.Offer(cmd, "estimate", "p50", "p90", "p95", "p99")
}

// check reads the quantile, and refuses flags that would have no effect.
func (o *holdOptions) check(costs, suggests bool) (err error) {
	if o.estimate == "" {
		if o.most != 0 || o.least != 0 || o.took != 0 {
			return cli.Misuse(errors.New("replay: --estimate-min, --estimate-max or --took without --estimate"), "for example: --estimate p95 --estimate-max 8000")
		}
		return nil
	}
	digits, named := strings.CutPrefix(o.estimate, "p")
	o.percent, err = strconv.Atoi(digits)
	switch {
	case !named || err != nil || o.percent < 1 || o.percent > 99:
		return cli.Misusef("an estimate is p1 to p99: --estimate p95 holds what 95 of 100 calls do not exceed", "--estimate %s: no quantile", cli.Printable(o.estimate))
	case !costs:
		return cli.Misuse(errors.New("replay: --estimate without --cost"), "name the field with the true cost of a line: --cost tokens")
	case suggests:
		return cli.Misuse(errors.New("replay: --suggest and --estimate exclude each other"), "first search for a limit, then try what to hold under it")
	case o.least < 0 || o.most < 0 || o.took < 0:
		return cli.Misuse(errors.New("replay: --estimate-min, --estimate-max or --took is below 0"), "leave out a flag to have its default")
	}
	return nil
}

// try tries each limit with reservations.
func (o *holdOptions) try(traffic *replay.Traffic, candidates []replay.Candidate) (all []replay.HoldReport, err error) {
	options := replay.HoldOptions{Estimate: front.EstimateOptions{Percent: o.percent, Min: o.least, Max: o.most}, Took: o.took}
	for _, c := range candidates {
		reports, err := traffic.Holds(c, options)
		if err != nil {
			return nil, cli.Misuse(err, "docs/howto/replay.md says what a reservation can hold")
		}
		all = append(all, reports...)
	}
	return all, nil
}

// holdTable compares what reservations hold.
func holdTable(report replay.Report) screen.Table {
	t := screen.Table{Columns: []screen.Column{{Title: "limit", Rank: 2}, {Title: "held"}, {Title: "admitted", Colour: screen.Admitted},
		{Title: "refused", Colour: screen.Refused}, {Title: "needlessly", Rank: 1}, {Title: "units used", Rank: 3}, {Title: "beyond the limit"}}}
	for _, h := range report.Holds {
		t.Rows = append(t.Rows, []string{cli.Printable(h.Limit), h.Holds, cli.Thousands(h.Admitted), cli.Thousands(h.Refused),
			cli.Thousands(h.Needless), cli.Thousands(h.Used), cli.Thousands(h.Beyond)})
	}
	return t
}
