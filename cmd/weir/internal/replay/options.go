package replay

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/logrules"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/internal/replay"
)

// options are the flags of weir replay.
type options struct {
	cli.LogCommand
	cost     string
	suggest  string
	headroom string  // as given
	margin   float64 // the same, as a share
	target   replay.Target
	top      int
	names    bool // in the page of --report
	// customers is a file of their names, and named finds the name of a key in it.
	customers string
	named     func(key string) string
	price     float64 // of a unit of a cost; 0 without one
	holds     holdOptions
	reading   readOptions
	longest   time.Duration // of a request
	host      logrules.Host
	isSet     func(flag string) bool
}

// targetForms are an example of each target.
var targetForms = plain.TargetForms

// readHeadroom reads the share that a proposed limit adds to the need of the log.
func (o *options) readHeadroom() (err error) {
	if !o.isSet("headroom") {
		return nil
	}
	digits, percent := strings.CutSuffix(o.headroom, "%")
	o.margin, err = strconv.ParseFloat(digits, 64)
	switch {
	case !percent || err != nil || strings.Trim(digits, "0123456789.") != "" || o.margin > 1000:
		return cli.Misusef("a margin is like 30%, and at most 1000%", "--headroom: %q is no percentage", o.headroom)
	case o.suggest == "":
		return cli.Misusef("for example: --suggest 'refuse 0.1% of clients' --headroom 30%", "--headroom without --suggest")
	case strings.HasPrefix(o.suggest, "at"):
		return cli.Misusef("name the smaller rate: --suggest 'at most 150/s in all'", "--headroom with a target in all, which bounds admissions")
	}
	o.margin /= 100
	return nil
}

// mostPrice bounds the price of a unit.
const mostPrice = 1e9

// parse reads the flags.
func (o *options) parse() (key replay.Key, candidates []replay.Candidate, err error) {
	if key, err = o.Key(); err != nil {
		return key, nil, err
	}
	switch {
	case len(o.Limits) > 0 && o.suggest != "":
		return key, nil, cli.Misuse(errors.New("replay: --limit and --suggest exclude each other"), "first: weir replay --suggest 'refuse 0.1% of clients' access.log; then try a suggestion with --limit")
	case len(o.Limits) == 0 && len(o.Config) == 0 && o.suggest == "":
		return key, nil, cli.Misuse(errors.New("replay: no --limit and no --config to try"), "for example: weir replay --limit 'token bucket 1/s burst 10' access.log")
	case o.suggest != "" && o.isSet("top"):
		return key, nil, cli.Misusef("leave out --top; the page of --report has all that it shows", "--top with --suggest, which lists no worst keys")
	case o.names && o.Report == "":
		return key, nil, cli.Misusef("add the page: --report report.html --names", "--names without --report")
	case o.isSet("price") && len(o.Config) == 0:
		return key, nil, cli.Misusef("a price is that of a unit of a rule's cost: --price 0.002 --config weir.yaml", "--price without --config")
	case o.isSet("price") && (!(o.price > 0) || o.price > mostPrice):
		return key, nil, cli.Misusef("a price is that of a unit of a cost, such as 0.002", "--price: %v is not above 0 and at most %v", o.price, float64(mostPrice))
	case len(o.Config) == 0 && o.isSet("request-time"):
		return key, nil, cli.Misusef("limits are tried at the time of each line; only rules use it, to find unsure decisions", "--request-time without --config")
	}
	if err = cmp.Or(cli.NotNegative("top", o.top, "0 shows no worst keys and minutes"), o.host.Check("replay", "--config", len(o.Config) > 0)); err != nil {
		return key, nil, err
	}
	if o.suggest != "" {
		if o.target, err = replay.ParseTarget(o.suggest); err != nil {
			return key, nil, cli.LimitError("--suggest", err, []string{"a target is one of: " + strings.Join(targetForms, ", ")})
		}
	}
	if err = o.readHeadroom(); err != nil {
		return key, nil, err
	}
	if len(o.Config) > 0 {
		if err = o.checkRules(key); err != nil {
			return key, nil, err
		}
	}
	if o.named, err = customersOf(o.customers); err != nil {
		return key, nil, err
	}
	if err = o.holds.check(o.cost != "", o.suggest != ""); err != nil {
		return key, nil, err
	}
	candidates, err = cli.Candidates(o.Limits)
	return key, candidates, err
}
