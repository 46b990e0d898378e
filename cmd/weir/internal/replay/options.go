package replay

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/simulate"
)

// options are the flags of weir replay.
type options struct {
	keys    []string
	cost    string
	limits  []string
	suggest string
	target  simulate.Target
	plot    *cli.Plot
	format  string
	top     int
}

// parse reads the flags.
func (o *options) parse() (simulate.Key, []simulate.Candidate, error) {
	fields := "fields: " + strings.Join(cli.LogFields, ", ") + ", or any field of JSON lines; several: --key ip,path"
	key, err := simulate.ParseKey(o.keys...)
	switch {
	case err != nil:
		return key, nil, cli.Misuse(errors.New("--"+cli.Inner(err)), fields)
	case len(o.limits) > 0 && o.suggest != "":
		return key, nil, cli.Misuse(errors.New("replay: --limit and --suggest exclude each other"), "first: weir replay --suggest 'refuse 0.1%' access.log; then try a suggestion with --limit")
	case o.suggest != "":
		if err := o.parseTarget(); err != nil {
			return key, nil, err
		}
	case len(o.limits) == 0:
		return key, nil, cli.Misuse(errors.New("replay: no --limit to try"), "for example: weir replay --limit 'token bucket 1/s burst 10' access.log")
	case o.format != "table" && o.format != "json":
		return key, nil, cli.Misuse(fmt.Errorf("--format: %q is not a format", o.format), "formats: table, json")
	case o.top < 0:
		return key, nil, cli.Misuse(fmt.Errorf("--top: %d is below 0", o.top), "0 shows no worst keys and minutes")
	}
	if err := o.plot.Check(); err != nil {
		return key, nil, err
	}
	candidates := make([]simulate.Candidate, len(o.limits))
	for i, text := range o.limits {
		if candidates[i], err = simulate.ParseCandidate(text); err != nil {
			return key, nil, cli.LimitError("--limit", err, cli.LimitForms)
		}
	}
	return key, candidates, nil
}

// targetForms are an example of each target.
var targetForms = []string{"refuse 0.1%", "spare 99%", "protect 200/s"}

// parseTarget reads the target of --suggest.
func (o *options) parseTarget() error {
	target, err := simulate.ParseTarget(o.suggest)
	if err != nil {
		return cli.LimitError("--suggest", err, []string{"a target is one of: " + strings.Join(targetForms, ", ")})
	}
	o.target = target
	return nil
}
