package serve

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/layer"
)

// layerOptions are the flags of the layers around a Redis.
type layerOptions struct {
	onFailure []string // RULE=POLICY, or a policy for the other rules
	peers     int
	deadline  time.Duration
	lease     bool
	files     map[string]layer.Policy // of rules in files, which flags override
}

// layerFlags are the names of these flags.
var layerFlags = []string{"on-failure", "peers", "deadline", "lease"}

const defaultDeadline = 15 * time.Millisecond

func (o *layerOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&o.onFailure, "on-failure", nil, "while Redis is away, answer `[RULE=]POLICY`: deny, allow, or local, by a share of the limits (default deny)")
	flags.IntVar(&o.peers, "peers", 0, "the number of daemons that share the Redis; --on-failure local admits the `N`th part of each limit")
	flags.DurationVar(&o.deadline, "deadline", defaultDeadline, "how long a decision of Redis may take")
	flags.BoolVar(&o.lease, "lease", false, "take blocks of permits of busy keys ahead, and decide from them")
}

func (o *layerOptions) check() error {
	switch {
	case o.deadline <= 0:
		return cli.Misusef("use a duration above 0, like 15ms", "--deadline %v: not above 0", o.deadline)
	case o.peers < 0:
		return cli.Misusef("count this daemon, too", "--peers %d: a negative number", o.peers)
	case o.peers == 0 && slices.Contains(slices.Collect(maps.Values(o.files)), layer.Local):
		return cli.Misusef("say how many daemons share the Redis: --peers 3", "--config: on_failure: local without --peers")
	case o.peers == 0 && slices.ContainsFunc(o.onFailure, func(text string) bool { return strings.HasSuffix(text, layer.Local.String()) }):
		return cli.Misusef("say how many daemons share the Redis: --peers 3", "--on-failure local without --peers")
	}
	return nil
}

// guard returns the options of the Guard.
func (o *layerOptions) guard(log *slog.Logger, rules []*weir.Rule) (layer.GuardOptions, error) {
	options := layer.GuardOptions{Rules: map[string]layer.Policy{}, Peers: o.peers, Deadline: o.deadline, Logger: log}
	maps.Copy(options.Rules, o.files)
	for _, text := range o.onFailure {
		name, policy := "", text
		if at := strings.LastIndexByte(text, '='); at >= 0 {
			name, policy = text[:at], text[at+1:]
		}
		var p layer.Policy
		if err := p.UnmarshalText([]byte(policy)); err != nil {
			return options, cli.Misusef("use deny, allow or local, or one of them for a rule: login=local", "--on-failure %s: no policy", cli.Printable(text))
		}
		known := func(r *weir.Rule) bool { return r.Name() == name }
		switch {
		case name == "":
			options.OnFailure = p
		case !slices.ContainsFunc(rules, known):
			return options, cli.Misusef("name a rule of --rule", "--on-failure %s: no such rule", cli.Printable(text))
		default:
			options.Rules[name] = p
		}
	}
	return options, nil
}
